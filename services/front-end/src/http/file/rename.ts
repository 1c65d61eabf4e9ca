/**
 * Rename File and Rename Directory: one operation of the tree, then the properties that the request sets. The rename has happened when it is
 * answered, also if a property could not be set since: then the answer says why.
 */
import {
  allParsed,
  badHeader,
  namesOfPath,
  notImplemented,
  type Parsed,
  parseBoolean,
  parseCopySource,
  parsed,
  parseMetadata,
  parseTarget,
  rejected,
  restError,
} from "@stamp/azure-rest";
import { clientEntriesOf, deleteRight, doorEntriesOf, type HeldKind } from "@stamp/objects";
import { rename, resolve } from "@stamp/tree";
import type { Blob, Container } from "@stamp/wire";
import { type Answer, respond } from "../exchange.ts";
import { writtenEntry } from "./entries.ts";
import { type FileExchange, headOf, leaseOf, locatedOf, shareRow, treeNameOf } from "./exchange.ts";
import { besideHandles } from "./handles.ts";
import { refusedFile } from "./refusals.ts";
import { changedEntries, isReadOnly } from "./smb.ts";

const sourceHeader = "x-ms-file-rename-source";
const deleting: ReadonlySet<string> = new Set(["DeleteFile", "DeleteDirectory"]);

interface Source {
  readonly path: readonly string[];
}

/** The path that the source's URL names, which has to be in the share of the request. */
async function sourceOf(exchange: FileExchange, kind: HeldKind): Promise<Parsed<Source>> {
  const text = exchange.headers[sourceHeader];
  if (text === undefined) return rejected("MissingRequiredHeader", { HeaderName: sourceHeader });
  const refused = badHeader(sourceHeader, "", "The URL of a file or directory of this account.");
  const url = parseCopySource({ "x-ms-copy-source": text });
  if (!url.ok) return refused;
  const { host, target: asked } = url.value;
  const target = parseTarget(asked, host, { hostSuffixes: exchange.hostSuffixes });
  if (!target.ok || target.value.account !== exchange.target.account) return refused;
  const keepsDots = exchange.headers["x-ms-source-allow-trailing-dot"]?.toLowerCase() === "true";
  const names = namesOfPath(target.value.resource, keepsDots);
  if (!names.ok) return names;
  const [share, ...path] = names.value;
  if (share !== exchange.resource.share) return notImplemented("A rename to another share");
  if (path.length === 0) return refused;
  if (exchange.access.by === "sas") {
    // A SAS that lets a caller move something away has to let the caller delete it.
    const dots = keepsDots ? { "x-ms-allow-trailing-dot": "true" } : {};
    const ofDirectory = kind === "directory" ? `${asked.includes("?") ? "&" : "?"}restype=directory` : "";
    const admitted = await exchange.admit({ method: "DELETE", target: `${asked}${ofDirectory}`, headers: { host, ...dots } }, deleting);
    if (!admitted.ok) return admitted;
  }
  return parsed({ path });
}

export const renameFile = (exchange: FileExchange): Promise<Answer> => renamePath(exchange, "file");
export const renameDirectory = (exchange: FileExchange): Promise<Answer> => renamePath(exchange, "directory");

async function renamePath(exchange: FileExchange, kind: HeldKind): Promise<Answer> {
  const { headers, objects, resource } = exchange;
  const asked = allParsed({
    lease: leaseOf(exchange),
    replaces: parseBoolean(headers, "x-ms-file-rename-replace-if-exists"),
    overReadOnly: parseBoolean(headers, "x-ms-file-rename-ignore-readonly"),
    metadata: parseMetadata(headers, exchange.request.rawHeaders),
  });
  if (!asked.ok) return asked;
  const source = await sourceOf(exchange, kind);
  if (!source.ok) return source;
  if (resource.path.length === 0) return rejected("ResourceAlreadyExists");
  const row = await shareRow(exchange);
  if (!row.ok) return row;
  // A property that can't be read must not be found after the rename.
  const entries = await changedEntries(exchange, row.value, kind === "directory");
  if (!entries.ok) return entries;
  const tree = treeNameOf(exchange, row.value);
  const { trees } = objects.parts;
  const { replaces, overReadOnly, metadata } = asked.value;
  const guarded = await mayReplace(exchange, row.value, kind, { replaces, overReadOnly });
  if (!guarded.ok) return guarded;
  const [from, to] = [headers["x-ms-source-lease-id"], headers["x-ms-destination-lease-id"]];
  const options = {
    replaces: replaces && kind === "file",
    kind,
    sourceConditions: from === undefined ? {} : { leaseId: from },
    targetConditions: to === undefined ? {} : { leaseId: to },
    targetLeaseKeeps: true,
  };
  const attempt = () => trees.run(tree, (context) => rename(context, source.value.path, resource.path, options), exchange.limits());
  const moved = await besideHandles(exchange, [source.value.path, resource.path], attempt);
  if (!moved.ok) {
    if (moved.refusal !== "notFound" && moved.refusal !== "notDirectory") return refusedRename(moved);
    const there = await trees.run(tree, (context) => resolve(context, source.value.path), exchange.limits());
    return rejected(there.ok ? "ParentNotFound" : "ResourceNotFound");
  }
  const { id } = moved.value;
  const found = await trees.run(tree, (context) => resolve(context, resource.path), exchange.limits());
  const link = found.ok ? found.value.at(-1) : undefined;
  if (kind === "file" && link?.held.id === id) {
    await objects.parts.handles.follow(locatedOf(exchange, row.value, id), link.at, exchange.limits());
  }
  const set = await setAfter(exchange, row.value, id, { entries: entries.value, metadata, leaseId: from });
  if (!set.ok) return set;
  return respond(200, writtenEntry(exchange, set.value, id, found.ok ? found.value.at(-2)?.held.id : undefined));
}

function refusedRename(result: Parameters<typeof refusedFile>[0]): Answer {
  if (result.refusal === "isFile" || result.refusal === "isDirectory") return rejected("ResourceTypeMismatch");
  return result.refusal === "notEmpty" ? rejected("ResourceAlreadyExists") : refusedFile(result);
}

/** Refuses a read-only file at the target, unless the request says that it does not matter. */
async function mayReplace(
  exchange: FileExchange,
  row: Container,
  kind: HeldKind,
  { replaces, overReadOnly }: { readonly replaces: boolean; readonly overReadOnly: boolean },
): Promise<Parsed<void>> {
  if (kind !== "file" || !replaces || overReadOnly) return parsed(undefined);
  const tree = treeNameOf(exchange, row);
  const { path } = exchange.resource;
  const found = await exchange.objects.parts.trees.run(tree, (context) => resolve(context, path), exchange.limits());
  const held = found.ok ? found.value.at(-1)?.held : undefined;
  if (held?.kind !== "file") return parsed(undefined);
  const head = await headOf(exchange, locatedOf(exchange, row, held.id));
  return head.ok && isReadOnly(head.value) ? { ok: false, error: restError("ReadOnlyAttribute") } : parsed(undefined);
}

interface Setting {
  readonly entries: Record<string, string>;
  readonly metadata: Record<string, string>;
  readonly leaseId: string | undefined;
}

async function setAfter(exchange: FileExchange, row: Container, id: string, asked: Setting): Promise<Parsed<Blob>> {
  const { entries, metadata, leaseId } = asked;
  const name = locatedOf(exchange, row, id);
  // The rename has asked who holds the file, and has happened.
  const conditions = { usesRights: deleteRight, ...(leaseId === undefined ? {} : { leaseId }) };
  const contentType = exchange.headers["x-ms-content-type"];
  const held = await headOf(exchange, name);
  if (!held.ok) return held;
  const { $typeName: _, $unknown: __, ...content } = held.value.headers ?? {};
  const value = {
    name,
    conditions,
    ...(contentType === undefined ? {} : { headers: { ...content, contentType } }),
    sequenceNumber: 0n,
    setMetadata: entries,
  };
  const set = await exchange.objects.execute({ case: "setPageBlobProperties", value }, "cleared", exchange.limits());
  if (!set.ok) return set;
  if (Object.keys(clientEntriesOf(metadata)).length === 0) return parsed(set.value.blob as Blob);
  const kept = doorEntriesOf((set.value.blob as Blob).metadata);
  const change = { name, conditions, metadata: { ...metadata, ...kept } };
  return exchange.objects.execute({ case: "setBlobMetadata", value: change }, "blob", exchange.limits());
}
