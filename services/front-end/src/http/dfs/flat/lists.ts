/**
 * Lists of paths in an account without a hierarchical namespace, where the name of a blob is all there is. A directory is a blob whose
 * metadata say so, or the part of other names before a slash.
 */
import {
  badQuery,
  isDirectoryMark,
  type ListedBlobProperties,
  type Parsed,
  parsed,
  pathsJson,
  rejected,
  type ShownPath,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { Container } from "@stamp/wire";
import { blobOf, containerOf } from "../../../objects/wire-to-rest.ts";
import { type Answer, respond } from "../../exchange.ts";
import { type DataLakeExchange, type OnPath, rowOf } from "../exchange.ts";
import { decodeToken, encodeToken } from "../tokens.ts";

/** Blobs that are looked up at once. */
const readAtOnce = 64;

const currentOnly = { includeUncommitted: false, includeSnapshots: false, includeVersions: false, includeDeleted: false };

interface FlatPage {
  /** Files, and directories that have a blob, in the order of the names. */
  readonly blobs: readonly ListedBlobProperties[];
  /** Directories that names of other blobs begin with, without the slash behind them. */
  readonly prefixes: readonly string[];
  /** Name at which the next page begins; empty: there is none. */
  readonly next: string;
}

/** Reads a page of what is below a directory; empty: the root. */
export async function readBelow(
  exchange: OnPath,
  row: Container,
  directory: string,
  { marker, recursive, maxResults }: { readonly marker: string; readonly recursive: boolean; readonly maxResults: number },
): Promise<Parsed<FlatPage>> {
  const question = { ...currentOnly, prefix: directory === "" ? "" : `${directory}/`, delimiter: recursive ? "" : "/", marker, maxResults };
  const page = await exchange.objects.listBlobs(exchange.target.account, row, { ...question, includeMetadata: true }, exchange.limits());
  if (!page.ok) return page;
  const blobs: ListedBlobProperties[] = [];
  const prefixes: string[] = [];
  for (const { kind } of page.value.entries) {
    if (kind.case === "blob") blobs.push(blobOf(kind.value));
    else if (kind.case === "prefix") prefixes.push(kind.value.slice(0, -1));
  }
  return parsed({ blobs, prefixes, next: page.value.nextMarker });
}

/** Returns the blob under a name; undefined: there is none. */
export async function blobAt(exchange: OnPath, row: Container, path: string): Promise<Parsed<ListedBlobProperties | undefined>> {
  const name = exchange.objects.located({ account: exchange.target.account, container: row.name, blob: path }, row);
  const value = { name, withoutContent: true, withoutKey: true };
  const blob = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  if (blob.ok) return parsed(blobOf(blob.value));
  return blob.error.code === "BlobNotFound" ? parsed(undefined) : blob;
}

const notOfThisList = badQuery("continuation", "", "It is none that this list has given.");

export async function listFlatPaths(exchange: DataLakeExchange<"ListPaths">): Promise<Answer> {
  const { directory, recursive, maxResults, beginFrom, continuation } = exchange.asked;
  const below = directory === "" ? "" : `${directory}/`;
  const from = continuation === undefined ? parsed(`${below}${beginFrom}`) : decodeToken(continuation, textOf);
  if (!from.ok || !from.value.startsWith(below)) return notOfThisList;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const marker = from.value === below ? "" : from.value;
  const page = await readBelow(exchange, row.value, directory, { marker, recursive, maxResults });
  if (!page.ok) return page;
  const { blobs, prefixes, next } = page.value;
  if (continuation === undefined && directory !== "" && blobs.length + prefixes.length === 0 && next === "") {
    const blob = await blobAt(exchange, row.value, directory);
    if (!blob.ok) return blob;
    if (!blob.value) return beginFrom === "" ? rejected("PathNotFound") : pageOf(exchange, [], "");
    // The list of a file tells the file: Hadoop asks so what a path is.
    return pageOf(exchange, isDirectoryMark(blob.value) ? [] : [shownBlob(blob.value)], "");
  }
  const implied = await impliedIn(exchange, row.value, prefixes, continuation === undefined ? from.value : "");
  if (!implied.ok) return implied;
  // A blob that is named as the directory with a slash is the directory itself.
  const shown = [...blobs.filter(({ name }) => name !== below).map(shownBlob), ...implied.value];
  return pageOf(exchange, shown.sort(byName), next);
}

const textOf = ([text]: readonly unknown[]): string | undefined => (typeof text === "string" ? text : undefined);
const byName = (a: ShownPath, b: ShownPath): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

/** Directories among the prefixes that have no blob of their own, which is in the list already, as its name comes before the prefix. */
async function impliedIn(
  exchange: OnPath,
  row: Container,
  prefixes: readonly string[],
  from: string,
): Promise<Parsed<readonly ShownPath[]>> {
  const implied: ShownPath[] = [];
  const { etag, lastModifiedMs } = containerOf(row);
  const wanted = prefixes.filter((name) => name >= from);
  for (let at = 0; at < wanted.length; at += readAtOnce) {
    const names = wanted.slice(at, at + readAtOnce);
    const found = await Promise.all(names.map((name) => blobAt(exchange, row, name)));
    for (const [index, blob] of found.entries()) {
      if (!blob.ok) return blob;
      if (blob.value && isDirectoryMark(blob.value)) continue;
      const name = names[index] ?? "";
      implied.push({ name, isDirectory: true, contentLengthBytes: 0, etag, lastModifiedMs, createdMs: lastModifiedMs });
    }
  }
  return parsed(implied);
}

/** Nobody owns a path here, and no permissions are on it. */
function shownBlob(blob: ListedBlobProperties): ShownPath {
  const { contentLengthBytes, etag, lastModifiedMs, createdMs } = blob;
  const name = blob.name.endsWith("/") ? blob.name.slice(0, -1) : blob.name;
  return { name, isDirectory: isDirectoryMark(blob) || name !== blob.name, contentLengthBytes, etag, lastModifiedMs, createdMs };
}

function pageOf(exchange: OnPath, shown: readonly ShownPath[], next: string): Answer {
  const more = next === "" ? {} : { "x-ms-continuation": encodeToken([next]) };
  const headers = { "Content-Type": "application/json;charset=utf-8", ...more };
  return respond(200, headers, utf8(pathsJson(exchange.version, shown)));
}
