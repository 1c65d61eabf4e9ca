/**
 * Access control lists of a path and their short form, the value of `x-ms-acl`: entries `[default:]type:id:rights` with commas between
 * them. A path has an access list; a directory may have a default list beside it, which new children begin with.
 *
 *   user::rwx,user:5d5c…:r-x,group::r-x,group:77ab…:r--,mask::r-x,other::---,default:user::rwx,default:group::r-x,default:other::---
 *
 * Invariants:
 *
 * - A list has the rights of the owner, of the owning group and of others, and at most 32 entries.
 * - A list with named users or groups has a mask. Who gives none gets the union of what the mask limits, as `setfacl` does.
 * - The written form is canonical: named entries stand in the order of their ids, and an id that is a GUID in lower case with hyphens.
 *
 * Sources: "Path - Update" (`x-ms-acl`), "Access control lists in Azure Data Lake Storage" (entries, limits); where both are silent,
 * POSIX 1003.1e as `setfacl` has it.
 */
import { canonicalGuid } from "../../headers.ts";
import { badHeader, type Parsed, parsed, type RestError } from "../../rest-error.ts";
import { executeRight, type Mode, parseRights, readRight, rightsText } from "./rights.ts";

export interface AccessList {
  /** Rights of the owner. */
  readonly owner: number;
  /** Rights of named users, by id. */
  readonly users: ReadonlyMap<string, number>;
  /** Rights of the owning group. */
  readonly group: number;
  /** Rights of named groups, by id. */
  readonly groups: ReadonlyMap<string, number>;
  /** Undefined if there is no entry for the mask. */
  readonly mask: number | undefined;
  readonly other: number;
}

export interface AccessLists {
  readonly access: AccessList;
  /** Undefined for files, and for directories without a default list. */
  readonly defaults: AccessList | undefined;
}

/** Name of an entry. */
export interface EntryName {
  readonly scope: "access" | "default";
  readonly kind: "user" | "group" | "mask" | "other";
  /** Empty for the owner, the owning group, the mask and others. */
  readonly id: string;
}

export interface AccessEntry extends EntryName {
  readonly rights: number;
}

export const entriesMax = 32;
const header = "x-ms-acl";
const nothing: ReadonlyMap<string, number> = new Map();

/** Returns a list without named entries. */
export const plainList = ({ owner, group, other }: Mode): AccessList => ({
  owner,
  users: nothing,
  group,
  groups: nothing,
  mask: undefined,
  other,
});

/** Lists of the root of a new filesystem: `rwxr-x---`. */
export const rootLists: AccessLists = {
  access: plainList({ owner: 7, group: readRight | executeRight, other: 0, sticky: false }),
  defaults: undefined,
};

const bad = (text: string, reason: string): { readonly ok: false; readonly error: RestError } => badHeader(header, text, reason);

/** Ids are object ids, or names of users, in characters that a header has; no character of the short form stands in one. */
const idForm = /^[\x21-\x2b\x2d-\x39\x3b-\x7e\xa1-\xff]{1,256}$/;

/** True for an object id, and for any other text that can be one in the short form. */
export const isId = (text: string): boolean => idForm.test(text);

export const canonicalId = (id: string): string => canonicalGuid(id) ?? id;

interface Named {
  readonly name: EntryName;
  readonly rest: readonly string[];
}

/** Reads `[default:]type[:id]`; what follows the id is the rest. */
function nameOf(item: string, text: string): Parsed<Named> {
  const parts = item.trim().split(":");
  const scope = parts[0] === "default" ? "default" : "access";
  if (scope === "default") parts.shift();
  const [kind = "", id = "", ...rest] = parts;
  if (kind !== "user" && kind !== "group" && kind !== "mask" && kind !== "other") {
    return bad(text, `An entry begins with user, group, mask or other, behind default: for the default list: ${item.trim()}`);
  }
  if (id !== "" && (kind === "mask" || kind === "other")) return bad(text, `An entry of this type has no id: ${item.trim()}`);
  if (id !== "" && !isId(id)) return bad(text, `Not an id of a user or group: ${item.trim()}`);
  return parsed({ name: { scope, kind, id: canonicalId(id) }, rest });
}

const keyOf = ({ scope, kind, id }: EntryName): string => `${scope}:${kind}:${id}`;

function parseItems<T extends EntryName>(text: string, itemOf: (item: string) => Parsed<T>): Parsed<T[]> {
  // A list can't have more items than both of its halves together.
  const items = text.split(",", 2 * entriesMax + 1);
  if (items.length > 2 * entriesMax) return bad(text, `More than ${entriesMax} entries.`);
  const found = new Map<string, T>();
  for (const item of items) {
    const entry = itemOf(item);
    if (!entry.ok) return entry;
    if (found.has(keyOf(entry.value))) return bad(text, `It names an entry twice: ${item.trim()}`);
    found.set(keyOf(entry.value), entry.value);
  }
  return parsed([...found.values()]);
}

/** Parses entries with rights. */
export function parseEntries(text: string): Parsed<AccessEntry[]> {
  return parseItems(text, (item) => {
    const named = nameOf(item, text);
    if (!named.ok) return named;
    const [rightsOf = "", ...more] = named.value.rest;
    const rights = parseRights(rightsOf);
    if (rights === undefined || more.length > 0) return bad(text, `An entry ends with its rights, as r-x: ${item.trim()}`);
    return parsed({ ...named.value.name, rights });
  });
}

/** Parses names of entries that are to be removed: `user:5d5c…`, `default:group`, `mask`. Colons may follow, rights may not. */
export function parseEntryNames(text: string): Parsed<EntryName[]> {
  return parseItems(text, (item) => {
    const named = nameOf(item, text);
    if (!named.ok) return named;
    const { name, rest } = named.value;
    if (rest.length > 1 || (rest[0] ?? "") !== "") return bad(text, `An entry that is to be removed has no rights: ${item.trim()}`);
    if (name.scope === "access" && name.id === "" && name.kind !== "mask") {
      return bad(text, `The access list needs this entry; it can be changed, but not removed: ${item.trim()}`);
    }
    return parsed(name);
  });
}

/** A list while its entries change. */
type Draft = { -readonly [K in keyof AccessList]: AccessList[K] | undefined } & { users: Map<string, number>; groups: Map<string, number> };

const draftOf = (list: AccessList | undefined): Draft => ({
  owner: list?.owner,
  group: list?.group,
  mask: list?.mask,
  other: list?.other,
  users: new Map(list?.users),
  groups: new Map(list?.groups),
});

function put(draft: Draft, { kind, id }: EntryName, rights: number | undefined): void {
  if (id !== "") {
    const named = kind === "user" ? draft.users : draft.groups;
    if (rights === undefined) named.delete(id);
    else named.set(id, rights);
  } else if (kind === "user") draft.owner = rights;
  else draft[kind] = rights;
}

const isEmpty = ({ owner, group, other, users, groups }: Draft): boolean =>
  owner === undefined && group === undefined && other === undefined && users.size + groups.size === 0;

/** Fills in what the draft lacks: from the other list, and the mask from what it limits. */
function filled({ owner, group: own, other, users, groups, mask }: Draft, filling: Omit<Mode, "sticky">): AccessList {
  const group = own ?? filling.group;
  const union = [group, ...users.values(), ...groups.values()].reduce((all, rights) => all | rights);
  const isNamed = users.size + groups.size > 0;
  return {
    owner: owner ?? filling.owner,
    users,
    group,
    groups,
    mask: mask ?? (isNamed ? union : undefined),
    other: other ?? filling.other,
  };
}

function finished(draft: Draft, filling: AccessList | undefined, text: string): Parsed<AccessList> {
  const { owner = filling?.owner, group = filling?.group, other = filling?.other } = draft;
  if (owner === undefined || group === undefined || other === undefined) {
    return bad(text, "An access list has the entries user::, group:: and other::, each with rights.");
  }
  const list = filled(draft, { owner, group, other });
  const entries = 3 + list.users.size + list.groups.size + (list.mask === undefined ? 0 : 1);
  return entries > entriesMax ? bad(text, `More than ${entriesMax} entries.`) : parsed(list);
}

/** Changes entries of both lists; those without rights are removed. */
function changed(
  lists: AccessLists | undefined,
  changes: readonly (EntryName & { readonly rights?: number })[],
  text: string,
): Parsed<AccessLists> {
  const drafts = { access: draftOf(lists?.access), default: draftOf(lists?.defaults) };
  const touched = new Set(changes.map(({ scope }) => scope));
  // A mask that nobody names is made anew, so that it lets through what was just given.
  for (const scope of touched) drafts[scope].mask = undefined;
  for (const change of changes) put(drafts[change.scope], change, change.rights);
  const access = touched.has("access") || lists === undefined ? finished(drafts.access, undefined, text) : parsed(lists.access);
  if (!access.ok) return access;
  if (!touched.has("default")) return parsed({ access: access.value, defaults: lists?.defaults });
  if (isEmpty(drafts.default)) return parsed({ access: access.value, defaults: undefined });
  const defaults = finished(drafts.default, access.value, text);
  return defaults.ok ? parsed({ access: access.value, defaults: defaults.value }) : defaults;
}

/** Returns the lists with these entries added, or their rights changed. */
export const withEntries = (lists: AccessLists, entries: readonly AccessEntry[]): Parsed<AccessLists> =>
  changed(lists, entries, entriesText(entries));

/** Returns the lists without these entries. A default list of which nothing is left is gone. */
export const withoutEntries = (lists: AccessLists, names: readonly EntryName[]): Parsed<AccessLists> =>
  changed(
    lists,
    names.map(({ scope, kind, id }) => ({ scope, kind, id })),
    names.map(keyOf).join(","),
  );

/** Entries that replace those of a path. */
export type AskedLists = readonly AccessEntry[];

const draftsOf = (asked: AskedLists) => {
  const drafts = { access: draftOf(undefined), default: draftOf(undefined) };
  for (const entry of asked) put(drafts[entry.scope], entry, entry.rights);
  return drafts;
};

/** Parses a value of `x-ms-acl` that may leave to the path what `replacedLists` takes from there. */
export function parseAskedLists(text: string): Parsed<AskedLists> {
  const entries = parseEntries(text);
  if (!entries.ok) return entries;
  for (const draft of Object.values(draftsOf(entries.value))) {
    const list = finished(draft, rootLists.access, text);
    if (!list.ok) return list;
  }
  return entries;
}

export const hasDefaults = (asked: AskedLists): boolean => asked.some(({ scope }) => scope === "default");

/**
 * Returns lists with these entries in place of those of `held`. What the access list lacks of owner, owning group and others stays, and all of
 * it if no entry is for it. A default list takes what it lacks from the access list; without an entry for it there is none.
 */
export function replacedLists(held: AccessLists, asked: AskedLists): AccessLists {
  const drafts = draftsOf(asked);
  const access = asked.some(({ scope }) => scope === "access") ? filled(drafts.access, held.access) : held.access;
  return { access, defaults: hasDefaults(asked) ? filled(drafts.default, access) : undefined };
}

/** Parses both lists as they are kept: the access list is whole. What a default list lacks is that of the access list. */
export function parseLists(text: string): Parsed<AccessLists> {
  const entries = parseEntries(text);
  return entries.ok ? changed(undefined, entries.value, text) : entries;
}

const byId = ([a]: readonly [string, number], [b]: readonly [string, number]): number => (a < b ? -1 : a > b ? 1 : 0);

function entriesOf(list: AccessList, scope: EntryName["scope"]): AccessEntry[] {
  const named = (kind: "user" | "group", ids: ReadonlyMap<string, number>): AccessEntry[] =>
    [...ids].sort(byId).map(([id, rights]) => ({ scope, kind, id, rights }));
  const own = (kind: EntryName["kind"], rights: number): AccessEntry => ({ scope, kind, id: "", rights });
  return [
    own("user", list.owner),
    ...named("user", list.users),
    own("group", list.group),
    ...named("group", list.groups),
    ...(list.mask === undefined ? [] : [own("mask", list.mask)]),
    own("other", list.other),
  ];
}

const entriesText = (entries: readonly AccessEntry[]): string =>
  entries.map(({ scope, kind, id, rights }) => `${scope === "default" ? "default:" : ""}${kind}:${id}:${rightsText(rights)}`).join(",");

/** Returns the short form of both lists. */
export const listsText = ({ access, defaults }: AccessLists): string =>
  entriesText([...entriesOf(access, "access"), ...(defaults ? entriesOf(defaults, "default") : [])]);

/** Returns the mode that the list shows. Its middle is the mask, if there is one. */
export const modeOf = ({ owner, group, mask, other }: AccessList, sticky: boolean): Mode => ({
  owner,
  group: mask ?? group,
  other,
  sticky,
});

/** True if the lists have more than a mode says. */
export const isExtended = ({ access, defaults }: AccessLists): boolean =>
  defaults !== undefined || access.mask !== undefined || access.users.size + access.groups.size > 0;

/** Returns the list with the rights of a mode. Its middle goes to the mask, if there is one, and no named entry changes (`chmod`). */
export const withMode = (list: AccessList, { owner, group, other }: Mode): AccessList =>
  list.mask === undefined ? { ...list, owner, group, other } : { ...list, owner, mask: group, other };
