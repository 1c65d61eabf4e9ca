/**
 * List Handles and Force Close Handles: what gateways hold open (docs/design/files.md). Handles are of files; a directory shows those below it
 * if the request says so. A page goes over some files, whether they are open or not, and names where the next one begins.
 */
import { badHeader, badQuery, handlesXml, type ListedHandle, type Parsed, parsed, queryValue, rejected } from "@stamp/azure-rest";
import { toHex, utf8 } from "@stamp/base";
import type { EntryAddress } from "@stamp/objects";
import { list, type Result, resolve } from "@stamp/tree";
import { type Container, type FileHandle, fromWire } from "@stamp/wire";
import { restErrorOf } from "../../objects/failures.ts";
import type { LocatedBlob } from "../../objects/objects.ts";
import { isHandleRefusal } from "../../trees/handles.ts";
import { bytesOf } from "../dfs/tokens.ts";
import { type Answer, respond } from "../exchange.ts";
import { type FileExchange, leaseOf, locatedOf, shareRow, treeNameOf } from "./exchange.ts";
import { refusedFile } from "./refusals.ts";
import { fileIdOf } from "./smb.ts";

/** Files that one page looks at, and at how many at once; with so many handles a page is full. */
const filesMax = 1_000;
const readAtOnce = 64;
const handlesPerPage = 1_000;

interface LookedAt {
  readonly name: LocatedBlob;
  readonly path: string;
  readonly parentId: string | undefined;
  /** Entry of the file; undefined: the one that its handles name. */
  readonly at?: EntryAddress | undefined;
}

interface OpenOne {
  readonly file: LookedAt;
  readonly held: readonly FileHandle[];
}

interface Page {
  readonly open: readonly OpenOne[];
  readonly next: string;
}

/** Returns what is open of the file that the request names, or of some files below the directory that it names. */
async function openFiles(exchange: FileExchange): Promise<Parsed<Page>> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const most = queryValue(exchange.target.query, "maxresults");
  if (most !== undefined && !/^0*[1-9]\d{0,8}$/.test(most)) return badQuery("maxresults", most, "A number above 0.");
  const row = await shareRow(exchange);
  if (!row.ok) return row;
  const { path } = exchange.resource;
  const tree = treeNameOf(exchange, row.value);
  const { trees } = exchange.objects.parts;
  const found = await trees.run(tree, (context) => resolve(context, path), exchange.limits());
  if (!found.ok) {
    return found.refusal === "notFound" || found.refusal === "notDirectory" ? rejected("ResourceNotFound") : refusedFile(found);
  }
  const last = found.value.at(-1);
  const parentId = found.value.at(-2)?.held.id;
  if (last?.held.kind === "file") {
    const name = locatedOf(exchange, row.value, last.held.id);
    const open = await openOf(exchange, [{ name, path: path.join("/"), parentId, at: last.at }]);
    return open.ok ? parsed({ open: open.value, next: "" }) : open;
  }
  return exchange.headers["x-ms-recursive"]?.toLowerCase() === "true" ? openBelow(exchange, row.value) : parsed({ open: [], next: "" });
}

/** Goes over files below the directory until it has looked at enough of them, or enough handles are found. */
async function openBelow(exchange: FileExchange, row: Container): Promise<Parsed<Page>> {
  const marker = queryValue(exchange.target.query, "marker") || undefined;
  let continuation = marker === undefined ? undefined : bytesOf(marker);
  if (marker !== undefined && continuation === undefined) return badQuery("marker", marker, "It is none that this list has given.");
  const { path } = exchange.resource;
  const tree = treeNameOf(exchange, row);
  const open: OpenOne[] = [];
  for (let looked = 0, held = 0; looked < filesMax && held < handlesPerPage; looked += readAtOnce) {
    const options = { recursive: true, entriesMax: readAtOnce, continuation };
    const page = await exchange.objects.parts.trees.run(tree, (context) => list(context, path, options), exchange.limits());
    if (!page.ok) return refusedFile(page);
    const files = page.value.entries.flatMap((entry): LookedAt[] => {
      if (entry.held.kind !== "file") return [];
      return [{ name: locatedOf(exchange, row, entry.held.id), path: [...path, ...entry.path].join("/"), parentId: undefined }];
    });
    const found = await openOf(exchange, files);
    if (!found.ok) return found;
    open.push(...found.value);
    held += found.value.reduce((sum, one) => sum + one.held.length, 0);
    continuation = page.value.continuation;
    if (continuation === undefined) return parsed({ open, next: "" });
  }
  return parsed({ open, next: continuation === undefined ? "" : toHex(continuation) });
}

/** Returns the open ones among these, which are few, without handles of ended sessions. */
async function openOf(exchange: FileExchange, files: readonly LookedAt[]): Promise<Parsed<OpenOne[]>> {
  const { handles } = exchange.objects.parts;
  const open: OpenOne[] = [];
  const read = await Promise.all(
    files.map(async (file) => {
      const limits = exchange.limits();
      let listed = await handles.step(file.name, { action: "list" }, limits);
      const isOpen = listed.ok && "answer" in listed.value && (listed.value.answer.handles.length > 0 || listed.value.answer.pending);
      if (isOpen && (await handles.settle(file.name, limits, file.at))) listed = await handles.step(file.name, { action: "list" }, limits);
      return { file, listed };
    }),
  );
  for (const { file, listed } of read) {
    if (!listed.ok) return { ok: false, error: restErrorOf(listed.failure) };
    if ("answer" in listed.value && listed.value.answer.handles.length > 0) open.push({ file, held: listed.value.answer.handles });
  }
  return parsed(open);
}

const rights = ["Read", "Write", "Delete"] as const;

const shown = ({ path, name, parentId }: LookedAt, handle: FileHandle): ListedHandle => ({
  id: handle.id,
  path,
  fileId: fileIdOf(name.blob),
  parentId: parentId === undefined ? undefined : fileIdOf(parentId),
  sessionId: `${handle.session}/${handle.sessionEpoch}`,
  client: handle.client,
  openedMs: fromWire(handle.openedMs),
  rights: rights.filter((_, bit) => (handle.access & (1 << bit)) !== 0),
});

export async function listHandles(exchange: FileExchange): Promise<Answer> {
  const page = await openFiles(exchange);
  if (!page.ok) return page;
  const listed = page.value.open.flatMap(({ file, held }) => held.map((handle) => shown(file, handle)));
  return respond(200, { "Content-Type": "application/xml" }, utf8(handlesXml(listed, page.value.next)));
}

export async function forceCloseHandles(exchange: FileExchange): Promise<Answer> {
  const id = exchange.headers["x-ms-handle-id"];
  if (id === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-handle-id" });
  if (id !== "*" && !/^\d{1,20}$/.test(id)) return badHeader("x-ms-handle-id", id, "A handle's number, or * for all.");
  const page = await openFiles(exchange);
  if (!page.ok) return page;
  let closed = 0;
  let failed = 0;
  const { handles } = exchange.objects.parts;
  for (const { file, held } of page.value.open) {
    const meant = id === "*" ? held.length : held.filter((handle) => handle.id === id).length;
    if (meant === 0) continue;
    const step = id === "*" ? { action: "closeAll" } : { action: "close", handle: { id } };
    const done = await handles.step(file.name, step, exchange.limits());
    if (!done.ok) failed += meant;
    else closed += meant;
    if (done.ok && "answer" in done.value) await handles.removeDoomed(file.name, done.value.answer, exchange.limits(), file.at);
  }
  const counted = { "x-ms-number-of-handles-closed": String(closed), "x-ms-number-of-handles-failed": String(failed) };
  return respond(200, page.value.next === "" ? counted : { ...counted, "x-ms-marker": page.value.next });
}

/** Runs a removal or rename again when handles that have refused it were of ended sessions. `paths`: of the files that it changes. */
export async function besideHandles<T>(
  exchange: FileExchange,
  paths: readonly (readonly string[])[],
  attempt: () => Promise<Result<T>>,
): Promise<Result<T>> {
  const first = await attempt();
  if (first.ok || first.refusal !== "conditionNotMet" || !isHandleRefusal(first.condition ?? "")) return first;
  let changed = false;
  for (const path of paths) changed = (await settledAt(exchange, path)) || changed;
  return changed ? attempt() : first;
}

/**
 * Closes what ended sessions have open at the path, and removes the file there if it waits for that only. True: something has changed, or
 * nothing is there any more.
 */
export async function settledAt(exchange: FileExchange, path: readonly string[]): Promise<boolean> {
  const row = await shareRow(exchange);
  if (!row.ok || path.length === 0) return false;
  const { trees, handles } = exchange.objects.parts;
  const found = await trees.run(treeNameOf(exchange, row.value), (context) => resolve(context, path), exchange.limits());
  if (!found.ok) return found.refusal === "notFound";
  const last = found.value.at(-1);
  if (last?.held.kind !== "file") return false;
  return handles.settle(locatedOf(exchange, row.value, last.held.id), exchange.limits(), last.at);
}
