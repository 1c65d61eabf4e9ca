/**
 * Content of a blob that only a deposed primary had (docs/design/geo-shipping.md "Report of a deposed primary"), read from the rows of its report alone.
 *
 * Invariant: bytes of another state are never given, nor zeros for what is not known. The rows that the stamp has now are the new primary's; a
 * generation number can be given there, too. So content whose rows are not in the report is refused (rule `geoReportedContentWhole`).
 */
import { type Outcome, ok, type Rules, refused } from "@stamp/base";
import { ownerOfRow } from "../garbage.ts";
import { contentKey, headRow, keptRow } from "../object-keys.ts";
import { getRow, type Plan, type RowEntry } from "../plan.ts";
import type { BlobContent } from "../results.ts";
import { readContent } from "./blobs.ts";
import type { KeyName } from "./encryption.ts";
import { isPending } from "./state/blob-state.ts";
import { decodeHead, type HeadState } from "./state/head-row.ts";

export interface ReportedContent extends KeyName, Pick<BlobContent, "lengthBytes" | "inline" | "places"> {
  /** Length of all of the content, in bytes. */
  readonly contentLengthBytes: number;
}

export interface ReportedBlob {
  /** Bytes with which all keys of the blob's rows begin. */
  readonly prefix: Uint8Array;
  /** Key of the head, or of a snapshot or version. */
  readonly key: Uint8Array;
  /** True if the report has the commit that began a generation of content, and so everything that was written into it. */
  readonly hasBegin: (generation: number) => boolean;
}

/** Returns the content between two bytes; fewer if one answer holds no more. The rows that the plan reads are those of the report. */
export function* reportedContent(rules: Rules, blob: ReportedBlob, start: number, end: number): Plan<Outcome<ReportedContent>> {
  const { prefix, key, hasBegin } = blob;
  const row = yield* getRow(key);
  if (row === undefined) return refused("notFound", "conflict", "the report has no such row that was written");
  const head = decodeHead(row);
  const { contentLengthBytes, encryptionKeySha256, encryptionScope } = head;
  const lacking = yield* lackingOf(prefix, head, hasBegin);
  if (lacking !== undefined && rules.on("geoReportedContentWhole")) return refused("failedPrecondition", "conflict", lacking);
  const content = yield* readContent(prefix, head, start, Math.min(end, contentLengthBytes));
  return ok({ ...content, contentLengthBytes, encryptionKeySha256, encryptionScope });
}

/** Returns why the content is not all in the report; undefined: it is. */
function* lackingOf(prefix: Uint8Array, head: HeadState, hasBegin: ReportedBlob["hasBegin"]): Plan<string | undefined> {
  if (isPending(head)) return "the blob was the destination of a copy that had not ended: it has no content yet";
  if (head.blobType === "PageBlob") {
    if (hasBegin(head.generation)) return undefined;
    return "the page blob was made before what the report has: which of its pages were written earlier is not known, so it is not read";
  }
  for (const [piece, startBytes] of head.pieceStarts.entries()) {
    if ((yield* getRow(contentKey(prefix, head.generation, piece))) !== undefined) continue;
    const endBytes = head.pieceStarts[piece + 1] ?? head.contentLengthBytes;
    return `the report has no row of bytes ${startBytes} to ${endBytes - 1} of ${head.contentLengthBytes}: they were written before, and the new primary had them`;
  }
  return undefined;
}

/** True for the key of a row that holds a state of a blob: its head, or a snapshot or version. */
export function isBlobState(key: Uint8Array): boolean {
  const owner = ownerOfRow(key);
  return owner.kind === "inside" && (owner.objectName[0] === headRow || owner.objectName[0] === keptRow);
}

/** True if the row is of a state whose content was begun in commit `sequence`. Throws FailureError for a damaged row. */
export const beginsContent = ({ key, value }: RowEntry, sequence: number): boolean =>
  isBlobState(key) && decodeHead(value).generation === sequence;
