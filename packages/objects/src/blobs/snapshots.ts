/** Snapshot Blob. A snapshot shares the content of its blob; with versioning what it was taken of becomes a version at the same time. */
import { checkWriteConditions } from "../conditions.ts";
import { lastModifiedMs } from "../etag.ts";
import { headKey } from "../object-keys.ts";
import type { OperationValue } from "../operation.ts";
import { answer, errorAnswer, fail, type Plan, type PlanContext, put, type RowWrite } from "../plan.ts";
import { checkKeyOrScope } from "./encryption.ts";
import { checkLeaseOfRead } from "./protect/leases.ts";
import { freeStamp, isArchived, isPending, keep, readBlob, retireAsVersion, stampOfNow } from "./state/blob-state.ts";
import { ContentUsers } from "./state/content-users.ts";
import { blobOf, encodeHead, type HeadState } from "./state/head-row.ts";

export const snapshotsMax = 100_000;

export function* snapshotBlob(value: OperationValue<"snapshotBlob">, context: PlanContext): Plan {
  const state = yield* readBlob(context, value.name);
  const { prefix, head } = state;
  if (!head) return fail("BlobNotFound");
  const error =
    checkLeaseOfRead("Blob", value.conditions.leaseId, head.lease, context.leases) ??
    checkWriteConditions(value.conditions, head, false) ??
    checkKeyOrScope(value.conditions, head);
  if (error) return errorAnswer(error);
  if (isPending(head)) return fail("PendingCopyOperation");
  if (isArchived(head)) return fail("BlobArchived");
  if (head.snapshotCount >= snapshotsMax) return fail("SnapshotCountExceeded");
  const stamp = yield* stampOfNow(context, state);
  const snapshot: HeadState = value.metadata === undefined ? head : withMetadata(context, head, value.metadata);
  const users = new ContentUsers();
  users.add(head);
  const writes: RowWrite[] = [keep(prefix, stamp, snapshot, { role: "snapshot" })];
  let next: HeadState = { ...head, snapshotCount: head.snapshotCount + 1, lastStamp: stamp, pageLayer: context.sequence };
  if (context.policy.versioning) {
    const versionStamp = yield* freeStamp(prefix, stamp + 1);
    writes.push(yield* retireAsVersion(prefix, head, [stamp, versionStamp]));
    users.add(head);
    next = { ...next, versionStamp, lastStamp: versionStamp };
  }
  writes.push(put(headKey(prefix), encodeHead(next)), ...(yield* users.writes(prefix)));
  const shown = blobOf(context, value.name.blob, { ...snapshot, role: "snapshot", lease: undefined }, stamp);
  return answer({ case: "blob", value: { ...shown, versionStamp: next.versionStamp } }, writes);
}

const withMetadata = (context: PlanContext, head: HeadState, metadata: HeadState["metadata"]): HeadState => ({
  ...head,
  metadata,
  etagSequence: context.sequence,
  lastModifiedMs: lastModifiedMs(context.wallMs, head.lastModifiedMs),
});
