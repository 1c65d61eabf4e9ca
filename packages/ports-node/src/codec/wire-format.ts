/**
 * Writes and reads the wire format of protobuf for the compiled codecs (compiled-codec.ts). What they do not expect throws `outOfTheOrdinary`, and the
 * message goes through protobuf-es instead: so there is one place that says what is malformed.
 */

/** Thrown for a value or bytes that the compiled codecs leave to protobuf-es. */
export const outOfTheOrdinary: Error = new Error("left to protobuf-es");

const startBytes = 16 * 1024;
/** Length in bytes beyond which a buffer is dropped after its message. */
const keptBytesMax = 1024 * 1024;
/** Bytes from this size on are not copied: to copy less costs less than a part of its own in the frame. */
export const referencedFromBytes: number = 16 * 1024;
/** Multiple of its size above which a buffer's bytes are copied: else the buffer would live on, uncounted, until they are sent. */
const bufferTimesMax = 4;
/** Room for a tag (at most 5 bytes) and a number (at most 10). */
const fieldBytesMax = 16;
const shortText = 64;
const two32 = 0x1_0000_0000;
/** Largest high half of a safe integer. */
const safeHigh = 0x1f_ffff;
/** Largest number whose double is a safe integer. */
const zigzagMax = 0xf_ffff_ffff_ffff;
/** The two halves of a number that a double can't hold, such as the time of an entity in units of 100 ns. */
const halves = new DataView(new ArrayBuffer(8));

/** Bytes that belong between two bytes of an encoded message. */
export interface Reference {
  /** Number of the message's own bytes in front of the reference. */
  readonly at: number;
  /** Bytes that are owned by the caller and not copied. */
  readonly bytes: Uint8Array;
}

/** Encoded message without its large byte values, and these values. */
export interface EncodedParts {
  readonly own: Uint8Array;
  /** References in the order of their offsets. */
  readonly references: readonly Reference[];
}

export const noReferences: readonly Reference[] = [];

/**
 * One message after another in one buffer; each is copied out at its end. Large bytes are not copied at all: a page of rows would be copied
 * once for each message around it, because lengths are written in front.
 */
export class WireWriter {
  #bytes: Buffer = Buffer.allocUnsafeSlow(startBytes);
  #at = 0;
  #references: { at: number; readonly bytes: Uint8Array }[] = [];

  /** Runs `encode` and returns the bytes that it wrote. */
  take(encode: () => void): EncodedParts {
    this.#at = 0;
    try {
      encode();
      const own = Buffer.allocUnsafe(this.#at);
      this.#bytes.copy(own, 0, 0, this.#at);
      if (this.#bytes.length > keptBytesMax) this.#bytes = Buffer.allocUnsafeSlow(startBytes);
      return { own, references: this.#references.length === 0 ? noReferences : this.#references };
    } finally {
      if (this.#references.length > 0) this.#references = [];
    }
  }

  #room(count: number): void {
    const needed = this.#at + count;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }

  /** Writes the tag of a field. Leaves room for one number behind it. */
  tag(tag: number): void {
    this.#room(fieldBytesMax);
    if (tag < 0x80) this.#bytes[this.#at++] = tag;
    else this.#varint(tag, 0);
  }

  /** Begins what has a length in front; `end` takes what this returns. */
  begin(): number {
    this.#room(fieldBytesMax);
    return this.#at++;
  }

  end(begin: number): void {
    const referenced = this.#references.length === 0 ? 0 : this.#referencedSince(begin);
    const length = this.#at - begin - 1 + referenced;
    if (length < 0x80) {
      this.#bytes[begin] = length;
      return;
    }
    const more = varintBytes(length) - 1;
    this.#room(more);
    this.#bytes.copyWithin(begin + 1 + more, begin + 1, this.#at);
    if (referenced > 0) this.#moveReferences(begin, more);
    const end = this.#at + more;
    this.#at = begin;
    this.#varint(length, 0);
    this.#at = end;
  }

  /** Returns the size of the references behind this place, in bytes. */
  #referencedSince(begin: number): number {
    let bytes = 0;
    for (let i = this.#references.length - 1; i >= 0; i--) {
      const reference = this.#references[i] as Reference;
      if (reference.at <= begin) break;
      bytes += reference.bytes.length;
    }
    return bytes;
  }

  #moveReferences(begin: number, more: number): void {
    for (const reference of this.#references) if (reference.at > begin) reference.at += more;
  }

  #varint(low: number, high: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    let lo = low;
    let hi = high;
    while (hi > 0 || lo > 0x7f) {
      bytes[at++] = (lo & 0x7f) | 0x80;
      lo = ((lo >>> 7) | (hi << 25)) >>> 0;
      hi >>>= 7;
    }
    bytes[at++] = lo;
    this.#at = at;
  }

  uint32(value: unknown): void {
    if (typeof value !== "number" || value >>> 0 !== value) throw outOfTheOrdinary;
    this.#room(fieldBytesMax);
    if (value < 0x80) this.#bytes[this.#at++] = value;
    else this.#varint(value, 0);
  }

  int32(value: unknown): void {
    if (typeof value !== "number" || (value | 0) !== value) throw outOfTheOrdinary;
    this.#room(fieldBytesMax);
    if (value >= 0) this.#varint(value, 0);
    else this.#varint(value >>> 0, 0xffff_ffff);
  }

  sint32(value: unknown): void {
    if (typeof value !== "number" || (value | 0) !== value) throw outOfTheOrdinary;
    this.#room(fieldBytesMax);
    this.#varint(((value << 1) ^ (value >> 31)) >>> 0, 0);
  }

  uint64(value: unknown): void {
    if (typeof value !== "bigint") throw outOfTheOrdinary;
    const number = Number(value);
    if (number >= 0 && number <= Number.MAX_SAFE_INTEGER) {
      this.#number(number);
      return;
    }
    halves.setBigUint64(0, value, true);
    if (halves.getBigUint64(0, true) !== value) throw outOfTheOrdinary;
    this.#halves(halves.getUint32(0, true), halves.getUint32(4, true));
  }

  int64(value: unknown): void {
    if (typeof value !== "bigint") throw outOfTheOrdinary;
    const number = Number(value);
    if (number >= 0 && number <= Number.MAX_SAFE_INTEGER) {
      this.#number(number);
      return;
    }
    halves.setBigInt64(0, value, true);
    if (halves.getBigInt64(0, true) !== value) throw outOfTheOrdinary;
    this.#halves(halves.getUint32(0, true), halves.getUint32(4, true));
  }

  sint64(value: unknown): void {
    if (typeof value !== "bigint") throw outOfTheOrdinary;
    const number = Number(value);
    if (number <= zigzagMax && number >= -zigzagMax) {
      this.#number(number < 0 ? -2 * number - 1 : 2 * number);
      return;
    }
    halves.setBigInt64(0, value, true);
    if (halves.getBigInt64(0, true) !== value) throw outOfTheOrdinary;
    const low = halves.getUint32(0, true);
    const high = halves.getInt32(4, true);
    const sign = high >> 31;
    this.#halves(((low << 1) ^ sign) >>> 0, (((high << 1) | (low >>> 31)) ^ sign) >>> 0);
  }

  #number(value: number): void {
    const low = value >>> 0;
    this.#halves(low, (value - low) / two32);
  }

  #halves(low: number, high: number): void {
    this.#room(fieldBytesMax);
    this.#varint(low, high);
  }

  bool(value: unknown): void {
    if (value !== true && value !== false) throw outOfTheOrdinary;
    this.#room(fieldBytesMax);
    this.#bytes[this.#at++] = value ? 1 : 0;
  }

  double(value: unknown): void {
    if (typeof value !== "number") throw outOfTheOrdinary;
    this.#room(fieldBytesMax);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  bytes(value: unknown): void {
    if (!(value instanceof Uint8Array)) throw outOfTheOrdinary;
    if (value.length >= referencedFromBytes && value.length * bufferTimesMax >= value.buffer.byteLength) {
      this.#room(fieldBytesMax);
      this.#varint(value.length, 0);
      this.#references.push({ at: this.#at, bytes: value });
      return;
    }
    this.#room(value.length + fieldBytesMax);
    this.#varint(value.length, 0);
    this.#bytes.set(value, this.#at);
    this.#at += value.length;
  }

  string(value: unknown): void {
    if (typeof value !== "string") throw outOfTheOrdinary;
    const { length } = value;
    this.#room(3 * length + fieldBytesMax);
    if (length < shortText && this.#shortAscii(value)) return;
    // The length in bytes is not known before: room for one as long as the text would need, if it is plain ASCII.
    const begin = this.#at;
    const lengthBytes = varintBytes(length);
    const count = this.#bytes.write(value, begin + lengthBytes, "utf8");
    const needed = varintBytes(count);
    if (needed !== lengthBytes) this.#bytes.copyWithin(begin + needed, begin + lengthBytes, begin + lengthBytes + count);
    this.#varint(count, 0);
    this.#at += count;
  }

  #shortAscii(text: string): boolean {
    const bytes = this.#bytes;
    const { length } = text;
    let at = this.#at;
    bytes[at++] = length;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      bytes[at++] = code;
    }
    this.#at = at;
    return true;
  }
}

const varintBytes = (value: number): number =>
  value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;

const strictText = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const { latin1Slice } = Buffer.prototype as unknown as { latin1Slice(this: Uint8Array, start: number, end: number): string };
const deepest = 100;

export class WireReader {
  readonly #bytes: Uint8Array;
  at = 0;
  #depth = 0;
  /** High half of the number that was read last. */
  #high = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Returns where the whole message ends. */
  start(): number {
    this.#depth = 1;
    return this.#bytes.length;
  }

  /** Returns where the message that begins here ends. */
  enter(): number {
    const length = this.uint32();
    const end = this.at + length;
    if (end > this.#bytes.length || ++this.#depth > deepest) throw outOfTheOrdinary;
    return end;
  }

  leave(end: number): void {
    if (this.at !== end) throw outOfTheOrdinary;
    this.#depth--;
  }

  uint32(): number {
    const first = this.#bytes[this.at++] as number;
    if (first < 0x80) return first;
    const low = this.#varint(first);
    if (this.#high !== 0) throw outOfTheOrdinary;
    return low;
  }

  /** Returns the low half of a number whose first byte says that more follow. */
  #varint(first: number): number {
    const bytes = this.#bytes;
    let at = this.at;
    let low = first & 0x7f;
    for (let shift = 7; shift < 28; shift += 7) {
      const byte = bytes[at++] as number;
      low |= (byte & 0x7f) << shift;
      if (byte < 0x80) return this.#done(at, low, 0);
    }
    const middle = bytes[at++] as number;
    low |= (middle & 0x0f) << 28;
    let high = (middle & 0x70) >>> 4;
    if (middle < 0x80) return this.#done(at, low, high);
    for (let shift = 3; shift < 32; shift += 7) {
      const byte = bytes[at++] as number;
      high |= (byte & 0x7f) << shift;
      // The tenth byte gives one bit; protobuf-es does not look at the others either.
      if (byte < 0x80) return this.#done(at, low, high);
    }
    throw outOfTheOrdinary;
  }

  #done(at: number, low: number, high: number): number {
    this.at = at;
    this.#high = high >>> 0;
    return low >>> 0;
  }

  int32(): number {
    return this.uint32() | 0;
  }

  sint32(): number {
    const value = this.uint32();
    return (value >>> 1) ^ -(value & 1);
  }

  uint64(): bigint {
    const first = this.#bytes[this.at++] as number;
    if (first < 0x80) return BigInt(first);
    const low = this.#varint(first);
    if (this.#high <= safeHigh) return BigInt(this.#high * two32 + low);
    halves.setUint32(0, low, true);
    halves.setUint32(4, this.#high, true);
    return halves.getBigUint64(0, true);
  }

  int64(): bigint {
    return BigInt.asIntN(64, this.uint64());
  }

  sint64(): bigint {
    const first = this.#bytes[this.at++] as number;
    const low = first < 0x80 ? first : this.#varint(first);
    const high = first < 0x80 ? 0 : this.#high;
    const sign = -(low & 1);
    halves.setUint32(0, ((low >>> 1) | (high << 31)) ^ sign, true);
    halves.setInt32(4, (high >>> 1) ^ sign, true);
    return halves.getBigInt64(0, true);
  }

  bool(): boolean {
    const value = this.#bytes[this.at++] as number;
    if (value > 1) throw outOfTheOrdinary;
    return value === 1;
  }

  double(): number {
    const { buffer, byteOffset } = this.#bytes;
    const value = new DataView(buffer, byteOffset + this.at, 8).getFloat64(0, true);
    this.at += 8;
    return value;
  }

  /** Returns a view. */
  bytes(): Uint8Array {
    const start = this.#skip();
    return this.#bytes.subarray(start, this.at);
  }

  string(): string {
    const start = this.#skip();
    const end = this.at;
    const bytes = this.#bytes;
    for (let i = start; i < end; i++) {
      if ((bytes[i] as number) > 0x7f) return strictText.decode(bytes.subarray(start, end));
    }
    return start === end ? "" : latin1Slice.call(bytes, start, end);
  }

  /** Skips a value with its length in front, and returns the value's offset. */
  #skip(): number {
    const length = this.uint32();
    const start = this.at;
    this.at += length;
    if (this.at > this.#bytes.length) throw outOfTheOrdinary;
    return start;
  }
}
