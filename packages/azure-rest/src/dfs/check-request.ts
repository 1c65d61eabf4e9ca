/**
 * Refuses what a recognized request may not have: a parameter twice, a parameter, header or condition that its operation would ignore, a body
 * beside that of an append, and whatever Stamp does not have the meaning of.
 */
import { checkRowConditions } from "../blob/conditions.ts";
import { type HttpHeaders, parseContentLength } from "../headers.ts";
import { badQuery, notImplemented, type Parsed, parsed, rejected } from "../rest-error.ts";
import type { Query } from "../target.ts";
import { type DataLakeOperationName, dataLakeOperations, specialHeaders, specialParameters, tellingParameters } from "./operation-rows.ts";

/** Parameters and beginnings of headers whose meaning Stamp does not have. */
const laterParameters: Readonly<Record<string, string>> = { blobtype: "Append blobs as files (blobtype)" };
const laterHeaders: readonly (readonly [beginning: string, feature: string])[] = [["x-ms-structured-", "Structured message bodies"]];

export function checkDataLakeRequest(operation: DataLakeOperationName, query: Query, headers: HttpHeaders): Parsed<void> {
  const row = dataLakeOperations[operation];
  const asked = checkParameters(row.parameters ?? [], query);
  if (!asked.ok) return asked;
  for (const name in headers) {
    const later = laterHeaders.find(([beginning]) => name.startsWith(beginning));
    if (later) return notImplemented(`${later[1]} (${name})`);
    if (specialHeaders.has(name) && !row.headers?.includes(name)) return rejected("UnsupportedHeader", { HeaderName: name });
  }
  const conditions = checkRowConditions(row, headers);
  return conditions.ok ? checkLength(operation, headers) : conditions;
}

function checkParameters(taken: readonly string[], query: Query): Parsed<void> {
  for (const [name, values] of query) {
    const feature = Object.hasOwn(laterParameters, name) ? laterParameters[name] : undefined;
    if (feature !== undefined) return notImplemented(feature);
    const special = specialParameters.has(name);
    if (values.length > 1 && name !== "include" && (special || (tellingParameters as readonly string[]).includes(name))) {
      return badQuery(name, "", "It stands more than once in the query.");
    }
    if (special && !taken.includes(name)) return rejected("UnsupportedQueryParameter", { QueryParameterName: name });
  }
  return parsed(undefined);
}

function checkLength(operation: DataLakeOperationName, headers: HttpHeaders): Parsed<void> {
  const needed = operation === "AppendData" || operation === "FlushData";
  if (!needed && headers["content-length"] === undefined) return parsed(undefined);
  const length = parseContentLength(headers);
  if (!length.ok) return length;
  return operation === "AppendData" || length.value === 0 ? parsed(undefined) : rejected("ContentLengthMustBeZero");
}
