/** Owner, group, permissions and lists of a path are changed. */
import {
  changedPathAccess,
  etagAndTime,
  type Identity,
  mayChangeGroup,
  mayChangeLists,
  mayChangeOwner,
  type Ownership,
  type Parsed,
  type PathAccess,
  parsed,
  rejected,
} from "@stamp/azure-rest";
import { resolve } from "@stamp/tree";
import { blobOf, containerOf } from "../../objects/wire-to-rest.ts";
import { identityOf } from "../authorize.ts";
import { type Answer, respond } from "../exchange.ts";
import { changeAccess } from "./access.ts";
import { type DataLakeExchange, namesOf, type OnPath, rootUnder, rowOf, treeNameOf } from "./exchange.ts";
import { refused } from "./refusals.ts";
import { runInTree } from "./run.ts";

/**
 * A SAS gives `o` for the owner and the owning group, `p` for permissions and lists. `alone`: the request does nothing else. Permissions of a
 * new path need no letter of their own: the reference names none, and Hadoop's driver sends them with every creation.
 */
export function mayOwn({ access }: OnPath, { owner, group, permissions, lists }: Ownership, alone: boolean): Parsed<void> {
  if (access.by !== "sas") return parsed(undefined);
  const owns = owner === undefined && group === undefined ? true : access.may("o");
  const lets = lists === undefined && (permissions === undefined || !alone) ? true : access.may("p");
  return owns && lets ? parsed(undefined) : rejected("AuthorizationPermissionMismatch");
}

/** Returns the identity that limits which owner and group a new path gets: whom lists judge, or a bearer whose role owns nothing. */
export function madeBy({ access }: OnPath): Identity | undefined {
  const { judged, bearer } = access;
  return judged ?? (bearer && !access.may("o") ? identityOf(bearer.objectId, bearer.groups) : undefined);
}

/** True if whoever is judged may give the path what the request names. It is decided by the access control that is changed. */
export function mayChange(judged: Identity | undefined, access: Pick<PathAccess, "owner" | "group">, { owner, group }: Ownership): boolean {
  if (!judged) return true;
  if (owner !== undefined && !mayChangeOwner(judged, access, owner)) return false;
  if (group !== undefined && !mayChangeGroup(judged, access, group)) return false;
  return mayChangeLists(judged, access);
}

export async function setAccessControl(exchange: DataLakeExchange<"SetAccessControl">): Promise<Answer> {
  const { ownership, conditions } = exchange.asked;
  const may = mayOwn(exchange, ownership, true);
  if (!may.ok) return may;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const names = namesOf(exchange.resource.path);
  const found = await runInTree(exchange, treeNameOf(exchange, row.value), (context) => resolve(context, names));
  if (!found.ok) return refused(found.refusal === "notDirectory" ? { ...found, refusal: "notFound" } : found);
  const held = found.value.at(-1)?.held;
  const root = held ? undefined : await rootUnder(exchange, conditions, row.value);
  if (root && !root.ok) return root;
  const changed = await changeAccess(exchange, row.value, held, {
    conditions,
    change: (access) =>
      mayChange(exchange.access.judged, access, ownership)
        ? changedPathAccess(held?.kind ?? "root", access, ownership)
        : rejected("AuthorizationPermissionMismatch"),
  });
  if (!changed.ok) return changed;
  return respond(200, etagAndTime(exchange.version, root ? containerOf(root.value) : blobOf(changed.value)));
}
