/**
 * Messages to bytes and back. A message with a field named `payload` is taken apart when it is encoded: its small fields by its codec,
 * its payload as references to the caller's bytes, which are copied at most once, into the frame that goes to the socket. On the wire
 * it is ordinary protobuf:
 *
 *   | small fields | tag(payload) | length | bytes | tag(payload) | length | bytes | …
 *
 * Large bytes in any other field are references, too, between the bytes of the small fields. A caller changes neither until its call is
 * over; who answers changes neither, except a payload when the answer was sent (`whenSent`). Bytes in a far larger buffer are copied.
 *
 * Decoded payloads are views of the received frame. Other messages that hold bytes are decoded from a copy of their own size, so that
 * keeping one of their values does not keep a whole frame alive; large ones are not, which have memory of their own and are not kept.
 */
import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { assert } from "@stamp/base";
import { type CompiledCodec, compiledCodec } from "../codec/compiled-codec.ts";
import { type EncodedParts, noReferences, type Reference } from "../codec/wire-format.ts";
import { varintSize, writeVarint } from "./bus/varint.ts";

/** Messages from this size on are decoded in place: to copy a page of rows costs more than to decode it. */
const decodedInPlaceBytes = 128 * 1024;
const none: readonly Uint8Array[] = [];
const emptyBytes = new Uint8Array(0);

/** An encoded message that is still in parts. */
export interface PreparedMessage {
  readonly sizeBytes: number;
  readonly small: Uint8Array;
  /** Large bytes that belong into `small`, in order. */
  readonly references: readonly Reference[];
  readonly payloadTag: number;
  readonly payload: readonly Uint8Array[];
}

export const preparedNothing: PreparedMessage = { sizeBytes: 0, small: emptyBytes, references: noReferences, payloadTag: 0, payload: none };

export function copyPayload(target: Uint8Array, at: number, payload: Uint8Array): number {
  target.set(payload, at);
  return at + payload.length;
}

/** Returns where to go on; so does `put`. */
export function writePrepared(target: Uint8Array, at: number, prepared: PreparedMessage, put: typeof copyPayload = copyPayload): number {
  const { small } = prepared;
  let next = at;
  let written = 0;
  for (const reference of prepared.references) {
    target.set(small.subarray(written, reference.at), next);
    next = put(target, next + reference.at - written, reference.bytes);
    written = reference.at;
  }
  target.set(written === 0 ? small : small.subarray(written), next);
  next += small.length - written;
  for (const bytes of prepared.payload) {
    next = writeVarint(target, next, prepared.payloadTag);
    next = writeVarint(target, next, bytes.length);
    next = put(target, next, bytes);
  }
  return next;
}

export function preparedToBuffer(prepared: PreparedMessage): Buffer {
  const buffer = Buffer.allocUnsafe(prepared.sizeBytes);
  writePrepared(buffer, 0, prepared);
  return buffer;
}

export function payloadField(schema: DescMessage): DescField | undefined {
  const field = schema.fields.find((candidate) => candidate.name === "payload");
  if (field === undefined) return undefined;
  // 12 is bytes.
  const isBytes = (field.fieldKind === "scalar" && field.scalar === 12) || (field.fieldKind === "list" && field.scalar === 12);
  return isBytes ? field : undefined;
}

function holdsBytes(schema: DescMessage, seen: Set<DescMessage> = new Set()): boolean {
  if (seen.has(schema)) return false;
  seen.add(schema);
  return schema.fields.some((field) => {
    if (field.fieldKind === "map") return field.scalar === 12 || (field.message !== undefined && holdsBytes(field.message, seen));
    if (field.fieldKind === "scalar" || field.fieldKind === "list") {
      if (field.scalar === 12) return true;
    }
    return field.message !== undefined && holdsBytes(field.message, seen);
  });
}

export class MessageCodec {
  readonly schema: DescMessage;
  readonly hasPayload: boolean;
  /** True if a message may have bytes in any field. */
  readonly holdsBytes: boolean;
  readonly #payloadTag: number;
  readonly #payloadRepeated: boolean;
  readonly #payloadName: string;
  readonly #copyBeforeDecoding: boolean;
  /** Codec compiled from the descriptor; undefined for a type that protobuf-es handles. */
  readonly #compiled: CompiledCodec | undefined;

  constructor(schema: DescMessage) {
    this.schema = schema;
    const field = payloadField(schema);
    this.hasPayload = field !== undefined;
    this.#payloadTag = field === undefined ? 0 : field.number * 8 + 2;
    this.#payloadRepeated = field?.fieldKind === "list";
    this.#payloadName = field?.localName ?? "";
    this.holdsBytes = holdsBytes(schema);
    this.#copyBeforeDecoding = field === undefined && this.holdsBytes;
    this.#compiled = compiledCodec(schema, field);
  }

  /** Encodes a message. Throws if a value does not fit its field (a bug of the caller). */
  prepare(init: object): PreparedMessage {
    if (!this.hasPayload) {
      const { own, references } = this.#compiled?.encode(init) ?? encodedWhole(toBinary(this.schema, create(this.schema, init as never)));
      return { sizeBytes: own.length + sizeOf(references), small: own, references, payloadTag: 0, payload: none };
    }
    const given = (init as Record<string, unknown>)[this.#payloadName];
    const { own, references } = this.#compiled?.encode(init) ?? encodedWhole(this.#withoutPayload(init));
    let payload = none;
    if (this.#payloadRepeated) payload = (given as readonly Uint8Array[] | undefined) ?? none;
    else if (given !== undefined && (given as Uint8Array).length > 0) payload = [given as Uint8Array];
    let sizeBytes = own.length + sizeOf(references);
    for (const bytes of payload) {
      assert(bytes instanceof Uint8Array, "a payload that is not bytes");
      sizeBytes += varintSize(this.#payloadTag) + varintSize(bytes.length) + bytes.length;
    }
    return { sizeBytes, small: own, references, payloadTag: this.#payloadTag, payload };
  }

  #withoutPayload(init: object): Uint8Array {
    const light = { ...init, [this.#payloadName]: this.#payloadRepeated ? none : emptyBytes };
    return toBinary(this.schema, create(this.schema, light as never));
  }

  /** True if a decoded message of this length has views of its frame. */
  viewsFrame(messageBytes: number): boolean {
    return this.hasPayload || (this.#copyBeforeDecoding && messageBytes >= decodedInPlaceBytes);
  }

  /** Returns the message; throws on malformed bytes. */
  decode(bytes: Uint8Array): Message {
    const own = this.#copyBeforeDecoding && bytes.length < decodedInPlaceBytes ? new Uint8Array(bytes) : plainView(bytes);
    return this.#compiled?.decode(own) ?? fromBinary(this.schema, own);
  }
}

const encodedWhole = (own: Uint8Array): EncodedParts => ({ own, references: noReferences });

function sizeOf(references: readonly Reference[]): number {
  let bytes = 0;
  for (const reference of references) bytes += reference.bytes.length;
  return bytes;
}

/** Returns the same bytes as a plain Uint8Array (a Buffer's `slice` would alias). */
const plainView = (bytes: Uint8Array): Uint8Array =>
  bytes instanceof Buffer ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length) : bytes;

const codecs = new WeakMap<DescMessage, MessageCodec>();

export function codecOf(schema: DescMessage): MessageCodec {
  let codec = codecs.get(schema);
  if (codec === undefined) {
    codec = new MessageCodec(schema);
    codecs.set(schema, codec);
  }
  return codec;
}
