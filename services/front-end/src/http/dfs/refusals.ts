/** Refusals of trees, as Data Lake Storage answers them. */
import { type RestError, rejected, restError, restErrorOfService } from "@stamp/azure-rest";
import type { Result } from "@stamp/tree";
import { busyError } from "../../objects/failures.ts";

type Refused = Extract<Result<unknown>, { readonly ok: false }>;

export function treeError({ refusal, condition = "" }: Refused): RestError {
  switch (refusal) {
    case "notFound":
      return restError("PathNotFound");
    case "notDirectory":
      return restError("PathConflict");
    case "exists":
      return restError("PathAlreadyExists");
    case "notEmpty":
      return restError("DirectoryNotEmpty");
    case "isDirectory":
    case "isFile":
      return restError("ResourceTypeMismatch");
    case "cycle":
      return restError("InvalidRenameSourcePath");
    case "isRoot":
      return restError("InvalidUri");
    case "badContinuation":
      return rejected("InvalidQueryParameterValue", { QueryParameterName: "continuation", Reason: "It is none of this list." }).error;
    case "conditionNotMet":
      return restErrorOfService(condition, "", { status: "412" });
    case "busy":
      return busyError("Another operation on this path is under way.");
    case "changed":
      return busyError("The path names something else than when the caller's rights were looked at.");
    case "unknown":
      return restError("OperationTimedOut");
    default:
      return rejected("InvalidResourceName", { Reason: `The path is refused: ${refusal}.` }).error;
  }
}

export const refused = (result: Refused): { readonly ok: false; readonly error: RestError } => ({ ok: false, error: treeError(result) });
