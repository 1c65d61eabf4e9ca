/**
 * Cross-origin requests ("Cross-Origin Resource Sharing (CORS) support for Azure Storage"): rules are looked at in their order, the first
 * that fits decides.
 *
 *   preflight        origin, method and every asked header must fit one rule; else 403
 *   actual request   origin and method must fit; the answer then says who may see it. For GET and HEAD, answers that other origins would
 *                    not get carry `Vary: Origin`, so that no cache gives them to the wrong one.
 */
import type { HttpHeaders } from "./headers.ts";
import type { ResponseHeaders } from "./responses.ts";
import { type Parsed, parsed, rejected } from "./rest-error.ts";
import type { CorsRule } from "./service-properties.ts";

/** "*", an origin as it is sent, or `https://*.example.org`. Upper and lower case differ. */
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

/** The headers of the answer to a preflight request. */
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

/** What the answer to an actual request carries besides. */
export function corsHeaders(rules: readonly CorsRule[], method: string, origin: string | undefined): ResponseHeaders {
  if (rules.length === 0) return {};
  const vary: ResponseHeaders = method === "GET" || method === "HEAD" ? { Vary: "Origin" } : {};
  const rule = rules.find(
    (one) =>
      allowsMethod(one, method) &&
      (allowsEverybody(one) || (origin !== undefined && one.allowedOrigins.some((pattern) => originFits(pattern, origin)))),
  );
  if (!rule) return vary;
  const exposed = rule.exposedHeaders.length === 0 ? {} : { "Access-Control-Expose-Headers": rule.exposedHeaders.join(",") };
  return { ...allowOrigin(rule, origin ?? "*"), ...exposed, ...(allowsEverybody(rule) ? {} : vary) };
}

const allowOrigin = (rule: CorsRule, origin: string): ResponseHeaders =>
  allowsEverybody(rule)
    ? { "Access-Control-Allow-Origin": "*" }
    : { "Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true" };
