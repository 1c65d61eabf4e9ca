/** Lease Blob and Lease Container: the lease is part of the row of what is leased (leases.ts). */
import { checkWriteConditions } from "../../conditions.ts";
import { etagOf } from "../../etag.ts";
import { containerKey, headKey } from "../../object-keys.ts";
import type { OperationValue } from "../../operation.ts";
import { answer, type Decision, errorAnswer, fail, getRow, type Plan, type PlanContext, put, refuse } from "../../plan.ts";
import { isPending, readBlob } from "../state/blob-state.ts";
import { decodeContainer, encodeContainer } from "../state/container-row.ts";
import { encodeHead } from "../state/head-row.ts";
import { actOnLease, infinite, type Lease } from "./leases.ts";

interface Leasable {
  readonly etagSequence: number;
  readonly lastModifiedMs: number;
  readonly lease: Lease | undefined;
}

type Value = OperationValue<"leaseBlob"> | OperationValue<"leaseContainer">;

function act(
  value: Value,
  context: PlanContext,
  state: Leasable,
  key: Uint8Array,
  encode: (lease: Lease | undefined) => Uint8Array,
): Decision {
  if (!isWellFormed(value)) return refuse("badRequest", `not a lease ${value.action} that can be`);
  const error = checkWriteConditions(value.conditions, state, false);
  if (error) return errorAnswer(error);
  const outcome = actOnLease({ ...value, leaseId: value.conditions.leaseId ?? "" }, state.lease, context.leases, context.sequence);
  if (outcome.kind === "refused") return errorAnswer(outcome.error);
  const { lease, written, endsMs, leftSeconds = 0 } = outcome;
  const { etagSequence, lastModifiedMs } = state;
  const leased = { etag: etagOf(etagSequence), lastModifiedMs, leaseId: lease?.id ?? "", leftSeconds };
  const timer = endsMs === undefined || !lease ? undefined : { id: lease.id, grant: lease.grant, endsMs };
  return answer({ case: "leased", value: leased }, written ? [put(key, encode(lease))] : [], timer);
}

const guid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const secondsBetween = (value: number, least: number, most: number): boolean => Number.isInteger(value) && value >= least && value <= most;

/** True if the request is well formed. The front-end tells users what is wrong; this is for whoever else asks. */
function isWellFormed({ action, proposedLeaseId, durationSeconds, breakPeriodSeconds, conditions }: Value): boolean {
  const named = guid.test(conditions.leaseId ?? "");
  switch (action) {
    case "acquire":
      return guid.test(proposedLeaseId) && (durationSeconds === infinite || secondsBetween(durationSeconds, 15, 60));
    case "change":
      return named && guid.test(proposedLeaseId);
    case "renew":
    case "release":
      return named;
    case "break":
      return breakPeriodSeconds === undefined || secondsBetween(breakPeriodSeconds, 0, 60);
    default:
      return false;
  }
}

export function* leaseBlob(value: OperationValue<"leaseBlob">, context: PlanContext): Plan {
  const { prefix, head } = yield* readBlob(context, value.name);
  if (!head) return fail("BlobNotFound");
  // The copy holds the blob's lease as it is until it ends.
  if (isPending(head)) return fail("PendingCopyOperation");
  return act(value, context, head, headKey(prefix), (lease) => encodeHead({ ...head, lease }));
}

export function* leaseContainer(value: OperationValue<"leaseContainer">, context: PlanContext): Plan {
  const key = containerKey(value.account, value.container);
  const row = yield* getRow(key);
  if (!row) return fail("ContainerNotFound");
  const state = decodeContainer(row);
  return act(value, context, state, key, (lease) => encodeContainer({ ...state, lease }));
}
