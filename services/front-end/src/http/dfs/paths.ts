/**
 * Files and directories are made, renamed and removed.
 *
 * A file or directory is made in this order: the blob of its properties, under an id that nobody knows; then node and entry, by the tree. So
 * nobody finds a path without properties. Directories on the way that are not there are made, too, as the service does.
 */
import {
  badHeader,
  type ConditionHeaders,
  etagAndTime,
  notImplemented,
  type Parsed,
  queryValue,
  rejected,
  restError,
} from "@stamp/azure-rest";
import type { Held, HeldKind, TreeName } from "@stamp/objects";
import { create, type Refusal, remove, rename, resolve } from "@stamp/tree";
import type { Blob, Container } from "@stamp/wire";
import { underKey } from "../../accounts/content-key.ts";
import type { LocatedBlob } from "../../objects/objects.ts";
import { conditionsToWire } from "../../objects/wire-conditions.ts";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { withKey } from "../blob/content/scopes.ts";
import type { BlobExchange } from "../blob/exchange.ts";
import { type Answer, respond } from "../exchange.ts";
import {
  asBlob,
  contentOf,
  type DataLakeExchange,
  filesystemOf,
  isConditional,
  metadataOf,
  namesOf,
  noContent,
  type OnPath,
  rowOf,
  treeNameOf,
} from "./exchange.ts";
import { refused } from "./refusals.ts";

type Creating = DataLakeExchange<"CreateFile"> | DataLakeExchange<"CreateDirectory">;

export const createFile = (exchange: DataLakeExchange<"CreateFile">): Promise<Answer> => createPath(exchange, "file");
export const createDirectory = (exchange: DataLakeExchange<"CreateDirectory">): Promise<Answer> => createPath(exchange, "directory");

/** Features of a creation that are not here, by name. */
function missingOf({ asked }: Creating): string | undefined {
  const { ownership, umask, lease, encryptionContext } = asked;
  if (Object.values(ownership).some((one) => one !== undefined) || umask !== undefined) return "Access control of a new path";
  if (lease !== undefined) return "A lease of a new path";
  if (encryptionContext !== undefined) return "x-ms-encryption-context";
  return asked.operation === "CreateFile" && asked.expiry !== undefined ? "Expiry of a new file" : undefined;
}

/** A path of which others make and remove parts meanwhile is tried again so often. */
const attemptsMax = 16;

interface Making {
  readonly exchange: OnPath;
  readonly blob: BlobExchange;
  readonly row: Container;
  readonly tree: TreeName;
}

async function createPath(exchange: Creating, kind: HeldKind): Promise<Answer> {
  const feature = missingOf(exchange);
  if (feature !== undefined) return notImplemented(feature);
  const metadata = metadataOf(exchange.asked.properties);
  if (!metadata.ok) return metadata;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const keyed = await withKey(asBlob(exchange, "PutBlob", row.value));
  if (!keyed.ok) return keyed;
  const making: Making = { exchange, blob: keyed.value, row: row.value, tree: treeNameOf(exchange, row.value) };
  const names = namesOf(exchange.resource.path);
  const properties = { headers: contentOf(exchange.asked.content), metadata: metadata.value };
  const { conditions } = exchange.asked;
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
}

async function makeOrReplace(
  making: Making,
  names: readonly string[],
  kind: HeldKind,
  properties: Properties,
  conditions: ConditionHeaders,
): Promise<Parsed<Blob> | "again"> {
  const { exchange, tree } = making;
  const found = await exchange.objects.parts.trees.run(tree, (context) => resolve(context, names), exchange.limits());
  if (found.ok) return replace(making, found.value.at(-1)?.held, kind, properties, conditions);
  if (found.refusal !== "notFound") return refused(found);
  if (conditions.ifMatch !== undefined) return rejected("ConditionNotMet", {}, { status: 412 });
  if (conditions.leaseId !== undefined) return rejected("LeaseNotPresent");
  const made = await make(making, names, kind, properties);
  if (made === "notFound") return (await makeParents(making, names)) ?? "again";
  return made === "exists" ? "again" : made;
}

/** Gives new content and properties to a path that is there, under its id. Conditions are looked at where its row is. */
async function replace(
  making: Making,
  held: Held | undefined,
  kind: HeldKind,
  properties: Properties,
  conditions: ConditionHeaders,
): Promise<Parsed<Blob> | "again"> {
  const { exchange, blob } = making;
  if (!held) return rejected("InvalidUri");
  if (held.kind !== kind) return conditions.ifNoneMatch === "*" ? rejected("PathAlreadyExists") : rejected("ResourceTypeMismatch");
  const under = underKey(blob.key, conditionsToWire(conditions, exchange.access));
  const value = { name: nameOf(making, held.id), ...properties, body: empty, conditions: under };
  const put = await exchange.objects.execute({ case: "putBlob", value }, "blob", exchange.limits());
  // It was removed since: the path may hold something else by now, or nothing.
  return !put.ok && put.error.code === "BlobNotFound" ? "again" : put;
}

const empty = { inline: new Uint8Array(0), places: [] };

const nameOf = ({ exchange, row }: Making, id: string): LocatedBlob =>
  exchange.objects.located({ account: exchange.target.account, container: row.name, blob: id }, row);

async function make(
  making: Making,
  names: readonly string[],
  kind: HeldKind,
  properties: Properties,
): Promise<Parsed<Blob> | "notFound" | "exists"> {
  const { exchange, blob, tree } = making;
  const { trees } = exchange.objects.parts;
  const id = trees.newId();
  // There is no node yet that this write could ask.
  const { policy: _inTree, ...limits } = exchange.limits();
  const value = { name: nameOf(making, id), ...properties, body: empty, conditions: underKey(blob.key, {}) };
  const put = await exchange.objects.execute({ case: "putBlob", value }, "blob", limits);
  if (!put.ok) return put;
  const made = await trees.run(tree, (context) => create(context, names, kind, { id }), exchange.limits());
  if (made.ok) return put;
  // Whether somebody finds it is not known: then it stays.
  if (made.refusal !== "unknown") await trees.discard(tree, { kind, id }, exchange.limits());
  return made.refusal === "notFound" || made.refusal === "exists" ? made.refusal : refused(made);
}

/** Makes the first directory on the way that is not there. Undefined: the caller tries again. */
async function makeParents(making: Making, names: readonly string[]): Promise<Parsed<never> | undefined> {
  const { exchange, tree } = making;
  for (let depth = 1; depth < names.length; depth++) {
    const path = names.slice(0, depth);
    const found = await exchange.objects.parts.trees.run(tree, (context) => resolve(context, path), exchange.limits());
    if (found.ok) continue;
    if (found.refusal !== "notFound") return refused(found);
    const made = await make(making, path, "directory", { headers: contentOf(noContent), metadata: {} });
    if (made === "notFound") return undefined;
    if (made !== "exists" && !made.ok) return made;
  }
  return undefined;
}

/** A directory that is removed recursively goes at once, whatever is in it: there is never a continuation. */
export async function deletePath(exchange: DataLakeExchange<"DeletePath">): Promise<Answer> {
  const { asked } = exchange;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const tree = treeNameOf(exchange, row.value);
  const { trees } = exchange.objects.parts;
  const names = namesOf(exchange.resource.path);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const found = await trees.run(tree, (context) => resolve(context, names), exchange.limits());
    if (!found.ok) return refused(found.refusal === "notDirectory" ? { ...found, refusal: "notFound" } : found);
    const kind = found.value.at(-1)?.held.kind ?? "directory";
    if (kind === "directory" && asked.recursive === true && coversOnePath(exchange)) return rejected("AuthorizationPermissionMismatch");
    const conditions = kind === "file" || isConditional(asked.conditions) ? asked.conditions : undefined;
    const options = { kind, recursive: asked.recursive ?? false, conditions };
    const removed = await trees.run(tree, (context) => remove(context, names, options), exchange.limits());
    if (!removed.ok && (removed.refusal === "isFile" || removed.refusal === "isDirectory")) continue;
    if (!removed.ok) return refused(removed);
    if (kind === "directory") trees.collect(tree, removed.value.id);
    return respond(200, {});
  }
  return rejected("ServerBusy");
}

/** True if the caller's right is a SAS for one path: what is below a directory is not the directory. */
const coversOnePath = ({ access, target }: OnPath): boolean =>
  access.by === "sas" && queryValue(target.query, "sr")?.startsWith("b") === true;

export async function renamePath(exchange: DataLakeExchange<"RenamePath">): Promise<Answer> {
  const { source, conditions, sourceConditions, content, properties, resourceType } = exchange.asked;
  if (source.filesystem !== filesystemOf(exchange)) return notImplemented("A rename to another filesystem");
  if (source.query.size > 0) return notImplemented("A shared access signature for the source of a rename");
  if (properties !== undefined || Object.values(content).some((one) => one !== undefined)) {
    return notImplemented("Properties that a rename sets");
  }
  if (source.path === exchange.resource.path) return rejected("InvalidRenameSourcePath");
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const tree = treeNameOf(exchange, row.value);
  const { trees } = exchange.objects.parts;
  const [from, to] = [namesOf(source.path), namesOf(exchange.resource.path)];
  const isNew = conditions.ifNoneMatch === "*";
  const { ifNoneMatch, ...rest } = conditions;
  const target = isNew ? rest : conditions;
  if (!exchange.access.may("w")) return badHeader("x-ms-rename-source", "", "The caller may not write.");
  const moved = await trees.run(
    tree,
    (context) =>
      rename(context, from, to, {
        replaces: !isNew,
        kind: resourceType,
        sourceConditions,
        targetConditions: isConditional(target) ? target : undefined,
      }),
    exchange.limits(),
  );
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
  if (refusal === "notEmpty" || refusal === "exists") return rejected("PathAlreadyExists");
  if (refusal === "isDirectory" || refusal === "isFile") return rejected("InvalidSourceOrDestinationResourceType");
  if (refusal !== "notFound" && refusal !== "notDirectory") return otherwise as Answer;
  // Nothing has happened: whether the source or the target is missing decides the name of the refusal only.
  const source = await exchange.objects.parts.trees.run(tree, (context) => resolve(context, from), exchange.limits());
  return { ok: false, error: restError(source.ok ? "RenameDestinationParentPathNotFound" : "SourcePathNotFound") };
}
