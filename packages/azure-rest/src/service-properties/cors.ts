/**
 * Cross-origin requests ("Cross-Origin Resource Sharing (CORS) support for Azure Storage"): rules are looked at in their order, the first
 * that fits decides.
 *
 *   preflight        origin, method and every asked header must fit one rule; else 403
 *   actual request   origin and method must fit; the answer then says who may see it. For GET and HEAD, answers that other origins would
 *                    not get carry `Vary: Origin`, so that no cache gives them to the wrong one.
 */
import type { HttpHeaders } from "../headers.ts";
import type { ResponseHeaders } from "../responses.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import type { CorsRule } from "./service-properties.ts";

/** Compares an origin with "*", an origin as it is sent, or `https://*.example.org`. Upper and lower case differ. */
export function originFits(pattern: string, origin: string): boolean {
  if (pattern === "*" || pattern === origin) return true;
  const star = pattern.indexOf("*.");
  if (star < 0) return false;
  const [before, after] = [pattern.slice(0, star), pattern.slice(star + 1)];
  const label = origin.slice(before.length, origin.length - after.length);
  return (
    origin.length > before.length + after.length && origin.startsWith(before) && origin.endsWith(after) && /^[a-z0-9.-]+$/i.test(label)
  );
}

const headerFits = (pattern: string, name: string): boolean => {
  const [wanted, given] = [pattern.toLowerCase(), name.toLowerCase()];
  return wanted.endsWith("*") ? given.startsWith(wanted.slice(0, -1)) : wanted === given;
};

const allowsMethod = (rule: CorsRule, method: string): boolean => rule.allowedMethods.includes(method);
const allowsEverybody = (rule: CorsRule): boolean => rule.allowedOrigins.includes("*");

/** Returns the headers of the answer to a preflight request. */
export function preflightHeaders(rules: readonly CorsRule[], headers: HttpHeaders): Parsed<ResponseHeaders> {
  const origin = headers.origin;
  const method = headers["access-control-request-method"];
  if (origin === undefined) return rejected("MissingRequiredHeader", { HeaderName: "Origin" });
  if (method === undefined) return rejected("MissingRequiredHeader", { HeaderName: "Access-Control-Request-Method" });
  const asked = headers["access-control-request-headers"];
  const names = (asked ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  const rule = rules.find(
    (one) =>
      allowsMethod(one, method) &&
      one.allowedOrigins.some((pattern) => originFits(pattern, origin)) &&
      names.every((name) => one.allowedHeaders.some((pattern) => headerFits(pattern, name))),
  );
  if (!rule) return rejected("CorsPreflightFailure");
  return parsed({
    ...allowOrigin(rule, origin),
    "Access-Control-Allow-Methods": method,
    ...(asked === undefined ? {} : { "Access-Control-Allow-Headers": asked }),
    "Access-Control-Max-Age": String(rule.maxAgeSeconds),
  });
}

/** Returns the CORS headers of the answer to an actual request. `answer`: the names of the headers that it has. */
export function corsHeaders(
  rules: readonly CorsRule[],
  method: string,
  origin: string | undefined,
  answer: readonly string[] = [],
): ResponseHeaders {
  if (rules.length === 0) return {};
  const vary: ResponseHeaders = method === "GET" || method === "HEAD" ? { Vary: "Origin" } : {};
  const rule = rules.find(
    (one) =>
      allowsMethod(one, method) &&
      (allowsEverybody(one) || (origin !== undefined && one.allowedOrigins.some((pattern) => originFits(pattern, origin)))),
  );
  if (!rule) return vary;
  const exposed = exposedNames(rule.exposedHeaders, [...answer, ...addedLater]);
  return {
    ...allowOrigin(rule, origin ?? "*"),
    ...(exposed.length === 0 ? {} : { "Access-Control-Expose-Headers": exposed.join(",") }),
    ...(allowsEverybody(rule) ? {} : vary),
  };
}

/** Headers that the HTTP server puts to an answer by itself. */
const addedLater = ["Content-Length"];

/**
 * Returns the names that a script may read. Browsers take `x-ms-*` for the name of one header (and `*` too, where credentials are sent), so what
 * ends with a star is told as the names of this answer that it fits.
 */
const exposedNames = (patterns: readonly string[], names: readonly string[]): readonly string[] => [
  ...new Map(
    patterns
      .flatMap((pattern) => (pattern.endsWith("*") ? names.filter((name) => headerFits(pattern, name)) : [pattern]))
      .map((name) => [name.toLowerCase(), name]),
  ).values(),
];

const allowOrigin = (rule: CorsRule, origin: string): ResponseHeaders =>
  allowsEverybody(rule)
    ? { "Access-Control-Allow-Origin": "*" }
    : { "Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true" };
