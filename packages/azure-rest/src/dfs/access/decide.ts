/**
 * Decides by the lists of a path whether somebody has rights on it, and who may change its owner, group and lists. The caller of these
 * functions walks the path and says which rights each operation needs; roles of bearers come before lists and are not here.
 *
 * Sources: "Access control lists in Azure Data Lake Storage": "How permissions are evaluated", "The sticky bit", "The owning user", "The
 * owning group". Two things differ from POSIX there, and this is as there: a member of groups of which none has all rights is judged as
 * everybody else is, and the mask limits everybody else, too.
 */
import { type AccessList, canonicalId } from "./access-list.ts";
import { allRights } from "./rights.ts";

export interface Identity {
  /** Object id, canonical (`canonicalId`). */
  readonly id: string;
  /** Object ids of the groups that it is a member of, canonical. */
  readonly groups: ReadonlySet<string>;
  /** True for shared keys and for owners of the account's data. */
  readonly superuser: boolean;
}

export interface Guarded {
  readonly owner: string;
  readonly group: string;
  readonly access: AccessList;
}

/** True if the list gives the identity all wanted rights. */
export function grants({ id, groups, superuser }: Identity, { owner, group, access }: Guarded, wanted: number): boolean {
  const has = (rights: number): boolean => (wanted & ~rights) === 0;
  if (superuser) return true;
  if (id === canonicalId(owner)) return has(access.owner);
  const { mask = allRights } = access;
  const asUser = access.users.get(id);
  if (asUser !== undefined) return has(asUser & mask);
  if (groups.has(canonicalId(group)) && has(access.group & mask)) return true;
  for (const [name, rights] of access.groups) if (groups.has(name) && has(rights & mask)) return true;
  return has(access.other & mask);
}

/**
 * True unless the directory's sticky bit keeps the identity from removing, renaming or replacing the child. The rights on the directory are
 * looked at beside this.
 */
export const sparedBySticky = (
  identity: Identity,
  directory: { readonly owner: string; readonly sticky: boolean },
  childOwner: string,
): boolean => !directory.sticky || isOwner(identity, directory.owner) || isOwner(identity, childOwner);

/** True for the owner and superusers: they may change the mode and the lists. */
export const mayChangeLists = (identity: Identity, { owner }: Pick<Guarded, "owner">): boolean => isOwner(identity, owner);

/** True for superusers, or if the owner would stay. */
export const mayChangeOwner = ({ superuser }: Identity, { owner }: Pick<Guarded, "owner">, next: string): boolean =>
  superuser || canonicalId(owner) === canonicalId(next);

/** True for superusers, for an owner who is a member of the next group, or if the group would stay. */
export const mayChangeGroup = (identity: Identity, { owner, group }: Pick<Guarded, "owner" | "group">, next: string): boolean =>
  identity.superuser || canonicalId(group) === canonicalId(next) || (isOwner(identity, owner) && identity.groups.has(canonicalId(next)));

const isOwner = ({ id, superuser }: Identity, owner: string): boolean => superuser || id === canonicalId(owner);
