/**
 * Every operation of Data Lake Storage, a row each: requests that ask for it, and query parameters, headers and conditions that mean
 * something to it. A parameter, header or condition that some operation has and the asked one does not is the client's mistake.
 *
 * Sources: the pages "Filesystem - …" and "Path - …" of the REST reference; `DataLakeStorage.json` 2026-06-06 of the service's
 * specification, which has parameters by action; its version 2019-10-31 for `action=checkAccess`. Hadoop's ABFS driver sends customer keys with status and properties, too.
 */
import { customerKey, defaultScope, etags, expiry, lease, sourceState, times } from "../blob/header-groups.ts";
import { specialBlobHeaders } from "../blob/unsupported.ts";

export const dataLakeOperationNames = [
  "ListFilesystems",
  "CreateFilesystem",
  "SetFilesystemProperties",
  "GetFilesystemProperties",
  "DeleteFilesystem",
  "ListPaths",
  "ListDeletedPaths",
  "CreateFile",
  "CreateDirectory",
  "RenamePath",
  "AppendData",
  "FlushData",
  "SetPathProperties",
  "SetAccessControl",
  "SetAccessControlRecursively",
  "SetPathExpiry",
  "UndeletePath",
  "LeasePath",
  "ReadPath",
  "GetPathProperties",
  "GetPathStatus",
  "GetAccessControl",
  "CheckAccess",
  "DeletePath",
] as const;
export type DataLakeOperationName = (typeof dataLakeOperationNames)[number];

/** Resources: the root directory takes requests of both its own rows and, as the filesystem, of those. */
export type DataLakeLevel = "account" | "filesystem" | "root" | "path";

export interface DataLakeRow {
  /** Level, method and the query parameters that tell it apart, in lower case and in the order of `tellingParameters`. */
  readonly requests: readonly string[];
  /** Other query parameters, in lower case. */
  readonly parameters?: readonly string[];
  readonly headers?: readonly string[];
  readonly conditions?: readonly string[];
  /** A condition may name several ETags. */
  readonly severalEtags?: true;
}

/** Query parameters that tell operations apart. */
export const tellingParameters = ["restype", "comp", "resource", "action"] as const;

export const renameSource = "x-ms-rename-source";
const state: readonly string[] = [...etags, ...times, ...lease];
const content: readonly string[] = [
  "x-ms-cache-control",
  "x-ms-content-disposition",
  "x-ms-content-encoding",
  "x-ms-content-language",
  "x-ms-content-type",
];
const ownership: readonly string[] = ["x-ms-acl", "x-ms-group", "x-ms-owner", "x-ms-permissions"];
const newLease: readonly string[] = ["x-ms-lease-duration", "x-ms-proposed-lease-id"];
const creation: readonly string[] = [
  ...content,
  ...ownership,
  ...newLease,
  ...customerKey,
  "x-ms-encryption-context",
  "x-ms-properties",
  "x-ms-umask",
];
/** Leases that an append or a flush takes, renews or gives back. */
const leasing: readonly string[] = [...newLease, "x-ms-lease-action"];

export const dataLakeOperations: Readonly<Record<DataLakeOperationName, DataLakeRow>> = {
  ListFilesystems: { requests: ["account GET resource=account"], parameters: ["continuation", "maxresults", "prefix"] },

  CreateFilesystem: { requests: ["filesystem PUT resource=filesystem"], headers: [...defaultScope, "x-ms-properties"] },
  SetFilesystemProperties: { requests: ["filesystem PATCH resource=filesystem"], headers: ["x-ms-properties"], conditions: times },
  GetFilesystemProperties: { requests: ["filesystem HEAD resource=filesystem"] },
  DeleteFilesystem: { requests: ["filesystem DELETE resource=filesystem"], conditions: times },
  ListPaths: {
    requests: ["filesystem GET resource=filesystem"],
    parameters: ["beginfrom", "continuation", "directory", "maxresults", "recursive", "upn"],
  },
  ListDeletedPaths: {
    requests: ["filesystem GET restype=container comp=list"],
    parameters: ["delimiter", "include", "marker", "maxresults", "prefix", "showonly"],
  },

  CreateFile: {
    requests: ["path PUT resource=file"],
    parameters: ["continuation", "mode"],
    headers: [...creation, ...expiry],
    conditions: state,
  },
  CreateDirectory: {
    requests: ["path PUT resource=directory"],
    parameters: ["continuation", "mode"],
    headers: creation,
    conditions: state,
  },
  // Recognized by its header. It may name the type of what it renames.
  RenamePath: {
    requests: ["path PUT"],
    parameters: ["continuation", "mode"],
    headers: [...content, renameSource, "x-ms-properties"],
    conditions: [...state, ...sourceState],
  },

  AppendData: {
    requests: ["path PATCH action=append"],
    parameters: ["close", "flush", "position"],
    headers: [...leasing, ...customerKey, "x-ms-content-crc64"],
    conditions: lease,
  },
  FlushData: {
    requests: ["path PATCH action=flush"],
    parameters: ["close", "position", "retainuncommitteddata"],
    headers: [...content, ...leasing, ...customerKey, "x-ms-content-md5"],
    conditions: state,
  },
  SetPathProperties: {
    requests: ["root PATCH action=setproperties", "path PATCH action=setproperties"],
    headers: [...content, ...customerKey, "x-ms-content-md5", "x-ms-properties"],
    conditions: state,
  },
  SetAccessControl: {
    requests: ["root PATCH action=setaccesscontrol", "path PATCH action=setaccesscontrol"],
    headers: ownership,
    conditions: state,
  },
  SetAccessControlRecursively: {
    requests: ["root PATCH action=setaccesscontrolrecursive", "path PATCH action=setaccesscontrolrecursive"],
    parameters: ["continuation", "forceflag", "maxrecords", "mode"],
    headers: ["x-ms-acl"],
  },
  SetPathExpiry: { requests: ["path PUT comp=expiry"], headers: expiry, conditions: lease },
  UndeletePath: { requests: ["path PUT comp=undelete"], headers: ["x-ms-undelete-source"] },
  LeasePath: { requests: ["path POST"], headers: [...leasing, "x-ms-lease-break-period"], conditions: state },

  ReadPath: { requests: ["path GET"], headers: [...customerKey, "x-ms-range-get-content-md5"], conditions: state, severalEtags: true },
  GetPathProperties: {
    requests: ["root HEAD", "path HEAD"],
    parameters: ["upn"],
    headers: customerKey,
    conditions: state,
    severalEtags: true,
  },
  GetPathStatus: {
    requests: ["root HEAD action=getstatus", "path HEAD action=getstatus"],
    parameters: ["upn"],
    headers: customerKey,
    conditions: state,
    severalEtags: true,
  },
  GetAccessControl: {
    requests: ["root HEAD action=getaccesscontrol", "path HEAD action=getaccesscontrol"],
    parameters: ["upn"],
    conditions: state,
    severalEtags: true,
  },
  CheckAccess: {
    requests: ["root HEAD action=checkaccess", "path HEAD action=checkaccess"],
    parameters: ["fsaction", "upn"],
    conditions: state,
    severalEtags: true,
  },
  DeletePath: { requests: ["path DELETE"], parameters: ["continuation", "paginated", "recursive"], conditions: state },
};

/** Names that only some operations have, of this service or of the Blob service. */
const rows: readonly DataLakeRow[] = Object.values(dataLakeOperations);
export const specialParameters: ReadonlySet<string> = new Set(rows.flatMap(({ parameters = [] }) => parameters));
export const specialHeaders: ReadonlySet<string> = new Set([...specialBlobHeaders, ...rows.flatMap(({ headers = [] }) => headers)]);
