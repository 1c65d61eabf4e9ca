/**
 * Data of files, and properties of paths. What is appended is an uncommitted block of the file's blob, whose id is the position in the file; a flush commits the blocks
 * that follow the content without a gap, up to its position. So appends may come in any order and more than once, and the last one at a
 * position counts, as long as nothing is flushed. What lies behind the position of a flush is dropped, unless the flush retains it.
 *
 * Invariant: a flush commits what it has read of the file, or nothing: the list of blocks goes with the ETag under which it was made, and
 * with the position that its blocks have to reach.
 */
import {
  bodyLimitsOf,
  type ConditionHeaders,
  directoryMark,
  etagAndTime,
  etagHeader,
  isDirectoryMark,
  type ListedBlobProperties,
  notImplemented,
  type Parsed,
  parsed,
  type ResponseHeaders,
  rejected,
} from "@stamp/azure-rest";
import { toHex } from "@stamp/base";
import { type Blob, packBlocks, toWire, unpackBlockSizes } from "@stamp/wire";
import { underKey } from "../../accounts/content-key.ts";
import { announcedDigests } from "../../content/content-digests.ts";
import type { LocatedBlob } from "../../objects/objects.ts";
import { conditionsToWire } from "../../objects/wire-conditions.ts";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { withKey } from "../blob/content/scopes.ts";
import { receiveChecked } from "../blob/content/uploads.ts";
import { type BlobExchange, blobOfRequest, isHierarchical } from "../blob/exchange.ts";
import { lengthWithin } from "../body.ts";
import { type Answer, respond } from "../exchange.ts";
import { asBlob, contentOf, type DataLakeExchange, metadataOf, noContent, type OnPath, rowOf } from "./exchange.ts";
import { checkFlatFile } from "./flat/paths.ts";

type Content = DataLakeExchange<"FlushData">["asked"]["content"];

const encrypted = { "x-ms-request-server-encrypted": "true" } as const;
const blockIdBytes = 8;

export function blockIdAt(position: number): Uint8Array {
  const id = new Uint8Array(blockIdBytes);
  new DataView(id.buffer).setBigUint64(0, BigInt(position));
  return id;
}

/** Position of a block; undefined: not one that was appended. */
export const positionOfBlock = (id: Uint8Array): number | undefined =>
  id.length === blockIdBytes ? Number(new DataView(id.buffer, id.byteOffset, id.length).getBigUint64(0)) : undefined;

interface File {
  readonly blob: BlobExchange;
  readonly name: LocatedBlob;
}

async function fileOf(exchange: OnPath, operation: "PutBlock" | "PutBlockList"): Promise<Parsed<File>> {
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const inTree: NonNullable<BlobExchange["inTree"]> = {};
  const keyed = await withKey({ ...asBlob(exchange, operation, row.value), inTree });
  if (!keyed.ok) return keyed;
  const name = await blobOfRequest(keyed.value);
  if (!name.ok) return name;
  const flat = isHierarchical(exchange) ? parsed(undefined) : await checkFlatFile(exchange);
  if (!flat.ok) return flat;
  return inTree.held?.kind === "directory" ? rejected("PathConflict") : parsed({ blob: keyed.value, name: name.value });
}

export async function appendData(exchange: DataLakeExchange<"AppendData">): Promise<Answer> {
  const { asked, objects } = exchange;
  if (asked.lease !== undefined) return notImplemented("Leases that an append takes, renews or gives back");
  const announced = announcedDigests(exchange.headers);
  if (!announced.ok) return announced;
  const length = lengthWithin(exchange, bodyLimitsOf(exchange.version).blockBytesMax);
  if (!length.ok) return length;
  const file = await fileOf(exchange, "PutBlock");
  if (!file.ok) return file;
  let digests: ResponseHeaders = {};
  if (length.value > 0) {
    const { blob, name } = file.value;
    const received = await receiveChecked(blob, name, announced.value, length.value);
    if (!received.ok) return received;
    const conditions = underKey(blob.key, conditionsToWire(asked.conditions));
    const value = { name, conditions, blockId: blockIdAt(asked.position), body: received.value.body };
    const put = await objects.execute({ case: "putBlock", value }, "done", exchange.limits());
    if (!put.ok) return put;
    digests = received.value.digests;
  }
  if (!asked.flush) return respond(202, { ...encrypted, ...digests });
  const flushed = await flush(exchange, {
    position: asked.position + length.value,
    retains: false,
    content: undefined,
    conditions: asked.conditions,
  });
  if (!flushed.ok) return flushed;
  return respond(202, { ...etagAndTime(exchange.version, flushed.value), ...encrypted, ...digests });
}

export async function flushData(exchange: DataLakeExchange<"FlushData">): Promise<Answer> {
  const { position, lease, retainUncommittedData: retains, content, conditions } = exchange.asked;
  if (lease !== undefined) return notImplemented("Leases that a flush takes, renews or gives back");
  const flushed = await flush(exchange, { position, retains, content, conditions });
  if (!flushed.ok) return flushed;
  return respond(200, { ...etagAndTime(exchange.version, flushed.value), ...encrypted, "Content-Length": "0" });
}

interface Flush {
  readonly position: number;
  /** True: uncommitted data behind the position stays. */
  readonly retains: boolean;
  /** Undefined: the properties stay. */
  readonly content: Content | undefined;
  readonly conditions: ConditionHeaders;
}

/** Appends that a flush takes if it retains others, as many as a partition server takes out of the uncommitted blocks at once. */
const retainingAppendsMax = 2_000;
/** Flushes of one file that meet each other. */
const attemptsMax = 16;

async function flush(exchange: OnPath, asked: Flush): Promise<Parsed<ListedBlobProperties>> {
  const file = await fileOf(exchange, "PutBlockList");
  if (!file.ok) return file;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const flushed = await flushOnce(exchange, file.value, asked);
    if (flushed !== "again") return flushed;
  }
  return rejected("ServerBusy");
}

/** One attempt. `again`: the file or its appends changed after they were read, and nothing was written. */
export async function flushOnce(exchange: OnPath, { blob, name }: File, asked: Flush): Promise<Parsed<ListedBlobProperties> | "again"> {
  const { objects } = exchange;
  const found = await readUnder(exchange, name, asked.conditions);
  if (!found.ok) return found;
  const listed = { name, conditions: {}, committed: true, uncommitted: true, packed: true };
  const lists = await objects.execute({ case: "getBlockList", value: listed }, "blockList", exchange.limits());
  if (!lists.ok) return lists;
  if (lists.value.blob?.etag !== found.value.etag) return "again";
  const planned = plan(Number(found.value.contentLengthBytes), asked, lists.value);
  if (!planned.ok) return planned;
  const { metadata } = blobOf(found.value);
  const value = {
    name,
    conditions: underKey(blob.key, underEtag(exchange, found.value, asked.conditions)),
    headers: contentOf(asked.content ?? noContent, found.value.headers),
    metadata: { ...metadata },
    state: keptState(found.value),
    ...packBlocks(planned.value),
    // An append between the two steps may have another length at a position.
    expectedBytes: toWire(asked.position),
    keepsUnnamed: asked.retains,
  };
  const made = await objects.execute({ case: "putBlockList", value }, "blob", exchange.limits());
  if (made.ok) return parsed(blobOf(made.value));
  return made.error.code === "ConditionNotMet" ? "again" : made;
}

/** Tags and tier that the file has, which a list of blocks would reset. Files of accounts with a hierarchical namespace have neither. */
const keptState = ({ tags, accessTier, accessTierInferred }: Blob) => ({
  tags: { ...tags },
  accessTier: accessTierInferred ? "" : accessTier,
  immutabilityMode: "",
  legalHold: false,
});

/** User-defined properties, or those of the content. What the request does not name stays. */
export async function setPathProperties(exchange: DataLakeExchange<"SetPathProperties">): Promise<Answer> {
  const { content, properties, conditions } = exchange.asked;
  const describes = Object.values(content).some((one) => one !== undefined);
  if (describes && properties !== undefined) return notImplemented("x-ms-properties and properties of the content in one request");
  if (!describes && properties === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-properties" });
  if (exchange.resource.path === "") return notImplemented("Properties of a root directory");
  const metadata = metadataOf(properties);
  if (!metadata.ok) return metadata;
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const keyed = await withKey(asBlob(exchange, "SetBlobMetadata", row.value));
  if (!keyed.ok) return keyed;
  const name = await blobOfRequest(keyed.value);
  if (!name.ok) return name;
  const file: File = { blob: keyed.value, name: name.value };
  const changed = describes ? await describe(exchange, file, content, conditions) : await setMetadata(exchange, file, metadata.value);
  return changed.ok ? respond(200, { ...etagAndTime(exchange.version, blobOf(changed.value)), "Content-Length": "0" }) : changed;
}

async function setMetadata(
  exchange: DataLakeExchange<"SetPathProperties">,
  { blob, name }: File,
  given: Record<string, string>,
): Promise<Parsed<Blob>> {
  const held = isHierarchical(exchange) ? undefined : await readUnder(exchange, name, {});
  if (held && !held.ok) return held;
  const metadata = held && isDirectoryMark(held.value) ? { ...given, ...directoryMark } : given;
  const conditions = underKey(blob.key, conditionsToWire(exchange.asked.conditions));
  return exchange.objects.execute({ case: "setBlobMetadata", value: { name, conditions, metadata } }, "blob", exchange.limits());
}

async function describe(exchange: OnPath, { blob, name }: File, content: Content, asked: ConditionHeaders): Promise<Parsed<Blob>> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const found = await readUnder(exchange, name, asked);
    if (!found.ok) return found;
    const held = found.value.headers;
    const headers = { ...contentOf(content, held), contentMd5: content.contentMd5 ?? held?.contentMd5 ?? noMd5 };
    const value = { name, conditions: underKey(blob.key, underEtag(exchange, found.value, asked)), headers };
    const made = await exchange.objects.execute({ case: "setBlobHeaders", value }, "blob", exchange.limits());
    if (made.ok || made.error.code !== "ConditionNotMet") return made;
  }
  return rejected("ServerBusy");
}

const noMd5 = new Uint8Array(0);

/** Reads what a write changes, under the conditions of the write but for its lease. */
async function readUnder(
  exchange: OnPath,
  name: LocatedBlob,
  { leaseId: _ofWrite, ...conditions }: ConditionHeaders,
): Promise<Parsed<Blob>> {
  const value = { name, conditions: conditionsToWire(conditions), withoutContent: true, withoutKey: true };
  const found = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  // A write answers 412 where a read has 304.
  return !found.ok && found.error.status === 304 ? rejected("ConditionNotMet", {}, { status: 412 }) : found;
}

const underEtag = (exchange: OnPath, { etag }: Blob, { leaseId }: ConditionHeaders) => ({
  ifMatch: etagHeader(exchange.version, etag),
  ...(leaseId === undefined ? {} : { leaseId }),
});

interface Lists {
  readonly packedCommitted: Uint8Array;
  readonly packedUncommitted: Uint8Array;
}
interface Planned {
  readonly blockId: Uint8Array;
  readonly source: "committed" | "uncommitted";
}

/** Returns the blocks of the file after a flush. Refused if they don't reach from the end of the content to the position without a gap. */
export function plan(
  contentBytes: number,
  { position, retains }: Pick<Flush, "position" | "retains">,
  { packedCommitted, packedUncommitted }: Lists,
): Parsed<readonly Planned[]> {
  const committed = [...unpackBlockSizes(packedCommitted)];
  const bytes = committed.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  // No list of blocks can name what Put Blob wrote: the service doesn't take writes of both kinds for one file either.
  if (bytes !== contentBytes || committed.some(({ blockId }) => blockId.length === 0)) return rejected("InvalidFlushOperation");
  const blocks: Planned[] = committed.map(({ blockId }) => ({ blockId, source: "committed" as const }));
  const sizes = new Map<number, { readonly blockId: Uint8Array; readonly sizeBytes: number }>();
  for (const block of unpackBlockSizes(packedUncommitted)) {
    const at = positionOfBlock(block.blockId);
    if (at === undefined) return rejected("InvalidFlushOperation");
    sizes.set(at, block);
  }
  let end = contentBytes;
  for (let next = sizes.get(end); next !== undefined && end < position; next = sizes.get(end)) {
    blocks.push({ blockId: next.blockId, source: "uncommitted" });
    end += next.sizeBytes;
  }
  if (end !== position) return rejected("InvalidFlushPosition");
  // A list of blocks takes one content for an id, whatever it has: the Blob service has put several under this one.
  if (new Set(blocks.map(({ blockId }) => toHex(blockId))).size < blocks.length) return rejected("InvalidFlushOperation");
  const isLong = retains && blocks.length - committed.length > retainingAppendsMax;
  return isLong
    ? notImplemented(`More than ${retainingAppendsMax} appends in a flush that retains data: flush at earlier positions first`)
    : parsed(blocks);
}
