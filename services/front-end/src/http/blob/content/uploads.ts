/** Operations that bring content: Put Blob, Put Block, Put Block List, and the list of blocks. */
import {
  allParsed,
  BlockListReader,
  badHeader,
  badQuery,
  behavesAs,
  blockListBytesMax,
  blockListXml,
  bodyLimitsOf,
  type ContentProperties,
  crc64Text,
  etagAndTime,
  type HttpHeaders,
  type Parsed,
  parseBlockId,
  parseConditions,
  parseContentProperties,
  parsed,
  parseMetadata,
  parseNewBlobType,
  queryValue,
  type ResponseHeaders,
  rejected,
  requestEncryptedHeaders,
  toBase64,
  writtenHeaders,
} from "@stamp/azure-rest";
import { equalBytes } from "@stamp/base";
import { fromWire, type Place, packBlocks, toWire, unpackBlockSizes } from "@stamp/wire";
import { underKey } from "../../../accounts/content-key.ts";
import { type AnnouncedDigests, announcedDigests, type ContentDigests, compareDigests } from "../../../content/content-digests.ts";
import type { LocatedBlob } from "../../../objects/objects.ts";
import { conditionsToWire } from "../../../objects/wire-conditions.ts";
import { blobOf } from "../../../objects/wire-to-rest.ts";
import { lengthWithin, wholeBody } from "../../body.ts";
import { type Answer, respond } from "../../exchange.ts";
import { readInTurns, textInTurns } from "../../turns.ts";
import { type BlobExchange, blobOfRequest } from "../exchange.ts";
import { newStateOf } from "./new-state.ts";

export async function putBlob(exchange: BlobExchange): Promise<Answer> {
  const { headers, objects, request, version } = exchange;
  const asked = allParsed({
    metadata: parseMetadata(headers, exchange.request.rawHeaders),
    properties: parseContentProperties(headers, { standardToo: true, md5Compared: true }),
    conditions: parseConditions(headers),
    announced: announcedDigests(withoutContentMd5(headers)),
    type: parseNewBlobType(headers),
    state: newStateOf(exchange),
  });
  if (!asked.ok) return asked;
  const { metadata, properties, conditions, announced, type, state } = asked.value;
  const isBlock = type.blobType === "BlockBlob";
  if (!isBlock && state.accessTier !== "") return rejected("UnsupportedHeader", { HeaderName: "x-ms-access-tier" });
  const length = lengthWithin(exchange, bodyLimitsOf(version).putBlobBytesMax);
  if (!length.ok) return length;
  if (!isBlock && length.value > 0) return badHeader("Content-Length", String(length.value), `A new ${type.blobType} is empty.`);
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const wants = {
    md5: isBlock || announced.md5 !== undefined,
    crc64: announced.md5 === undefined && behavesAs(version, "contentCrc64"),
  };
  const received = await objects.receive(name.value, request.body, {
    contentLengthBytes: length.value,
    wants,
    key: exchange.key,
    from: request.remoteAddress,
    signal: request.signal,
    cause: exchange.cause,
  });
  if (!received.ok) return received;
  const compared = compareDigests(announced, received.value);
  if (!compared.ok) return compared;
  const stored = isBlock ? storedMd5(properties, received.value) : parsed(properties.contentMd5);
  if (!stored.ok) return stored;
  const { inline, places } = received.value;
  const value = {
    name: name.value,
    conditions: underKey(exchange.key, conditionsToWire(conditions, exchange.access)),
    headers: { ...properties, contentMd5: stored.value },
    metadata,
    body: { inline, places: [...places] },
    blobType: type.blobType,
    pageBlobBytes: toWire(type.pageBlobBytes),
    sequenceNumber: toWire(type.sequenceNumber),
    state,
  };
  const made = await objects.execute({ case: "putBlob", value }, "blob", exchange.limits());
  if (!made.ok) return made;
  const md5 = stored.value.length > 0 ? { "Content-MD5": toBase64(stored.value) } : {};
  const result = { ...writtenHeaders(version, blobOf(made.value)), ...requestEncryptedHeaders(exchange.key), ...md5 };
  return respond(201, received.value.crc64 === undefined ? result : { ...result, "x-ms-content-crc64": crc64Text(received.value.crc64) });
}

/** Leaves Content-MD5 out if Put Blob has x-ms-blob-content-md5, which replaces it. */
function withoutContentMd5(headers: HttpHeaders): HttpHeaders {
  if (headers["x-ms-blob-content-md5"] === undefined) return headers;
  const { "content-md5": _, ...others } = headers;
  return others;
}

/** Returns the properties with the computed MD5; one that the request gives to keep must be the same. */
function storedMd5(properties: ContentProperties, received: ContentDigests): Parsed<Uint8Array> {
  const computed = received.md5 ?? new Uint8Array(0);
  const given = properties.contentMd5;
  if (given.length === 0 || equalBytes(given, computed)) return parsed(computed);
  return rejected("Md5Mismatch", { UserSpecifiedMd5: toBase64(given), ServerCalculatedMd5: toBase64(computed) });
}

export async function putBlock(exchange: BlobExchange): Promise<Answer> {
  const { headers, objects, version } = exchange;
  const asked = allParsed({
    blockId: parseBlockId(exchange.target.query),
    conditions: parseConditions(headers),
    announced: announcedDigests(headers),
    length: lengthWithin(exchange, bodyLimitsOf(version).blockBytesMax),
  });
  if (!asked.ok) return asked;
  const { blockId, conditions, announced, length } = asked.value;
  if (length === 0) return rejected("InvalidHeaderValue", { HeaderName: "Content-Length", HeaderValue: "0" });
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const received = await receiveChecked(exchange, name.value, announced, length);
  if (!received.ok) return received;
  const { body, digests } = received.value;
  const under = underKey(exchange.key, conditionsToWire(conditions));
  const value = { name: name.value, conditions: under, blockId, body };
  const put = await objects.execute({ case: "putBlock", value }, "done", exchange.limits());
  if (!put.ok) return put;
  return respond(201, { ...requestEncryptedHeaders(exchange.key), ...digests });
}

export interface CheckedBody {
  readonly body: { readonly inline: Uint8Array; readonly places: Place[] };
  /** Digest headers of the answer: the MD5 that was announced, else the CRC64. */
  readonly digests: ResponseHeaders;
}

/** Receives the body of a write of blocks or pages, and checks its length and checksum. */
export async function receiveChecked(
  exchange: Pick<BlobExchange, "objects" | "request" | "version" | "key" | "cause">,
  name: LocatedBlob,
  announced: AnnouncedDigests,
  lengthBytes: number,
  isPages = false,
): Promise<Parsed<CheckedBody>> {
  const { objects, request, version } = exchange;
  const crc64 = behavesAs(version, "contentCrc64") && announced.md5 === undefined;
  const wants = { md5: announced.md5 !== undefined || !behavesAs(version, "contentCrc64"), crc64 };
  const received = await objects.receive(name, request.body, {
    contentLengthBytes: lengthBytes,
    wants,
    key: exchange.key,
    isPages,
    from: request.remoteAddress,
    signal: request.signal,
    cause: exchange.cause,
  });
  if (!received.ok) return received;
  const compared = compareDigests(announced, received.value);
  if (!compared.ok) return compared;
  const { inline, places, md5, crc64: sum } = received.value;
  const digests = md5 ? { "Content-MD5": toBase64(md5) } : sum === undefined ? {} : { "x-ms-content-crc64": crc64Text(sum) };
  return parsed({ body: { inline, places: [...places] }, digests });
}

export async function putBlockList(exchange: BlobExchange): Promise<Answer> {
  const { headers, objects, version } = exchange;
  const asked = allParsed({
    metadata: parseMetadata(headers, exchange.request.rawHeaders),
    properties: parseContentProperties(headers),
    state: newStateOf(exchange),
    conditions: parseConditions(headers),
    announced: announcedDigests(headers),
    length: lengthWithin(exchange, blockListBytesMax),
  });
  if (!asked.ok) return asked;
  const { metadata, properties, state, conditions, announced, length } = asked.value;
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const body = await wholeBody(exchange, length);
  if (!body.ok) return body;
  const { digest } = objects.parts.world;
  const actual: { md5?: Uint8Array; crc64?: bigint } = { crc64: digest.crc64(body.value) };
  if (announced.md5) {
    const md5 = digest.md5();
    md5.update(body.value);
    actual.md5 = md5.digest();
  }
  const compared = compareDigests(announced, actual);
  if (!compared.ok) return compared;
  const list = await readInTurns(objects.parts.world.clock, new BlockListReader(), body.value);
  if (!list.ok) return list;
  const value = {
    name: name.value,
    conditions: underKey(exchange.key, conditionsToWire(conditions, exchange.access)),
    headers: properties,
    metadata,
    ...packBlocks(list.value),
    state,
  };
  const made = await objects.execute({ case: "putBlockList", value }, "blob", exchange.limits());
  if (!made.ok) return made;
  const digests = actual.md5 ? { "Content-MD5": toBase64(actual.md5) } : { "x-ms-content-crc64": crc64Text(actual.crc64 ?? 0n) };
  return respond(201, { ...writtenHeaders(version, blobOf(made.value)), ...requestEncryptedHeaders(exchange.key), ...digests });
}

export async function getBlockList(exchange: BlobExchange): Promise<Answer> {
  const type = (queryValue(exchange.target.query, "blocklisttype") ?? "committed").toLowerCase();
  if (type !== "committed" && type !== "uncommitted" && type !== "all") {
    return badQuery("blocklisttype", type, "One of committed, uncommitted, all.");
  }
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const committed = type !== "uncommitted";
  const uncommitted = type !== "committed";
  const value = { name: name.value, conditions: conditionsToWire(conditions.value), committed, uncommitted, packed: true };
  const answer = await exchange.objects.execute({ case: "getBlockList", value }, "blockList", exchange.limits());
  if (!answer.ok) return answer;
  // A blob without content is not there yet for those whom only the public access lets in.
  if (exchange.anonymous && !answer.value.blob) return rejected("BlobNotFound");
  // A partition server of an older release answers with messages.
  const sizes = function* (packed: Uint8Array, blocks: typeof answer.value.committed) {
    yield* unpackBlockSizes(packed);
    for (const { blockId, sizeBytes } of blocks) yield { blockId, sizeBytes: fromWire(sizeBytes) };
  };
  const { blob, packedCommitted, packedUncommitted } = answer.value;
  const headers: Record<string, string> = { "Content-Type": "application/xml" };
  if (blob) {
    Object.assign(headers, etagAndTime(exchange.version, blobOf(blob)));
    headers["x-ms-blob-content-length"] = String(blob.contentLengthBytes);
  } else {
    headers["x-ms-blob-content-length"] = "0";
  }
  const text = blockListXml(
    committed ? sizes(packedCommitted, answer.value.committed) : undefined,
    uncommitted ? sizes(packedUncommitted, answer.value.uncommitted) : undefined,
  );
  return respond(200, headers, await textInTurns(exchange.objects.parts.world.clock, text));
}
