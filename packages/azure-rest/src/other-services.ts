/**
 * Operations of Data Lake Storage and Azure Files, as their REST references list them, at the port of the Blob service, which serves neither.
 * Clients that meant another port name a host of those services there (`acct.dfs.…`, `acct.file.…`), or have an endpoint of the Blob service.
 * Either way the answer is 501 with the operation's name; otherwise `DELETE path?recursive=true` would delete a blob. Operations on access
 * control lists are the exception: the service refuses them on an account without a hierarchical namespace, and clients tell by that answer
 * that an account is flat (docs/api/outcomes.md).
 *
 * At the Blob service's own host a request counts as another service's only if something in it says so (`serviceTold`): reading a file of
 * a share and reading a blob are the same request.
 */
import type { HttpHeaders } from "./headers.ts";
import { notImplemented, type RestError, restError } from "./rest-error.ts";
import { queryValue, type Target } from "./target.ts";

export type OtherService = "dfs" | "file";
type Level = "account" | "root" | "path";

const serviceNames: Readonly<Record<OtherService, string>> = { dfs: "Data Lake Storage", file: "Azure Files" };

/** A kind of request of another service. */
export interface OtherRequest {
  readonly service: OtherService;
  /** Name of the operation in the REST reference. */
  readonly title: string;
  /** Level of the path: the account, one segment (a file system or share), or more. */
  readonly level: Level;
  readonly method: string;
  /** Query parameters that the request has; "*" stands for any value. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** A header that the request has; "*" at the end stands for any rest of its name. */
  readonly header: string | undefined;
  /** HTTP status of the refusal. */
  readonly refusedWith: 400 | 501;
}

/** Operations that the service itself refuses on an account without a hierarchical namespace. */
const hierarchicalOnly: ReadonlySet<string> = new Set(["Get Access Control", "Set Access Control", "Set Access Control Recursively"]);

/** `title: request`, where a request is `level METHOD name=value … with header`. The first that fits counts. */
const dataLake = `
  List Filesystems: account GET resource=account
  List Paths: root GET resource=filesystem
  Create Filesystem: root PUT resource=filesystem
  Set Filesystem Properties: root PATCH resource=filesystem
  Get Filesystem Properties: root HEAD resource=filesystem
  Delete Filesystem: root DELETE resource=filesystem
  List Deleted Paths: root GET restype=container comp=list showonly=deleted
  Rename Path: path PUT with x-ms-rename-source
  Undelete Path: path PUT comp=undelete
  Set Path Expiry: path PUT comp=expiry
  Create Directory: path PUT resource=directory
  Create File: path PUT resource=file
  Append Data: path PATCH action=append
  Flush Data: path PATCH action=flush
  Set Path Properties: path PATCH action=setproperties
  Set Access Control Recursively: root PATCH action=setaccesscontrolrecursive
  Set Access Control Recursively: path PATCH action=setaccesscontrolrecursive
  Set Access Control: root PATCH action=setaccesscontrol
  Set Access Control: path PATCH action=setaccesscontrol
  Update Path: path PATCH
  Get Access Control: root HEAD action=getaccesscontrol
  Get Access Control: path HEAD action=getaccesscontrol
  Get Path Status: path HEAD action=getstatus
  Check Access: path HEAD action=checkaccess
  Get Path Properties: path HEAD
  Lease Path: path POST with x-ms-lease-action
  Delete Directory: path DELETE recursive=*
  Delete Path: path DELETE
  Read Path: path GET`;

const files = `
  List Shares: account GET comp=list
  Get File Service Properties: account GET restype=service comp=properties
  Set File Service Properties: account PUT restype=service comp=properties
  Get User Delegation Key: account POST restype=service comp=userdelegationkey
  Create Share: root PUT restype=share
  Get Share Properties: root GET restype=share
  Get Share Properties: root HEAD restype=share
  Delete Share: root DELETE restype=share
  Set Share Properties: root PUT restype=share comp=properties
  Get Share Metadata: root GET restype=share comp=metadata
  Get Share Metadata: root HEAD restype=share comp=metadata
  Set Share Metadata: root PUT restype=share comp=metadata
  Get Share ACL: root GET restype=share comp=acl
  Get Share ACL: root HEAD restype=share comp=acl
  Set Share ACL: root PUT restype=share comp=acl
  Get Share Stats: root GET restype=share comp=stats
  Snapshot Share: root PUT restype=share comp=snapshot
  Lease Share: root PUT restype=share comp=lease
  Restore Share: root PUT restype=share comp=undelete
  Create Permission: root PUT restype=share comp=filepermission
  Get Permission: root GET restype=share comp=filepermission
  List Directories and Files: root GET restype=directory comp=list
  List Directories and Files: path GET restype=directory comp=list
  Create Directory: path PUT restype=directory
  Get Directory Properties: path GET restype=directory
  Get Directory Properties: path HEAD restype=directory
  Delete Directory: path DELETE restype=directory
  Set Directory Properties: path PUT restype=directory comp=properties
  Get Directory Metadata: path GET restype=directory comp=metadata
  Get Directory Metadata: path HEAD restype=directory comp=metadata
  Set Directory Metadata: path PUT restype=directory comp=metadata
  Rename Directory: path PUT restype=directory comp=rename
  List Handles: root GET comp=listhandles
  List Handles: path GET comp=listhandles
  Force Close Handles: root PUT comp=forceclosehandles
  Force Close Handles: path PUT comp=forceclosehandles
  Create Hard Link: path PUT restype=hardlink
  Create Symbolic Link: path PUT restype=symboliclink
  Get Symbolic Link: path GET restype=symboliclink
  Rename File: path PUT comp=rename
  Put Range From URL: path PUT comp=range with x-ms-copy-source
  Put Range: path PUT comp=range
  List Ranges: path GET comp=rangelist
  Set File Properties: path PUT comp=properties
  Get File Metadata: path GET comp=metadata
  Get File Metadata: path HEAD comp=metadata
  Set File Metadata: path PUT comp=metadata
  Lease File: path PUT comp=lease
  Abort Copy File: path PUT comp=copy
  Copy File: path PUT with x-ms-copy-source
  Create File: path PUT
  Get File: path GET
  Get File Properties: path HEAD
  Delete File: path DELETE`;

function rowsOf(service: OtherService, text: string): OtherRequest[] {
  const lines = text.trim().split("\n");
  return lines.map((line) => {
    const [title = "", request = ""] = line.trim().split(": ");
    const [asked = "", header] = request.split(" with ");
    const [level, method = "", ...query] = asked.split(" ");
    const pairs = query.map((pair) => pair.split("=") as [string, string]);
    const refusedWith = hierarchicalOnly.has(title) ? 400 : 501;
    return { service, title, level: level as Level, method, query: pairs, header, refusedWith };
  });
}

const requests: Readonly<Record<OtherService, readonly OtherRequest[]>> = {
  dfs: rowsOf("dfs", dataLake),
  file: rowsOf("file", files),
};

/** Returns every row of the tables. */
export const otherRequests = (): readonly OtherRequest[] => [...requests.dfs, ...requests.file];

/** Values of `resource` and `action` that Data Lake operations have. */
const dataLakeResources: ReadonlySet<string> = new Set(["account", "filesystem", "directory", "file"]);
const dataLakeActions: ReadonlySet<string> = new Set(
  requests.dfs.flatMap(({ query }) => query.flatMap(([name, value]) => (name === "action" ? [value] : []))),
);
const dataLakeHeaders = ["x-ms-rename-source", "x-ms-undelete-source", "x-ms-permissions", "x-ms-umask", "x-ms-owner", "x-ms-group"];
const moreDataLakeHeaders = ["x-ms-acl", "x-ms-properties", "x-ms-encryption-context"];
const fileTypes: ReadonlySet<string> = new Set(["share", "directory", "hardlink", "symboliclink"]);
const fileComps: ReadonlySet<string> = new Set(["range", "rangelist", "listhandles", "forceclosehandles", "filepermission"]);
const fileHeaders = ["x-ms-type", "x-ms-write", "x-ms-content-length", "x-ms-share-quota", "x-ms-file-*"];
/** A Blob service header: the source of a copy is a file of a share (unsupported.ts). */
const ofBlobCopies = "x-ms-file-request-intent";

function hasHeader(headers: HttpHeaders, name: string): boolean {
  if (!name.endsWith("*")) return headers[name] !== undefined;
  return Object.keys(headers).some((given) => given.startsWith(name.slice(0, -1)) && given !== ofBlobCopies);
}

const lowered = (target: Target, name: string): string => queryValue(target.query, name)?.toLowerCase() ?? "";

/** Returns how deep the resource is. An escaped slash divides too, as in the names: the SDK for Java writes sources of copies so. */
export const levelOf = ({ resource }: Target): Level => {
  const segments = resource.split(/[\\/]|%2f|%5c/i).filter((segment) => segment !== "").length;
  return segments === 0 ? "account" : segments === 1 ? "root" : "path";
};

/** Returns the other service that something in a request to the Blob service's own host is peculiar to; undefined if nothing is. */
function serviceTold(method: string, target: Target, headers: HttpHeaders): OtherService | undefined {
  const { query } = target;
  const comp = lowered(target, "comp");
  if (fileTypes.has(lowered(target, "restype")) || fileComps.has(comp)) return "file";
  if (query.has("sharesnapshot") || query.has("prevsharesnapshot")) return "file";
  if (comp === "rename" && lowered(target, "restype") === "" && levelOf(target) === "path") return "file";
  if (method === "PATCH" || dataLakeActions.has(lowered(target, "action"))) return "dfs";
  if (dataLakeResources.has(lowered(target, "resource"))) return "dfs";
  if (method === "DELETE" && (query.has("recursive") || query.has("paginated"))) return "dfs";
  if (method === "POST" && comp === "" && headers["x-ms-lease-action"] !== undefined) return "dfs";
  if ([...dataLakeHeaders, ...moreDataLakeHeaders].some((name) => headers[name] !== undefined)) return "dfs";
  return fileHeaders.some((name) => hasHeader(headers, name)) ? "file" : undefined;
}

function fits(row: OtherRequest, method: string, target: Target, headers: HttpHeaders): boolean {
  if (row.method !== method || row.level !== levelOf(target)) return false;
  if (row.header !== undefined && !hasHeader(headers, row.header)) return false;
  const asks = (name: string): string => row.query.find(([own]) => own === name)?.[1] ?? "";
  if (asks("comp") !== lowered(target, "comp") || asks("restype") !== lowered(target, "restype")) return false;
  return row.query.every(([name, value]) => (value === "*" ? target.query.has(name) : lowered(target, name) === value));
}

interface Recognized {
  /** Name of the operation with that of its service; the service's name alone if the operation is none of the tables. */
  readonly title: string;
  readonly row: OtherRequest | undefined;
}

function recognized(method: string, target: Target, headers: HttpHeaders, host?: OtherService): Recognized | undefined {
  const service = host ?? serviceTold(method, target, headers);
  if (service === undefined) return undefined;
  const row = requests[service].find((one) => fits(one, method, target, headers));
  return { title: row ? `${row.title} (${serviceNames[service]})` : serviceNames[service], row };
}

/** Returns the title of the operation of Azure Files that a request is; undefined if it is none. */
export const fileRequestTitle = (method: string, target: Target, headers: HttpHeaders): string | undefined =>
  requests.file.find((one) => fits(one, method, target, headers))?.title;

/** Returns the name of the operation of another service that a request is; undefined if it is the Blob service's. */
export const otherRequestTitle = (method: string, target: Target, headers: HttpHeaders, host?: OtherService): string | undefined =>
  recognized(method, target, headers, host)?.title;

/** Refuses a request of another service with 501 and the operation's name, or as the service does; undefined if it is the Blob service's. */
export function refuseOtherService(method: string, target: Target, headers: HttpHeaders, host?: OtherService): RestError | undefined {
  const asked = recognized(method, target, headers, host);
  if (asked === undefined) return undefined;
  return asked.row?.refusedWith === 400 ? restError("HierarchicalNamespaceNotEnabled") : notImplemented(asked.title).error;
}

/** Returns the suffixes that a service's hosts would have: `dfs.localhost` where ours are `blob.localhost`. */
export function otherSuffixes(ours: readonly string[], service: OtherService): readonly string[] {
  return ours.flatMap((suffix) => (/^(blob|queue|table)\./.test(suffix) ? [suffix.replace(/^\w+/, service)] : []));
}

/** Returns the body of a refusal in the form that clients of Data Lake Storage read. */
export const dataLakeErrorBody = ({ code, message }: RestError): string => JSON.stringify({ error: { code, message } });
