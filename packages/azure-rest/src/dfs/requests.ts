/**
 * Requests of Data Lake Storage as values: recognized (operations.ts), checked (check-request.ts) and parsed, one parser for each operation.
 * What depends on the account, on who asks or on what is stored is for the door: whether the account is hierarchical, whether a token of a
 * continuation is one of its own, whether a path exists.
 */

import type { LeaseHeaders } from "../blob/lease-headers.ts";
import { type ListQuery, parseListQuery } from "../blob/list-query.ts";
import { parseSourceConditions } from "../blob/sources/copy-headers.ts";
import { type ExpiryHeaders, parseExpiry } from "../blob/state-headers.ts";
import { type ConditionHeaders, parseConditions } from "../conditions.ts";
import { type ByteRange, type HttpHeaders, parseBoolean, parseContentLength, parseDigest, parseRange } from "../headers.ts";
import { allParsed, badHeader, badQuery, type Parsed, parsed, rejected } from "../rest-error.ts";
import type { Query } from "../target.ts";
import {
  type AccessEntry,
  type AccessLists,
  type EntryName,
  hasDefaults,
  parseEntries,
  parseEntryNames,
  parseLists,
} from "./access/access-list.ts";
import { type Mode, parseRights, parseUmask } from "./access/rights.ts";
import { checkDataLakeRequest } from "./check-request.ts";
import type { DataLakeOperationName } from "./operation-rows.ts";
import { methodOf, recognizeDataLake, valueIn } from "./operations.ts";
import {
  type ContentHeaders,
  type DataLease,
  missingHeader,
  type NewLease,
  type Ownership,
  parseContent,
  parseDataLease,
  parseNewExpiry,
  parseNewLease,
  parseOwnership,
  parsePathLease,
  parseRenameSource,
  parseUndeleteSource,
  type RenameSource,
  type UndeleteSource,
} from "./path-headers.ts";
import { type PathProperties, parseProperties } from "./properties.ts";
import { canonicalDirectory, checkDataLakeNames, type DataLakeResource } from "./resource.ts";
import { changedMax, choiceOf, countOf, flagOf, listedMax, missingParameter, positionOf, requiredFlag, switchOf } from "./values.ts";

interface Conditional {
  readonly conditions: ConditionHeaders;
}

interface Continued {
  /** Opaque to this package; undefined: from the beginning. */
  readonly continuation: string | undefined;
}

interface Creation extends Conditional {
  readonly content: ContentHeaders;
  readonly properties: PathProperties | undefined;
  readonly ownership: Ownership;
  readonly umask: Mode | undefined;
  readonly lease: NewLease | undefined;
  readonly encryptionContext: string | undefined;
}

interface Shown extends Conditional {
  /** True: ids of users are to be shown as their names. */
  readonly upn: boolean;
}

interface WrittenData {
  /** Position in bytes. */
  readonly position: number;
  readonly close: boolean;
  readonly lease: DataLease | undefined;
}

/** How a change of access control goes over what is below a directory. */
export type RecursiveChange =
  | { readonly mode: "set"; readonly lists: AccessLists }
  | { readonly mode: "modify"; readonly entries: readonly AccessEntry[] }
  | { readonly mode: "remove"; readonly names: readonly EntryName[] };

export interface DataLakeRequests {
  ListFilesystems: Continued & { readonly prefix: string; readonly maxResults: number };
  CreateFilesystem: { readonly properties: PathProperties | undefined };
  SetFilesystemProperties: Conditional & { readonly properties: PathProperties | undefined };
  GetFilesystemProperties: object;
  DeleteFilesystem: Conditional;
  /** `directory` and `beginFrom` without slashes at their ends; empty: the root, and the first name. */
  ListPaths: Continued & {
    readonly directory: string;
    readonly recursive: boolean;
    readonly maxResults: number;
    readonly upn: boolean;
    readonly beginFrom: string;
  };
  ListDeletedPaths: { readonly list: ListQuery };
  CreateFile: Creation & { readonly expiry: ExpiryHeaders | undefined };
  CreateDirectory: Creation;
  /** `resourceType`: undefined if the request does not say what it renames. */
  RenamePath: Conditional &
    Continued & {
      readonly source: RenameSource;
      readonly sourceConditions: ConditionHeaders;
      readonly mode: "legacy" | "posix";
      readonly resourceType: "file" | "directory" | undefined;
      readonly content: ContentHeaders;
      readonly properties: PathProperties | undefined;
    };
  AppendData: Conditional &
    WrittenData & {
      readonly lengthBytes: number;
      readonly flush: boolean;
      readonly md5: Uint8Array | undefined;
      readonly crc64: Uint8Array | undefined;
    };
  FlushData: Conditional & WrittenData & { readonly retainUncommittedData: boolean; readonly content: ContentHeaders };
  SetPathProperties: Conditional & { readonly content: ContentHeaders; readonly properties: PathProperties | undefined };
  SetAccessControl: Conditional & { readonly ownership: Ownership };
  /** `force`: go on after a path that can't be changed. */
  SetAccessControlRecursively: Continued & { readonly change: RecursiveChange; readonly force: boolean; readonly maxRecords: number };
  SetPathExpiry: Conditional & { readonly expiry: ExpiryHeaders };
  UndeletePath: { readonly source: UndeleteSource | undefined };
  LeasePath: Conditional & { readonly lease: LeaseHeaders };
  ReadPath: Conditional & { readonly range: ByteRange | undefined; readonly rangeMd5: boolean };
  GetPathProperties: Shown;
  GetPathStatus: Shown;
  GetAccessControl: Shown;
  CheckAccess: Shown & { readonly rights: number };
  /** `recursive`: undefined if the request does not say, as for a file. */
  DeletePath: Conditional & Continued & { readonly recursive: boolean | undefined; readonly paginated: boolean };
}

interface Asked {
  readonly query: Query;
  readonly headers: HttpHeaders;
  readonly version: string;
}

type Parsers = { readonly [Name in DataLakeOperationName]: (asked: Asked) => Parsed<DataLakeRequests[Name]> };
export type DataLakeRequest = {
  [Name in DataLakeOperationName]: { readonly operation: Name } & DataLakeRequests[Name];
}[DataLakeOperationName];

const continuationOf = (query: Query): Parsed<string | undefined> => parsed(valueIn(query, "continuation"));

function listPaths({ query }: Asked): Parsed<DataLakeRequests["ListPaths"]> {
  const request = allParsed({
    recursive: requiredFlag(query, "recursive"),
    maxResults: countOf(query, "maxresults", listedMax),
    upn: switchOf(query, "upn"),
    continuation: continuationOf(query),
  });
  if (!request.ok) return request;
  const directory = canonicalDirectory(valueIn(query, "directory") ?? "");
  const named = checkDataLakeNames({ filesystem: undefined, path: directory });
  if (!named.ok) return badQuery("directory", directory, named.error.message);
  const beginFrom = canonicalDirectory(valueIn(query, "beginfrom") ?? "");
  if (!request.value.recursive && beginFrom.includes("/")) {
    return badQuery("beginfrom", beginFrom, "A list that is not recursive begins at a name in the directory itself.");
  }
  return parsed({ ...request.value, directory, beginFrom });
}

function listDeletedPaths({ query, version }: Asked): Parsed<DataLakeRequests["ListDeletedPaths"]> {
  const list = parseListQuery(query, "blobs", version);
  if (!list.ok) return list;
  return list.value.onlyDeleted ? parsed({ list: list.value }) : missingParameter("showonly");
}

function creation({ query, headers }: Asked): Parsed<Creation> {
  const umask = headers["x-ms-umask"];
  const mode = choiceOf(query, "mode", ["legacy", "posix"]);
  if (!mode.ok) return mode;
  return allParsed({
    content: parseContent(headers, true),
    properties: parseProperties(headers),
    ownership: parseOwnership(headers),
    umask: umask === undefined ? parsed(undefined) : parseUmask(umask),
    lease: parseNewLease(headers),
    conditions: parseConditions(headers),
    encryptionContext: parseEncryptionContext(headers),
  });
}

const encryptionContextCharactersMax = 1024;

function parseEncryptionContext(headers: HttpHeaders): Parsed<string | undefined> {
  const text = headers["x-ms-encryption-context"];
  if (text === undefined || text.length <= encryptionContextCharactersMax) return parsed(text);
  return badHeader("x-ms-encryption-context", "", `At most ${encryptionContextCharactersMax} characters.`);
}

function createFile(asked: Asked): Parsed<DataLakeRequests["CreateFile"]> {
  const file = creation(asked);
  if (!file.ok) return file;
  const expiry = parseNewExpiry(asked.headers);
  if (!expiry.ok) return expiry;
  const { lists } = file.value.ownership;
  if (lists && hasDefaults(lists)) return badHeader("x-ms-acl", asked.headers["x-ms-acl"] ?? "", "A file has no default list.");
  return parsed({ ...file.value, expiry: expiry.value });
}

function renamePath({ query, headers }: Asked): Parsed<DataLakeRequests["RenamePath"]> {
  const request = allParsed({
    source: parseRenameSource(headers),
    mode: choiceOf(query, "mode", ["legacy", "posix"]),
    resourceType: choiceOf(query, "resource", ["file", "directory"]),
    content: parseContent(headers, false),
    properties: parseProperties(headers),
    conditions: parseConditions(headers),
    sourceConditions: parseSourceConditions(headers),
    continuation: continuationOf(query),
  });
  return request.ok ? parsed({ ...request.value, mode: request.value.mode ?? "posix" }) : request;
}

function appendData({ query, headers }: Asked): Parsed<DataLakeRequests["AppendData"]> {
  const flush = switchOf(query, "flush");
  if (!flush.ok) return flush;
  const request = allParsed({
    position: positionOf(query),
    close: switchOf(query, "close"),
    lease: parseDataLease(headers, flush.value),
    conditions: parseConditions(headers),
    lengthBytes: parseContentLength(headers),
    md5: parseDigest(headers, "content-md5", 16),
    crc64: parseDigest(headers, "x-ms-content-crc64", 8),
  });
  if (!request.ok) return request;
  if (request.value.md5 && request.value.crc64) return rejected("BothCrc64AndMd5HeaderPresent");
  if (request.value.close && !flush.value) return badQuery("close", "true", "A file is closed with a flush.");
  return parsed({ ...request.value, flush: flush.value });
}

function setAccessControl({ headers }: Asked): Parsed<DataLakeRequests["SetAccessControl"]> {
  const ownership = parseOwnership(headers);
  if (!ownership.ok) return ownership;
  if (Object.values(ownership.value).every((one) => one === undefined)) return missingHeader("x-ms-acl");
  const conditions = parseConditions(headers);
  return conditions.ok ? parsed({ ownership: ownership.value, conditions: conditions.value }) : conditions;
}

function recursiveChange({ query, headers }: Asked): Parsed<RecursiveChange> {
  const mode = choiceOf(query, "mode", ["set", "modify", "remove"]);
  if (!mode.ok) return mode;
  if (mode.value === undefined) return missingParameter("mode");
  const acl = headers["x-ms-acl"];
  if (acl === undefined) return missingHeader("x-ms-acl");
  if (mode.value === "set") {
    const lists = parseLists(acl);
    return lists.ok ? parsed({ mode: "set", lists: lists.value }) : lists;
  }
  if (mode.value === "modify") {
    const entries = parseEntries(acl);
    return entries.ok ? parsed({ mode: "modify", entries: entries.value }) : entries;
  }
  const names = parseEntryNames(acl);
  return names.ok ? parsed({ mode: "remove", names: names.value }) : names;
}

function readPath({ headers, version }: Asked): Parsed<DataLakeRequests["ReadPath"]> {
  const range = parseRange(headers, version);
  const request = allParsed({ rangeMd5: parseBoolean(headers, "x-ms-range-get-content-md5"), conditions: parseConditions(headers) });
  if (!request.ok) return request;
  if (request.value.rangeMd5 && !range) return badHeader("x-ms-range-get-content-md5", "true", "It needs a range.");
  return parsed({ ...request.value, range });
}

const shown = ({ query, headers }: Asked): Parsed<Shown> =>
  allParsed({ upn: switchOf(query, "upn"), conditions: parseConditions(headers) });

function checkAccess(asked: Asked): Parsed<DataLakeRequests["CheckAccess"]> {
  const text = valueIn(asked.query, "fsaction");
  if (text === undefined) return missingParameter("fsaction");
  const rights = parseRights(text);
  if (rights === undefined) return badQuery("fsaction", text, "Three characters, as r-x.");
  const rest = shown(asked);
  return rest.ok ? parsed({ ...rest.value, rights }) : rest;
}

const parsers: Parsers = {
  ListFilesystems: ({ query }) =>
    allParsed({
      prefix: parsed(valueIn(query, "prefix") ?? ""),
      maxResults: countOf(query, "maxresults", listedMax),
      continuation: continuationOf(query),
    }),
  CreateFilesystem: ({ headers }) => allParsed({ properties: parseProperties(headers) }),
  SetFilesystemProperties: ({ headers }) => allParsed({ properties: parseProperties(headers), conditions: parseConditions(headers) }),
  GetFilesystemProperties: () => parsed({}),
  DeleteFilesystem: ({ headers }) => allParsed({ conditions: parseConditions(headers) }),
  ListPaths: listPaths,
  ListDeletedPaths: listDeletedPaths,
  CreateFile: createFile,
  CreateDirectory: creation,
  RenamePath: renamePath,
  AppendData: appendData,
  FlushData: ({ query, headers }) =>
    allParsed({
      position: positionOf(query),
      close: switchOf(query, "close"),
      retainUncommittedData: switchOf(query, "retainuncommitteddata"),
      lease: parseDataLease(headers, true),
      content: parseContent(headers),
      conditions: parseConditions(headers),
    }),
  SetPathProperties: ({ headers }) =>
    allParsed({ content: parseContent(headers), properties: parseProperties(headers), conditions: parseConditions(headers) }),
  SetAccessControl: setAccessControl,
  SetAccessControlRecursively: (asked) =>
    allParsed({
      change: recursiveChange(asked),
      force: switchOf(asked.query, "forceflag"),
      maxRecords: countOf(asked.query, "maxrecords", changedMax),
      continuation: continuationOf(asked.query),
    }),
  SetPathExpiry: ({ headers }) => allParsed({ expiry: parseExpiry(headers), conditions: parseConditions(headers) }),
  UndeletePath: ({ headers }) => allParsed({ source: parseUndeleteSource(headers) }),
  LeasePath: ({ headers }) => allParsed({ lease: parsePathLease(headers), conditions: parseConditions(headers) }),
  ReadPath: readPath,
  GetPathProperties: shown,
  GetPathStatus: shown,
  GetAccessControl: shown,
  CheckAccess: checkAccess,
  DeletePath: ({ query, headers }) =>
    allParsed({
      recursive: flagOf(query, "recursive"),
      paginated: switchOf(query, "paginated"),
      continuation: continuationOf(query),
      conditions: parseConditions(headers),
    }),
};

/** Recognizes, checks and parses a request. Headers have names in lower case, and no empty values (empty-values.ts). */
export function parseDataLake(method: string, resource: DataLakeResource, asked: Asked): Parsed<DataLakeRequest> {
  const meant = methodOf(method, asked.headers);
  if (!meant.ok) return meant;
  const operation = recognizeDataLake(meant.value, resource, asked.query, asked.headers);
  if (!operation.ok) return operation;
  const checked = checkDataLakeRequest(operation.value, asked.query, asked.headers);
  if (!checked.ok) return checked;
  const request = parsers[operation.value](asked);
  return request.ok ? parsed({ operation: operation.value, ...request.value } as DataLakeRequest) : request;
}
