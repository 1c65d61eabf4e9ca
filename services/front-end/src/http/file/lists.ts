/** List Directories and Files: one level of a share, in the order of folded names. */
import {
  badQuery,
  type EntryListEcho,
  entriesXml,
  type ListedEntry,
  type Parsed,
  parsed,
  parseListQuery,
  rejected,
} from "@stamp/azure-rest";
import { toHex, utf8 } from "@stamp/base";
import { type Listed, list, resolve } from "@stamp/tree";
import type { Container } from "@stamp/wire";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { bytesOf } from "../dfs/tokens.ts";
import { type Answer, respond, serviceEndpoint } from "../exchange.ts";
import { type FileExchange, headOf, leaseOf, locatedOf, shareRow, treeNameOf } from "./exchange.ts";
import { refusedFile } from "./refusals.ts";
import { fileIdOf, smbOf } from "./smb.ts";

/** Properties of entries that are read at once. */
const readAtOnce = 64;
const includes: ReadonlySet<string> = new Set(["timestamps", "etag", "attributes", "permissionkey"]);

interface Shown {
  readonly include: ReadonlySet<string>;
  /** True if ids are shown, and properties of directories. */
  readonly extended: boolean;
}

function shownOf({ target, headers }: FileExchange): Parsed<Shown> {
  const include = new Set<string>();
  for (const item of (target.query.get("include") ?? []).join(",").split(",")) {
    const name = item.trim().toLowerCase();
    if (name === "") continue;
    if (!includes.has(name)) return badQuery("include", item, "Not something this list can include.");
    include.add(name);
  }
  return parsed({ include, extended: include.size > 0 || headers["x-ms-file-extended-info"]?.toLowerCase() === "true" });
}

export async function listDirectoriesAndFiles(exchange: FileExchange): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const shown = shownOf(exchange);
  if (!shown.ok) return shown;
  const { query } = exchange.target;
  const marker = query.get("marker")?.[0];
  const token = marker === undefined ? undefined : bytesOf(marker);
  if (marker !== undefined && token === undefined) return badQuery("marker", marker, "It is none that this list has given.");
  const asked = parseListQuery(
    new Map([...query].filter(([name]) => name === "prefix" || name === "maxresults")),
    "blobs",
    exchange.version,
  );
  if (!asked.ok) return asked;
  const row = await shareRow(exchange);
  if (!row.ok) return row;
  const tree = treeNameOf(exchange, row.value);
  const { trees } = exchange.objects.parts;
  const { path, share = "" } = exchange.resource;
  const found = await trees.run(tree, (context) => resolve(context, path), exchange.limits());
  if (!found.ok) return found.refusal === "notFound" ? rejected("ResourceNotFound") : refusedFile(found);
  const directory = found.value.at(-1)?.held;
  if (directory?.kind === "file") return rejected("ResourceTypeMismatch");
  const { prefix, maxResults, echo } = asked.value;
  const options = { recursive: false, entriesMax: maxResults, continuation: token, prefix };
  const page = await trees.run(tree, (context) => list(context, path, options), exchange.limits());
  if (!page.ok) return refusedFile(page);
  const entries = await entriesOf(exchange, row.value, page.value.entries, shown.value);
  if (!entries.ok) return entries;
  const told: EntryListEcho = {
    serviceEndpoint: serviceEndpoint(exchange),
    shareName: share,
    directoryPath: path.join("/"),
    directoryId: shown.value.extended ? fileIdOf(directory?.id) : undefined,
    ...(echo.prefix === undefined ? {} : { prefix: echo.prefix }),
    ...(marker === undefined ? {} : { marker }),
    ...(echo.maxResults === undefined ? {} : { maxResults: echo.maxResults }),
  };
  const next = page.value.continuation ? toHex(page.value.continuation) : "";
  return respond(200, { "Content-Type": "application/xml" }, utf8(entriesXml(told, entries.value, next)));
}

async function entriesOf(exchange: FileExchange, row: Container, listed: readonly Listed[], shown: Shown): Promise<Parsed<ListedEntry[]>> {
  const entries: ListedEntry[] = [];
  for (let at = 0; at < listed.length; at += readAtOnce) {
    const read = await Promise.all(listed.slice(at, at + readAtOnce).map((one) => entryOf(exchange, row, one, shown)));
    for (const entry of read) {
      if (!entry.ok) return entry;
      if (entry.value) entries.push(entry.value);
    }
  }
  return parsed(entries);
}

/** Undefined: it was removed since, or goes with its last handle. */
async function entryOf(
  exchange: FileExchange,
  row: Container,
  { path, held }: Listed,
  { include, extended }: Shown,
): Promise<Parsed<ListedEntry | undefined>> {
  const named = { name: path.at(-1) ?? held.name, isDirectory: held.kind === "directory", lengthBytes: 0 };
  const fileId = extended ? fileIdOf(held.id) : undefined;
  if (named.isDirectory && include.size === 0) return parsed({ ...named, fileId });
  const head = await headOf(exchange, locatedOf(exchange, row, held.id));
  if (!head.ok) return head.error.code === "BlobNotFound" || head.error.code === "DeletePending" ? parsed(undefined) : head;
  const { etag, lastModifiedMs, contentLengthBytes } = blobOf(head.value);
  const { attributes, permissionKey, ...times } = smbOf(head.value);
  return parsed({
    ...named,
    fileId,
    lengthBytes: contentLengthBytes,
    ...(include.has("timestamps") ? { times: { ...times, lastModifiedMs } } : {}),
    ...(include.has("etag") ? { etag } : {}),
    ...(include.has("attributes") ? { attributes } : {}),
    ...(include.has("permissionkey") ? { permissionKey } : {}),
  });
}
