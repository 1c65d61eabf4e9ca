/** Operations on blobs: reading, properties, metadata, deleting, listing. */
import {
  type ByteRange,
  badHeader,
  badQuery,
  blobHeaders,
  blobPrefixXml,
  crc64Text,
  encodeMarkerWithin,
  etagAndTime,
  etagHeader,
  fitsIfRange,
  type ListedBlobProperties,
  listBlobsXml,
  listedBlobXml,
  metadataHeaders,
  type Parsed,
  parseBoolean,
  parseContentProperties,
  parsed,
  parseListQuery,
  parseMetadata,
  parseRange,
  queryValue,
  rejected,
  toBase64,
  untellable,
  withTypeCleared,
  writtenHeaders,
} from "@stamp/azure-rest";
import { concatBytes, FailureError } from "@stamp/base";
import type { Blob, BlobContent } from "@stamp/wire";
import { fromWire, toWire } from "@stamp/wire";
import type { Download } from "../../content/download.ts";
import { restErrorOf } from "../../objects/failures.ts";
import { endOf, type LocatedBlob } from "../../objects/objects.ts";
import { blobOf } from "../../objects/wire-to-rest.ts";
import { type Answer, respond, respondText, serviceEndpoint } from "../exchange.ts";
import { TextWriter } from "../turns.ts";
import { setPageBlobProperties } from "./content/pages.ts";
import { askedBlob, type BlobExchange, containerOfRequest, encryptedAs } from "./exchange.ts";

/** Size of an entry of a listing, about. */
const entryBytesExpected = 768;

export const rangeDigestBytesMax: number = 4 * 1024 * 1024;

interface Found {
  readonly name: LocatedBlob;
  readonly blob: Blob;
  readonly content: BlobContent;
}

/** Returns the blob as the caller may see it: the number of tags is for those who may read tags. */
const shownTo = ({ access }: BlobExchange, blob: ListedBlobProperties): ListedBlobProperties =>
  access.may("t") ? blob : { ...blob, tagCount: 0 };

async function findContent(exchange: BlobExchange, range: ByteRange | undefined): Promise<Parsed<Found>> {
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const value = {
    ...asked.value,
    ...(range ? { startBytes: toWire(range.startBytes) } : {}),
    ...(range?.endBytes === undefined ? {} : { endBytes: toWire(range.endBytes) }),
  };
  const answer = await exchange.objects.execute({ case: "getBlob", value }, "content", exchange.limits());
  if (!answer.ok) return answer;
  const { blob } = answer.value;
  if (!blob) return rejected("InternalError");
  if (exchange.inTree) exchange.inTree.pathAccess = blob.pathAccess;
  const readable = await exchange.objects.parts.scopes.ofBlob(value.name.account, blob, exchange.key, exchange.limits());
  return readable.ok ? parsed({ name: value.name, blob, content: answer.value }) : readable;
}

async function findProperties(exchange: BlobExchange): Promise<Parsed<ListedBlobProperties>> {
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const value = { ...asked.value, withoutContent: true };
  const answer = await exchange.objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  if (!answer.ok) return answer;
  exchange.objects.copies.met(value.name, answer.value);
  if (exchange.inTree) exchange.inTree.pathAccess = answer.value.pathAccess;
  const readable = await exchange.objects.parts.scopes.ofBlob(value.name.account, answer.value, exchange.key, exchange.limits());
  if (!readable.ok) return readable;
  return parsed(shownTo(exchange, blobOf(answer.value)));
}

/** Range and content that a read gets. */
interface Ranged extends Found {
  readonly range: ByteRange | undefined;
}

/**
 * Reads the range that the request names, if the blob is the one that `If-Range` names, else the whole blob. A blob that changed may be
 * too short for the range: then the whole one is read to see whether it is the named one.
 */
async function findRanged(exchange: BlobExchange): Promise<Parsed<Ranged>> {
  const { headers, version } = exchange;
  const range = parseRange(headers, version);
  const ifRange = range && headers["if-range"];
  const found = await findContent(exchange, range);
  if (ifRange === undefined || (!found.ok && found.error.code !== "InvalidRange")) {
    return found.ok ? parsed({ ...found.value, range }) : found;
  }
  const fits = ({ blob: { etag, lastModifiedMs } }: Found) =>
    fitsIfRange(ifRange, { etag: etagHeader(version, etag), lastModifiedMs: fromWire(lastModifiedMs) });
  if (found.ok && fits(found.value)) return parsed({ ...found.value, range });
  const whole = await findContent(exchange, undefined);
  if (!whole.ok) return whole;
  return found.ok || !fits(whole.value) ? parsed({ ...whole.value, range: undefined }) : found;
}

export async function getBlob(exchange: BlobExchange): Promise<Answer> {
  const { version, objects, request } = exchange;
  const digests = rangeDigests(exchange);
  if (!digests.ok) return digests;
  const found = await findRanged(exchange);
  if (!found.ok) return found;
  const { name, blob, content, range } = found.value;
  const shown = shownTo(exchange, blobOf(blob));
  const startBytes = fromWire(content.startBytes);
  const endBytes = endOf(blob, range?.endBytes);
  const { digest: wanted } = digests.value;
  if (wanted && range && endBytes - startBytes > rangeDigestBytesMax) {
    return rejected("OutOfRangeInput", { HeaderName: wanted, Reason: "The range is larger than 4 MiB." });
  }
  const result: Record<string, string> = { ...blobHeaders(version, shown), "Content-Length": String(endBytes - startBytes) };
  if (range) {
    result["Content-Range"] = `bytes ${startBytes}-${endBytes - 1}/${shown.contentLengthBytes}`;
    const whole = result["Content-MD5"];
    delete result["Content-MD5"];
    if (whole !== undefined) result["x-ms-blob-content-md5"] = whole;
  }
  const status = range ? 206 : 200;
  if (startBytes === endBytes) return respond(status, result, new Uint8Array(0));
  const download = await objects.download(name, blob, content, endBytes, {
    to: request.remoteAddress,
    signal: request.signal,
    key: exchange.key,
    cause: exchange.cause,
  });
  if (!download.ok) return download;
  if (!wanted || !range) return respond(status, result, download.value);
  const bytes = await collect(download.value);
  if (!bytes.ok) return bytes;
  const { digest } = objects.parts.world;
  if (wanted === rangeMd5) {
    const md5 = digest.md5();
    md5.update(bytes.value);
    result["Content-MD5"] = toBase64(md5.digest());
  } else result["x-ms-content-crc64"] = crc64Text(digest.crc64(bytes.value));
  return respond(status, result, bytes.value);
}

const rangeMd5 = "x-ms-range-get-content-md5";
const rangeCrc64 = "x-ms-range-get-content-crc64";

/** Returns the header that asks for a checksum of the range. Without a range there is none to ask for. */
function rangeDigests({ headers, version }: BlobExchange): Parsed<{ readonly digest: typeof rangeMd5 | typeof rangeCrc64 | undefined }> {
  const md5 = parseBoolean(headers, rangeMd5);
  if (!md5.ok) return md5;
  const crc64 = parseBoolean(headers, rangeCrc64);
  if (!crc64.ok) return crc64;
  const digest = md5.value ? rangeMd5 : crc64.value ? rangeCrc64 : undefined;
  if (md5.value && crc64.value) return badHeader(rangeMd5, "true", "MD5 and CRC64 of a range exclude each other.");
  if (digest && !parseRange(headers, version)) return badHeader(digest, "true", "It needs a range.");
  return parsed({ digest });
}

async function collect(download: Download): Promise<Parsed<Uint8Array>> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of download) chunks.push(chunk);
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, error: restErrorOf(error.failure) };
    throw error;
  }
  return parsed(concatBytes(chunks));
}

export async function getBlobProperties(exchange: BlobExchange): Promise<Answer> {
  const blob = await findProperties(exchange);
  if (!blob.ok) return blob;
  return respond(200, { ...blobHeaders(exchange.version, blob.value), "Content-Length": String(blob.value.contentLengthBytes) });
}

export async function getBlobMetadata(exchange: BlobExchange): Promise<Answer> {
  const blob = await findProperties(exchange);
  if (!blob.ok) return blob;
  return respond(200, { ...etagAndTime(exchange.version, blob.value), ...metadataHeaders(blob.value.metadata) });
}

export async function setBlobMetadata(exchange: BlobExchange): Promise<Answer> {
  const metadata = parseMetadata(exchange.headers, exchange.request.rawHeaders);
  if (!metadata.ok) return metadata;
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const value = { ...asked.value, metadata: metadata.value };
  const changed = await exchange.objects.execute({ case: "setBlobMetadata", value }, "blob", exchange.limits());
  if (!changed.ok) return changed;
  return respond(200, { ...writtenHeaders(exchange.version, blobOf(changed.value)), ...encryptedAs(exchange.key, changed.value) });
}

const ofPageBlobs = ["x-ms-blob-content-length", "x-ms-sequence-number-action", "x-ms-blob-sequence-number"];

export async function setBlobHeaders(exchange: BlobExchange): Promise<Answer> {
  if (ofPageBlobs.some((name) => exchange.headers[name] !== undefined)) return setPageBlobProperties(exchange);
  const properties = parseContentProperties(exchange.headers);
  if (!properties.ok) return properties;
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const value = { ...asked.value, headers: withTypeCleared(properties.value) };
  const changed = await exchange.objects.execute({ case: "setBlobHeaders", value }, "blob", exchange.limits());
  return changed.ok ? respond(200, etagAndTime(exchange.version, blobOf(changed.value))) : changed;
}

export async function deleteBlob(exchange: BlobExchange): Promise<Answer> {
  const { headers, target, objects } = exchange;
  const asked = await askedBlob(exchange);
  if (!asked.ok) return asked;
  const { name, conditions } = asked.value;
  const isBase = name.snapshotStamp === 0n && name.versionStamp === 0n;
  const snapshots = headers["x-ms-delete-snapshots"] ?? "";
  if (snapshots !== "" && !isBase) return rejected("InvalidHeaderValue", { HeaderName: "x-ms-delete-snapshots", HeaderValue: snapshots });
  const deleteType = queryValue(target.query, "deletetype");
  const permanent = deleteType?.toLowerCase() === "permanent";
  if (deleteType !== undefined && (!permanent || isBase)) {
    return badQuery("deletetype", deleteType, "Only snapshots and versions that were deleted softly can be deleted for good.");
  }
  const gone = await objects.deleteBlob({ name, conditions, snapshots, permanent }, exchange.limits);
  return gone.ok ? respond(202, { "x-ms-delete-type-permanent": String(gone.value) }) : gone;
}

export async function listBlobs(exchange: BlobExchange): Promise<Answer> {
  const query = parseListQuery(exchange.target.query, "blobs", exchange.version);
  if (!query.ok) return query;
  const container = await containerOfRequest(exchange);
  if (!container.ok) return container;
  const { prefix, delimiter, marker, markerStamp, maxResults, include, onlyDeleted, echo } = query.value;
  if (include.has("snapshots") && delimiter !== "") {
    return badQuery("include", "snapshots", "Snapshots can only be listed without a delimiter.");
  }
  const page = await exchange.objects.blobPages(
    exchange.target.account,
    container.value,
    {
      prefix,
      delimiter,
      marker,
      markerStamp: toWire(markerStamp),
      maxResults,
      includeMetadata: include.has("metadata"),
      includeUncommitted: include.has("uncommittedblobs"),
      includeSnapshots: include.has("snapshots"),
      includeVersions: include.has("versions"),
      includeDeleted: include.has("deleted"),
      includeDeletedWithVersions: include.has("deletedwithversions"),
      includeTags: include.has("tags"),
      onlyDeleted,
      packed: true,
    },
    exchange.limits(),
  );
  if (!page.ok) return page;
  const { pages, nextMarker, nextMarkerStamp } = page.value;
  if (untellable(exchange.version, pages.names())) {
    const message = "The container has a blob whose name XML can't carry. It can be listed in version 2021-02-12 or newer.";
    return rejected("FeatureVersionMismatch", {}, { message });
  }
  const shown = { serviceEndpoint: serviceEndpoint(exchange), ...echo, include, version: exchange.version };
  const reader = { blob: (blob: ListedBlobProperties) => listedBlobXml(blob, include), prefix: blobPrefixXml };
  const entries = pages.read(reader, exchange.access.may("t"));
  const body = listBlobsXml(shown, container.value.name, entries, encodeMarkerWithin(nextMarker, fromWire(nextMarkerStamp)));
  const { world, texts } = exchange.objects.parts;
  const text = new TextWriter(world.clock, texts);
  text.expect(pages.count * entryBytesExpected);
  await text.add(body);
  return respondText({ "Content-Type": "application/xml" }, text.finish());
}
