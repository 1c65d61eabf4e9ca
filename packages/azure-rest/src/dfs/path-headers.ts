/** Headers of operations on paths: content, owner and access control, leases, sources of renames and of undeletion. */
import { urlWithoutSignature } from "@stamp/base";
import { type LeaseHeaders, parseLease } from "../blob/lease-headers.ts";
import { type ExpiryHeaders, parseExpiry } from "../blob/state-headers.ts";
import { canonicalGuid, type HttpHeaders, parseDigest } from "../headers.ts";
import { badHeader, type Parsed, parsed, type RestError, rejected } from "../rest-error.ts";
import { parseQuery, type Query } from "../target.ts";
import { type AskedLists, canonicalId, isId, parseAskedLists } from "./access/access-list.ts";
import { type Mode, parsePermissions } from "./access/rights.ts";
import { renameSource } from "./operation-rows.ts";
import { valueIn } from "./operations.ts";
import { checkDataLakeNames, parseDataLakeResource } from "./resource.ts";

export const missingHeader = (name: string): ReturnType<typeof rejected> => rejected("MissingRequiredHeader", { HeaderName: name });

/** Content properties that the request names; undefined: it does not name this one. */
export interface ContentHeaders {
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly contentLanguage: string | undefined;
  readonly contentDisposition: string | undefined;
  readonly cacheControl: string | undefined;
  /** MD5 of any length: nobody compares it. */
  readonly contentMd5: Uint8Array | undefined;
}

/**
 * `standardToo`: HTTP's own headers count where the service's are absent, as "Path - Create" has it. `Content-Type` does not: it is that
 * of the empty body.
 */
export function parseContent(headers: HttpHeaders, standardToo = false): Parsed<ContentHeaders> {
  const of = (name: string): string | undefined => headers[`x-ms-${name}`] ?? (standardToo ? headers[name] : undefined);
  const md5 = parseDigest(headers, "x-ms-content-md5", "any");
  if (!md5.ok) return md5;
  return parsed({
    contentType: headers["x-ms-content-type"],
    contentEncoding: of("content-encoding"),
    contentLanguage: of("content-language"),
    contentDisposition: of("content-disposition"),
    cacheControl: of("cache-control"),
    contentMd5: md5.value,
  });
}

/** Owner and access control that the request names; undefined: it does not name this one. */
export interface Ownership {
  readonly owner: string | undefined;
  readonly group: string | undefined;
  readonly permissions: Mode | undefined;
  readonly lists: AskedLists | undefined;
}

export function parseOwnership(headers: HttpHeaders): Parsed<Ownership> {
  const { "x-ms-owner": owner, "x-ms-group": group, "x-ms-permissions": mode, "x-ms-acl": acl } = headers;
  for (const [name, id] of [
    ["x-ms-owner", owner],
    ["x-ms-group", group],
  ] as const) {
    if (id !== undefined && !isId(id)) return badHeader(name, id, "Not an id of a user or group.");
  }
  if (mode !== undefined && acl !== undefined)
    return badHeader("x-ms-permissions", mode, "It excludes x-ms-acl, which has these rights, too.");
  const permissions = mode === undefined ? parsed(undefined) : parsePermissions(mode);
  if (!permissions.ok) return permissions;
  const lists = acl === undefined ? parsed(undefined) : parseAskedLists(acl);
  if (!lists.ok) return lists;
  const canonical = (id: string | undefined): string | undefined => (id === undefined ? undefined : canonicalId(id));
  return parsed({ owner: canonical(owner), group: canonical(group), permissions: permissions.value, lists: lists.value });
}

export interface NewLease {
  readonly leaseId: string;
  /** Length of the lease in seconds; -1 for a lease without end. */
  readonly durationSeconds: number;
}

const action = "x-ms-lease-action";
const proposed = "x-ms-proposed-lease-id";

/** Parses a lease that is acquired; both headers are needed. */
function acquired(headers: HttpHeaders): Parsed<NewLease> {
  if (headers[proposed] === undefined) return missingHeader(proposed);
  const lease = parseLease({ ...headers, [action]: "acquire" });
  return lease.ok ? parsed({ leaseId: lease.value.proposedLeaseId, durationSeconds: lease.value.durationSeconds }) : lease;
}

/** Parses the lease that a creation takes; undefined: none. */
export const parseNewLease = (headers: HttpHeaders): Parsed<NewLease | undefined> =>
  headers[proposed] === undefined && headers["x-ms-lease-duration"] === undefined ? parsed(undefined) : acquired(headers);

/** Parses the headers of Lease Path. Unlike the Blob service's, an acquired lease has an id from its client. */
export function parsePathLease(headers: HttpHeaders): Parsed<LeaseHeaders> {
  const lease = parseLease(headers);
  return lease.ok && lease.value.action === "acquire" && lease.value.proposedLeaseId === "" ? missingHeader(proposed) : lease;
}

/** Change of the file's lease by an append or a flush. */
export type DataLease =
  | ({ readonly action: "acquire" | "acquire-release" } & NewLease)
  | { readonly action: "auto-renew" | "release"; readonly leaseId: string };

/** `flushes`: only then can a lease be released. Undefined: the request does nothing with it, and names it as a condition at most. */
export function parseDataLease(headers: HttpHeaders, flushes: boolean): Parsed<DataLease | undefined> {
  const asked = headers[action];
  if (asked === undefined) {
    return headers[proposed] === undefined && headers["x-ms-lease-duration"] === undefined ? parsed(undefined) : missingHeader(action);
  }
  const name = asked.toLowerCase();
  if (name === "acquire" || name === "acquire-release") {
    const lease = acquired(headers);
    return lease.ok ? parsed({ action: name, ...lease.value }) : lease;
  }
  if (name !== "auto-renew" && name !== "release") {
    return badHeader(action, asked, "One of acquire, auto-renew, release, acquire-release.");
  }
  if (name === "release" && !flushes) return badHeader(action, asked, "A lease is released with a flush only.");
  const id = headers["x-ms-lease-id"];
  if (id === undefined) return missingHeader("x-ms-lease-id");
  const leaseId = canonicalGuid(id);
  return leaseId === undefined ? badHeader("x-ms-lease-id", id) : parsed({ action: name, leaseId });
}

/** Returns undefined for a creation that names no expiry. */
export const parseNewExpiry = (headers: HttpHeaders): Parsed<ExpiryHeaders | undefined> =>
  headers["x-ms-expiry-option"] === undefined && headers["x-ms-expiry-time"] === undefined ? parsed(undefined) : parseExpiry(headers);

export interface RenameSource {
  readonly filesystem: string;
  readonly path: string;
  /** Query behind the path: a shared access signature for the source, if the client has one. */
  readonly query: Query;
}

const badSource = (name: string, text: string, reason: string): { readonly ok: false; readonly error: RestError } =>
  rejected("InvalidSourceUri", { HeaderName: name, HeaderValue: urlWithoutSignature(text), Reason: reason });

function divided(name: string, text: string): Parsed<readonly [path: string, query: Query]> {
  const mark = text.indexOf("?");
  const query = parseQuery(mark < 0 ? "" : text.slice(mark + 1));
  return query.ok ? parsed([mark < 0 ? text : text.slice(0, mark), query.value]) : badSource(name, text, "Its query can't be read.");
}

/** Parses `/filesystem/path`, percent-encoded. The root of a filesystem can't be renamed. */
export function parseRenameSource(headers: HttpHeaders): Parsed<RenameSource> {
  const text = headers[renameSource];
  if (text === undefined) return missingHeader(renameSource);
  const parts = divided(renameSource, text);
  if (!parts.ok) return parts;
  const [source, query] = parts.value;
  const resource = source.startsWith("/") ? parseDataLakeResource(source.slice(1)) : undefined;
  const { filesystem, path } = resource?.ok ? resource.value : {};
  if (filesystem === undefined || filesystem === "" || path === undefined || path === "") {
    return badSource(renameSource, text, "It is /filesystem/path, percent-encoded.");
  }
  const named = checkDataLakeNames({ filesystem, path });
  return named.ok ? parsed({ filesystem, path, query }) : badSource(renameSource, text, named.error.message);
}

export interface UndeleteSource {
  readonly path: string;
  /** Names one of several deletions of the same path. */
  readonly deletionId: string;
}

/** Parses `path?deletionid=…`, percent-encoded; undefined if the header is absent. */
export function parseUndeleteSource(headers: HttpHeaders): Parsed<UndeleteSource | undefined> {
  const name = "x-ms-undelete-source";
  const text = headers[name];
  if (text === undefined) return parsed(undefined);
  const parts = divided(name, text);
  if (!parts.ok) return parts;
  const [source, query] = parts.value;
  const deletionId = valueIn(query, "deletionid");
  const resource = parseDataLakeResource(`filesystem/${source}`);
  const path = resource.ok && resource.value.filesystem === "filesystem" ? resource.value.path : undefined;
  if (path === undefined || path === "" || deletionId === undefined || !/^\d{1,20}$/.test(deletionId)) {
    return badSource(name, text, "It is path?deletionid=number, with the path percent-encoded.");
  }
  const named = checkDataLakeNames({ filesystem: undefined, path });
  return named.ok ? parsed({ path, deletionId }) : badSource(name, text, named.error.message);
}
