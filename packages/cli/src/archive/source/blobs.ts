/**
 * Containers and blobs of an account.
 *
 * Invariants:
 * - The bytes of a blob are those of one ETag: each range is read on the condition that the ETag is the listed one.
 * - All of one name is one step, so that nobody goes on in the middle of a blob's history.
 */
import { createHash } from "node:crypto";
import type { BlobClient, ContainerClient, ContainerItem, BlobItem as ListedBlob } from "@azure/storage-blob";
import type { AccountDoors } from "../doors.ts";
import { inOrder } from "../in-order.ts";
import {
  BlobChanged,
  type BlobChunk,
  type BlobFacts,
  type BlobGroup,
  type BlobItem,
  LeftOut,
  type SourcePosition,
  type Step,
} from "../items.ts";
import { type Listing, policiesOf, statusOf, textsOf, timeText } from "./answers.ts";

const pageSize = 1_000;
/** Bytes of a chunk, unless the blob would have more blocks than a blob can have. */
export const chunkBytes = 4 * 1024 * 1024;
const blocksMax = 50_000;
const mebibyte = 1024 * 1024;
/** Chunks of one blob that are read at a time. */
const chunksAtOnce = 4;
/** Page ranges are asked for by such windows, so that no answer is large. */
const windowBytes = 64 * mebibyte;
/** Ranges of pages with fewer zeros between them are read as one. */
const gapBytes = 64 * 1024;

export async function* blobSteps(doors: AccountDoors, from: SourcePosition, listing: Listing): AsyncGenerator<Step, void, undefined> {
  const containers = doors.blobs.listContainers({ includeMetadata: true });
  let after = String(from.container ?? "");
  for await (const listed of containers) {
    if (listed.name < after) continue;
    const isBegun = listed.name === after;
    after = listed.name;
    const container = doors.blobs.getContainerClient(listed.name);
    try {
      if (!isBegun) yield { item: await containerItem(container, listed), next: { stage: "blob", container: listed.name } };
      yield* blobsIn(container, isBegun ? from : {}, listing);
    } catch (error) {
      // It was deleted meanwhile.
      if (statusOf(error) !== 404) throw error;
    }
  }
}

async function containerItem(container: ContainerClient, listed: ContainerItem): Promise<Step["item"]> {
  const policies = await container.getAccessPolicy();
  return {
    kind: "container",
    name: listed.name,
    access: listed.properties.publicAccess ?? "",
    metadata: textsOf(listed.metadata, true),
    policies: policiesOf(policies.signedIdentifiers),
  };
}

/** A name whose items may go on in the next page. */
interface OpenGroup {
  readonly name: string;
  readonly items: ListedBlob[];
}

async function* blobsIn(container: ContainerClient, from: SourcePosition, listing: Listing): AsyncGenerator<Step, void, undefined> {
  let marker = String(from.marker ?? "");
  let skipping = from.after === undefined ? undefined : String(from.after);
  let markerOfOpen = marker;
  let open: OpenGroup | undefined;
  const stepOf = ({ name, items }: OpenGroup): Step => ({
    item: groupOf(container, name, items, listing),
    next: { stage: "blob", container: container.containerName, marker: markerOfOpen, after: name },
  });
  for (;;) {
    const { items, next } = await blobPage(container, marker, "", listing);
    // If the name is gone meanwhile, the page begins anew: nothing is left out.
    if (skipping !== undefined && !items.some(({ name }) => name === skipping)) skipping = undefined;
    let skipped = skipping === undefined;
    for (const item of items) {
      if (item.name === skipping) skipped = true;
      if (!skipped || item.name === skipping) continue;
      if (open?.name !== item.name) {
        if (open !== undefined) yield stepOf(open);
        open = { name: item.name, items: [] };
        markerOfOpen = marker;
      }
      open.items.push(item);
    }
    // A name that was skipped may go on in the next page, and then is its first.
    if (items.at(-1)?.name !== skipping) skipping = undefined;
    if (next === "") break;
    marker = next;
  }
  if (open !== undefined) yield stepOf(open);
}

async function blobPage(
  container: ContainerClient,
  marker: string,
  prefix: string,
  listing: Listing,
): Promise<{ readonly items: readonly ListedBlob[]; readonly next: string }> {
  const list = (includeVersions: boolean) =>
    container
      .listBlobsFlat({
        includeMetadata: true,
        includeTags: true,
        ...listing.included(includeVersions),
        ...(prefix === "" ? {} : { prefix }),
      })
      .byPage({ maxPageSize: pageSize, ...(marker === "" ? {} : { continuationToken: marker }) })
      .next();
  const page = await list(listing.versions).catch((error: unknown) => {
    // Servers without versions refuse to list them.
    if (!listing.versions || ![400, 409, 501].includes(statusOf(error) ?? 0)) throw error;
    listing.versions = false;
    return list(false);
  });
  const { segment, continuationToken } = (page.value ?? {}) as { segment?: { blobItems: ListedBlob[] }; continuationToken?: string };
  return { items: (segment?.blobItems ?? []).filter(({ deleted }) => deleted !== true), next: continuationToken ?? "" };
}

/** The items of one name, the oldest first, the blob itself last. */
function groupOf(container: ContainerClient, name: string, items: readonly ListedBlob[], listing: Listing): BlobGroup {
  const facts = items.map((item) => factsOf(container.containerName, item));
  const order = (one: BlobFacts): string => (one.current ? "~" : one.snapshot || one.version);
  const sorted = facts.toSorted((one, other) => (order(one) < order(other) ? -1 : 1));
  return {
    kind: "blobs",
    container: container.containerName,
    name,
    blobs: sorted.map((each) => blobItem(container, each)),
    async again() {
      const found: ListedBlob[] = [];
      for (let marker = ""; ; ) {
        const { items, next } = await blobPage(container, marker, name, listing);
        found.push(...items.filter((item) => item.name === name));
        // A name comes before all longer ones that begin with it.
        if (next === "" || items.some((item) => item.name !== name)) break;
        marker = next;
      }
      return found.length === 0 ? undefined : groupOf(container, name, found, listing);
    },
  };
}

const types: Readonly<Record<string, BlobFacts["type"]>> = { BlockBlob: "block", AppendBlob: "append", PageBlob: "page" };

function factsOf(container: string, { name, snapshot, versionId, isCurrentVersion, properties, metadata, tags }: ListedBlob): BlobFacts {
  const isSnapshot = snapshot !== undefined && snapshot !== "";
  const { contentType, contentEncoding, contentLanguage, contentDisposition, cacheControl, contentMD5, accessTier, accessTierInferred } =
    properties;
  const md5 = contentMD5 === undefined || contentMD5.length === 0 ? "" : Buffer.from(contentMD5).toString("base64");
  return {
    container,
    name,
    type: types[properties.blobType ?? ""] ?? "block",
    length: properties.contentLength ?? 0,
    snapshot: isSnapshot ? snapshot : "",
    version: isSnapshot ? "" : (versionId ?? ""),
    current: !isSnapshot && (versionId === undefined || versionId === "" || isCurrentVersion === true),
    headers: textsOf({ contentType, contentEncoding, contentLanguage, contentDisposition, cacheControl, contentMd5: md5 }),
    metadata: textsOf(metadata, true),
    tags: textsOf(tags, true),
    tier: accessTier === undefined || accessTierInferred === true ? "" : accessTier,
    sequenceNumber: properties.blobSequenceNumber ?? 0,
    ...(properties.isSealed === true ? { sealed: true } : {}),
    modifiedOn: timeText(properties.lastModified),
    etag: `"${properties.etag.replaceAll('"', "")}"`,
  };
}

function blobItem(container: ContainerClient, facts: BlobFacts): BlobItem {
  return {
    facts,
    async *chunks(from = 0) {
      checkName(facts.name);
      if (/&#(x0*d|0*13);/i.test(facts.name)) throw new LeftOut("its name has a carriage return, which the SDK does not read");
      const plain = container.getBlobClient(facts.name);
      const client = facts.snapshot !== "" ? plain.withSnapshot(facts.snapshot) : facts.current ? plain : plain.withVersion(facts.version);
      const ranges = facts.type === "page" ? pageRanges(client, facts, from) : wholeRanges(facts.length, from);
      yield* inOrder(ranges, chunksAtOnce, (range) => chunkAt(client, facts, range));
    },
  };
}

/** Throws LeftOut for a name that clients change on their way to the URL, so that they would read or write another blob, even in another container. */
export function checkName(name: string): void {
  if (name.includes("\\")) throw new LeftOut("its name has a backslash, which clients take for a slash");
  if (name.split("/").some((part) => part === "." || part === ".."))
    throw new LeftOut('its name has "." or ".." between slashes, which clients resolve');
}

interface Range {
  readonly at: number;
  readonly length: number;
}

function* wholeRanges(length: number, from: number): Generator<Range> {
  const size = Math.max(chunkBytes, Math.ceil(length / blocksMax / mebibyte) * mebibyte);
  for (let at = from; at < length; at += size) yield { at, length: Math.min(size, length - at) };
}

/** Ranges with bytes, in pieces of at most `chunkBytes`, which is what one request can write. */
async function* pageRanges(client: BlobClient, facts: BlobFacts, from: number): AsyncGenerator<Range, void, undefined> {
  for (let window = from; window < facts.length; window += windowBytes) {
    const windowEnd = Math.min(window + windowBytes, facts.length);
    for (const { at: start, length } of await said(() => rangesIn(client, facts, window, windowEnd)))
      for (let at = start; at < start + length; at += chunkBytes) yield { at, length: Math.min(chunkBytes, start + length - at) };
  }
}

/** The service answers with 10,000 ranges at a time. Those with a small gap between them are one: a piece for each page is too many. */
async function rangesIn(client: BlobClient, { etag }: BlobFacts, window: number, windowEnd: number): Promise<readonly Range[]> {
  const listed = client.getPageBlobClient().listPageRanges(window, windowEnd - window, { conditions: { ifMatch: etag } });
  const ranges: Range[] = [];
  for await (const { start, end, isClear } of listed) {
    if (isClear) continue;
    // Servers may answer with the whole range that a window touches.
    const [at, behind] = [Math.max(start, window), Math.min(end + 1, windowEnd)];
    const last = ranges.at(-1);
    if (last !== undefined && at - (last.at + last.length) < gapBytes)
      ranges[ranges.length - 1] = { at: last.at, length: behind - last.at };
    else ranges.push({ at, length: behind - at });
  }
  return ranges;
}

async function chunkAt(client: BlobClient, { etag }: BlobFacts, { at, length }: Range): Promise<BlobChunk> {
  const bytes = await said(async () => {
    const { readableStreamBody } = await client.download(at, length, { conditions: { ifMatch: etag }, maxRetryRequests: 5 });
    const parts: Buffer[] = [];
    for await (const part of readableStreamBody ?? []) parts.push(part as Buffer);
    return Buffer.concat(parts);
  });
  if (bytes.length !== length) throw new BlobChanged(`${bytes.length} bytes in place of ${length}`);
  return { at, bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
}

/** Tells what a refusal of the service means for the blob. */
async function said<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    const status = statusOf(error);
    if (status === 404 || status === 412 || status === 416) throw new BlobChanged("it was changed meanwhile");
    const { code = status } = error as { readonly code?: string };
    // The key was changed meanwhile: with the new one the export goes on.
    if (status === 409 || (status === 403 && code !== "AuthenticationFailed"))
      throw new LeftOut(`the service does not let it be read: ${code}`);
    throw error;
  }
}
