/**
 * Changes of the handles of a file as an operation, and other operations beside handles. The handles have a row in the PartitionName of the
 * file, so an operation and its look at the handles are one decision, and no move of a range forgets them (docs/design/model/handles.pml).
 *
 * A plan does not know whether a session has ended: the front-end asks the lock service and sends `end` (rule `handlesEndRecorded`).
 */
import { checkLeaseOfWrite } from "../blobs/protect/leases.ts";
import { readBlob, sizeOfBody } from "../blobs/state/blob-state.ts";
import type { HeadState } from "../blobs/state/head-row.ts";
import { isShareContainer } from "../object-keys.ts";
import type { Operation } from "../operation.ts";
import { answer, fail, getRow, type Plan, type PlanContext, put, refuse, remove } from "../plan.ts";
import { decodeOpenFile, encodeOpenFile, handlesKey } from "./handle-row.ts";
import {
  allRights,
  type ChangedFile,
  closed,
  deleteRight,
  disposed,
  type HandleRefusal,
  type Need,
  named,
  notOpen,
  type OpenFile,
  opened,
  readRight,
  refusalOf,
  withLock,
  withoutLock,
  writeRight,
} from "./handle-rules.ts";
import type { HandleStep, HandlesAnswer } from "./operation.ts";

export const onlyLists = ({ action }: Pick<HandleStep, "action">): boolean => action === "list";

export function* stepHandles(value: HandleStep, context: PlanContext): Plan {
  const { prefix, head } = yield* readBlob(context, value.name);
  const row = yield* getRow(handlesKey(prefix));
  const file = row ? decodeOpenFile(row) : notOpen;
  const lengthBytes = head?.contentLengthBytes ?? 0;
  const told = (decided: Omit<HandlesAnswer, "lengthBytes">, writes: Parameters<typeof answer>[1] = []) =>
    answer({ case: "handles", value: { ...decided, lengthBytes } }, writes);
  if (onlyLists(value)) return told({ file });
  if (!head) return fail("BlobNotFound");
  const deletes = (value.action === "dispose" && value.pending) || (value.action === "open" && value.handle?.deleteOnClose === true);
  if (deletes && head.metadata[":attributes"]?.includes("ReadOnly")) return told({ refused: "ReadOnlyAttribute", file });
  if (value.action === "open" && isKept(value, head, context)) return told({ refused: "SharingViolation", file });
  const changed = changeOf(value, context, file);
  if (changed === undefined) return refuse("badRequest", `no step of handles: ${value.action}`);
  if ("refused" in changed) return told({ refused: changed.refused, file });
  if (changed.file === file) return told({ file });
  const isNothing = changed.file.handles.length === 0 && !changed.file.pending;
  return told({ file: changed.file }, [isNothing ? remove(handlesKey(prefix)) : put(handlesKey(prefix), encodeOpenFile(changed.file))]);
}

/** True if the file is kept from the handle: a pending copy writes it, or a lease of REST keeps writers away. */
function isKept({ handle }: HandleStep, { copy, lease }: HeadState, { leases }: PlanContext): boolean {
  if (copy?.status === "pending") return true;
  const changes = ((handle?.access ?? 0) & (writeRight | deleteRight)) !== 0;
  return changes && checkLeaseOfWrite("Blob", undefined, lease, leases) !== undefined;
}

function changeOf(value: HandleStep, { rules }: PlanContext, file: OpenFile): ChangedFile | undefined {
  const { handle, lock, session, sessionEpoch } = value;
  switch (value.action) {
    case "open":
      return handle && opened(rules, file, handle, value);
    case "close":
      return { file: closed(file, ({ id }) => id === handle?.id) };
    case "closeAll":
      return { file: closed(file, () => true) };
    case "end":
      return { file: closed(file, (one) => one.session === session && one.sessionEpoch <= sessionEpoch) };
    case "named":
      return { file: named(file, value) };
    case "lock":
      return handle && lock && withLock(file, handle.id, lock);
    case "unlock":
      return handle && lock && withoutLock(file, handle.id, lock);
    case "dispose":
      return handle && disposed(file, handle.id, value.pending);
    default:
      return undefined;
  }
}

/** Runs the plan of an operation on a file's blob, unless its handles are in the way. `partition`: with which all keys of the blob begin. */
export function* besideHandles(partition: Uint8Array, operation: Operation, context: PlanContext, plan: Plan): Plan {
  const need = needOf(operation);
  if (need === undefined || !context.rules.on("handlesCheckedWhereWritten")) return yield* plan;
  const refused = yield* refusedByHandles(partition, need);
  if (refused === "FileLockConflict") return yield* besideLocks(partition, operation, context, need, plan);
  return refused ? fail(refused) : yield* plan;
}

/** Runs a plan that meets a lock if what it meets lies beyond the end of the file: nothing is read or taken away there. */
function* besideLocks(partition: Uint8Array, operation: Operation, context: PlanContext, need: Need, plan: Plan): Plan {
  const lengthBytes = "name" in operation.value ? ((yield* readBlob(context, operation.value.name)).head?.contentLengthBytes ?? 0) : 0;
  const refused = yield* refusedByHandles(partition, { ...need, range: withinFile(operation, need.range, lengthBytes) });
  return refused ? fail(refused) : yield* plan;
}

/** Returns the bytes of a file that a read reads, or that a new length takes away or adds. Undefined: none. */
function withinFile({ case: kind, value }: Operation, range: Need["range"], lengthBytes: number): Need["range"] {
  const resizes = kind === "setPageBlobProperties";
  if (range === undefined || (range.writes && !resizes)) return range;
  const ends = resizes ? [value.contentLengthBytes ?? lengthBytes, lengthBytes] : [range.startBytes, Math.min(range.endBytes, lengthBytes)];
  const [startBytes = 0, endBytes = 0] = resizes ? ends.sort((one, other) => one - other) : ends;
  return startBytes < endBytes ? { ...range, startBytes, endBytes } : undefined;
}

/** Returns the refusal by the file's handles; undefined: the operation may go on. */
export function* refusedByHandles(partition: Uint8Array, need: Need): Plan<HandleRefusal | undefined> {
  const row = yield* getRow(handlesKey(partition));
  if (row === undefined && need.handleId === undefined) return undefined;
  return refusalOf(row ? decodeOpenFile(row) : notOpen, need);
}

const everything = { startBytes: 0, endBytes: Number.MAX_SAFE_INTEGER, writes: true } as const;
const replaces = { access: writeRight | deleteRight, share: allRights, range: everything } as const;

/** Removes or renames a file, by REST or by a handle. */
export const removalNeed = (handleId: string | undefined): Need => ({ access: deleteRight, share: allRights, handleId });

/** Actions after which there is a lease where there was none: one that has expired is renewed. */
const begins: ReadonlySet<string> = new Set(["acquire", "renew"]);

/** Returns what an operation needs of those who hold its file; undefined: it is none of a share, or goes on beside them. */
export function needOf(operation: Operation): Need | undefined {
  const { value } = operation;
  if (!("name" in value) || typeof value.name !== "object" || !isShareContainer(value.name.container)) return undefined;
  const { handleId, usesRights } = ("conditions" in value ? value.conditions : undefined) ?? {};
  const uses = (access: number, range?: Need["range"]): Need => ({ access, share: allRights, handleId, range });
  if (usesRights !== undefined) return uses(usesRights);
  switch (operation.case) {
    case "getBlob": {
      const { startBytes = 0, endBytes = everything.endBytes, withoutContent } = operation.value;
      return withoutContent ? uses(0) : uses(readRight, { startBytes, endBytes, writes: false });
    }
    case "abortCopy":
      return uses(0);
    case "getPageRanges":
      return uses(readRight);
    case "readParts":
      return uses(readRight, { ...everything, writes: false });
    case "setBlobMetadata":
    case "setBlobHeaders":
      return uses(writeRight);
    case "setPageBlobProperties": {
      const { contentLengthBytes } = operation.value;
      return uses(writeRight, contentLengthBytes === undefined ? undefined : { ...everything, startBytes: contentLengthBytes });
    }
    case "putPages": {
      const { startBytes, body } = operation.value;
      return uses(writeRight, { startBytes, endBytes: startBytes + sizeOfBody(body), writes: true });
    }
    case "clearPages":
      return uses(writeRight, { startBytes: operation.value.startBytes, endBytes: operation.value.endBytes, writes: true });
    case "putBlob":
    case "startCopy":
    case "deleteBlob":
      return { ...replaces, handleId };
    case "leaseBlob":
      // A lease keeps other writers away, so nobody may have the file open for writing.
      return { access: 0, share: begins.has(operation.value.action) ? readRight : allRights };
    default:
      return undefined;
  }
}
