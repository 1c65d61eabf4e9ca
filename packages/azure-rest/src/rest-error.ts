/**
 * The service's answers that something can't be done, as values: a code of the table, and what the body adds to it. Parsers return
 * `Parsed`; nothing in this package throws for what a client sent.
 */
import { type ErrorCode, infoOf, isErrorCode } from "./error-codes.ts";
import { escapeXml } from "./xml/xml-text.ts";

export interface RestError {
  readonly code: ErrorCode;
  readonly status: number;
  readonly message: string;
  /** Further elements of the error's body, e.g. HeaderName and HeaderValue. */
  readonly details: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: RestError };

export interface RestErrorOptions {
  readonly status?: number;
  readonly message?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function restError(code: ErrorCode, details: Readonly<Record<string, string>> = {}, options: RestErrorOptions = {}): RestError {
  const info = infoOf(code);
  return {
    code,
    status: options.status ?? info.status,
    message: options.message ?? info.text,
    details,
    headers: options.headers ?? {},
  };
}

export const parsed = <T>(value: T): Parsed<T> => ({ ok: true, value });

type ValuesOf<T> = { readonly [K in keyof T]: T[K] extends Parsed<infer V> ? V : never };

/** Returns the values of all parts, or the error of the first one, in their order, that could not be parsed. */
export function allParsed<T extends Readonly<Record<string, Parsed<unknown>>>>(parts: T): Parsed<ValuesOf<T>> {
  const values: Record<string, unknown> = {};
  for (const name in parts) {
    const part = parts[name] as Parsed<unknown>;
    if (!part.ok) return part;
    values[name] = part.value;
  }
  return parsed(values as ValuesOf<T>);
}

export const rejected = (
  code: ErrorCode,
  details: Readonly<Record<string, string>> = {},
  options: RestErrorOptions = {},
): { readonly ok: false; readonly error: RestError } => ({ ok: false, error: restError(code, details, options) });

/** Exists in the service, but not here: refused with its name, never accepted and ignored. */
export const notImplemented = (feature: string): { readonly ok: false; readonly error: RestError } =>
  rejected("NotImplemented", { Feature: feature }, { message: `${infoOf("NotImplemented").text} Not supported here yet: ${feature}.` });

export const badHeader = (name: string, value: string, reason?: string): { readonly ok: false; readonly error: RestError } =>
  rejected("InvalidHeaderValue", { HeaderName: name, HeaderValue: value, ...(reason ? { Reason: reason } : {}) });

export const badQuery = (name: string, value: string, reason: string): { readonly ok: false; readonly error: RestError } =>
  rejected("InvalidQueryParameterValue", { QueryParameterName: name, QueryParameterValue: value, Reason: reason });

/**
 * Returns the error for a partition server's answer. `details.status` tells the two statuses of ConditionNotMet apart,
 * `details.contentLength` is the size that an InvalidRange is about. A code outside of the table is a bug of ours:
 * InternalError, with the code in the message.
 */
export function restErrorOfService(code: string, message: string, details: Readonly<Record<string, string>>): RestError {
  if (code === "AccountNotFound") return restError("ResourceNotFound");
  if (!isErrorCode(code)) return restError("InternalError", {}, { message: `${infoOf("InternalError").text} (${code})` });
  const { status, contentLength, ...rest } = details;
  return restError(code, rest, {
    ...(status === "304" || status === "412" ? { status: Number(status) } : {}),
    ...(message === "" ? {} : { message }),
    ...(code === "InvalidRange" && contentLength !== undefined ? { headers: { "Content-Range": `bytes */${contentLength}` } } : {}),
  });
}

const reasonCharactersMax = 256;

/**
 * Returns the first line of the error's message as the text behind the status of an answer: printable ASCII, of a bounded length. Clients
 * show it for an answer without a body (HEAD, 304).
 */
export const reasonPhraseOf = ({ message }: Pick<RestError, "message">): string =>
  (message.split("\n", 1)[0] ?? "").replaceAll(/[^\x20-\x7e]/g, "?").slice(0, reasonCharactersMax);

/** `requestId` and `time` (ISO 8601) stand in the text, as users of the service are used to quote them. */
export function errorBody(error: RestError, requestId: string, time: string): string {
  let details = "";
  for (const [name, value] of Object.entries(error.details)) details += `<${name}>${escapeXml(value)}</${name}>`;
  const message = escapeXml(`${error.message}\nRequestId:${requestId}\nTime:${time}`);
  return `<?xml version="1.0" encoding="utf-8"?><Error><Code>${error.code}</Code><Message>${message}</Message>${details}</Error>`;
}
