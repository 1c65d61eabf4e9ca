/** Failures inside the stamp, as the service answers them. 500 means that it may have happened; everything else, that it did not. */
import { type RestError, type RestErrorOptions, restError } from "@stamp/azure-rest";
import type { Failure } from "@stamp/base";

/**
 * Retry-After of a request that did not happen and may succeed soon: at least a second, and no more than a client will
 * wait.
 */
const retryAfterSecondsMax = 30;

/** Returns 503 of an overloaded server. */
export function busyError(message: string, retryAfterMs = 1_000): RestError {
  const seconds = Math.min(retryAfterSecondsMax, Math.max(1, Math.ceil(retryAfterMs / 1_000)));
  return restError("ServerBusy", {}, { message, headers: { "Retry-After": String(seconds) } });
}

export function restErrorOf(failure: Failure): RestError {
  const because = (text: string): RestErrorOptions => ({ message: `${text} (${failure.reason}: ${failure.message})` });
  if (failure.applied === "unknown") {
    return failure.code === "internal" || failure.code === "dataLoss"
      ? restError("InternalError", {}, because("The server encountered an internal error. Please retry the request."))
      : restError("OperationTimedOut", {}, because("Operation could not be completed within the specified time."));
  }
  switch (failure.code) {
    // A front-end asks for nothing that a server of its own release refuses so.
    case "invalidArgument":
    case "unimplemented":
      return restError("InternalError", {}, because("A server of this stamp, perhaps of another release, refused this request."));
    case "internal":
    case "dataLoss":
      return restError("InternalError", {}, because("The server encountered an internal error. Please retry the request."));
    default: {
      const { message } = because("The server is busy.");
      return busyError(message ?? "", Number(failure.details?.retryAfterSeconds ?? 1) * 1_000);
    }
  }
}
