/**
 * Lists of a path that is created. In order: what the request's `x-ms-acl` says; the parent's default list, limited by the permissions;
 * the permissions without those of the umask.
 *
 * Sources: "Path - Create" (`x-ms-permissions`, `x-ms-umask` and their defaults), "Access control lists in Azure Data Lake Storage" (a
 * default list makes the umask void). That permissions limit what a default list gives is POSIX 1003.1e; the reference is silent.
 */
import type { AccessList, AccessLists, AskedLists } from "./access-list.ts";
import { plainList, replacedLists } from "./access-list.ts";
import { allRights, defaultUmask, type Mode, maskedBy, readRight, writeRight } from "./rights.ts";

/** Access control that a request asks for; undefined: it does not name this one. */
export interface AskedAccess {
  readonly permissions?: Mode | undefined;
  readonly umask?: Mode | undefined;
  readonly lists?: AskedLists | undefined;
}

export interface NewAccess {
  readonly lists: AccessLists;
  readonly sticky: boolean;
}

const everything: Mode = { owner: allRights, group: allRights, other: allRights, sticky: false };
const data: Mode = { owner: readRight | writeRight, group: readRight | writeRight, other: readRight | writeRight, sticky: false };

/** Permissions of a request that names none: 0777 for a directory, 0666 for a file. */
export const defaultPermissions = (kind: "file" | "directory"): Mode => (kind === "directory" ? everything : data);

/** `parentDefaults`: default list of the directory that the path is created in. */
export function accessOfNew(kind: "file" | "directory", parentDefaults: AccessList | undefined, asked: AskedAccess = {}): NewAccess {
  const permissions = asked.permissions ?? defaultPermissions(kind);
  const { sticky } = permissions;
  if (asked.lists) {
    const { lists } = accessOfNew(kind, parentDefaults, { permissions: asked.permissions, umask: asked.umask });
    return { lists: replacedLists(lists, asked.lists), sticky };
  }
  if (!parentDefaults) {
    return { lists: { access: plainList(maskedBy(permissions, asked.umask ?? defaultUmask)), defaults: undefined }, sticky };
  }
  return { lists: { access: limited(parentDefaults, permissions), defaults: kind === "directory" ? parentDefaults : undefined }, sticky };
}

/** Takes from the owner, from others, and from the mask or else the owning group what the permissions do not have. */
function limited(list: AccessList, { owner, group, other }: Mode): AccessList {
  const all = { ...list, owner: list.owner & owner, other: list.other & other };
  return list.mask === undefined ? { ...all, group: list.group & group } : { ...all, mask: list.mask & group };
}
