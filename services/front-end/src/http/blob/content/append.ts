/** Append blobs: Append Block and Seal. They are made by Put Blob (uploads.ts). */
import { badHeader, bodyLimitsOf, etagAndTime, parseConditions, parseCount, requestEncryptedHeaders } from "@stamp/azure-rest";
import { fromWire, toWire } from "@stamp/wire";
import { underFoundKey } from "../../../accounts/content-key.ts";
import { announcedDigests } from "../../../content/content-digests.ts";
import { conditionsToWire } from "../../../objects/objects.ts";
import { blobOf } from "../../../objects/wire-to-rest.ts";
import { lengthWithin } from "../../body.ts";
import { type Answer, respond } from "../../exchange.ts";
import { type BlobExchange, blobOfRequest } from "../exchange.ts";
import { receiveChecked } from "./uploads.ts";

export async function appendBlock(exchange: BlobExchange): Promise<Answer> {
  const { headers, objects, version } = exchange;
  const conditions = parseConditions(headers);
  if (!conditions.ok) return conditions;
  const position = parseCount(headers, "x-ms-blob-condition-appendpos");
  if (!position.ok) return position;
  const maxSize = parseCount(headers, "x-ms-blob-condition-maxsize");
  if (!maxSize.ok) return maxSize;
  const announced = announcedDigests(headers);
  if (!announced.ok) return announced;
  const length = lengthWithin(exchange, bodyLimitsOf(version).appendBlockBytesMax);
  if (!length.ok) return length;
  if (length.value === 0) return badHeader("Content-Length", "0", "A block has at least one byte.");
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const received = await receiveChecked(exchange, name.value, announced.value, length.value);
  if (!received.ok) return received;
  const value = {
    name: name.value,
    conditions: underFoundKey(exchange.key, conditionsToWire(conditions.value)),
    body: received.value.body,
    ...(position.value === undefined ? {} : { appendPosition: toWire(position.value) }),
    ...(maxSize.value === undefined ? {} : { maxSize: toWire(maxSize.value) }),
  };
  const appended = await objects.execute({ case: "appendBlock", value }, "appended", exchange.limits());
  if (!appended.ok) return appended;
  const { blob, offsetBytes } = appended.value;
  if (!blob) throw new Error("an appended block without its blob");
  return respond(201, {
    ...etagAndTime(version, blobOf(blob)),
    ...requestEncryptedHeaders(exchange.key),
    ...received.value.digests,
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
