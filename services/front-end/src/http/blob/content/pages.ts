/** Page blobs: Put Page, Get Page Ranges, and what Set Blob Properties changes of them. They are made by Put Blob (uploads.ts). */
import {
  allParsed,
  badHeader,
  badQuery,
  checkPageBlobLength,
  decodeMarker,
  encodeMarker,
  etagAndTime,
  type Parsed,
  pageListXml,
  parseConditions,
  parseContentProperties,
  parseCount,
  parsed,
  parsePageRange,
  parsePreviousSnapshot,
  parseRange,
  parseSequenceConditions,
  parseSequenceNumberChange,
  putPageBytesMax,
  queryValue,
  rejected,
  requestEncryptedHeaders,
  type SequenceConditionHeaders,
  withTypeCleared,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { type Blob, fromWire, SequenceNumberAction, toWire } from "@stamp/wire";
import { underFoundKey, underKey } from "../../../accounts/content-key.ts";
import { announcedDigests } from "../../../content/content-digests.ts";
import { conditionsToWire, type WireConditions } from "../../../objects/wire-conditions.ts";
import { blobOf } from "../../../objects/wire-to-rest.ts";
import type { OperationKind } from "../../../routing/router.ts";
import { lengthWithin } from "../../body.ts";
import { type Answer, respond } from "../../exchange.ts";
import { type BlobExchange, blobOfRequest } from "../exchange.ts";
import { receiveChecked } from "./uploads.ts";

export const pageRangesPerAnswerMax = 10_000;

export function sequenceToWire(conditions: SequenceConditionHeaders): { lessOrEqual?: bigint; less?: bigint; equal?: bigint } {
  const { lessOrEqual, less, equal } = conditions;
  return {
    ...(lessOrEqual === undefined ? {} : { lessOrEqual: toWire(lessOrEqual) }),
    ...(less === undefined ? {} : { less: toWire(less) }),
    ...(equal === undefined ? {} : { equal: toWire(equal) }),
  };
}

export async function putPage(exchange: BlobExchange): Promise<Answer> {
  const write = exchange.headers["x-ms-page-write"];
  if (write === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-page-write" });
  if (write.toLowerCase() === "update") return updatePages(exchange);
  return write.toLowerCase() === "clear" ? clearPages(exchange) : badHeader("x-ms-page-write", write);
}

async function updatePages(exchange: BlobExchange): Promise<Answer> {
  const { headers, objects, version } = exchange;
  const asked = parseWrite(exchange);
  if (!asked.ok) return asked;
  const { startBytes, endBytes } = asked.value.range;
  const announced = announcedDigests(headers);
  if (!announced.ok) return announced;
  const length = lengthWithin(exchange, putPageBytesMax);
  if (!length.ok) return length;
  if (endBytes - startBytes > putPageBytesMax) return rejected("RequestBodyTooLarge", { MaxLimit: String(putPageBytesMax) });
  if (length.value !== endBytes - startBytes) return badHeader("Content-Length", String(length.value), "It is as long as the range.");
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const received = await receiveChecked(exchange, name.value, announced.value, length.value, true);
  if (!received.ok) return received;
  const { conditions, sequence } = asked.value;
  const value = { name: name.value, conditions, sequence, startBytes: toWire(startBytes), body: received.value.body };
  const put = await objects.execute({ case: "putPages", value }, "blob", exchange.limits());
  if (!put.ok) return put;
  return respond(201, {
    ...etagAndTime(version, blobOf(put.value)),
    ...requestEncryptedHeaders(exchange.key),
    ...received.value.digests,
    ...sequenceHeader(put.value),
  });
}

async function clearPages(exchange: BlobExchange): Promise<Answer> {
  const asked = parseWrite(exchange);
  if (!asked.ok) return asked;
  const length = lengthWithin(exchange, 0);
  if (!length.ok) return length;
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const { range, sequence } = asked.value;
  const cleared = await inSteps(exchange, asked.value.conditions, range.startBytes, (conditions, startBytes, first) => {
    const steps = { conditions, startBytes: toWire(startBytes), endBytes: toWire(range.endBytes) };
    return { case: "clearPages", value: { name: name.value, ...steps, ...(first ? { sequence } : {}) } };
  });
  if (!cleared.ok) return cleared;
  const written = { ...etagAndTime(exchange.version, blobOf(cleared.value)), ...requestEncryptedHeaders(exchange.key) };
  return respond(201, { ...written, ...sequenceHeader(cleared.value) });
}

const sequenceHeader = (blob: Blob) => ({ "x-ms-blob-sequence-number": String(fromWire(blob.sequenceNumber)) });

interface PageWrite {
  readonly conditions: WireConditions;
  readonly sequence: ReturnType<typeof sequenceToWire>;
  readonly range: { readonly startBytes: number; readonly endBytes: number };
}

function parseWrite({ headers, key }: BlobExchange): Parsed<PageWrite> {
  const asked = allParsed({
    conditions: parseConditions(headers),
    sequence: parseSequenceConditions(headers),
    range: parsePageRange(headers),
  });
  if (!asked.ok) return asked;
  const { conditions, sequence, range } = asked.value;
  const under = underFoundKey(key, conditionsToWire(conditions));
  return parsed({ conditions: under, sequence: sequenceToWire(sequence), range });
}

/**
 * A change that the partition server makes in several commits. Only the first one is under the request's conditions; all are under its
 * lease and its key.
 */
async function inSteps(
  exchange: BlobExchange,
  conditions: WireConditions,
  startBytes: number,
  step: (conditions: WireConditions, startBytes: number, first: boolean) => OperationKind,
): Promise<Parsed<Blob>> {
  const { leaseId } = conditions;
  const still = underKey(exchange.key, leaseId === undefined ? {} : { leaseId });
  const limits = exchange.limits();
  for (let first = true, at = startBytes; ; first = false) {
    const done = await exchange.objects.execute(step(first ? conditions : still, at, first), "cleared", limits);
    if (!done.ok) return done;
    const { blob, nextBytes } = done.value;
    if (!blob) throw new Error("a change without its blob");
    if (nextBytes === 0n) return parsed(blob);
    at = fromWire(nextBytes);
  }
}

const actions = {
  max: SequenceNumberAction.MAX,
  update: SequenceNumberAction.UPDATE,
  increment: SequenceNumberAction.INCREMENT,
} as const;

/** Sets properties of a page blob: size and sequence number; content properties only if the request has any. */
export async function setPageBlobProperties(exchange: BlobExchange): Promise<Answer> {
  const { headers, version } = exchange;
  const asked = allParsed({
    conditions: parseConditions(headers),
    properties: parseContentProperties(headers),
    length: parseCount(headers, "x-ms-blob-content-length"),
  });
  if (!asked.ok) return asked;
  const { conditions, properties, length } = asked.value;
  const checked = length === undefined ? parsed(0) : checkPageBlobLength(length);
  if (!checked.ok) return checked;
  const change = parseSequenceNumberChange(headers);
  if (!change.ok) return change;
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const { action, sequenceNumber } = change.value;
  const value = {
    name: name.value,
    ...(Object.values(properties).some((part) => part.length > 0) ? { headers: withTypeCleared(properties) } : {}),
    ...(length === undefined ? {} : { contentLengthBytes: toWire(length) }),
    ...(action === undefined ? {} : { action: actions[action] }),
    sequenceNumber: toWire(sequenceNumber),
  };
  const set = await inSteps(exchange, underKey(exchange.key, conditionsToWire(conditions)), 0, (when) => ({
    case: "setPageBlobProperties",
    value: { ...value, conditions: when },
  }));
  return set.ok ? respond(200, { ...etagAndTime(version, blobOf(set.value)), ...sequenceHeader(set.value) }) : set;
}

/** Markers are the number of the byte where the next page starts. */
export async function getPageRanges(exchange: BlobExchange): Promise<Answer> {
  const { headers, version } = exchange;
  const { query } = exchange.target;
  const conditions = parseConditions(headers);
  if (!conditions.ok) return conditions;
  const range = parseRange(headers, version);
  const marker = queryValue(query, "marker") ?? "";
  const start = decodeMarker(marker);
  if (start === undefined || !/^\d{0,16}$/.test(start)) return badQuery("marker", marker, "Not a marker of this service.");
  const maxText = queryValue(query, "maxresults");
  if (maxText !== undefined && !/^[1-9]\d{0,8}$/.test(maxText)) return badQuery("maxresults", maxText, "Not a positive number.");
  const previous = parsePreviousSnapshot(query, headers);
  if (!previous.ok) return previous;
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const endBytes = range?.endBytes;
  const value = {
    name: name.value,
    conditions: conditionsToWire(conditions.value),
    startBytes: toWire(Math.max(range?.startBytes ?? 0, Number(start))),
    ...(endBytes === undefined ? {} : { endBytes: toWire(endBytes) }),
    ...(previous.value === undefined ? {} : { previousStamp: toWire(previous.value) }),
    rangesMax: Math.min(Number(maxText ?? pageRangesPerAnswerMax), pageRangesPerAnswerMax),
  };
  const found = await exchange.objects.execute({ case: "getPageRanges", value }, "pageRanges", exchange.limits());
  if (!found.ok) return found;
  const { blob, ranges, nextBytes } = found.value;
  if (!blob) throw new Error("page ranges without their blob");
  const listed = ranges.map((one) => ({ startBytes: fromWire(one.startBytes), endBytes: fromWire(one.endBytes), cleared: one.cleared }));
  const text = pageListXml(listed, nextBytes === 0n ? "" : encodeMarker(String(nextBytes)));
  const shown = { "Content-Type": "application/xml", "x-ms-blob-content-length": String(blob.contentLengthBytes) };
  return respond(200, { ...etagAndTime(version, blobOf(blob)), ...shown }, utf8(text));
}
