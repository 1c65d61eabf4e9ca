/** Put Block, Append Block, Put Page and Put Blob with the bytes of another blob. */
import {
  allParsed,
  type ByteRange,
  badHeader,
  behavesAs,
  bodyLimitsOf,
  crc64Text,
  etagAndTime,
  type Parsed,
  parseBlockId,
  parseConditions,
  parseContentProperties,
  parsed,
  parseMetadata,
  parsePageRange,
  parseSequenceConditions,
  parseSourceDigests,
  parseSourceRange,
  putPageBytesMax,
  rejected,
  requestEncryptedHeaders,
  toBase64,
} from "@stamp/azure-rest";
import { equalBytes } from "@stamp/base";
import { type Blob, toWire } from "@stamp/wire";
import { underFoundKey, underKey } from "../../../accounts/content-key.ts";
import { compareDigests } from "../../../content/content-digests.ts";
import type { LocatedBlob } from "../../../objects/objects.ts";
import { conditionsToWire } from "../../../objects/wire-conditions.ts";
import { blobOf } from "../../../objects/wire-to-rest.ts";
import { lengthWithin } from "../../body.ts";
import { type Answer, respond } from "../../exchange.ts";
import { type BlobExchange, blobOfRequest } from "../exchange.ts";
import { appendChecked, parseAppend } from "./append.ts";
import { type CopySource, copiesTags, readSource, readSourceTags, sourceOf } from "./copy-source.ts";
import { newStateOf } from "./new-state.ts";
import { sequenceToWire } from "./pages.ts";
import type { CheckedBody } from "./uploads.ts";

interface Fetched extends CheckedBody {
  readonly to: LocatedBlob;
  readonly source: Blob;
  readonly from: CopySource;
  readonly lengthBytes: number;
  readonly md5: Uint8Array;
}

/** Choices about a source that is read as a whole, because its MD5 is needed. */
interface Whole {
  /** Returns the Content-Encoding that the blob will have if the source tells this one. */
  readonly keptEncoding: (told: string) => string;
}

/** Brings the source's bytes into the destination's range, with the length and checksum that the request says. */
async function fetched(
  exchange: BlobExchange,
  range: ByteRange | undefined,
  bytesMax: number,
  { whole, isPages = false }: { readonly whole?: Whole; readonly isPages?: boolean } = {},
): Promise<Parsed<Fetched>> {
  const digests = parseSourceDigests(exchange.headers);
  if (!digests.ok) return digests;
  const length = lengthWithin(exchange, 0);
  if (!length.ok) return length;
  const to = await blobOfRequest(exchange);
  if (!to.ok) return to;
  const source = await sourceOf(exchange);
  if (!source.ok) return source;
  const content = await readSource(exchange, source.value, range, bytesMax, whole?.keptEncoding);
  if (!content.ok) return content;
  const { blob, bytes, lengthBytes } = content.value;
  const crc64 = behavesAs(exchange.version, "contentCrc64") && digests.value.md5 === undefined;
  const wants = { md5: whole !== undefined || digests.value.md5 !== undefined || !crc64, crc64 };
  const { request, key, cause } = exchange;
  const options = { contentLengthBytes: lengthBytes, wants, key, signal: request.signal, isPages, cause };
  const received = await exchange.objects.receive(to.value, bytes, options);
  if (!received.ok) return received;
  const compared = compareDigests(digests.value, received.value);
  if (!compared.ok) return compared;
  const { inline, places, md5, crc64: sum } = received.value;
  const shown =
    digests.value.md5 && md5 ? { "Content-MD5": toBase64(md5) } : sum === undefined ? {} : { "x-ms-content-crc64": crc64Text(sum) };
  return parsed({
    to: to.value,
    source: blob,
    from: source.value,
    lengthBytes,
    body: { inline, places: [...places] },
    digests: shown,
    md5: md5 ?? new Uint8Array(0),
  });
}

export async function putBlockFromUrl(exchange: BlobExchange): Promise<Answer> {
  const { headers, objects, version } = exchange;
  const asked = allParsed({
    blockId: parseBlockId(exchange.target.query),
    conditions: parseConditions(headers),
    range: parseSourceRange(headers),
  });
  if (!asked.ok) return asked;
  const { blockId, conditions, range } = asked.value;
  const block = await fetched(exchange, range, bodyLimitsOf(version).blockBytesMax);
  if (!block.ok) return block;
  const { to, body, digests } = block.value;
  const value = { name: to, conditions: underKey(exchange.key, conditionsToWire(conditions)), blockId, body };
  const put = await objects.execute({ case: "putBlock", value }, "done", exchange.limits());
  return put.ok ? respond(201, { ...requestEncryptedHeaders(exchange.key), ...digests }) : put;
}

export async function appendBlockFromUrl(exchange: BlobExchange): Promise<Answer> {
  const { headers, version } = exchange;
  const asked = allParsed({ append: parseAppend(exchange), range: parseSourceRange(headers) });
  if (!asked.ok) return asked;
  const { append, range } = asked.value;
  const block = await fetched(exchange, range, bodyLimitsOf(version).appendBlockBytesMax);
  if (!block.ok) return block;
  const { to, lengthBytes } = block.value;
  if (lengthBytes === 0) return badHeader("x-ms-source-range", headers["x-ms-source-range"] ?? "", "A block has at least one byte.");
  return appendChecked(exchange, to, append, block.value);
}

export async function putPageFromUrl(exchange: BlobExchange): Promise<Answer> {
  const { headers, objects, version } = exchange;
  const conditions = parseConditions(headers);
  if (!conditions.ok) return conditions;
  const sequence = parseSequenceConditions(headers);
  if (!sequence.ok) return sequence;
  const write = headers["x-ms-page-write"];
  if (write?.toLowerCase() !== "update") return badHeader("x-ms-page-write", write ?? "");
  const range = parsePageRange(headers);
  if (!range.ok) return range;
  const from = parseSourceRange(headers);
  if (!from.ok) return from;
  const { startBytes, endBytes } = range.value;
  if (!from.value) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-source-range" });
  if ((from.value.endBytes ?? 0) - from.value.startBytes !== endBytes - startBytes) {
    return badHeader("x-ms-source-range", headers["x-ms-source-range"] ?? "", "It is as long as the range.");
  }
  const pages = await fetched(exchange, from.value, putPageBytesMax, { isPages: true });
  if (!pages.ok) return pages;
  const { to, body, digests, lengthBytes } = pages.value;
  if (lengthBytes !== endBytes - startBytes) return rejected("InvalidRange");
  const name = {
    name: to,
    conditions: underFoundKey(exchange.key, conditionsToWire(conditions.value)),
    sequence: sequenceToWire(sequence.value),
  };
  const put = await objects.execute(
    { case: "putPages", value: { ...name, startBytes: toWire(startBytes), body } },
    "blob",
    exchange.limits(),
  );
  if (!put.ok) return put;
  const shown = { ...etagAndTime(version, blobOf(put.value)), ...requestEncryptedHeaders(exchange.key), ...digests };
  return respond(201, { ...shown, "x-ms-blob-sequence-number": String(put.value.sequenceNumber) });
}

/** Puts a blob from a URL. It gets the source's properties, unless the request says otherwise or sets its own. */
export async function putBlobFromUrl(exchange: BlobExchange): Promise<Answer> {
  const { headers, objects, request, version } = exchange;
  if (headers["x-ms-blob-type"] !== "BlockBlob") return badHeader("x-ms-blob-type", headers["x-ms-blob-type"] ?? "", "BlockBlob.");
  const asked = allParsed({
    metadata: parseMetadata(headers, request.rawHeaders),
    properties: parseContentProperties(headers, { md5Compared: true }),
    conditions: parseConditions(headers),
  });
  if (!asked.ok) return asked;
  const { metadata, properties, conditions } = asked.value;
  const copies = headers["x-ms-copy-source-blob-properties"]?.toLowerCase() ?? "true";
  if (copies !== "true" && copies !== "false") return badHeader("x-ms-copy-source-blob-properties", copies);
  const copied = copiesTags(headers);
  if (!copied.ok) return copied;
  const state = newStateOf(exchange);
  if (!state.ok) return state;
  const keptEncoding = (told: string): string =>
    properties.contentEncoding !== "" ? properties.contentEncoding : copies === "true" ? told : "";
  const blob = await fetched(exchange, undefined, bodyLimitsOf(version).putBlobBytesMax, { whole: { keptEncoding } });
  if (!blob.ok) return blob;
  const { to, source, from, body, md5, digests } = blob.value;
  const tags = copied.value ? await readSourceTags(exchange, from, source) : parsed(state.value.tags);
  if (!tags.ok) return tags;
  const { contentMd5, ...own } = properties;
  if (contentMd5.length > 0 && !equalBytes(contentMd5, md5)) {
    return rejected("Md5Mismatch", { UserSpecifiedMd5: toBase64(contentMd5), ServerCalculatedMd5: toBase64(md5) });
  }
  const kept = copies === "true" && source.headers ? source.headers : { ...own };
  const set = Object.fromEntries(Object.entries(own).filter(([, text]) => text !== ""));
  const content = {
    headers: { ...kept, ...set, contentMd5: md5 },
    metadata,
    body,
    state: { ...state.value, tags: tags.value },
  };
  const under = underKey(exchange.key, conditionsToWire(conditions, exchange.access));
  const value = { name: to, conditions: under, ...content, blobType: "BlockBlob" };
  const made = await objects.execute({ case: "putBlob", value }, "blob", exchange.limits());
  if (!made.ok) return made;
  const written = { ...etagAndTime(version, blobOf(made.value)), ...requestEncryptedHeaders(exchange.key) };
  return respond(201, { ...written, ...digests, "Content-MD5": toBase64(md5) });
}
