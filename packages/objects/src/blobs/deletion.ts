/**
 * Delete Blob and Undelete Blob. With versioning a blob that is deleted becomes an earlier version; with a retention time it is kept, hidden,
 * as are its snapshots and versions; else it is gone. A blob that has uncommitted blocks only is gone with them. What has many snapshots is deleted in several commits, the blob itself in the last:
 * the answer says that there is `more`, and the same is asked again.
 */
import { checkWriteConditions } from "../conditions.ts";
import { afterPrefix, headKey, keptPrefix } from "../object-keys.ts";
import type { OperationValue } from "../operation.ts";
import {
  answer,
  type Decision,
  errorAnswer,
  fail,
  type Plan,
  type PlanContext,
  put,
  type RowEntry,
  type RowWrite,
  remove,
  successor,
  walkRows,
} from "../plan.ts";
import { checkLeaseOfRead } from "./protect/leases.ts";
import { isOver, protectionOf } from "./protect/protection.ts";
import { deletedAt } from "./protect/retention.ts";
import {
  type BlobState,
  becomesVersion,
  checkWrite,
  dropStaging,
  findKept,
  readBlob,
  readLiveStaging,
  readStaging,
  retireAsVersion,
} from "./state/blob-state.ts";
import { ContentUsers } from "./state/content-users.ts";
import { decodeHead, encodeHead, type HeadState } from "./state/head-row.ts";

/** Bytes of kept rows that one commit changes at most. */
const changedBytesMax = 1024 * 1024;

const gone = (permanent: boolean, more = false): Decision["result"] => ({ case: "deleted", value: { permanent, more } });

/** Returns the request without `If-None-Match: *`: the service deletes a blob that is there all the same (docs/api/outcomes.md). */
const conditioned = (value: OperationValue<"deleteBlob">): OperationValue<"deleteBlob"> =>
  value.conditions.ifNoneMatch?.trim() === "*" ? { ...value, conditions: { ...value.conditions, ifNoneMatch: undefined } } : value;

export function* deleteBlob(asked: OperationValue<"deleteBlob">, context: PlanContext): Plan {
  const value = conditioned(asked);
  const { snapshotStamp = 0, versionStamp = 0 } = value.name;
  const state = yield* readBlob(context, value.name);
  if (snapshotStamp > 0) return yield* deleteKept(value, context, state);
  if (versionStamp > 0) {
    if (state.head?.versionStamp === versionStamp) return fail("OperationNotAllowedOnRootBlob");
    return yield* deleteKept(value, context, state);
  }
  return yield* deleteBase(value, context, state);
}

/** Deletes a snapshot or a version. */
function* deleteKept(value: OperationValue<"deleteBlob">, context: PlanContext, state: BlobState): Plan {
  const found = yield* findKept(context, value.name);
  if (!found) return fail("BlobNotFound");
  const { head, prefix, key } = found;
  if (head.deleted !== undefined && !value.permanent) return fail("BlobNotFound");
  const error =
    checkLeaseOfRead("Blob", value.conditions.leaseId, undefined, context.leases) ?? checkWriteConditions(value.conditions, head, false);
  if (error) return errorAnswer(error);
  // Only what was deleted softly can be deleted for good, and only where the account allows it.
  if (value.permanent && (head.deleted === undefined || !context.policy.permanentDelete)) return fail("BlobOperationNotSupported");
  const counted = head.role === "snapshot" && head.deleted === undefined && state.head;
  const writes = counted ? [put(headKey(prefix), encodeHead({ ...counted, snapshotCount: counted.snapshotCount - 1 }))] : [];
  const { deleteRetentionDays } = context.policy;
  if (!value.permanent && deleteRetentionDays > 0) {
    writes.push(put(key, encodeHead({ ...head, deleted: deletedAt(context.wallMs, deleteRetentionDays) })));
    return answer(gone(false), writes);
  }
  const users = new ContentUsers();
  users.drop(head);
  return answer(gone(true), [...writes, remove(key), ...(yield* users.writes(prefix))]);
}

/** Deletes a blob that was never committed: its blocks are what there is of it. */
function* deleteStaged(value: OperationValue<"deleteBlob">, context: PlanContext, prefix: Uint8Array): Plan {
  const staging = yield* readLiveStaging(context, prefix);
  if (!staging || value.snapshots === "only") return fail("BlobNotFound");
  const error = checkWrite(context, value.conditions, undefined, false);
  return error ? errorAnswer(error) : answer(gone(true), yield* dropStaging(prefix, staging));
}

/** True if the blob has a snapshot that was deleted softly and is still kept. */
function* hasDeletedSnapshot(context: PlanContext, prefix: Uint8Array): Plan<boolean> {
  const low = keptPrefix(prefix);
  let found = false;
  yield* walkRows(low, afterPrefix(low), (row) => {
    const state = decodeHead(row.value);
    found = state.role === "snapshot" && state.deleted !== undefined && !isOver(state, context);
    return found ? undefined : successor(row.key);
  });
  return found;
}

function* deleteBase(value: OperationValue<"deleteBlob">, context: PlanContext, { prefix, head }: BlobState): Plan {
  if (!head) return yield* deleteStaged(value, context, prefix);
  const error = checkWrite(context, value.conditions, head, false);
  if (error) return errorAnswer(error);
  if (!value.snapshots && head.snapshotCount > 0) return fail("SnapshotsPresent");
  const version = becomesVersion(context, head);
  // The protection is checked before the first of several commits deletes snapshots; the last commit is guarded as every other is.
  const protection = value.snapshots === "only" || version ? undefined : protectionOf(head, context);
  if (protection) return fail(protection);
  const retentionDays = context.policy.deleteRetentionDays;
  // Without the blob nobody could undelete its softly deleted snapshots before their time is over.
  const goesForGood = !value.snapshots && !version && retentionDays === 0;
  if (goesForGood && (yield* hasDeletedSnapshot(context, prefix))) return fail("SnapshotsPresent");
  const users = new ContentUsers();
  const writes: RowWrite[] = [];
  let snapshotCount = head.snapshotCount;
  if (snapshotCount > 0) {
    const deleted = deletedAt(context.wallMs, retentionDays);
    const changed = yield* changeKept(prefix, (state) => {
      if (state.role !== "snapshot" || state.deleted !== undefined) return undefined;
      return { state: retentionDays > 0 ? { ...state, deleted } : undefined };
    });
    writes.push(...changed.writes);
    for (const state of changed.dropped) users.drop(state);
    snapshotCount -= changed.count;
  }
  const more = snapshotCount > 0;
  if (more || value.snapshots === "only") {
    writes.push(put(headKey(prefix), encodeHead({ ...head, snapshotCount })), ...(yield* users.writes(prefix)));
    return answer(gone(retentionDays === 0, more), writes);
  }
  writes.push(...(yield* dropStaging(prefix, yield* readStaging(prefix))));
  const kept = version || retentionDays > 0;
  if (version) writes.push(yield* retireAsVersion(prefix, head, []), remove(headKey(prefix)));
  else if (kept) writes.push(put(headKey(prefix), encodeHead(hiddenHead(context, head, retentionDays))));
  else {
    users.drop(head);
    writes.push(remove(headKey(prefix)));
  }
  return answer(gone(!kept), [...writes, ...(yield* users.writes(prefix))]);
}

const hiddenHead = (context: PlanContext, head: HeadState, retentionDays: number): HeadState => ({
  ...head,
  lease: undefined,
  snapshotCount: 0,
  deleted: deletedAt(context.wallMs, retentionDays),
});

interface KeptChange {
  /** State that the row has afterwards; undefined: the row is deleted. */
  readonly state: HeadState | undefined;
}

interface KeptChanges {
  readonly writes: RowWrite[];
  readonly dropped: HeadState[];
  count: number;
  more: boolean;
}

/** Changes the kept rows that `change` wants changed, oldest first, as many as one commit takes. */
function* changeKept(prefix: Uint8Array, change: (state: HeadState) => KeptChange | undefined): Plan<KeptChanges> {
  const changes: KeptChanges = { writes: [], dropped: [], count: 0, more: false };
  let bytes = 0;
  const low = keptPrefix(prefix);
  const visit = (row: RowEntry): Uint8Array | undefined => {
    const state = decodeHead(row.value);
    const changed = change(state);
    if (!changed) return successor(row.key);
    if (bytes > changedBytesMax) {
      changes.more = true;
      return undefined;
    }
    changes.writes.push(changed.state ? put(row.key, encodeHead(changed.state)) : remove(row.key));
    if (!changed.state) changes.dropped.push(state);
    changes.count++;
    bytes += 2 * row.key.length + row.value.length;
    return successor(row.key);
  };
  yield* walkRows(low, afterPrefix(low), visit);
  return changes;
}

/** Restores everything of the blob that was deleted softly and is still kept; snapshots only under a blob that is there. */
export function* undeleteBlob(value: OperationValue<"undeleteBlob">, context: PlanContext): Plan {
  const { prefix, head, hidden } = yield* readBlob(context, value.name);
  const restorable = hidden?.deleted !== undefined && !isOver(hidden, context) ? hidden : undefined;
  const base = head ?? restorable;
  let snapshots = 0;
  let there = base !== undefined;
  const changed = yield* changeKept(prefix, (state) => {
    if (isOver(state, context)) return { state: undefined };
    there = true;
    if (state.deleted === undefined || (state.role === "snapshot" && !base)) return undefined;
    if (state.role === "snapshot") snapshots++;
    return { state: { ...state, deleted: undefined } };
  });
  if (!there) return fail("BlobNotFound");
  const users = new ContentUsers();
  for (const state of changed.dropped) users.drop(state);
  const writes = [...changed.writes, ...(yield* users.writes(prefix))];
  if (base && (restorable !== undefined || snapshots > 0)) {
    const next: HeadState = { ...base, deleted: undefined, snapshotCount: base.snapshotCount + snapshots };
    writes.push(put(headKey(prefix), encodeHead(next)));
  }
  return answer(gone(false, changed.more), writes);
}
