/** Failures inside the stamp, as the service answers them. 500 means that it may have happened; everything else, that it did not. */
import { type RestError, type RestErrorOptions, restError } from "@stamp/azure-rest";
import type { Failure } from "@stamp/base";

/** Of what did not happen and may go well soon. */
const retryAfterSeconds = "1";

export function restErrorOf(failure: Failure): RestError {
  const because = (text: string): RestErrorOptions => ({ message: `${text} (${failure.reason}: ${failure.message})` });
  if (failure.applied === "unknown") {
    return failure.code === "internal" || failure.code === "dataLoss"
      ? restError("InternalError", {}, because("The server encountered an internal error. Please retry the request."))
      : restError("OperationTimedOut", {}, because("Operation could not be completed within the specified time."));
  }
  switch (failure.code) {
    case "internal":
    case "invalidArgument":
    case "dataLoss":
    case "unimplemented":
      return restError("InternalError", {}, because("The server encountered an internal error. Please retry the request."));
    default:
      return restError("ServerBusy", {}, { ...because("The server is busy."), headers: { "Retry-After": retryAfterSeconds } });
  }
}
