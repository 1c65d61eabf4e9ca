/**
 * Rights that each operation on a path needs of callers who are judged by lists: on every directory above, on the directory that holds the
 * path, on the path itself. A rename is judged twice, for its source and for its target.
 *
 * Sources: "Common scenarios related to ACL permissions" (read, append, create, delete, list) and the FAQ (recursive deletion) of "Access
 * control lists in Azure Data Lake Storage"; for the others the letters of a SAS with the same meaning: `r` reads properties, `e` reads
 * status and lists, `w` writes properties and leases, owners set access control.
 */
import type { DataLakeOperationName } from "../operation-rows.ts";
import { type Guarded, grants, type Identity, mayChangeLists, sparedBySticky } from "./decide.ts";
import { allRights, executeRight, readRight, writeRight } from "./rights.ts";

interface Needs {
  /** Rights on the directory that holds the path, beside execute on all above. */
  readonly parent?: number;
  /** Rights on the path itself; a creation and the target of a rename need none. */
  readonly path?: number;
  /** True: what is there loses its name, so the parent's sticky bit counts. */
  readonly removes?: true;
  /** True: for owners of the path only. */
  readonly owner?: true;
}

/** Operations that need a role: lists do not decide about them. */
type RoleOperationName =
  | "ListFilesystems"
  | "CreateFilesystem"
  | "SetFilesystemProperties"
  | "GetFilesystemProperties"
  | "DeleteFilesystem"
  | "ListDeletedPaths"
  | "UndeletePath";
export type PathOperationName = Exclude<DataLakeOperationName, RoleOperationName>;

const naming: Needs = { parent: writeRight | executeRight, removes: true };

export const pathNeeds: Readonly<Record<PathOperationName, Needs>> = {
  ListPaths: { path: readRight | executeRight },
  CreateFile: naming,
  CreateDirectory: naming,
  RenamePath: naming,
  DeletePath: naming,
  AppendData: { path: readRight | writeRight },
  FlushData: { path: readRight | writeRight },
  SetPathProperties: { path: writeRight },
  SetPathExpiry: { path: writeRight },
  LeasePath: { path: writeRight },
  SetAccessControl: { owner: true },
  SetAccessControlRecursively: { owner: true },
  ReadPath: { path: readRight },
  GetPathProperties: { path: readRight },
  GetPathStatus: {},
  GetAccessControl: {},
  CheckAccess: {},
};

export const isPathOperation = (operation: string): operation is PathOperationName => Object.hasOwn(pathNeeds, operation);

export interface GuardedDirectory extends Guarded {
  readonly sticky: boolean;
}

/**
 * True if the identity may do the operation. `above`: the directories above the path, from the root; none if the path is the root. `path`:
 * undefined if nothing is there.
 */
export function allows(
  identity: Identity,
  operation: PathOperationName,
  above: readonly GuardedDirectory[],
  path: Guarded | undefined,
): boolean {
  if (identity.superuser) return true;
  const { parent = 0, path: own = 0, removes, owner } = pathNeeds[operation];
  const directory = above.at(-1);
  if (!above.every((each) => grants(identity, each, executeRight))) return false;
  if (directory && !grants(identity, directory, parent)) return false;
  if (path === undefined) return true;
  if (removes && directory && !sparedBySticky(identity, directory, path.owner)) return false;
  return owner ? mayChangeLists(identity, path) : grants(identity, path, own);
}

/**
 * True if the identity may empty the directory: a recursive deletion needs it of the directory that goes and of every one below. Whoever
 * is not its owner may empty no directory with a sticky bit, whoever owns what is in it: nobody looks at each.
 */
export const mayEmpty = (identity: Identity, directory: GuardedDirectory): boolean =>
  grants(identity, directory, allRights) && sparedBySticky(identity, directory, "");

/** True if the identity may see what is in the directory. */
export const mayList = (identity: Identity, directory: Guarded): boolean => grants(identity, directory, readRight | executeRight);
