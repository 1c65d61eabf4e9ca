/** Failures on the two wires: BusFailure inside the bus; status code and metadata over plain gRPC are in `native/status.ts`. */
import { create } from "@bufbuild/protobuf";
import type { Failure, FailureCode, FailureReason } from "@stamp/base";
import type { BusFailure } from "@stamp/wire";
import { BusFailureSchema } from "@stamp/wire";

const codes: Readonly<Record<FailureCode, true>> = {
  cancelled: true,
  invalidArgument: true,
  deadlineExceeded: true,
  notFound: true,
  alreadyExists: true,
  permissionDenied: true,
  unauthenticated: true,
  resourceExhausted: true,
  failedPrecondition: true,
  aborted: true,
  outOfRange: true,
  unimplemented: true,
  internal: true,
  unavailable: true,
  dataLoss: true,
};

export function toBusFailure(failure: Failure): BusFailure {
  return create(BusFailureSchema, {
    code: failure.code,
    reason: failure.reason,
    message: failure.message,
    appliedUnknown: failure.applied === "unknown",
    details: { ...failure.details },
  });
}

export function fromBusFailure(failure: BusFailure): Failure {
  return {
    code: Object.hasOwn(codes, failure.code) ? (failure.code as FailureCode) : "internal",
    reason: failure.reason as FailureReason,
    message: failure.message,
    applied: failure.appliedUnknown ? "unknown" : "no",
    ...(Object.keys(failure.details).length > 0 ? { details: failure.details } : {}),
  };
}

export const timeoutFailure = (applied: "no" | "unknown", what: string): Failure => ({
  code: "deadlineExceeded",
  reason: "timeout",
  message: `${what}: no answer in time`,
  applied,
});

export const cancelledFailure = (applied: "no" | "unknown", what: string): Failure => ({
  code: "cancelled",
  reason: "cancelled",
  message: `${what}: the caller gave up`,
  applied,
});

export const unknownMethodFailure = (name: string): Failure => ({
  code: "unimplemented",
  reason: "unknownMethod",
  message: `${name} is not served here`,
  applied: "no",
});

/** Failure of a call that was in progress when the time of a stopping process was over. */
export const cutFailure: Failure = {
  code: "unavailable",
  reason: "connectionLost",
  message: "the service stopped before the call was over",
  applied: "unknown",
};
export const stoppingFailure: Failure = { code: "unavailable", reason: "stopping", message: "the service is stopping", applied: "no" };
/** The secret that the caller's connection was proven with was taken out of use; the next connection is proven with another one. */
export const renewedFailure: Failure = {
  code: "unavailable",
  reason: "stopping",
  message: "the connection ends: the secret that it was proven with is no longer accepted",
  applied: "no",
};
export const isRenewed = ({ reason, message }: Failure): boolean => reason === renewedFailure.reason && message === renewedFailure.message;

/** Returns the refusal of a method that the table of callers (packages/wire/src/callers.ts) does not give the role. */
export const forbidden = (caller: string, method: string): Failure => ({
  code: "permissionDenied",
  reason: "unauthorized",
  message: `a process with the role ${caller} may not call ${method}`,
  applied: "no",
});
