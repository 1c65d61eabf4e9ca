/** Class of a request for histograms; operations would be too many. */

export type OperationClass = "read" | "write" | "list" | "other";

export const statusClasses: readonly (string | undefined)[] = [undefined, "1xx", "2xx", "3xx", "4xx", "5xx"];

const byName = new Map<string, OperationClass>();

/** Returns the class of an operation, by its name in the REST reference; undefined: it was not recognized. */
export function classOf(operation: string | undefined): OperationClass {
  if (operation === undefined) return "other";
  const known = byName.get(operation);
  if (known !== undefined) return known;
  const found = find(operation);
  byName.set(operation, found);
  return found;
}

function find(operation: string): OperationClass {
  // Operations without an object.
  if (operation === "Preflight" || /Service|AccountInformation|UserDelegationKey/.test(operation)) return "other";
  if (/^(List|Query|Find)/.test(operation)) return "list";
  // Messages are taken by it.
  if (operation === "GetMessages") return "write";
  return /^(Get|Peek)/.test(operation) ? "read" : "write";
}
