/**
 * Owner, owning group, sticky bit and lists of a path, as one value and as the text that its blob keeps: owner, group, `t` for the sticky
 * bit or `-`, and the short form of both lists, with commas between them. No id has a comma. A path that is as one made with a shared key,
 * without any access control in the request, keeps no text.
 */
import { badHeader, type Parsed, parsed } from "../../rest-error.ts";
import type { Ownership } from "../path-headers.ts";
import type { RecursiveChange } from "../requests.ts";
import {
  type AccessList,
  type AccessLists,
  hasDefaults,
  isExtended,
  listsText,
  modeOf,
  parseLists,
  replacedLists,
  rootLists,
  withEntries,
  withMode,
  withoutEntries,
} from "./access-list.ts";
import { type AskedAccess, accessOfNew } from "./new-path.ts";
import { modeText } from "./rights.ts";

export type PathKind = "root" | "directory" | "file";

export interface PathAccess {
  readonly owner: string;
  readonly group: string;
  readonly sticky: boolean;
  readonly lists: AccessLists;
}

/** Owner of what is made with a shared key, or with a shared access signature that names nobody. */
export const superuserId = "$superuser";

const kept = (kind: PathKind): PathAccess => {
  const { lists, sticky } = kind === "root" ? { lists: rootLists, sticky: false } : accessOfNew(kind, undefined);
  return { owner: superuserId, group: superuserId, sticky, lists };
};
const withoutText: Readonly<Record<PathKind, PathAccess>> = { root: kept("root"), directory: kept("directory"), file: kept("file") };

const textOf = ({ owner, group, sticky, lists }: PathAccess): string => `${owner},${group},${sticky ? "t" : "-"},${listsText(lists)}`;

/** Returns the text to keep; empty: none is needed. */
export function pathAccessText(kind: PathKind, access: PathAccess): string {
  const text = textOf(access);
  return text === textOf(withoutText[kind]) ? "" : text;
}

/** Refuses what pathAccessText never writes. */
export function parsePathAccess(kind: PathKind, text: string | undefined): Parsed<PathAccess> {
  if (text === undefined || text === "") return parsed(withoutText[kind]);
  const [owner = "", group = "", sticky = ""] = text.split(",", 3);
  const lists = parseLists(text.slice(owner.length + group.length + sticky.length + 3));
  return lists.ok ? parsed({ owner, group, sticky: sticky === "t", lists: lists.value }) : lists;
}

/** Access control of a new path. The owning group is that of the directory it is made in, which gives its default list, too. */
export function newPathAccess(
  kind: "directory" | "file",
  parent: PathAccess,
  owner: string,
  { asked, umask }: { readonly asked: Ownership; readonly umask: AskedAccess["umask"] },
): PathAccess {
  const { permissions, lists } = asked;
  const made = accessOfNew(kind, parent.lists.defaults, { permissions, lists, umask });
  return { owner: asked.owner ?? owner, group: asked.group ?? parent.group, ...made };
}

/** Returns the access control with what the request names. */
export function changedPathAccess(kind: PathKind, held: PathAccess, asked: Ownership): Parsed<PathAccess> {
  const { owner = held.owner, group = held.group, permissions, lists } = asked;
  if (lists && hasDefaults(lists) && kind === "file") return badHeader("x-ms-acl", "", "A file has no default list.");
  if (lists) return parsed({ owner, group, sticky: held.sticky, lists: replacedLists(held.lists, lists) });
  if (!permissions) return parsed({ ...held, owner, group });
  const access: AccessList = withMode(held.lists.access, permissions);
  return parsed({ owner, group, sticky: permissions.sticky, lists: { ...held.lists, access } });
}

/** Returns the access control after a change that goes over everything below a directory. Files take what is not for default lists. */
export function recursivelyChanged(kind: PathKind, held: PathAccess, change: RecursiveChange): Parsed<PathAccess> {
  const isTaken = ({ scope }: { readonly scope: "access" | "default" }): boolean => scope === "access" || kind !== "file";
  const lists =
    change.mode === "set"
      ? parsed(kind === "file" ? { ...change.lists, defaults: undefined } : change.lists)
      : change.mode === "modify"
        ? withEntries(held.lists, change.entries.filter(isTaken))
        : withoutEntries(held.lists, change.names.filter(isTaken));
  return lists.ok ? parsed({ ...held, lists: lists.value }) : lists;
}

/** Returns the mode in symbolic form, with a plus behind it if the lists have more than it says. */
export const permissionsText = ({ lists, sticky }: PathAccess): string => modeText(modeOf(lists.access, sticky), isExtended(lists));
