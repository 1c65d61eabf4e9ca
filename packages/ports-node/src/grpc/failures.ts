/** Failures on the two wires: BusFailure inside the bus, status code and metadata over plain gRPC. */
import { create } from "@bufbuild/protobuf";
import type { ServiceError, StatusObject } from "@grpc/grpc-js";
import { Metadata, status } from "@grpc/grpc-js";
import type { Failure, FailureCode, FailureReason } from "@stamp/base";
import type { BusFailure } from "@stamp/wire";
import { BusFailureSchema } from "@stamp/wire";

const statusOf: Readonly<Record<FailureCode, status>> = {
  cancelled: status.CANCELLED,
  invalidArgument: status.INVALID_ARGUMENT,
  deadlineExceeded: status.DEADLINE_EXCEEDED,
  notFound: status.NOT_FOUND,
  alreadyExists: status.ALREADY_EXISTS,
  permissionDenied: status.PERMISSION_DENIED,
  unauthenticated: status.UNAUTHENTICATED,
  resourceExhausted: status.RESOURCE_EXHAUSTED,
  failedPrecondition: status.FAILED_PRECONDITION,
  aborted: status.ABORTED,
  outOfRange: status.OUT_OF_RANGE,
  unimplemented: status.UNIMPLEMENTED,
  internal: status.INTERNAL,
  unavailable: status.UNAVAILABLE,
  dataLoss: status.DATA_LOSS,
};
const codeOf = new Map<status, FailureCode>(Object.entries(statusOf).map(([code, number]) => [number, code as FailureCode]));

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
    code: failure.code in statusOf ? (failure.code as FailureCode) : "internal",
    reason: failure.reason as FailureReason,
    message: failure.message,
    applied: failure.appliedUnknown ? "unknown" : "no",
    ...(Object.keys(failure.details).length > 0 ? { details: failure.details } : {}),
  };
}

const reasonKey = "stamp-reason";
const appliedKey = "stamp-applied";
/** All details as JSON: header names lose their case and values must be ASCII. */
const detailsKey = "stamp-details-bin";

/** Status for gRPC tools: each detail is also a metadata entry of its own where a header can hold it. */
export function toStatus(failure: Failure): Pick<StatusObject, "code" | "details" | "metadata"> {
  const metadata = new Metadata();
  metadata.set(reasonKey, failure.reason);
  metadata.set(appliedKey, failure.applied);
  if (failure.details) {
    metadata.set(detailsKey, Buffer.from(JSON.stringify(failure.details)));
    for (const [key, value] of Object.entries(failure.details)) {
      const name = key.toLowerCase();
      if (/^[a-z0-9_.-]+$/.test(name) && !name.endsWith("-bin") && !name.startsWith("grpc-") && /^[ -~]*$/.test(value))
        metadata.set(name, value);
    }
  }
  return { code: statusOf[failure.code], details: failure.message, metadata };
}

/** Returns the failure in a gRPC error; without our metadata it comes from grpc-js itself or from a stranger. */
export function fromServiceError(error: Partial<ServiceError>): Failure {
  const message = error.details ?? error.message ?? "unknown error";
  const code = codeOf.get(error.code ?? status.INTERNAL) ?? "internal";
  const reason = error.metadata?.get(reasonKey)[0];
  if (typeof reason === "string") {
    const applied = error.metadata?.get(appliedKey)[0] === "no" ? "no" : "unknown";
    const details = error.metadata?.get(detailsKey)[0];
    const parsed = details instanceof Buffer ? parseDetails(details) : undefined;
    return { code, reason: reason as FailureReason, message, applied, ...(parsed ? { details: parsed } : {}) };
  }
  switch (error.code) {
    case status.DEADLINE_EXCEEDED:
      return { code, reason: "timeout", message, applied: "unknown" };
    case status.CANCELLED:
      return { code, reason: "cancelled", message, applied: "unknown" };
    case status.UNIMPLEMENTED:
      return { code, reason: "unknownMethod", message, applied: "no" };
    case status.RESOURCE_EXHAUSTED:
      return { code, reason: "messageTooLarge", message, applied: "unknown" };
    case status.UNAVAILABLE:
      // grpc-js fails a call with these words when it never had a connection to give it to.
      return /^(No connection established|Name resolution failed)/.test(message)
        ? { code, reason: "connectFailed", message, applied: "no" }
        : { code, reason: "connectionLost", message, applied: "unknown" };
    default:
      return { code, reason: "bug", message, applied: "unknown" };
  }
}

function parseDetails(bytes: Buffer): Record<string, string> | undefined {
  try {
    return JSON.parse(bytes.toString("utf8")) as Record<string, string>;
  } catch {
    return undefined;
  }
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

/** The table of callers (packages/wire/src/callers.ts) does not name the role for this method. */
export const forbidden = (caller: string, method: string): Failure => ({
  code: "permissionDenied",
  reason: "unauthorized",
  message: `a process with the role ${caller} may not call ${method}`,
  applied: "no",
});
