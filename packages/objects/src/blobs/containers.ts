/**
 * Operations on containers. A container is one row; its incarnation is the sequence of the commit that created it, so it is never used
 * again under that name, and it is part of the key of everything inside. Deleting a container removes the row and nothing else: what is
 * inside can't be reached from then on. With a retention time the row is kept under its incarnation, and restoring puts it back: with
 * the same incarnation, so with everything that was inside.
 */
import { checkReadConditions, checkWriteConditions } from "../conditions.ts";
import { lastModifiedMs } from "../etag.ts";
import { containerKey, deletedContainerKey } from "../object-keys.ts";
import type { Conditions, ContainerName, OperationValue } from "../operation.ts";
import { answer, done, errorAnswer, fail, getRow, type Plan, type PlanContext, put, type RowWrite, remove } from "../plan.ts";
import { afterWrite, checkLeaseOfRead, checkLeaseOfWrite } from "./protect/leases.ts";
import { deletedAt, isPurged } from "./protect/retention.ts";
import { type ContainerState, containerOf, decodeContainer, encodeContainer } from "./state/container-row.ts";

function* readContainer(name: ContainerName): Plan<ContainerState | undefined> {
  const row = yield* getRow(containerKey(name.account, name.container));
  return row ? decodeContainer(row) : undefined;
}

export function* createContainer(value: OperationValue<"createContainer">, context: PlanContext): Plan {
  if (yield* readContainer(value)) return fail("ContainerAlreadyExists");
  const state: ContainerState = {
    etagSequence: context.sequence,
    lastModifiedMs: lastModifiedMs(context.wallMs, undefined),
    metadata: value.metadata,
    incarnation: context.sequence,
    publicAccess: value.publicAccess,
    signedIdentifiers: [],
    lease: undefined,
    hasProtected: false,
    deletionBegun: 0,
    defaultEncryptionScope: value.defaultEncryptionScope ?? "",
    denyEncryptionScopeOverride: value.denyEncryptionScopeOverride ?? false,
    deleted: undefined,
  };
  return answer({ case: "container", value: containerOf(context, value.container, state) }, [putContainer(value, state)]);
}

export function* getContainer(value: OperationValue<"getContainer">, context: PlanContext): Plan {
  const state = yield* readContainer(value);
  if (!state) return fail("ContainerNotFound");
  const { conditions } = value;
  const error = checkLeaseOfRead("Container", conditions.leaseId, state.lease, context.leases) ?? checkReadConditions(conditions, state);
  return error ? errorAnswer(error) : answer({ case: "container", value: containerOf(context, value.container, state) });
}

export function* setContainerMetadata(value: OperationValue<"setContainerMetadata">, context: PlanContext): Plan {
  return yield* changeContainer(value, context, { metadata: value.metadata });
}

/** Changes a container. The lease guards its deletion; a change that names a lease id has to name the right one. */
function* changeContainer(
  value: ContainerName & { readonly conditions: Conditions },
  context: PlanContext,
  change: Partial<ContainerState>,
): Plan {
  const state = yield* readContainer(value);
  if (!state) return fail("ContainerNotFound");
  const { conditions } = value;
  const error =
    checkLeaseOfRead("Container", conditions.leaseId, state.lease, context.leases) ?? checkWriteConditions(conditions, state, false);
  if (error) return errorAnswer(error);
  const next: ContainerState = {
    ...state,
    ...change,
    etagSequence: context.sequence,
    lastModifiedMs: lastModifiedMs(context.wallMs, state.lastModifiedMs),
    lease: afterWrite(state.lease, context.leases),
  };
  return answer({ case: "container", value: containerOf(context, value.container, next) }, [putContainer(value, next)]);
}

/** Replaces both: who may read without authorization, and the stored access policies. */
export function* setContainerAcl(value: OperationValue<"setContainerAcl">, context: PlanContext): Plan {
  return yield* changeContainer(value, context, { publicAccess: value.publicAccess, signedIdentifiers: value.signedIdentifiers });
}

export function* deleteContainer(value: OperationValue<"deleteContainer">, context: PlanContext): Plan {
  const state = yield* readContainer(value);
  if (!state) return fail("ContainerNotFound");
  const { conditions } = value;
  const error =
    checkLeaseOfWrite("Container", conditions.leaseId, state.lease, context.leases) ?? checkWriteConditions(conditions, state, false);
  if (error) return errorAnswer(error);
  if (!wasLookedThrough(context, state, value.begun ?? 0)) return fail("ServerBusy");
  const writes: RowWrite[] = [remove(containerKey(value.account, value.container))];
  const { containerDeleteRetentionDays } = context.policy;
  if (containerDeleteRetentionDays > 0) {
    const deleted = deletedAt(context.wallMs, containerDeleteRetentionDays);
    const key = deletedContainerKey(value.account, value.container, state.incarnation);
    writes.push(put(key, encodeContainer({ ...state, lease: undefined, deleted })));
  }
  return answer(done, writes);
}

export function* restoreContainer(value: OperationValue<"restoreContainer">, context: PlanContext): Plan {
  const key = deletedContainerKey(value.account, value.container, value.incarnation);
  const row = yield* getRow(key);
  const kept = row && decodeContainer(row);
  if (!kept || isPurged(kept.deleted, context.wallMs)) return fail("ContainerNotFound");
  if (yield* readContainer(value)) return fail("ContainerAlreadyExists");
  const state: ContainerState = { ...kept, deleted: undefined };
  return answer({ case: "container", value: containerOf(context, value.container, state) }, [remove(key), putContainer(value, state)]);
}

/**
 * True if the deletion found nothing protected, and nothing was protected since: it began as `begun` (0: nothing inside was ever protected)
 * and no mark was made since then.
 */
const wasLookedThrough = ({ rules }: PlanContext, { hasProtected, deletionBegun }: ContainerState, begun: number): boolean =>
  begun === 0 ? !hasProtected : deletionBegun === begun || !rules.on("deletionAsksMarks");

/** Begins a deletion of a container in which something was protected once: answers which beginning stands, which a mark ends. */
export function* beginDeletion(value: OperationValue<"beginDeletion">, context: PlanContext): Plan {
  const state = yield* readContainer(value);
  if (state?.incarnation !== value.incarnation) return fail("ContainerNotFound");
  const next = state.deletionBegun > 0 ? state : { ...state, deletionBegun: context.sequence };
  const writes = next === state ? [] : [putContainer(value, next)];
  return answer({ case: "container", value: containerOf(context, value.container, next) }, writes);
}

/**
 * Something inside is about to be protected, or was protected just now: the container is looked through before it is deleted, and a deletion
 * that has begun begins anew (docs/design/model/protect.pml).
 */
export function* markProtected(value: OperationValue<"markProtected">): Plan {
  const state = yield* readContainer(value);
  if (state?.incarnation !== value.incarnation) return fail("ContainerNotFound");
  if (state.hasProtected && state.deletionBegun === 0) return answer(done);
  return answer(done, [putContainer(value, { ...state, hasProtected: true, deletionBegun: 0 })]);
}

const putContainer = (name: ContainerName, state: ContainerState): RowWrite =>
  put(containerKey(name.account, name.container), encodeContainer(state));
