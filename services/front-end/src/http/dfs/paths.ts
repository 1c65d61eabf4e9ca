/**
 * Files and directories are made, renamed and removed.
 *
 * A file or directory is made in this order: the blob of its properties, under an id that nobody knows; then node and entry, by the tree. So
 * nobody finds a path without properties. Directories on the way that are not there are made, too, as the service does.
 */
import {
  allParsed,
  type ConditionHeaders,
  etagAndTime,
  newPathAccess,
  notImplemented,
  type Parsed,
  type PathAccess,
  parsed,
  pathAccessText,
  rejected,
  restError,
} from "@stamp/azure-rest";
import type { HeldEntry, HeldKind, TreeName } from "@stamp/objects";
import { create, type Refusal, remove, rename, resolve } from "@stamp/tree";
import type { Blob, Container } from "@stamp/wire";
import { underKey } from "../../accounts/content-key.ts";
import type { LocatedBlob } from "../../objects/objects.ts";
import { conditionsToWire } from "../../objects/wire-conditions.ts";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { withKey } from "../blob/content/scopes.ts";
import type { BlobExchange } from "../blob/exchange.ts";
import { type Answer, respond } from "../exchange.ts";
import { creatorOf, type Named, readAccess } from "./access.ts";
import { madeBy, mayChange, mayOwn } from "./access-control.ts";
import {
  asBlob,
  contentOf,
  coversOnePath,
  type DataLakeExchange,
  emptyBody,
  filesystemOf,
  isConditional,
  metadataOf,
  namesOf,
  noContent,
  type OnPath,
  rowOf,
  treeNameOf,
} from "./exchange.ts";
import { mayRemoveBelow } from "./judge.ts";
import { refused } from "./refusals.ts";
import { admitSource } from "./rename-source.ts";
import { runInTree } from "./run.ts";

type Creating = DataLakeExchange<"CreateFile"> | DataLakeExchange<"CreateDirectory">;

export const createFile = (exchange: DataLakeExchange<"CreateFile">): Promise<Answer> => createPath(exchange, "file");
export const createDirectory = (exchange: DataLakeExchange<"CreateDirectory">): Promise<Answer> => createPath(exchange, "directory");

/** Features of a creation that are not here, by name. */
export function missingOf({ asked }: Creating): string | undefined {
  const { lease, encryptionContext } = asked;
  if (lease !== undefined) return "A lease of a new path";
  if (encryptionContext !== undefined) return "x-ms-encryption-context";
  return asked.operation === "CreateFile" && asked.expiry !== undefined ? "Expiry of a new file" : undefined;
}

/** Number of attempts at a path of which others make and remove parts meanwhile. */
const attemptsMax = 16;

/** Creation of a path, with the directories above it. */
export interface Making {
  readonly exchange: OnPath;
  readonly blob: BlobExchange;
  readonly row: Container;
  readonly tree: TreeName;
}

async function createPath(exchange: Creating, kind: HeldKind): Promise<Answer> {
  const feature = missingOf(exchange);
  if (feature !== undefined) return notImplemented(feature);
  const checked = allParsed({ metadata: metadataOf(exchange.asked.properties), may: mayOwn(exchange, exchange.asked.ownership, false) });
  if (!checked.ok) return checked;
  const creator = creatorOf(exchange);
  if (!creator.ok) return creator;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const keyed = await withKey(asBlob(exchange, "PutBlob", row.value));
  if (!keyed.ok) return keyed;
  const making: Making = { exchange, blob: keyed.value, row: row.value, tree: treeNameOf(exchange, row.value) };
  const names = namesOf(exchange.resource.path);
  const { conditions, ownership, umask, content } = exchange.asked;
  const accessIn = (parent: PathAccess): Parsed<string> => {
    if (!mayChange(madeBy(exchange), { owner: creator.value, group: parent.group }, ownership))
      return rejected("AuthorizationPermissionMismatch");
    return parsed(pathAccessText(kind, newPathAccess(kind, parent, creator.value, { asked: ownership, umask })));
  };
  const properties: Properties = { headers: contentOf(content), metadata: checked.value.metadata, accessIn };
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const made = await makeOrReplace(making, names, kind, properties, conditions);
    if (made === "again") continue;
    if (!made.ok) return made;
    return respond(201, { ...etagAndTime(exchange.version, blobOf(made.value)), "x-ms-request-server-encrypted": "true" });
  }
  return rejected("ServerBusy");
}

interface Properties {
  readonly headers: ReturnType<typeof contentOf>;
  readonly metadata: Record<string, string>;
  /** Returns the access control that the path has as a new one in a directory with this. */
  readonly accessIn: (parent: PathAccess) => Parsed<string>;
}

type Written = Omit<Properties, "accessIn"> & { readonly pathAccess: string };

async function makeOrReplace(
  making: Making,
  names: readonly string[],
  kind: HeldKind,
  properties: Properties,
  conditions: ConditionHeaders,
): Promise<Parsed<Blob> | "again"> {
  const { exchange, tree, row } = making;
  if (names.length === 0) return rejected("InvalidUri");
  const above = await runInTree(exchange, tree, (context) => resolve(context, names.slice(0, -1)));
  const found = above.ok ? await runInTree(exchange, tree, (context) => resolve(context, names, above.value)) : above;
  if (!found.ok && found.refusal !== "notFound") return refused(found);
  if (!found.ok && conditions.ifMatch !== undefined) return rejected("ConditionNotMet", {}, { status: 412 });
  if (!found.ok && conditions.leaseId !== undefined) return rejected("LeaseNotPresent");
  if (!above.ok) return (await makeParents(making, names)) ?? "again";
  const parent = await readAccess(exchange, row, above.value.at(-1)?.held);
  if (!parent.ok) return parent.error.code === "BlobNotFound" ? "again" : parent;
  const held = found.ok ? found.value.at(-1)?.held : undefined;
  const { accessIn, ...others } = properties;
  const pathAccess = accessIn(parent.value);
  if (!pathAccess.ok) return pathAccess;
  const written = { ...others, pathAccess: pathAccess.value };
  if (held) return replace(making, held, kind, written, conditions);
  const made = await make(making, names, kind, written);
  return made === "exists" || made === "notFound" ? "again" : made;
}

/** Gives new content and properties to a path that is there, under its id. Conditions are looked at where its row is. */
async function replace(
  making: Making,
  held: HeldEntry,
  kind: HeldKind,
  properties: Written,
  conditions: ConditionHeaders,
): Promise<Parsed<Blob> | "again"> {
  const { exchange, blob } = making;
  if (held.kind !== kind) return conditions.ifNoneMatch === "*" ? rejected("PathAlreadyExists") : rejected("ResourceTypeMismatch");
  const under = underKey(blob.key, conditionsToWire(conditions, exchange.access));
  const { pathAccess, ...others } = properties;
  // A directory keeps its access control: what is in it may be open to whoever it names.
  const written = kind === "directory" ? others : properties;
  const value = { name: nameOf(making, held.id), ...written, body: emptyBody, conditions: under };
  const put = await exchange.objects.execute({ case: "putBlob", value }, "blob", exchange.limits());
  // It was removed since: the path may hold something else by now, or nothing.
  return !put.ok && put.error.code === "BlobNotFound" ? "again" : put;
}

const nameOf = ({ exchange, row }: Making, id: string): LocatedBlob =>
  exchange.objects.located({ account: exchange.target.account, container: row.name, blob: id }, row);

async function make(
  making: Making,
  names: readonly string[],
  kind: HeldKind,
  properties: Written,
): Promise<Parsed<Blob> | "notFound" | "exists"> {
  const { exchange, blob, tree } = making;
  const { trees } = exchange.objects.parts;
  const id = trees.newId();
  // There is no node yet that this write could ask.
  const { policy: _inTree, ...limits } = exchange.limits();
  const value = { name: nameOf(making, id), ...properties, body: emptyBody, conditions: underKey(blob.key, {}) };
  const put = await exchange.objects.execute({ case: "putBlob", value }, "blob", limits);
  if (!put.ok) return put;
  const made = await runInTree(exchange, tree, (context) => create(context, names, kind, { id }));
  if (made.ok) exchange.admitted?.add(id);
  if (made.ok) return put;
  // Whether somebody finds it is not known: then it stays.
  if (made.refusal !== "unknown") await trees.discard(tree, { kind, id }, exchange.limits());
  return made.refusal === "notFound" || made.refusal === "exists" ? made.refusal : refused(made);
}

/** Makes the directories on the way that are not there. Undefined: the caller tries again. */
export async function makeParents(making: Making, names: readonly string[]): Promise<Parsed<never> | undefined> {
  const { exchange, tree, row } = making;
  const creator = creatorOf(exchange);
  if (!creator.ok) return creator;
  let parent: Named;
  for (let depth = 1; depth < names.length; depth++) {
    const path = names.slice(0, depth);
    const found = await runInTree(exchange, tree, (context) => resolve(context, path));
    if (found.ok) {
      parent = found.value.at(-1)?.held;
      continue;
    }
    if (found.refusal !== "notFound") return refused(found);
    const access = await readAccess(exchange, row, parent);
    if (!access.ok) return access.error.code === "BlobNotFound" ? undefined : access;
    const asked = { owner: undefined, group: undefined, permissions: undefined, lists: undefined };
    const own = newPathAccess("directory", access.value, creator.value, { asked, umask: undefined });
    const written = { headers: contentOf(noContent), metadata: {}, pathAccess: pathAccessText("directory", own) };
    const made = await make(making, path, "directory", written);
    if (made === "notFound" || made === "exists") return undefined;
    if (!made.ok) return made;
    parent = { kind: "directory", id: made.value.name, name: "" };
  }
  return undefined;
}

/** A directory that is removed recursively goes at once, whatever is in it: there is never a continuation. */
export async function deletePath(exchange: DataLakeExchange<"DeletePath">): Promise<Answer> {
  const { asked } = exchange;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const tree = treeNameOf(exchange, row.value);
  const names = namesOf(exchange.resource.path);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const found = await runInTree(exchange, tree, (context) => resolve(context, names));
    if (!found.ok) return refused(found.refusal === "notDirectory" ? { ...found, refusal: "notFound" } : found);
    const kind = found.value.at(-1)?.held.kind ?? "directory";
    if (kind === "directory" && asked.recursive === true && coversOnePath(exchange)) return rejected("AuthorizationPermissionMismatch");
    const held = found.value.at(-1)?.held;
    const below = held?.kind === "directory" && asked.recursive === true;
    const may = below ? await mayRemoveBelow(exchange, row.value, held, names) : parsed(undefined);
    if (!may.ok) return may;
    const checked = kind === "file" || isConditional(asked.conditions) || (await isLeased(exchange, row.value, held));
    const conditions = checked ? asked.conditions : undefined;
    const options = { kind, recursive: asked.recursive ?? false, conditions };
    const removed = await runInTree(exchange, tree, (context) => remove(context, names, options));
    if (!removed.ok && (removed.refusal === "isFile" || removed.refusal === "isDirectory")) continue;
    if (!removed.ok) return refused(removed);
    return respond(200, {});
  }
  return rejected("ServerBusy");
}

/** True if the directory has a lease: it is checked by the change of the tree itself, which else would not look at the directory's blob. */
async function isLeased(exchange: OnPath, row: Container, held: Named): Promise<boolean> {
  if (!held) return false;
  const name = exchange.objects.located({ account: exchange.target.account, container: row.name, blob: held.id }, row);
  const value = { name, withoutContent: true, withoutKey: true };
  const blob = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  return !blob.ok || blob.value.lease?.status === "locked";
}

/**
 * Returns the rename with the path that it gives. In mode posix, what is renamed to a directory comes to lie in that directory under its own
 * name, as `mv` has it. A rename that comes back in mode posix found no directory there, and must meet none.
 */
export async function withTarget(exchange: DataLakeExchange<"RenamePath">): Promise<Parsed<DataLakeExchange<"RenamePath">>> {
  const { asked, resource } = exchange;
  const [from, to] = [namesOf(asked.source.path), namesOf(resource.path)];
  if (asked.mode === "legacy" || asked.source.path === resource.path) return parsed(exchange);
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const found = await runInTree(exchange, treeNameOf(exchange, row.value), (context) => resolve(context, to));
  if (!found.ok || found.value.at(-1)?.held.kind !== "directory") return parsed(exchange);
  const path = [...to, ...from.slice(-1)].join("/");
  return parsed({ ...exchange, resource: { ...resource, path }, asked: { ...asked, mode: "legacy" } });
}

export async function renamePath(exchange: DataLakeExchange<"RenamePath">): Promise<Answer> {
  const { source, conditions, sourceConditions, content, properties, resourceType, mode } = exchange.asked;
  if (source.filesystem !== filesystemOf(exchange)) return notImplemented("A rename to another filesystem");
  if (properties !== undefined || Object.values(content).some((one) => one !== undefined)) {
    return notImplemented("Properties that a rename sets");
  }
  const filesOnly = await admitSource(exchange);
  if (!filesOnly.ok) return filesOnly;
  if (source.path === exchange.resource.path) return rejected("InvalidRenameSourcePath");
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const tree = treeNameOf(exchange, row.value);
  const [from, to] = [namesOf(source.path), namesOf(exchange.resource.path)];
  const isNew = conditions.ifNoneMatch === "*";
  const { ifNoneMatch, ...rest } = conditions;
  const target = isNew ? rest : conditions;
  // A caller who may only move (`m`) replaces nothing.
  const replaces = !isNew && exchange.access.may("w");
  const found = await runInTree(exchange, tree, (context) => resolve(context, from));
  const mayBeLeased = found.ok && (await isLeased(exchange, row.value, found.value.at(-1)?.held));
  const moved = await runInTree(exchange, tree, (context) =>
    rename(context, from, to, {
      replaces,
      meetsDirectory: mode === "legacy",
      kind: filesOnly.value ? "file" : resourceType,
      sourceConditions,
      mayBeLeased,
      targetConditions: isConditional(target) ? target : undefined,
    }),
  );
  const mayNot = !moved.ok && ((moved.refusal === "exists" && !isNew) || (moved.refusal === "isDirectory" && filesOnly.value));
  if (mayNot) return rejected("AuthorizationPermissionMismatch");
  if (!moved.ok) return refusedRename(exchange, tree, from, moved.refusal, refused(moved));
  const value = { name: exchange.objects.located({ ...locationOf(exchange), blob: moved.value.id }, row.value), withoutContent: true };
  const blob = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  // The rename has happened, also if the properties can't be read.
  return respond(201, blob.ok ? etagAndTime(exchange.version, blobOf(blob.value)) : {});
}

const locationOf = (exchange: OnPath) => ({ account: exchange.target.account, container: filesystemOf(exchange) });

async function refusedRename(
  exchange: OnPath,
  tree: TreeName,
  from: readonly string[],
  refusal: Refusal,
  otherwise: Parsed<never>,
): Promise<Answer> {
  if (refusal === "isDirectory" || refusal === "isFile") return rejected("InvalidSourceOrDestinationResourceType");
  if (refusal !== "notFound" && refusal !== "notDirectory") return otherwise as Answer;
  // Nothing has happened: whether the source or the target is missing decides the name of the refusal only.
  const source = await runInTree(exchange, tree, (context) => resolve(context, from));
  return { ok: false, error: restError(source.ok ? "RenameDestinationParentPathNotFound" : "SourcePathNotFound") };
}
