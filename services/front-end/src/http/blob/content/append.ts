/** Append blobs: Append Block and Seal. They are made by Put Blob (uploads.ts). */
import {
  allParsed,
  badHeader,
  bodyLimitsOf,
  etagAndTime,
  type Parsed,
  parseConditions,
  parseCount,
  parsed,
  requestEncryptedHeaders,
} from "@stamp/azure-rest";
import { fromWire, toWire } from "@stamp/wire";
import { underFoundKey } from "../../../accounts/content-key.ts";
import { announcedDigests } from "../../../content/content-digests.ts";
import type { LocatedBlob } from "../../../objects/objects.ts";
import { conditionsToWire, type WireConditions } from "../../../objects/wire-conditions.ts";
import { blobOf } from "../../../objects/wire-to-rest.ts";
import { lengthWithin } from "../../body.ts";
import { type Answer, respond } from "../../exchange.ts";
import { type BlobExchange, blobOfRequest } from "../exchange.ts";
import { type CheckedBody, receiveChecked } from "./uploads.ts";

interface AppendRequest {
  readonly conditions: WireConditions;
  readonly appendPosition?: bigint;
  readonly maxSize?: bigint;
}

/** Returns what an append requires of the blob: its conditions, its length before and its largest length after. */
export function parseAppend({ headers, key }: BlobExchange): Parsed<AppendRequest> {
  const asked = allParsed({
    conditions: parseConditions(headers),
    position: parseCount(headers, "x-ms-blob-condition-appendpos"),
    maxSize: parseCount(headers, "x-ms-blob-condition-maxsize"),
  });
  if (!asked.ok) return asked;
  const { conditions, position, maxSize } = asked.value;
  return parsed({
    conditions: underFoundKey(key, conditionsToWire(conditions)),
    ...(position === undefined ? {} : { appendPosition: toWire(position) }),
    ...(maxSize === undefined ? {} : { maxSize: toWire(maxSize) }),
  });
}

export async function appendBlock(exchange: BlobExchange): Promise<Answer> {
  const { headers, version } = exchange;
  const asked = allParsed({
    append: parseAppend(exchange),
    announced: announcedDigests(headers),
    length: lengthWithin(exchange, bodyLimitsOf(version).appendBlockBytesMax),
  });
  if (!asked.ok) return asked;
  const { append, announced, length } = asked.value;
  if (length === 0) return badHeader("Content-Length", "0", "A block has at least one byte.");
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const received = await receiveChecked(exchange, name.value, announced, length);
  return received.ok ? appendChecked(exchange, name.value, append, received.value) : received;
}

/** Appends a body whose checksums have been compared. */
export async function appendChecked(
  exchange: BlobExchange,
  name: LocatedBlob,
  append: AppendRequest,
  { body, digests }: CheckedBody,
): Promise<Answer> {
  const { objects, version } = exchange;
  const appended = await objects.execute({ case: "appendBlock", value: { name, ...append, body } }, "appended", exchange.limits());
  if (!appended.ok) return appended;
  const { blob, offsetBytes } = appended.value;
  if (!blob) throw new Error("an appended block without its blob");
  return respond(201, {
    ...etagAndTime(version, blobOf(blob)),
    ...requestEncryptedHeaders(exchange.key),
    ...digests,
    "x-ms-blob-append-offset": String(fromWire(offsetBytes)),
    "x-ms-blob-committed-block-count": String(blob.committedBlockCount),
  });
}

export async function sealAppendBlob(exchange: BlobExchange): Promise<Answer> {
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const position = parseCount(exchange.headers, "x-ms-blob-condition-appendpos");
  if (!position.ok) return position;
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const at = position.value === undefined ? {} : { appendPosition: toWire(position.value) };
  const value = { name: name.value, conditions: conditionsToWire(conditions.value), ...at };
  const sealed = await exchange.objects.execute({ case: "sealBlob", value }, "blob", exchange.limits());
  if (!sealed.ok) return sealed;
  return respond(200, { ...etagAndTime(exchange.version, blobOf(sealed.value)), "x-ms-blob-sealed": "true" });
}
