/** Lists of paths, and what is asked of one without its content. */
import { badQuery, blobHeaders, etagAndTime, type Parsed, parsed, pathsJson, rejected, type ShownPath } from "@stamp/azure-rest";
import { toHex, utf8 } from "@stamp/base";
import type { HeldEntry } from "@stamp/objects";
import { type Listed, list, resolve } from "@stamp/tree";
import type { Container } from "@stamp/wire";
import { conditionsToWire } from "../../objects/wire-conditions.ts";
import { blobOf, containerOf } from "../../objects/wire-to-rest.ts";
import { type Answer, respond } from "../exchange.ts";
import { accessHeaders, accessOf, readAccess, shownAccess, typeHeader } from "./access.ts";
import { type DataLakeExchange, namesOf, type OnPath, rootUnder, rowOf, treeNameOf } from "./exchange.ts";
import { propertiesHeader } from "./filesystems.ts";
import { mayListAll } from "./judge.ts";
import { refused } from "./refusals.ts";
import { runInTree } from "./run.ts";
import { bytesOf } from "./tokens.ts";

/** Properties of paths that are read at once. */
const readAtOnce = 64;

export const notOfThisList = badQuery("continuation", "", "It is none that this list has given.");

export async function listPaths(exchange: DataLakeExchange<"ListPaths">): Promise<Answer> {
  const { directory, recursive, maxResults, beginFrom, continuation } = exchange.asked;
  const token = continuation === undefined ? undefined : bytesOf(continuation);
  if (continuation !== undefined && token === undefined) return notOfThisList;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const tree = treeNameOf(exchange, row.value);
  const names = namesOf(directory);
  const found = await runInTree(exchange, tree, (context) => resolve(context, names));
  if (!found.ok) return refused(found.refusal === "notDirectory" ? { ...found, refusal: "notFound" } : found);
  const held = found.value.at(-1)?.held;
  if (held?.kind === "file") return listFile(exchange, row.value, names, held);
  const options = { recursive, entriesMax: maxResults, continuation: token, beginFrom: namesOf(beginFrom) };
  const page = await runInTree(exchange, tree, (context) => list(context, names, options));
  if (!page.ok) return refused(page);
  const listed = recursive ? page.value.entries.flatMap(({ held }) => (held.kind === "directory" ? [held.id] : [])) : [];
  const may = await mayListAll(exchange, row.value, [...page.value.opened, ...listed]);
  if (!may.ok) return may;
  const shown: ShownPath[] = [];
  for (let at = 0; at < page.value.entries.length; at += readAtOnce) {
    const some = page.value.entries.slice(at, at + readAtOnce);
    const read = await Promise.all(some.map((entry) => pathOf(exchange, row.value, names, entry)));
    for (const path of read) {
      if (!path.ok) return path;
      if (path.value) shown.push(path.value);
    }
  }
  return pageOf(exchange, shown, page.value.continuation);
}

function pageOf(exchange: OnPath, shown: readonly ShownPath[], continuation?: Uint8Array): Answer {
  const more = continuation ? { "x-ms-continuation": toHex(continuation) } : {};
  const headers = { "Content-Type": "application/json;charset=utf-8", ...more };
  return respond(200, headers, utf8(pathsJson(exchange.version, shown)));
}

/** The list of a file tells the file: Hadoop asks so what a path is. */
async function listFile(exchange: OnPath, row: Container, names: readonly string[], held: HeldEntry): Promise<Answer> {
  const file = await pathOf(exchange, row, [], { path: names, held });
  if (!file.ok) return file;
  return file.value ? pageOf(exchange, [file.value]) : rejected("PathNotFound");
}

/** Undefined: it was removed since. */
async function pathOf(
  exchange: OnPath,
  row: Container,
  above: readonly string[],
  { path, held }: Listed,
): Promise<Parsed<ShownPath | undefined>> {
  const name = exchange.objects.located({ account: exchange.target.account, container: row.name, blob: held.id }, row);
  const value = { name, withoutContent: true, withoutKey: true };
  const blob = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  if (!blob.ok) return blob.error.code === "BlobNotFound" ? parsed(undefined) : blob;
  const { contentLengthBytes, etag, lastModifiedMs, createdMs } = blobOf(blob.value);
  const isDirectory = held.kind === "directory";
  const shown = {
    contentLengthBytes,
    etag,
    lastModifiedMs,
    createdMs,
    isDirectory,
    ...shownAccess(accessOf(held.kind, blob.value.pathAccess)),
  };
  return parsed({ name: [...above, ...path].join("/"), ...shown });
}

type Shown =
  | DataLakeExchange<"CheckAccess">
  | DataLakeExchange<"GetPathProperties">
  | DataLakeExchange<"GetPathStatus">
  | DataLakeExchange<"GetAccessControl">;

/** Status, properties or access control of a path, which may be the root. */
async function shownPath(exchange: Shown, with_: { readonly properties: boolean; readonly lists: boolean }): Promise<Answer> {
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const names = namesOf(exchange.resource.path);
  const found = await runInTree(exchange, treeNameOf(exchange, row.value), (context) => resolve(context, names));
  if (!found.ok) return refused(found.refusal === "notDirectory" ? { ...found, refusal: "notFound" } : found);
  const held = found.value.at(-1)?.held;
  if (!held) return shownRoot(exchange, row.value, with_.lists);
  const name = exchange.objects.located({ account: exchange.target.account, container: row.value.name, blob: held.id }, row.value);
  const value = { name, conditions: conditionsToWire(exchange.asked.conditions), withoutContent: true };
  const blob = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  if (!blob.ok) return blob;
  const shown = blobOf(blob.value);
  // Clients in C++ ask here as if the Blob service answered, and know a directory by this.
  const folder = held.kind === "directory" ? { "x-ms-meta-hdi_isfolder": "true" } : {};
  const own = with_.properties
    ? {
        ...blobHeaders(exchange.version, shown),
        ...folder,
        ...propertiesHeader(shown.metadata),
        "Content-Length": String(shown.contentLengthBytes),
      }
    : etagAndTime(exchange.version, shown);
  return respond(200, { ...own, ...typeHeader(held.kind), ...accessHeaders(accessOf(held.kind, shown.pathAccess), with_.lists) });
}

async function shownRoot(exchange: Shown, row: Container, lists: boolean): Promise<Answer> {
  const root = await rootUnder(exchange, exchange.asked.conditions, row);
  if (!root.ok) return root;
  const access = await readAccess(exchange, row, undefined);
  if (!access.ok) return access;
  const headers = { ...typeHeader("root"), ...accessHeaders(access.value, lists), "Content-Length": "0" };
  return respond(200, { ...etagAndTime(exchange.version, containerOf(root.value)), ...headers });
}

export const getPathProperties = (exchange: DataLakeExchange<"GetPathProperties">): Promise<Answer> =>
  shownPath(exchange, { properties: true, lists: false });
export const getPathStatus = (exchange: DataLakeExchange<"GetPathStatus">): Promise<Answer> =>
  shownPath(exchange, { properties: true, lists: false });
export const getAccessControl = (exchange: DataLakeExchange<"GetAccessControl">): Promise<Answer> =>
  shownPath(exchange, { properties: false, lists: true });

/** Whoever is judged was judged before by the rights that the request asks about; everybody else has them all. */
export async function checkAccess(exchange: DataLakeExchange<"CheckAccess">): Promise<Answer> {
  const shown = await shownPath(exchange, { properties: false, lists: false });
  return shown.ok ? respond(200, {}) : shown;
}
