/**
 * List Blobs of an account with a hierarchical namespace: files and directories in the order of the tree, a directory before what is in it.
 * With the delimiter "/" directories are prefixes. A marker is the continuation of the tree's list.
 */
import {
  badQuery,
  blobPrefixXml,
  encodeMarkerWithin,
  type ListedBlobProperties,
  listBlobsXml,
  listedBlobXml,
  notImplemented,
  type Parsed,
  parsed,
  parseListQuery,
} from "@stamp/azure-rest";
import { toHex } from "@stamp/base";
import { type Listed, list, type Refusal } from "@stamp/tree";
import type { Container } from "@stamp/wire";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { containerOfRequest } from "../blob/exchange.ts";
import { type Answer, respondText, serviceEndpoint } from "../exchange.ts";
import { TextWriter } from "../turns.ts";
import type { WritingExchange } from "./blob-writes.ts";
import { namesOf, treeNameOf } from "./exchange.ts";
import { refused } from "./refusals.ts";
import { runInTree } from "./run.ts";
import { bytesOf } from "./tokens.ts";

/** Properties of paths that are read at once. */
const readAtOnce = 64;
const entryBytesExpected = 768;
/** Entries of a page at most whose metadata are shown, of up to 8 KiB each. */
const withMetadataMax = 1_000;
/** Refusals of the directory that a prefix names: nothing begins so. */
const absent: ReadonlySet<Refusal> = new Set<Refusal>([
  "notFound",
  "notDirectory",
  "empty",
  "nameTooLong",
  "pathTooLong",
  "tooDeep",
  "badCharacter",
  "dots",
  "reserved",
]);
const shownHere: ReadonlySet<string> = new Set(["metadata", "uncommittedblobs", "copy"]);

export async function listBlobsInTree(exchange: WritingExchange): Promise<Answer> {
  const query = parseListQuery(exchange.target.query, "blobs", exchange.version);
  if (!query.ok) return query;
  const { prefix, delimiter, marker, isContinued, maxResults, include, onlyDeleted, echo } = query.value;
  const other = [...include].find((item) => !shownHere.has(item));
  if (other !== undefined || onlyDeleted)
    return notImplemented(`A list with ${other ?? "showonly"} in an account with a hierarchical namespace`);
  if (delimiter !== "" && delimiter !== "/") return notImplemented("Another delimiter than / in an account with a hierarchical namespace");
  const continuation = isContinued ? bytesOf(marker) : undefined;
  if (isContinued && !continuation) return badQuery("marker", marker, "It is none of this list.");
  const row = await containerOfRequest(exchange);
  if (!row.ok) return row;
  const slash = prefix.lastIndexOf("/");
  const above = slash < 0 ? [] : prefix.slice(0, slash).split("/");
  const first = prefix.slice(slash + 1);
  const recursive = delimiter === "";
  // It may name something before the prefix: then the list begins as without it.
  const from = !isContinued && marker.startsWith(prefix) ? namesOf(marker.slice(slash + 1)) : [];
  const beginFrom = from.length > 0 ? from.slice(0, recursive ? from.length : 1) : first === "" ? [] : [first];
  if (!isContinued && !marker.startsWith(prefix) && marker > prefix) return notImplemented("A list that starts behind its prefix");
  const entriesMax = include.has("metadata") ? Math.min(maxResults, withMetadataMax) : maxResults;
  const options = { recursive, entriesMax, continuation, beginFrom };
  const page = await runInTree(exchange, treeNameOf(exchange, row.value), (context) => list(context, above, options));
  const isAbsent = !page.ok && absent.has(page.refusal);
  if (!page.ok && !isAbsent) return refused(page);
  const { entries, continuation: next } = page.ok ? page.value : { entries: [], continuation: undefined };
  // Names with the beginning are next to each other.
  const told = entries.filter(({ path }) => path[0]?.startsWith(first));
  const isOver = told.length < entries.length;
  const texts: string[] = [];
  for (let at = 0; at < told.length; at += readAtOnce) {
    const read = await Promise.all(
      told.slice(at, at + readAtOnce).map((entry) => entryOf(exchange, row.value, above, entry, { delimiter, include })),
    );
    for (const text of read) {
      if (!text.ok) return text;
      texts.push(text.value);
    }
  }
  const shown = { serviceEndpoint: serviceEndpoint(exchange), ...echo, include, version: exchange.version };
  const nextMarker = next && !isOver ? encodeMarkerWithin(toHex(next), 0) : "";
  const { world, texts: memory } = exchange.objects.parts;
  const text = new TextWriter(world.clock, memory);
  text.expect(told.length * entryBytesExpected);
  await text.add(listBlobsXml(shown, row.value.name, texts, nextMarker));
  return respondText({ "Content-Type": "application/xml" }, text.finish());
}

/** Returns nothing for a path that was removed since, or has no content yet. */
async function entryOf(
  exchange: WritingExchange,
  row: Container,
  above: readonly string[],
  { path, held }: Listed,
  { delimiter, include }: { readonly delimiter: string; readonly include: ReadonlySet<string> },
): Promise<Parsed<string>> {
  const name = [...above, ...path].join("/");
  if (held.kind === "directory" && delimiter !== "") return parsed(blobPrefixXml(`${name}/`));
  const located = exchange.objects.located({ account: exchange.target.account, container: row.name, blob: held.id }, row);
  const value = { name: located, withoutContent: true, withoutKey: true };
  const blob = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  if (!blob.ok) return blob.error.code === "BlobNotFound" ? parsed("") : blob;
  const properties = blobOf(blob.value);
  const folder: Readonly<Record<string, string>> = held.kind === "directory" ? { hdi_isfolder: "true" } : {};
  const shown: ListedBlobProperties = { ...properties, name, resourceType: held.kind, metadata: { ...properties.metadata, ...folder } };
  return parsed(listedBlobXml(shown, include));
}
