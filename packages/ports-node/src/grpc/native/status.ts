/** Failures over plain gRPC: status code and metadata. */
import type { ServiceError, StatusObject } from "@grpc/grpc-js";
import { Metadata, status } from "@grpc/grpc-js";
import type { Failure, FailureCode, FailureReason } from "@stamp/base";

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
