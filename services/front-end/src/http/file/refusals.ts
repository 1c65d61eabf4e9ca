/** Refusals of trees, as the Files service answers them. */
import { type RestError, rejected, restError, restErrorOfService } from "@stamp/azure-rest";
import type { Result } from "@stamp/tree";
import { isHandleRefusal } from "../../trees/handles.ts";
import { treeError } from "../dfs/refusals.ts";

type Refused = Extract<Result<unknown>, { readonly ok: false }>;

function errorOf(result: Refused): RestError {
  switch (result.refusal) {
    case "notFound":
      return restError("ParentNotFound");
    case "notDirectory":
      return restError("ParentNotFound");
    case "exists":
      return restError("ResourceAlreadyExists");
    case "badContinuation":
      return rejected("InvalidQueryParameterValue", { QueryParameterName: "marker", Reason: "It is none of this list." }).error;
    case "cycle":
      return restError("InvalidInput", { Reason: "A directory can't be moved below itself." });
    case "nameTooLong":
    case "pathTooLong":
    case "tooDeep":
      return restError("InvalidFileOrDirectoryPathName", { Reason: `The path is refused: ${result.refusal}.` });
    case "conditionNotMet":
      return isHandleRefusal(result.condition ?? "") ? restErrorOfService(result.condition ?? "", "", {}) : treeError(result);
    default:
      return treeError(result);
  }
}

export const refusedFile = (result: Refused): { readonly ok: false; readonly error: RestError } => ({ ok: false, error: errorOf(result) });
