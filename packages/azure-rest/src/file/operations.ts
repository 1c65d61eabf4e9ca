/**
 * Operations of the Files service: which one a request is, and what it needs of callers without an account key. Requests are told by the
 * table of Azure Files in other-services.ts, and by a few on the root directory of a share that only a host of the service has.
 * Needs: REST reference, "Create an account SAS", "Create a service SAS".
 */
import { needs, type OperationAuthorization } from "../auth/authorization.ts";
import type { HttpHeaders } from "../headers.ts";
import { fileRequestTitle, levelOf } from "../other-services.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { queryValue, type Target } from "../target.ts";

export const fileOperationNames = [
  "ListShares",
  "GetFileServiceProperties",
  "SetFileServiceProperties",
  "GetUserDelegationKey",
  "CreateShare",
  "GetShareProperties",
  "DeleteShare",
  "SetShareProperties",
  "GetShareMetadata",
  "SetShareMetadata",
  "GetShareACL",
  "SetShareACL",
  "GetShareStats",
  "SnapshotShare",
  "LeaseShare",
  "RestoreShare",
  "CreatePermission",
  "GetPermission",
  "ListDirectoriesAndFiles",
  "CreateDirectory",
  "GetDirectoryProperties",
  "DeleteDirectory",
  "SetDirectoryProperties",
  "GetDirectoryMetadata",
  "SetDirectoryMetadata",
  "RenameDirectory",
  "ListHandles",
  "ForceCloseHandles",
  "CreateHardLink",
  "CreateSymbolicLink",
  "GetSymbolicLink",
  "RenameFile",
  "PutRangeFromURL",
  "PutRange",
  "ListRanges",
  "SetFileProperties",
  "GetFileMetadata",
  "SetFileMetadata",
  "LeaseFile",
  "AbortCopyFile",
  "CopyFile",
  "CreateFile",
  "GetFile",
  "GetFileProperties",
  "DeleteFile",
] as const;
export type FileOperationName = (typeof fileOperationNames)[number];

const rows: Readonly<Record<FileOperationName, OperationAuthorization>> = {
  ListShares: needs("s", "l", "-", "-", "read"),
  GetFileServiceProperties: needs("s", "r", "-", "-", "own"),
  SetFileServiceProperties: needs("s", "w", "-", "-", "own"),
  GetUserDelegationKey: needs("s", "-", "-", "-", "read"),
  CreateShare: needs("c", "cw", "-", "-", "contribute"),
  GetShareProperties: needs("c", "r", "-", "-", "read"),
  DeleteShare: needs("c", "d", "-", "-", "contribute"),
  SetShareProperties: needs("c", "w", "-", "-", "contribute"),
  GetShareMetadata: needs("c", "r", "-", "-", "read"),
  SetShareMetadata: needs("c", "w", "-", "-", "contribute"),
  GetShareACL: needs("c", "-", "-", "-", "own"),
  SetShareACL: needs("c", "-", "-", "-", "own"),
  GetShareStats: needs("c", "r", "-", "-", "read"),
  SnapshotShare: needs("c", "cw", "-", "-", "contribute"),
  LeaseShare: needs("c", "wd", "-", "-", "contribute"),
  RestoreShare: needs("c", "w", "-", "-", "contribute"),
  CreatePermission: needs("c", "cw", "cw", "cw", "contribute"),
  GetPermission: needs("c", "r", "r", "r", "read"),
  ListDirectoriesAndFiles: needs("c", "l", "l", "l", "read"),
  CreateDirectory: needs("o", "cw", "cw", "cw", "contribute"),
  GetDirectoryProperties: needs("o", "r", "r", "r", "read"),
  DeleteDirectory: needs("o", "d", "d", "d", "contribute"),
  SetDirectoryProperties: needs("o", "w", "w", "w", "contribute"),
  GetDirectoryMetadata: needs("o", "r", "r", "r", "read"),
  SetDirectoryMetadata: needs("o", "w", "w", "w", "contribute"),
  RenameDirectory: needs("o", "w", "w", "w", "contribute"),
  ListHandles: needs("co", "l", "l", "l", "read"),
  ForceCloseHandles: needs("co", "w", "w", "w", "contribute"),
  CreateHardLink: needs("o", "cw", "cw", "cw", "contribute"),
  CreateSymbolicLink: needs("o", "cw", "cw", "cw", "contribute"),
  GetSymbolicLink: needs("o", "r", "r", "r", "read"),
  RenameFile: needs("o", "w", "w", "w", "contribute"),
  PutRangeFromURL: needs("o", "w", "w", "w", "contribute"),
  PutRange: needs("o", "w", "w", "w", "contribute"),
  ListRanges: needs("o", "r", "r", "r", "read"),
  SetFileProperties: needs("o", "w", "w", "w", "contribute"),
  GetFileMetadata: needs("o", "r", "r", "r", "read"),
  SetFileMetadata: needs("o", "w", "w", "w", "contribute"),
  LeaseFile: needs("o", "wd", "wd", "wd", "contribute"),
  AbortCopyFile: needs("o", "w", "w", "w", "contribute"),
  CopyFile: needs("o", "cw", "cw", "cw", "contribute"),
  CreateFile: needs("o", "cw", "cw", "cw", "contribute"),
  GetFile: needs("o", "r", "r", "r", "read"),
  GetFileProperties: needs("o", "r", "r", "r", "read"),
  DeleteFile: needs("o", "d", "d", "d", "contribute"),
};

export const fileAuthorizationOf = (name: FileOperationName): OperationAuthorization => rows[name];

const titleKey = (title: string): string => title.replaceAll(" ", "").toLowerCase();
const namesByTitle: ReadonlyMap<string, FileOperationName> = new Map(fileOperationNames.map((name) => [titleKey(name), name]));

/** Requests on the root directory of a share. */
const rootRows: Readonly<Record<string, FileOperationName>> = {
  "GET directory ": "GetDirectoryProperties",
  "HEAD directory ": "GetDirectoryProperties",
  "PUT directory ": "CreateDirectory",
  "DELETE directory ": "DeleteDirectory",
  "PUT directory properties": "SetDirectoryProperties",
  "GET directory metadata": "GetDirectoryMetadata",
  "HEAD directory metadata": "GetDirectoryMetadata",
  "PUT directory metadata": "SetDirectoryMetadata",
};
const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"]);

export function recognizeFile(method: string, target: Target, headers: HttpHeaders): Parsed<FileOperationName> {
  if (!methods.has(method)) return rejected("InvalidHttpVerb");
  const title = fileRequestTitle(method, target, headers);
  const told = title === undefined ? undefined : namesByTitle.get(titleKey(title));
  if (told !== undefined) return parsed(told);
  const [restype, comp] = (["restype", "comp"] as const).map((name) => queryValue(target.query, name)?.toLowerCase() ?? "");
  const onRoot = levelOf(target) === "root" ? rootRows[`${method} ${restype} ${comp}`] : undefined;
  if (onRoot !== undefined) return parsed(onRoot);
  return comp === "" && restype === ""
    ? rejected("InvalidUri")
    : rejected("InvalidQueryParameterValue", {
        QueryParameterName: comp === "" ? "restype" : "comp",
        QueryParameterValue: comp === "" ? (restype ?? "") : (comp ?? ""),
        Reason: "It does not name an operation on this resource.",
      });
}
