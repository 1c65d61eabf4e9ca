/** Content of files: ranges are written, cleared, read and listed, at any byte. */
import {
  allParsed,
  type ByteRange,
  badHeader,
  blobHeaders,
  etagAndTime,
  notImplemented,
  type Parsed,
  parseBoolean,
  parsed,
  parseFileWrite,
  parseKeepsWriteTime,
  parseRange,
  parseWriteRange,
  putRangeBytesMax,
  queryValue,
  type ResponseHeaders,
  rangesXml,
  rejected,
  toBase64,
} from "@stamp/azure-rest";
import { concatBytes, FailureError, utf8 } from "@stamp/base";
import { clientEntriesOf, writeRight, zeroExtentId } from "@stamp/objects";
import { type Blob, type BlobContent, fromWire, toWire } from "@stamp/wire";
import { announcedDigests } from "../../content/content-digests.ts";
import type { Download } from "../../content/download.ts";
import { restErrorOf } from "../../objects/failures.ts";
import { endOf, type LocatedBlob } from "../../objects/objects.ts";
import type { WireConditions } from "../../objects/wire-conditions.ts";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { type CheckedBody, receiveChecked } from "../blob/content/uploads.ts";
import { lengthWithin } from "../body.ts";
import { type Answer, respond } from "../exchange.ts";
import { belowRoot, type FileExchange, headOf, leaseOf } from "./exchange.ts";
import { contentEntries, smbHeaders, smbOf } from "./smb.ts";

const encrypted = { "x-ms-request-server-encrypted": "true" } as const;
/** A clear frees whole units of this length; the rest of its range becomes zeros. */
const unitBytes = 512;
const chunkBytes = 256 * 1024;
/** Writes into a chunk of many pieces that meet each other. */
const attemptsMax = 16;

export async function putRange(exchange: FileExchange): Promise<Answer> {
  const asked = allParsed({
    write: parseFileWrite(exchange.headers),
    range: parseWriteRange(exchange.headers),
    lease: leaseOf(exchange),
    announced: announcedDigests(exchange.headers),
    keepsTime: parseKeepsWriteTime(exchange.headers),
  });
  if (!asked.ok) return asked;
  const { write, range, lease, announced } = asked.value;
  const rangeBytes = range.endBytes - range.startBytes;
  const length = lengthWithin(exchange, write === "clear" ? 0 : putRangeBytesMax);
  if (!length.ok) return length;
  if (write === "update" && rangeBytes > putRangeBytesMax) return rejected("RequestBodyTooLarge", { MaxLimit: String(putRangeBytesMax) });
  if (write === "update" && length.value !== rangeBytes) {
    return badHeader("Content-Length", String(length.value), "It is as long as the range.");
  }
  const found = await belowRoot(exchange, "file");
  if (!found.ok) return found;
  const { name } = found.value;
  if (write === "clear") return cleared(exchange, name, range, lease);
  const received = await receiveChecked({ ...exchange, key: undefined }, name, announced, length.value, true);
  if (!received.ok) return received;
  const put = await putBytes(exchange, name, range, received.value.body, lease);
  if (!put.ok) return put;
  return respond(201, { ...writtenHeaders(exchange, put.value), ...received.value.digests });
}

export const writtenHeaders = (exchange: FileExchange, blob: Blob): ResponseHeaders => ({
  ...etagAndTime(exchange.version, blobOf(blob)),
  "x-ms-file-last-write-time": smbOf(blob).written,
  ...encrypted,
});

type Range = Required<ByteRange>;

/** The part of a request that reads and writes of content need. */
export interface ContentExchange extends Pick<FileExchange, "objects" | "headers" | "limits"> {
  readonly cause: FileExchange["cause"] | undefined;
  readonly request: Pick<FileExchange["request"], "remoteAddress" | "signal">;
}

/** Writes received bytes. A chunk that has too many pieces is written anew as one, and the write is tried again. */
export async function putBytes(
  exchange: ContentExchange,
  name: LocatedBlob,
  range: Range,
  body: CheckedBody["body"],
  conditions: WireConditions,
): Promise<Parsed<Blob>> {
  const setMetadata = contentEntries(exchange);
  const value = { name, conditions, startBytes: toWire(range.startBytes), body, setMetadata };
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const put = await exchange.objects.execute({ case: "putPages", value }, "blob", exchange.limits());
    if (put.ok || put.error.code !== "BlockCountExceedsLimit") return put;
    for (const chunk of new Set([Math.floor(range.startBytes / chunkBytes), Math.floor((range.endBytes - 1) / chunkBytes)])) {
      const joined = await joinChunk(exchange, name, chunk, conditions);
      if (!joined.ok) return joined;
    }
  }
  return rejected("ServerBusy");
}

/**
 * Writes the bytes of a chunk where they are, as one piece; nothing if the chunk has changed meanwhile: writes elsewhere in the file may. Whoever may write may do so, and locks do
 * not matter: nobody is told the bytes, and they stay as they are.
 */
async function joinChunk(exchange: ContentExchange, name: LocatedBlob, chunk: number, lease: WireConditions): Promise<Parsed<void>> {
  const { objects, request } = exchange;
  const start = chunk * chunkBytes;
  const conditions = { ...lease, usesRights: writeRight };
  const value = { name, conditions, startBytes: toWire(start), endBytes: toWire(start + chunkBytes) };
  const found = await objects.execute({ case: "getBlob", value }, "content", exchange.limits());
  if (!found.ok) return found;
  const blob = found.value.blob as Blob;
  const read = await bytesOf(exchange, name, found.value, endOf(blob, start + chunkBytes));
  if (!read.ok) return read;
  const bytes = read.value;
  async function* once(): AsyncGenerator<Uint8Array, void> {
    yield bytes;
  }
  const received = await objects.receive(name, once(), {
    contentLengthBytes: bytes.length,
    wants: { md5: false, crc64: false },
    isPages: true,
    from: request.remoteAddress,
    signal: request.signal,
    cause: exchange.cause,
  });
  if (!received.ok) return received;
  const { inline, places } = received.value;
  const write = {
    name,
    conditions,
    startBytes: toWire(start),
    body: { inline, places: [...places] },
    replaces: found.value.places.filter(({ extentId }) => extentId !== BigInt(zeroExtentId)),
  };
  const put = await objects.execute({ case: "putPages", value: write }, "blob", exchange.limits());
  return put.ok || put.error.code === "ConditionNotMet" ? parsed(undefined) : put;
}

/** Frees whole units of the range, and writes zeros to what is left at its ends. */
async function cleared(exchange: FileExchange, name: LocatedBlob, range: Range, lease: WireConditions): Promise<Answer> {
  const head = await headOf(exchange, name, lease);
  if (!head.ok) return head;
  const lengthBytes = fromWire(head.value.contentLengthBytes);
  if (range.endBytes > lengthBytes) return rejected("InvalidRange");
  const first = Math.min(Math.ceil(range.startBytes / unitBytes) * unitBytes, range.endBytes);
  const last = range.endBytes === lengthBytes ? range.endBytes : Math.max(Math.floor(range.endBytes / unitBytes) * unitBytes, first);
  let blob: Blob = head.value;
  for (const [startBytes, endBytes] of [
    [range.startBytes, first],
    [last, range.endBytes],
  ] as const) {
    if (startBytes >= endBytes) continue;
    const zeros = await writeZeros(exchange, name, { startBytes, endBytes }, lease);
    if (!zeros.ok) return zeros;
    blob = zeros.value;
  }
  const limits = exchange.limits();
  for (let at = first; at < last; ) {
    const steps = { conditions: lease, startBytes: toWire(at), endBytes: toWire(last), setMetadata: contentEntries(exchange) };
    const done = await exchange.objects.execute({ case: "clearPages", value: { name, ...steps } }, "cleared", limits);
    if (!done.ok) return done;
    blob = done.value.blob as Blob;
    at = done.value.nextBytes === 0n ? last : fromWire(done.value.nextBytes);
  }
  return respond(201, writtenHeaders(exchange, blob));
}

async function writeZeros(exchange: FileExchange, name: LocatedBlob, range: Range, lease: WireConditions): Promise<Parsed<Blob>> {
  const bytes = new Uint8Array(range.endBytes - range.startBytes);
  async function* once(): AsyncGenerator<Uint8Array, void> {
    yield bytes;
  }
  const { remoteAddress: from, signal } = exchange.request;
  const options = {
    contentLengthBytes: bytes.length,
    wants: { md5: false, crc64: false },
    isPages: true,
    from,
    signal,
    cause: exchange.cause,
  };
  const received = await exchange.objects.receive(name, once(), options);
  if (!received.ok) return received;
  const { inline, places } = received.value;
  return putBytes(exchange, name, range, { inline, places: [...places] }, lease);
}

/** Reads a range of at most a chunk, or of what a digest is asked for. */
export async function bytesOf(
  exchange: ContentExchange,
  name: LocatedBlob,
  content: BlobContent,
  endBytes: number,
): Promise<Parsed<Uint8Array>> {
  const { request, objects, cause } = exchange;
  const download = await objects.download(name, content.blob as Blob, content, endBytes, { signal: request.signal, cause });
  return download.ok ? collect(download.value) : download;
}

async function collect(download: Download): Promise<Parsed<Uint8Array>> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of download) chunks.push(new Uint8Array(chunk));
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, error: restErrorOf(error.failure) };
    throw error;
  }
  return parsed(concatBytes(chunks));
}

/** Headers of Get File and Get File Properties. */
function fileHeaders(exchange: FileExchange, blob: Blob, id: string, parentId: string | undefined): ResponseHeaders {
  const shown = { ...blobOf(blob), metadata: clientEntriesOf(blob.metadata) };
  const headers: ResponseHeaders = {};
  for (const [name, text] of Object.entries(blobHeaders(exchange.version, shown))) if (!ofBlobs.has(name)) headers[name] = text;
  return { ...headers, ...smbHeaders(smbOf(blob), id, parentId), "x-ms-type": "File", "x-ms-server-encrypted": "true" };
}
const ofBlobs: ReadonlySet<string> = new Set(["x-ms-blob-type", "x-ms-blob-sequence-number", "x-ms-creation-time"]);

export async function getFileProperties(exchange: FileExchange): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const found = await belowRoot(exchange, "file");
  if (!found.ok) return found;
  const { name, held, parentId } = found.value;
  const head = await headOf(exchange, name, lease.value);
  if (!head.ok) return head;
  exchange.objects.copies.met(name, head.value);
  const length = { "Content-Length": String(head.value.contentLengthBytes) };
  return respond(200, { ...fileHeaders(exchange, head.value, held.id, parentId), ...length });
}

const rangeDigest = "x-ms-range-get-content-md5";

export async function getFile(exchange: FileExchange): Promise<Answer> {
  const { headers, objects, request, version } = exchange;
  const asked = allParsed({ lease: leaseOf(exchange), md5: parseBoolean(headers, rangeDigest) });
  if (!asked.ok) return asked;
  const range = parseRange(headers, version);
  if (asked.value.md5 && !range) return badHeader(rangeDigest, "true", "It needs a range.");
  const found = await belowRoot(exchange, "file");
  if (!found.ok) return found;
  const { name, held, parentId } = found.value;
  const ends = range && {
    startBytes: toWire(range.startBytes),
    ...(range.endBytes === undefined ? {} : { endBytes: toWire(range.endBytes) }),
  };
  const value = { name, conditions: asked.value.lease, ...ends };
  const read = await objects.execute({ case: "getBlob", value }, "content", exchange.limits());
  if (!read.ok) return read;
  const blob = read.value.blob as Blob;
  const startBytes = fromWire(read.value.startBytes);
  const endBytes = endOf(blob, range?.endBytes);
  if (asked.value.md5 && endBytes - startBytes > putRangeBytesMax) {
    return rejected("OutOfRangeInput", { HeaderName: rangeDigest, Reason: "The range is larger than 4 MiB." });
  }
  const result = { ...fileHeaders(exchange, blob, held.id, parentId), "Content-Length": String(endBytes - startBytes) } as ResponseHeaders;
  if (range) {
    result["Content-Range"] = `bytes ${startBytes}-${endBytes - 1}/${blob.contentLengthBytes}`;
    const whole = result["Content-MD5"];
    delete result["Content-MD5"];
    if (whole !== undefined) result["x-ms-content-md5"] = whole;
  }
  const status = range ? 206 : 200;
  if (startBytes === endBytes) return respond(status, result, new Uint8Array(0));
  if (asked.value.md5) {
    const bytes = await bytesOf(exchange, name, read.value, endBytes);
    if (!bytes.ok) return bytes;
    const md5 = objects.parts.world.digest.md5();
    md5.update(bytes.value);
    return respond(status, { ...result, "Content-MD5": toBase64(md5.digest()) }, bytes.value);
  }
  const to = { to: request.remoteAddress, signal: request.signal, cause: exchange.cause };
  const download = await objects.download(name, blob, read.value, endBytes, to);
  return download.ok ? respond(status, result, download.value) : download;
}

/** Ranges that one answer tells: a list has no marker, so it has to be whole. */
const rangesMax = 100_000;
const rangesAtOnce = 10_000;

export async function listRanges(exchange: FileExchange): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  if (queryValue(exchange.target.query, "prevsharesnapshot") !== undefined) {
    return notImplemented("Snapshots of shares (prevsharesnapshot)");
  }
  const range = parseRange(exchange.headers, exchange.version);
  const found = await belowRoot(exchange, "file");
  if (!found.ok) return found;
  const listed: { startBytes: number; endBytes: number }[] = [];
  const ends = range?.endBytes === undefined ? {} : { endBytes: toWire(range.endBytes) };
  const question = { name: found.value.name, conditions: lease.value, ...ends, rangesMax: rangesAtOnce };
  let at = toWire(range?.startBytes ?? 0);
  for (;;) {
    const value = { ...question, startBytes: at };
    const page = await exchange.objects.execute({ case: "getPageRanges", value }, "pageRanges", exchange.limits());
    if (!page.ok) return page;
    const { blob, ranges, nextBytes } = page.value;
    for (const one of ranges) listed.push({ startBytes: fromWire(one.startBytes), endBytes: fromWire(one.endBytes) });
    if (listed.length > rangesMax) return notImplemented(`Lists of more than ${rangesMax} ranges: ask for a part of the file (x-ms-range)`);
    if (nextBytes > 0n) {
      at = nextBytes;
      continue;
    }
    const shown = { "Content-Type": "application/xml", "x-ms-content-length": String(blob?.contentLengthBytes ?? 0) };
    return respond(200, { ...etagAndTime(exchange.version, blobOf(blob as Blob)), ...shown }, utf8(rangesXml(listed)));
  }
}
