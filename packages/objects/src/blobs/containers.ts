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
import { type ContainerState, containerOf, decodeContainer, encodeContainer } from "./container-row.ts";
import { afterWrite, checkLeaseOfRead, checkLeaseOfWrite } from "./leases.ts";
import { deletedAt, isPurged } from "./retention.ts";

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

/** A container's lease guards its deletion; who names one when he changes it has to have it. */
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

/** Something inside is about to be protected: from now on the container is looked through before it is deleted. */
export function* markProtected(value: OperationValue<"markProtected">): Plan {
  const state = yield* readContainer(value);
  if (state?.incarnation !== value.incarnation) return fail("ContainerNotFound");
  return answer(done, state.hasProtected ? [] : [putContainer(value, { ...state, hasProtected: true })]);
}

const putContainer = (name: ContainerName, state: ContainerState): RowWrite =>
  put(containerKey(name.account, name.container), encodeContainer(state));
