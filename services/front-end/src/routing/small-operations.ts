/**
 * Operations to which large uploads give way (`RoomBeside`): those of requests for one object whose content is small.
 *
 * What every request needs (rows of accounts, containers, queues) is not among them, nor what belongs to a large upload, download or copy:
 * uploads would slow down themselves, with no small request in sight.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { SmallEnd, SmallOperation } from "@stamp/admission";
import type { Outcome } from "@stamp/base";
import type { OperationResult, OperationSchema } from "@stamp/wire";

type Operation = NonNullable<MessageInitShape<typeof OperationSchema>["kind"]>;

export interface Smallness {
  readonly access: SmallOperation["kind"];
  /** True if the operation is small for certain; false: only its answer tells. */
  readonly isSure: boolean;
}

const read: Smallness = { access: "read", isSure: true };
const write: Smallness = { access: "write", isSure: true };
/** Reads content, which may be large. */
const readOfContent: Smallness = { access: "read", isSure: false };

const writesOfContent: ReadonlySet<Operation["case"]> = new Set(["putBlob", "putBlock", "appendBlock", "putPages"]);

const writesOfBlobs: ReadonlySet<Operation["case"]> = new Set([
  "deleteBlob",
  "setBlobMetadata",
  "setBlobHeaders",
  "setBlobTags",
  "setBlobTier",
  "snapshotBlob",
  "leaseBlob",
]);

const queueOperations: ReadonlyMap<string | undefined, Smallness> = new Map([
  ["putMessage", write],
  ["getMessages", write],
  ["updateMessage", write],
  ["deleteMessage", write],
  ["peekMessages", read],
]);

/** Returns undefined for an operation that is none of a small request. */
export function smallnessOf(kind: Operation): Smallness | undefined {
  if (kind.case === "getBlob") {
    // Without its key a blob is looked at before its content changes, which may be a large upload.
    if (kind.value.withoutContent !== true) return readOfContent;
    return kind.value.withoutKey === true ? undefined : read;
  }
  if (kind.case === "queue") return queueOperations.get(kind.value.kind?.case);
  if (writesOfBlobs.has(kind.case)) return write;
  if (!writesOfContent.has(kind.case)) return undefined;
  const { body } = kind.value as { readonly body?: { readonly places?: readonly unknown[] } };
  return (body?.places?.length ?? 0) === 0 ? write : undefined;
}

/** Returns how an operation of a small request ended. Content that lies in places is read after this answer: the request is a large one. */
export function endOfSmall(outcome: Outcome<{ readonly result: OperationResult["kind"] }>): SmallEnd {
  if (outcome.ok) {
    const { result } = outcome.value;
    return result.case === "content" && result.value.places.length > 0 ? "large" : "small";
  }
  switch (outcome.failure.code) {
    case "cancelled":
      return "cancelled";
    case "resourceExhausted":
    case "unavailable":
    case "deadlineExceeded":
      return "refused";
    default:
      return "small";
  }
}
