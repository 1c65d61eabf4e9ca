/**
 * Authorization by shared key: the text that is signed ("Authorize with Shared Key"), the check of a request's signature, and the signing
 * of one. Hashes come in as functions, so that this is pure.
 *
 * The canonicalized resource is "/" + account + the path as it came. With the account in the path the account therefore stands there
 * twice: /account/account/container/blob, as clients of path-style endpoints sign it.
 *
 * The Table service signs less: neither x-ms- headers nor, of the query, anything but `comp`.
 *
 * Order of the x-ms- headers: clients sort by code unit or, as the service itself does, by culture (which passes over hyphens). The two
 * differ only for uncommon metadata names; a signature that fits either is one by the key's owner over the same headers.
 */
import { utf8 } from "@stamp/base";
import { fromBase64, toBase64 } from "../base64.ts";
import { formatRfc1123, parseHttpDate } from "../dates.ts";
import type { HttpHeaders } from "../headers.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import type { ServiceName } from "../service-properties/service-properties.ts";
import { parseQuery, type Query } from "../target.ts";
import { behavesAs } from "../version.ts";
import { compareByCulture } from "./header-order.ts";
import { shownString } from "./shown-string.ts";
import { checkTokens, signedText } from "./signed-lines.ts";

export type HmacSha256 = (key: Uint8Array, message: Uint8Array) => Uint8Array;
/** Compares in constant time: how long it takes says nothing about the bytes. */
export type EqualBytes = (a: Uint8Array, b: Uint8Array) => boolean;

export interface SignedParts {
  readonly service: ServiceName;
  readonly method: string;
  readonly account: string;
  readonly rawPath: string;
  readonly query: Query;
  readonly headers: HttpHeaders;
  readonly version: string;
}

export type HeaderOrder = (a: string, b: string) => number;
export const compareByCodeUnit: HeaderOrder = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

export type SharedKeyScheme = "SharedKey" | "SharedKeyLite";

export interface SharedKeyAuthorization {
  readonly scheme: SharedKeyScheme;
  readonly account: string;
  readonly signature: Uint8Array;
}

export function parseAuthorization(header: string): Parsed<SharedKeyAuthorization> {
  const match = /^(SharedKey|SharedKeyLite) ([^:\s]+):(\S+)$/i.exec(header.trim());
  const signature = match ? fromBase64(match[3] as string) : undefined;
  if (!match || !signature) return rejected("InvalidAuthenticationInfo");
  const scheme = (match[1] as string).toLowerCase() === "sharedkey" ? "SharedKey" : "SharedKeyLite";
  return parsed({ scheme, account: match[2] as string, signature });
}

/** Returns the text that the request's signature covers. Refuses a request whose text could be another request's, too. */
export function stringToSign(scheme: SharedKeyScheme, parts: SignedParts, order: HeaderOrder): Parsed<string> {
  if (parts.service !== "table") {
    const names = checkTokens([...signedNames(parts.headers), ...(scheme === "SharedKey" ? parts.query.keys() : [])], "request");
    if (!names.ok) return names;
  }
  return signedText(linesToSign(scheme, parts, order));
}

function linesToSign(scheme: SharedKeyScheme, parts: SignedParts, order: HeaderOrder): string[] {
  const { method, headers } = parts;
  const of = (name: string): string => headers[name] ?? "";
  if (parts.service === "table") {
    const ends = [headers["x-ms-date"] ?? of("date"), shortResource(parts)];
    return scheme === "SharedKeyLite" ? ends : [method, of("content-md5"), of("content-type"), ...ends];
  }
  const date = headers["x-ms-date"] === undefined ? of("date") : "";
  const ends = [...canonicalizedHeaders(headers, order), ...canonicalizedResource(scheme, parts)];
  if (scheme === "SharedKeyLite") return [method, of("content-md5"), of("content-type"), date, ...ends];
  const length = of("content-length") === "0" && behavesAs(parts.version, "zeroLengthSignedEmpty") ? "" : of("content-length");
  const content = [of("content-encoding"), of("content-language"), length, of("content-md5"), of("content-type")];
  const conditions = [of("if-modified-since"), of("if-match"), of("if-none-match"), of("if-unmodified-since"), of("range")];
  return [method, ...content, date, ...conditions, ...ends];
}

/** Blanks around a value are not signed: HTTP drops them. */
const canonicalizedHeaders = (headers: HttpHeaders, order: HeaderOrder): string[] =>
  signedNames(headers)
    .sort(order)
    .map((name) => `${name}:${(headers[name] as string).replace(/^[ \t]+|[ \t]+$/g, "")}`);

const signedNames = (headers: HttpHeaders): string[] => Object.keys(headers).filter((name) => name.startsWith("x-ms-"));

function canonicalizedResource(scheme: SharedKeyScheme, parts: SignedParts): string[] {
  if (scheme === "SharedKeyLite") return [shortResource(parts)];
  const names = [...parts.query.keys()].sort(compareByCodeUnit);
  const parameters = names.map((name) => `${name}:${[...(parts.query.get(name) ?? [])].sort(compareByCodeUnit).join(",")}`);
  return [`/${parts.account}${parts.rawPath}`, ...parameters];
}

/** Returns the resource with only `comp` of the query. */
function shortResource(parts: SignedParts): string {
  const comp = parts.query.get("comp");
  return `/${parts.account}${parts.rawPath}${comp === undefined ? "" : `?comp=${comp[0]}`}`;
}

export const clockSkewMs: number = 15 * 60 * 1000;

export interface SignatureCheck {
  readonly parts: SignedParts;
  readonly authorization: SharedKeyAuthorization;
  /** Account keys, decoded. A signature by any of them counts. */
  readonly keys: readonly Uint8Array[];
  readonly nowMs: number;
  readonly hmacSha256: HmacSha256;
  readonly equal: EqualBytes;
}

const failed = (detail: string): { readonly ok: false; readonly error: import("../rest-error.ts").RestError } =>
  rejected("AuthenticationFailed", { AuthenticationErrorDetail: detail });

export function checkSignature(check: SignatureCheck): Parsed<void> {
  const { parts, authorization } = check;
  const dateText = parts.headers["x-ms-date"] ?? parts.headers.date;
  if (dateText === undefined) return failed("The request has neither an x-ms-date nor a Date header.");
  const dateMs = parseHttpDate(dateText.trim());
  if (dateMs === undefined) return failed(`The Date header in the request is incorrect: '${dateText}'`);
  if (dateMs < check.nowMs - clockSkewMs) return failed(`Request date header too old: '${dateText}'`);
  if (dateMs > check.nowMs + clockSkewMs) return failed(`Request date header is too far in the future: '${dateText}'`);
  if (authorization.account !== parts.account) return failed("The account of the Authorization header is not the one of the URL.");
  const text = stringToSign(authorization.scheme, parts, compareByCodeUnit);
  if (!text.ok) return text;
  if (fits(check, text.value)) return parsed(undefined);
  const byCulture = stringToSign(authorization.scheme, parts, compareByCulture);
  if (byCulture.ok && byCulture.value !== text.value && fits(check, byCulture.value)) return parsed(undefined);
  return failed(
    `The MAC signature found in the HTTP request '${toBase64(authorization.signature)}' is not the same as any computed signature. ` +
      `Server used following string to sign: '${shownString(text.value)}'.`,
  );
}

function fits(check: SignatureCheck, text: string): boolean {
  const message = utf8(text);
  let fit = false;
  for (const key of check.keys) {
    if (check.equal(check.hmacSha256(key, message), check.authorization.signature)) fit = true;
  }
  return fit;
}

export interface RequestToSign {
  /** Service that the request goes to (default: blob). */
  readonly service?: ServiceName;
  readonly method: string;
  /** Path and query as the request will have them. */
  readonly target: string;
  /** Lower-case names, with everything that will be sent but Authorization and x-ms-date. */
  readonly headers: HttpHeaders;
}

/** Returns the headers to send: those given, x-ms-date, x-ms-version when it was not there, and Authorization. For clients of ours. */
export function signRequest(
  request: RequestToSign,
  account: string,
  key: Uint8Array,
  nowMs: number,
  hmacSha256: HmacSha256,
): Record<string, string> {
  const headers: Record<string, string> = { "x-ms-version": "2025-01-05", ...request.headers, "x-ms-date": formatRfc1123(nowMs) };
  const questionMark = request.target.indexOf("?");
  const query = parseQuery(questionMark < 0 ? "" : request.target.slice(questionMark + 1));
  const lines = linesToSign(
    "SharedKey",
    {
      service: request.service ?? "blob",
      method: request.method,
      account,
      rawPath: questionMark < 0 ? request.target : request.target.slice(0, questionMark),
      query: query.ok ? query.value : new Map(),
      headers,
      version: headers["x-ms-version"] as string,
    },
    compareByCodeUnit,
  );
  headers.authorization = `SharedKey ${account}:${toBase64(hmacSha256(key, utf8(lines.join("\n"))))}`;
  return headers;
}
