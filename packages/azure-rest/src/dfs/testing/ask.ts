/** Requests of Data Lake Storage as a door parses them, for tests. */
import assert from "node:assert/strict";
import type { HttpHeaders } from "../../headers.ts";
import type { Parsed } from "../../rest-error.ts";
import { parseTarget } from "../../target.ts";
import { newestVersion } from "../../version.ts";
import { type DataLakeRequest, type DataLakeRequests, parseDataLake } from "../requests.ts";
import { checkDataLakeNames, parseDataLakeResource } from "../resource.ts";

/** Parses a request as a door does: `PATCH /fs/a?action=append`. */
export function parse(request: string, headers: HttpHeaders = {}): Parsed<DataLakeRequest> {
  const [method = "", path = ""] = request.split(/ (.*)/s);
  const target = parseTarget(`/account${path}`, "h:1", { hostSuffixes: [] });
  if (!target.ok) return target;
  const resource = parseDataLakeResource(target.value.resource);
  if (!resource.ok) return resource;
  const named = checkDataLakeNames(resource.value);
  if (!named.ok) return named;
  return parseDataLake(method, resource.value, { query: target.value.query, headers, version: newestVersion });
}

const lengthOf = (request: string): HttpHeaders => (/action=(append|flush)/i.test(request) ? { "content-length": "0" } : {});

/** Returns the name of the operation, or the status, the code and the name of what is wrong. */
export function outcome(request: string, headers: HttpHeaders = {}): string {
  const result = parse(request, { ...lengthOf(request), ...headers });
  if (result.ok) return result.value.operation;
  const { status, code, details } = result.error;
  return [status, code, details.HeaderName ?? details.QueryParameterName].filter((part) => part !== undefined).join(" ");
}

export function valueIs<Name extends keyof DataLakeRequests>(
  operation: Name,
  request: string,
  headers: HttpHeaders = {},
): DataLakeRequests[Name] {
  const result = parse(request, { ...lengthOf(request), ...headers });
  assert.ok(result.ok, result.ok ? "" : `${request}: ${JSON.stringify(result.error)}`);
  assert.equal(result.value.operation, operation);
  return result.value as unknown as DataLakeRequests[Name];
}

export const guid = "5d5c6f0e-1f3a-4f6b-9d59-000000000001";
export const source: HttpHeaders = { "x-ms-rename-source": "/fsys/b" };
