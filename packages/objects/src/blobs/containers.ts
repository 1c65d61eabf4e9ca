/**
 * Operations on containers. A container is one row; its incarnation is the sequence of the commit that created it, so it is never used
 * again under that name, and it is part of the key of everything inside. Deleting a container removes the row and nothing else: what is
 * inside can't be reached from then on.
 */

import { checkReadConditions, checkWriteConditions } from "../conditions.ts";
import { type ServiceError, serviceError } from "../errors.ts";
import { lastModifiedMs } from "../etag.ts";
import { containerKey } from "../object-keys.ts";
import type { Conditions, ContainerName, OperationValue } from "../operation.ts";
import { answer, done, errorAnswer, fail, getRow, type Plan, type PlanContext } from "../plan.ts";
import { type ContainerState, containerOf, decodeContainer, encodeContainer } from "./blob-rows.ts";

function* readContainer(name: ContainerName): Plan<ContainerState | undefined> {
  const row = yield* getRow(containerKey(name.account, name.container));
  return row ? decodeContainer(row) : undefined;
}

/** No container is leased: a request that names a lease is told so. */
const checkLease = (conditions: Conditions): ServiceError | undefined =>
  conditions.leaseId === undefined ? undefined : serviceError("LeaseNotPresentWithContainerOperation");

export function* createContainer(value: OperationValue<"createContainer">, context: PlanContext): Plan {
  if (yield* readContainer(value)) return fail("ContainerAlreadyExists");
  const state: ContainerState = {
    etagSequence: context.sequence,
    lastModifiedMs: lastModifiedMs(context.wallMs, undefined),
    metadata: value.metadata,
    incarnation: context.sequence,
    publicAccess: value.publicAccess,
    signedIdentifiers: [],
  };
  return answer({ case: "container", value: containerOf(value.container, state) }, [put(value, state)]);
}

export function* getContainer(value: OperationValue<"getContainer">): Plan {
  const state = yield* readContainer(value);
  if (!state) return fail("ContainerNotFound");
  const error = checkLease(value.conditions) ?? checkReadConditions(value.conditions, state);
  return error ? errorAnswer(error) : answer({ case: "container", value: containerOf(value.container, state) });
}

export function* setContainerMetadata(value: OperationValue<"setContainerMetadata">, context: PlanContext): Plan {
  const state = yield* readContainer(value);
  if (!state) return fail("ContainerNotFound");
  const error = checkLease(value.conditions) ?? checkWriteConditions(value.conditions, state, false);
  if (error) return errorAnswer(error);
  const next: ContainerState = {
    ...state,
    etagSequence: context.sequence,
    lastModifiedMs: lastModifiedMs(context.wallMs, state.lastModifiedMs),
    metadata: value.metadata,
  };
  return answer({ case: "container", value: containerOf(value.container, next) }, [put(value, next)]);
}

/** Replaces both: who may read without authorization, and the stored access policies. */
export function* setContainerAcl(value: OperationValue<"setContainerAcl">, context: PlanContext): Plan {
  const state = yield* readContainer(value);
  if (!state) return fail("ContainerNotFound");
  const error = checkLease(value.conditions) ?? checkWriteConditions(value.conditions, state, false);
  if (error) return errorAnswer(error);
  const next: ContainerState = {
    ...state,
    etagSequence: context.sequence,
    lastModifiedMs: lastModifiedMs(context.wallMs, state.lastModifiedMs),
    publicAccess: value.publicAccess,
    signedIdentifiers: value.signedIdentifiers,
  };
  return answer({ case: "container", value: containerOf(value.container, next) }, [put(value, next)]);
}

export function* deleteContainer(value: OperationValue<"deleteContainer">): Plan {
  const state = yield* readContainer(value);
  if (!state) return fail("ContainerNotFound");
  const error = checkLease(value.conditions) ?? checkWriteConditions(value.conditions, state, false);
  if (error) return errorAnswer(error);
  return answer(done, [{ kind: "delete", key: containerKey(value.account, value.container) }]);
}

const put = (name: ContainerName, state: ContainerState) =>
  ({ kind: "put", key: containerKey(name.account, name.container), value: encodeContainer(state) }) as const;
