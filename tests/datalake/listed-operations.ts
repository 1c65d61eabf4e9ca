/** Operations on paths and the rights that each needs of whoever is judged by lists: the table that tests and docs/api/access-lists.md have. */

export interface ListedOperation {
  readonly name: string;
  /** What is at the path before: "nothing" for a creation. */
  readonly on: "file" | "directory" | "nothing";
  readonly method: string;
  /** Path and query behind the account. */
  target(filesystem: string, path: string): string;
  readonly headers?: (filesystem: string, path: string) => Record<string, string>;
  readonly body?: string;
  /** Rights on the directory that the path is in; `--x` unless said. Each directory above needs `--x`. */
  readonly parent?: string;
  /** Rights on the path itself. */
  readonly path?: string;
  /** True: for the owner of the path only. */
  readonly owner?: boolean;
  /** Role that is enough without any right. */
  readonly role: "read" | "contribute" | "own";
  /** Answer to a second request by another identity, where the first one has used up what was there. */
  readonly again?: RegExp;
}

const on = (query: string) => (filesystem: string, path: string) => `/${filesystem}/${path}${query === "" ? "" : `?${query}`}`;
const used = /^(20\d|404|409|412)/;

export const listedOperations: readonly ListedOperation[] = [
  {
    name: "ListPaths",
    on: "directory",
    method: "GET",
    target: (filesystem, path) => `/${filesystem}?resource=filesystem&recursive=false&directory=${encodeURIComponent(path)}`,
    path: "r-x",
    role: "read",
  },
  { name: "CreateFile", on: "nothing", method: "PUT", target: on("resource=file"), parent: "-wx", role: "contribute" },
  { name: "CreateDirectory", on: "nothing", method: "PUT", target: on("resource=directory"), parent: "-wx", role: "contribute" },
  {
    name: "RenamePath",
    on: "file",
    method: "PUT",
    target: (filesystem, path) => `/${filesystem}/${path}-new`,
    headers: (filesystem, path) => ({ "x-ms-rename-source": `/${filesystem}/${path}` }),
    parent: "-wx",
    role: "contribute",
    again: used,
  },
  { name: "DeletePath", on: "file", method: "DELETE", target: on(""), parent: "-wx", role: "contribute", again: used },
  { name: "AppendData", on: "file", method: "PATCH", target: on("action=append&position=0"), body: "x", path: "rw-", role: "contribute" },
  { name: "FlushData", on: "file", method: "PATCH", target: on("action=flush&position=0"), path: "rw-", role: "contribute" },
  {
    name: "SetAccessControl",
    on: "file",
    method: "PATCH",
    target: on("action=setAccessControl"),
    headers: () => ({ "x-ms-permissions": "0700" }),
    owner: true,
    role: "own",
  },
  { name: "ReadPath", on: "file", method: "GET", target: on(""), path: "r--", role: "read" },
  { name: "GetPathProperties", on: "file", method: "HEAD", target: on(""), path: "r--", role: "read" },
  { name: "GetPathStatus", on: "file", method: "HEAD", target: on("action=getStatus"), role: "read" },
  { name: "GetAccessControl", on: "file", method: "HEAD", target: on("action=getAccessControl"), role: "read" },
  { name: "CheckAccess", on: "file", method: "HEAD", target: on("action=checkAccess&fsAction=r-x"), path: "r-x", role: "read" },
  { name: "GetBlobMetadata", on: "file", method: "GET", target: on("comp=metadata"), path: "r--", role: "read" },
  {
    name: "SetBlobMetadata",
    on: "file",
    method: "PUT",
    target: on("comp=metadata"),
    headers: () => ({ "x-ms-meta-a": "b" }),
    path: "-w-",
    role: "contribute",
  },
  { name: "SetBlobHeaders", on: "file", method: "PUT", target: on("comp=properties"), path: "-w-", role: "contribute" },
  {
    name: "LeaseBlob",
    on: "file",
    method: "PUT",
    target: on("comp=lease"),
    headers: () => ({ "x-ms-lease-action": "acquire", "x-ms-lease-duration": "15" }),
    path: "-w-",
    role: "contribute",
    again: used,
  },
];
