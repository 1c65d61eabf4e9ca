/** Owner and access control of paths. The blob of a path keeps them (docs/formats/tree.md); the root has a blob once they were changed. */
import {
  type ConditionHeaders,
  etagHeader,
  isId,
  listsText,
  type Parsed,
  type PathAccess,
  type PathKind,
  parsed,
  parsePathAccess,
  pathAccessText,
  permissionsText,
  type ResponseHeaders,
  rejected,
  superuserId,
} from "@stamp/azure-rest";
import { FailureError } from "@stamp/base";
import type { HeldEntry } from "@stamp/objects";
import type { Blob, Container } from "@stamp/wire";
import type { LocatedBlob } from "../../objects/objects.ts";
import { conditionsToWire } from "../../objects/wire-conditions.ts";
import type { CallLimits } from "../../routing/router.ts";
import { rootId } from "../../trees/trees.ts";
import { contentOf, emptyBody, noContent, type OnPath } from "./exchange.ts";

/** Throws FailureError for a text that pathAccessText never writes. */
export function accessOf(kind: PathKind, text: string | undefined): PathAccess {
  const access = parsePathAccess(kind, text);
  if (access.ok) return access.value;
  throw new FailureError({ code: "dataLoss", reason: "damaged", message: `access control of a path: ${text}`, applied: "no" });
}

/** Owner, group and permissions, in the form that lists show. */
export const shownAccess = (access: PathAccess): { readonly owner: string; readonly group: string; readonly permissions: string } => ({
  owner: access.owner,
  group: access.group,
  permissions: permissionsText(access),
});

/** Headers that the properties of a path have, at both doors. */
export function accessHeaders(access: PathAccess, withLists: boolean): ResponseHeaders {
  const { owner, group, permissions } = shownAccess(access);
  return {
    "x-ms-owner": owner,
    "x-ms-group": group,
    "x-ms-permissions": permissions,
    ...(withLists ? { "x-ms-acl": listsText(access.lists) } : {}),
  };
}

export const typeHeader = (kind: PathKind): ResponseHeaders => ({ "x-ms-resource-type": kind === "file" ? "file" : "directory" });

/** Returns the owner of what the caller makes. Refuses a bearer whose id can't stand in access control: nobody could be told apart by it. */
export function creatorOf({ access: { ownerId } }: OnPath): Parsed<string> {
  if (ownerId === undefined) return parsed(superuserId);
  if (isId(ownerId) && ownerId !== superuserId) return parsed(ownerId);
  const message =
    "The token's object id (oid, or sub) can't own a path: it has a space, comma or colon, or more than 256 characters, or is $superuser.";
  return rejected("AuthorizationPermissionMismatch", {}, { message });
}

/** Id and kind of what a path names; undefined: the root. */
export type Named = HeldEntry | undefined;

const kindOf = (held: Named): PathKind => held?.kind ?? "root";

const nameOf = (exchange: OnPath, row: Container, held: Named): LocatedBlob =>
  exchange.objects.located({ account: exchange.target.account, container: row.name, blob: held?.id ?? rootId }, row);

/** Reads the access control of a path. BlobNotFound: the path was removed since. */
export async function readAccess(exchange: OnPath, row: Container, held: Named): Promise<Parsed<PathAccess>> {
  const value = { name: nameOf(exchange, row, held), withoutContent: true, withoutKey: true };
  const blob = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  if (!blob.ok) return held || blob.error.code !== "BlobNotFound" ? blob : parsed(accessOf("root", undefined));
  return parsed(accessOf(kindOf(held), blob.value.pathAccess));
}

/** The root has no node that a write to its blob could look at. */
function limitsFor(exchange: OnPath, held: Named): CallLimits {
  const { policy, ...limits } = exchange.limits();
  return held && policy ? { ...limits, policy } : limits;
}

/** Changes of one path that meet each other. */
const attemptsMax = 16;

/** Changes the access control of a path: by the change of what was read, or not at all. Undefined: the root got its first. */
export async function changeAccess(
  exchange: OnPath,
  row: Container,
  held: Named,
  { conditions, change }: { readonly conditions: ConditionHeaders; readonly change: (held: PathAccess) => Parsed<PathAccess> },
): Promise<Parsed<Blob>> {
  const { leaseId, ...others } = conditions;
  const name = nameOf(exchange, row, held);
  const kind = kindOf(held);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const read = { name, conditions: conditionsToWire(held ? others : {}), withoutContent: true, withoutKey: true };
    const blob = await exchange.objects.execute({ case: "getBlob", value: read }, "blob", exchange.limits());
    // A write answers 412 where a read has 304.
    if (!blob.ok && blob.error.status === 304) return rejected("ConditionNotMet", {}, { status: 412 });
    const isFirst = !held && !blob.ok && blob.error.code === "BlobNotFound";
    if (!blob.ok && !isFirst) return blob;
    const next = change(accessOf(kind, blob.ok ? blob.value.pathAccess : undefined));
    if (!next.ok) return next;
    const pathAccess = pathAccessText(kind, next.value);
    const wanted = blob.ok
      ? // The lease of a root is that of its filesystem, which was looked at.
        { ifMatch: etagHeader(exchange.version, blob.value.etag), ...(leaseId === undefined || !held ? {} : { leaseId }) }
      : { ifNoneMatch: "*" };
    const value = { name, conditions: wanted, pathAccess };
    const made = blob.ok
      ? await exchange.objects.execute({ case: "setPathAccess", value }, "blob", limitsFor(exchange, held))
      : await exchange.objects.execute({ case: "putBlob", value: { ...value, ...bare } }, "blob", limitsFor(exchange, held));
    if (made.ok || (made.error.code !== "ConditionNotMet" && made.error.code !== "BlobAlreadyExists")) return made;
  }
  return rejected("ServerBusy");
}

const bare = { headers: contentOf(noContent), metadata: {}, body: emptyBody };
