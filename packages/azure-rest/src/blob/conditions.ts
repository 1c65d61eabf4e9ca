/** Conditions of a request: those of its operation's row (operation-rows.ts), and no others. */
import type { HttpHeaders } from "../headers.ts";
import { badHeader, type Parsed, parsed, rejected } from "../rest-error.ts";
import { conditionHeaders } from "./header-groups.ts";
import { type BlobOperationName, type BlobOperationRow, blobOperations } from "./operation-rows.ts";

/** Conditions of a row, of this service or of Data Lake Storage. */
type RowConditions = Pick<BlobOperationRow, "conditions" | "severalEtags">;

export function checkRowConditions({ conditions = [], severalEtags }: RowConditions, headers: HttpHeaders): Parsed<void> {
  for (const name of conditionHeaders) {
    const value = headers[name];
    if (value === undefined) continue;
    if (!conditions.includes(name)) {
      const code = name.startsWith("if-") || name === "x-ms-if-tags" ? "ConditionHeadersNotSupported" : "UnsupportedHeader";
      return rejected(code, { HeaderName: name });
    }
    // No blob that can be read satisfies it.
    if (name.endsWith("if-none-match") && severalEtags && value.trim() === "*")
      return rejected("UnsatisfiableCondition", { HeaderName: name });
    if (name.endsWith("match") && !severalEtags && value.includes(",")) return badHeader(name, value, "A write names one ETag.");
  }
  return parsed(undefined);
}

export function checkConditions(operation: BlobOperationName, headers: HttpHeaders): Parsed<void> {
  const checked = checkRowConditions(blobOperations[operation], headers);
  if (!checked.ok) return checked;
  if (headers["if-range"] !== undefined && operation === "GetPageRanges" && (headers.range ?? headers["x-ms-range"]) !== undefined) {
    return rejected("ConditionHeadersNotSupported", { HeaderName: "if-range" });
  }
  return parsed(undefined);
}
