/**
 * The request target of any service: which account, what of it, and the query. The account is in the host (`acct.blob.example`, for the
 * suffixes that the configuration lists) or first in the path (`/acct/…`). What the rest of the path means is for the service
 * (blob/resource.ts). Everything is percent-decoded exactly once and must be UTF-8 then; what is signed is the path as it came.
 */
import { fromUtf8 } from "@stamp/base";
import { isAccountName } from "./names.ts";
import { badQuery, type Parsed, parsed, rejected } from "./rest-error.ts";
import { accountOfSecondary } from "./secondary.ts";
import { singleParameters } from "./single-parameters.ts";

export const targetCharactersMax = 16_384;
export const queryParametersMax = 100;

/** Names in lower case; values decoded, in order of appearance. */
export type Query = ReadonlyMap<string, readonly string[]>;

export interface Target {
  readonly account: string;
  /** The name ends with `-secondary`; `account` is the part before. */
  readonly secondary?: true;
  readonly addressing: "host" | "path";
  /** The path behind the account, without the slash before it, not decoded; empty: the account itself. */
  readonly resource: string;
  /** Path of the request before the query, as the client wrote it. */
  readonly rawPath: string;
  readonly query: Query;
  /** The path names a blob from before names were made canonical, by its literal name (blob/resource.ts). */
  readonly older?: true;
}

export interface TargetOptions {
  /** Suffixes without leading dot, e.g. `blob.localhost`; host-style addressing is for these only. */
  readonly hostSuffixes: readonly string[];
}

/** `host` is the Host header, with or without port. Whether the account exists is for the caller to find out. */
export function parseTarget(target: string, host: string, options: TargetOptions): Parsed<Target> {
  if (target.length > targetCharactersMax || !target.startsWith("/")) return rejected("RequestUrlFailedToParse");
  const questionMark = target.indexOf("?");
  const rawPath = questionMark < 0 ? target : target.slice(0, questionMark);
  const query = parseQuery(questionMark < 0 ? "" : target.slice(questionMark + 1));
  if (!query.ok) return query;
  const repeated = repeatedParameter(query.value);
  if (repeated !== undefined) return badQuery(repeated, "", "It stands more than once in the query.");
  const fromHost = accountOfHost(host, options.hostSuffixes);
  if (fromHost !== undefined) return atAccount(fromHost, "host", rawPath.slice(1), rawPath, query.value);
  const slash = rawPath.indexOf("/", 1);
  const first = decodePercent(slash < 0 ? rawPath.slice(1) : rawPath.slice(1, slash));
  if (first === undefined) return rejected("InvalidUri");
  return atAccount(first, "path", slash < 0 ? "" : rawPath.slice(slash + 1), rawPath, query.value);
}

function atAccount(account: string, addressing: "host" | "path", resource: string, rawPath: string, query: Query): Parsed<Target> {
  const primary = accountOfSecondary(account);
  if (primary !== undefined) return parsed({ account: primary, secondary: true, addressing, resource, rawPath, query });
  if (!isAccountName(account)) return unknownAccount(account);
  return parsed({ account, addressing, resource, rawPath, query });
}

/** Returns the error of an unknown account. It names both readings, because a wrong host suffix looks like a wrong path. */
export function unknownAccount(account: string): { readonly ok: false; readonly error: import("./rest-error.ts").RestError } {
  const message =
    "The requested URI does not represent any resource on the server. The host does not end with a configured suffix, so that its first " +
    "label is not an account; and the first segment of the path is not an account of this stamp either.";
  return rejected("InvalidUri", { PathSegment: account }, { message });
}

/** Returns the part of the host before one of the suffixes, whatever it is; undefined for any other host. */
export function accountOfHost(host: string, suffixes: readonly string[]): string | undefined {
  const name = host.replace(/:\d+$/, "").toLowerCase();
  for (const suffix of suffixes) {
    if (name.endsWith(`.${suffix}`)) return name.slice(0, name.length - suffix.length - 1);
  }
  return undefined;
}

/** Decodes escapes once; undefined: one has not two hexadecimal digits, or the bytes are not UTF-8. `+` stays. */
export function decodePercent(text: string): string | undefined {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

export function parseQuery(text: string): Parsed<Query> {
  const query = new Map<string, string[]>();
  if (text === "") return parsed(query);
  const parts = text.split("&");
  if (parts.length > queryParametersMax) return rejected("RequestUrlFailedToParse");
  for (const part of parts) {
    if (part === "") continue;
    const equals = part.indexOf("=");
    const name = decodePercent(equals < 0 ? part : part.slice(0, equals))?.toLowerCase();
    const value = equals < 0 ? "" : decodePercent(spaced(name, part.slice(equals + 1)));
    if (name === undefined) return rejected("RequestUrlFailedToParse");
    if (value === undefined) return badQuery(name, part.slice(equals + 1), "Not percent-encoded UTF-8.");
    const held = query.get(name);
    if (held) held.push(value);
    else query.set(name, [value]);
  }
  return parsed(query);
}

/** Returns a parameter with more than one value that may have one only (single-parameters.ts). */
function repeatedParameter(query: Query): string | undefined {
  for (const [name, values] of query) if (values.length > 1 && singleParameters.has(name)) return name;
  return undefined;
}

/** Returns the value with plus as a space in OData's options, as forms encode it (Go's aztables does); elsewhere plus stays. */
const spaced = (name: string | undefined, text: string): string => (name?.startsWith("$") ? text.replaceAll("+", " ") : text);

/** Returns the value of the parameter; undefined when it is not there. Every name that is asked for belongs into `singleParameters`. */
export const queryValue = (query: Query, name: string): string | undefined => query.get(name)?.[0];

/** Decodes UTF-8; here so that callers need not know which decoder is used. */
export const decodeUtf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return fromUtf8(bytes);
  } catch {
    return undefined;
  }
};
