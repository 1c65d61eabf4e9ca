/**
 * BusFrames to bytes and back, by hand: a frame is written once, its large payloads not at all where the connection takes them from where
 * their owner holds them. The bytes are exactly what protobuf makes of stamp.v1.BusFrames (frames.test.ts compares).
 */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Failure } from "@stamp/base";
import { BusFailureSchema } from "@stamp/wire";
import { fromBusFailure, toBusFailure } from "../failures.ts";
import type { PreparedMessage } from "../message-codec.ts";
import { copyPayload, writePrepared } from "../message-codec.ts";
import { FieldScanner, varintSize, writeVarint } from "./varint.ts";

export interface OutgoingRequest {
  readonly kind: "request";
  callId: number;
  /** Field 2 with tag and length; from `methodField`. */
  readonly method: Uint8Array;
  /** Time until the deadline, set when the frame leaves, in milliseconds. */
  timeoutMs: number;
  /** Fields 4 with tags and lengths; from `metadataFields`. */
  readonly metadata: Uint8Array;
  readonly message: PreparedMessage;
}

export interface OutgoingAnswer {
  readonly kind: "answer";
  readonly callId: number;
  /** Field 2 of the answer with tag and length, from `failureField`; empty: success. */
  readonly failure: Uint8Array;
  readonly message: PreparedMessage;
}

export type Outgoing = OutgoingRequest | OutgoingAnswer;

export interface IncomingRequest {
  readonly callId: number;
  readonly method: string;
  readonly timeoutMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly message: Uint8Array;
}

export interface IncomingAnswer {
  readonly callId: number;
  readonly failure: Failure | undefined;
  readonly message: Uint8Array;
}

export interface IncomingFrames {
  readonly requests: IncomingRequest[];
  readonly answers: IncomingAnswer[];
  readonly cancelled: number[];
}

const messageTag = 15 * 8 + 2;
const empty = new Uint8Array(0);
const noMetadata: Readonly<Record<string, string>> = Object.freeze({});

/** Encodes a bytes field: tag, length, bytes. */
function bytesField(number: number, content: Uint8Array): Uint8Array {
  const tag = number * 8 + 2;
  const field = new Uint8Array(varintSize(tag) + varintSize(content.length) + content.length);
  field.set(content, writeVarint(field, writeVarint(field, 0, tag), content.length));
  return field;
}

export const methodField = (name: string): Uint8Array => bytesField(2, Buffer.from(name));

export function metadataFields(metadata: Readonly<Record<string, string>> | undefined): Uint8Array {
  if (metadata === undefined) return empty;
  const entries = Object.entries(metadata).map(([key, value]) =>
    bytesField(4, Buffer.concat([bytesField(1, Buffer.from(key)), bytesField(2, Buffer.from(value))])),
  );
  return entries.length === 0 ? empty : Buffer.concat(entries);
}

export const failureField = (failure: Failure): Uint8Array => bytesField(2, toBinary(BusFailureSchema, toBusFailure(failure)));

const numberSize = (value: number): number => (value === 0 ? 0 : 1 + varintSize(value));

function bodySize(item: Outgoing): number {
  const message = item.message.sizeBytes;
  const rest = numberSize(item.callId) + (message === 0 ? 0 : 1 + varintSize(message) + message);
  if (item.kind === "answer") return rest + item.failure.length;
  return rest + item.method.length + numberSize(item.timeoutMs) + item.metadata.length;
}

/** Returns an upper bound of what the item adds to a frame. */
export const outgoingSize = (item: Outgoing): number =>
  item.message.sizeBytes + 32 + (item.kind === "answer" ? item.failure.length : item.method.length + item.metadata.length);

export interface FrameShape {
  /** Bytes left free at the beginning, for a header of the connection. */
  readonly headBytes: number;
  /** Payloads from this size on are not copied: they become parts of their own. */
  readonly referencedFromBytes: number;
}

/** Returns the frame as the parts that follow one another; the first is never one of the callers'. */
export function encodeFrames(items: readonly Outgoing[], cancelled: readonly number[], shape: FrameShape): Buffer[] {
  const { headBytes, referencedFromBytes } = shape;
  let size = headBytes;
  const sizes: number[] = [];
  for (const item of items) {
    const body = bodySize(item);
    sizes.push(body);
    size += 1 + varintSize(body) + body;
    for (const payload of item.message.payload) if (payload.length >= referencedFromBytes) size -= payload.length;
    for (const { bytes } of item.message.references) if (bytes.length >= referencedFromBytes) size -= bytes.length;
  }
  let cancelledSize = 0;
  for (const callId of cancelled) cancelledSize += varintSize(callId);
  if (cancelled.length > 0) size += 1 + varintSize(cancelledSize) + cancelledSize;

  const frame = Buffer.allocUnsafe(size);
  const parts: Buffer[] = [];
  let cutAt = 0;
  const putPayload = (target: Uint8Array, at: number, payload: Uint8Array): number => {
    if (payload.length < referencedFromBytes) return copyPayload(target, at, payload);
    parts.push(frame.subarray(cutAt, at), Buffer.from(payload.buffer, payload.byteOffset, payload.length));
    cutAt = at;
    return at;
  };
  let at = headBytes;
  items.forEach((item, i) => {
    frame[at++] = item.kind === "request" ? 0x0a : 0x12;
    at = writeVarint(frame, at, sizes[i] as number);
    if (item.callId !== 0) {
      frame[at++] = 0x08;
      at = writeVarint(frame, at, item.callId);
    }
    if (item.kind === "answer") {
      frame.set(item.failure, at);
      at += item.failure.length;
    } else {
      frame.set(item.method, at);
      at += item.method.length;
      if (item.timeoutMs !== 0) {
        frame[at++] = 0x18;
        at = writeVarint(frame, at, item.timeoutMs);
      }
      frame.set(item.metadata, at);
      at += item.metadata.length;
    }
    if (item.message.sizeBytes > 0) {
      frame[at++] = messageTag;
      at = writeVarint(frame, at, item.message.sizeBytes);
      at = writePrepared(frame, at, item.message, putPayload);
    }
  });
  if (cancelled.length > 0) {
    frame[at++] = 0x1a;
    at = writeVarint(frame, at, cancelledSize);
    for (const callId of cancelled) at = writeVarint(frame, at, callId);
  }
  if (at > cutAt) parts.push(frame.subarray(cutAt, at));
  return parts;
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");

function decodeRequest(bytes: Uint8Array): IncomingRequest {
  let callId = 0;
  let method = "";
  let timeoutMs = 0;
  let metadata: Record<string, string> | undefined;
  let message = empty;
  const fields = new FieldScanner(bytes);
  while (fields.next()) {
    if (fields.number === 1) callId = fields.number32();
    else if (fields.number === 2) method = textOf(fields.bytes());
    else if (fields.number === 3) timeoutMs = fields.number32();
    else if (fields.number === 4) {
      const entry = new FieldScanner(fields.bytes());
      let key = "";
      let value = "";
      while (entry.next()) {
        if (entry.number === 1) key = textOf(entry.bytes());
        else if (entry.number === 2) value = textOf(entry.bytes());
        else entry.skip();
      }
      metadata ??= {};
      metadata[key] = value;
    } else if (fields.number === 15) message = fields.bytes() as Uint8Array<ArrayBuffer>;
    else fields.skip();
  }
  return { callId, method, timeoutMs, metadata: metadata ?? noMetadata, message };
}

function decodeAnswer(bytes: Uint8Array): IncomingAnswer {
  let callId = 0;
  let failure: Failure | undefined;
  let message = empty;
  const fields = new FieldScanner(bytes);
  while (fields.next()) {
    if (fields.number === 1) callId = fields.number32();
    else if (fields.number === 2) failure = fromBusFailure(fromBinary(BusFailureSchema, fields.bytes()));
    else if (fields.number === 15) message = fields.bytes() as Uint8Array<ArrayBuffer>;
    else fields.skip();
  }
  return { callId, failure, message };
}

/** Decodes frames; messages are views of `bytes`. Throws on malformed bytes. */
export function decodeFrames(bytes: Uint8Array): IncomingFrames {
  const frames: IncomingFrames = { requests: [], answers: [], cancelled: [] };
  const fields = new FieldScanner(bytes);
  while (fields.next()) {
    if (fields.number === 1) frames.requests.push(decodeRequest(fields.bytes()));
    else if (fields.number === 2) frames.answers.push(decodeAnswer(fields.bytes()));
    else if (fields.number === 3 && fields.wireType === 0) frames.cancelled.push(fields.varint());
    else if (fields.number === 3) {
      const packed = fields.bytes();
      const numbers = new FieldScanner(packed);
      while (!numbers.ended) frames.cancelled.push(numbers.varint());
    } else fields.skip();
  }
  return frames;
}
