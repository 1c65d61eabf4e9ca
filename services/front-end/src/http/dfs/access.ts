/**
 * Owner and access control of a path, as they are shown. Nobody can set them here yet, so all have what the service gives to a path that is
 * made with a shared key.
 */
import { type AccessLists, accessOfNew, listsText, modeOf, modeText, type ResponseHeaders, rootLists } from "@stamp/azure-rest";

const superuser = "$superuser";
export type PathKind = "root" | "directory" | "file";

const listsOf = (kind: PathKind): AccessLists => (kind === "root" ? rootLists : accessOfNew(kind, undefined).lists);

export const shownAccess = (kind: PathKind): { readonly owner: string; readonly group: string; readonly permissions: string } => ({
  owner: superuser,
  group: superuser,
  permissions: modeText(modeOf(listsOf(kind).access, false)),
});

/** Headers that the properties of a path have, at both doors. */
export function accessHeaders(kind: PathKind, withLists: boolean): ResponseHeaders {
  const { owner, group, permissions } = shownAccess(kind);
  return {
    "x-ms-owner": owner,
    "x-ms-group": group,
    "x-ms-permissions": permissions,
    ...(withLists ? { "x-ms-acl": listsText(listsOf(kind)) } : {}),
  };
}

export const typeHeader = (kind: PathKind): ResponseHeaders => ({ "x-ms-resource-type": kind === "file" ? "file" : "directory" });
