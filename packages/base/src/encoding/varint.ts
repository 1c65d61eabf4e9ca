/** Little-endian base-128 numbers (0 .. 2^53-1), and a reader that never runs over the end. */
import { assert } from "../assert.ts";

const encoder = new TextEncoder();
/** Length of a text up to which a loop costs less than the encoder. */
const shortText = 32;

/** Collects bytes; grows by doubling. */
export class ByteWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #length = 0;

  /** `capacityBytes`: expected length, so that the buffer need not grow. */
  constructor(capacityBytes = 128) {
    this.#bytes = new Uint8Array(capacityBytes);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  get capacityBytes(): number {
    return this.#bytes.length;
  }

  /** The written bytes: a view, valid until more is written. */
  get written(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  #room(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }

  byte(value: number): void {
    this.#room(1);
    this.#bytes[this.#length++] = value;
  }

  varint(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, `not a varint: ${value}`);
    this.#room(8);
    let rest = value;
    while (rest >= 128) {
      this.#bytes[this.#length++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    this.#bytes[this.#length++] = rest;
  }

  /** Writes 8 bytes, big-endian, two's complement. */
  int64(value: bigint): void {
    // DataView takes the low 64 bits of any number: a time too far ahead would be written as one that is over.
    assert(BigInt.asIntN(64, value) === value, `not an int64: ${value}`);
    this.#room(8);
    this.#view.setBigInt64(this.#length, value);
    this.#length += 8;
  }

  /** Writes 4 bytes, big-endian, two's complement. */
  int32(value: number): void {
    this.#room(4);
    this.#view.setInt32(this.#length, value);
    this.#length += 4;
  }

  /** Writes 8 bytes, big-endian. */
  float64(value: number): void {
    this.#room(8);
    this.#view.setFloat64(this.#length, value);
    this.#length += 8;
  }

  bytes(value: Uint8Array): void {
    this.#room(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  /** Writes the length, then the bytes. */
  sized(value: Uint8Array): void {
    this.varint(value.length);
    this.bytes(value);
  }

  /** Writes the length in UTF-8, then the text in UTF-8. */
  text(value: string): void {
    if (value.length > shortText || !this.#shortAscii(value)) this.#encoded(value);
  }

  #shortAscii(value: string): boolean {
    const { length } = value;
    this.#room(length + 1);
    const bytes = this.#bytes;
    const start = this.#length + 1;
    for (let i = 0; i < length; i++) {
      const code = value.charCodeAt(i);
      if (code > 0x7f) return false;
      bytes[start + i] = code;
    }
    bytes[this.#length] = length;
    this.#length = start + length;
    return true;
  }

  /** Writes a text behind its length. If the length takes more bytes than guessed, the text is written once more, further behind. */
  #encoded(value: string): void {
    this.#room(value.length * 3 + 8);
    const start = this.#length;
    this.varint(value.length);
    const guessed = this.#length;
    const { written } = encoder.encodeInto(value, this.#bytes.subarray(guessed));
    this.#length = start;
    this.varint(written);
    // Its length may have been written over the beginning of the text.
    if (this.#length !== guessed) encoder.encodeInto(value, this.#bytes.subarray(this.#length));
    this.#length += written;
  }

  /** Empties the writer and keeps its buffer. */
  clear(): void {
    this.#length = 0;
  }

  /** Returns the written bytes with room for `moreBytes` behind them, without a copy. Nothing more may be written. */
  take(moreBytes = 0): Uint8Array<ArrayBuffer> {
    this.#room(moreBytes);
    return this.#bytes.subarray(0, this.#length + moreBytes);
  }

  /** Returns an owned copy of the written bytes, with room for `moreBytes` behind them. */
  finish(moreBytes = 0): Uint8Array<ArrayBuffer> {
    const out = new Uint8Array(this.#length + moreBytes);
    out.set(this.#bytes.subarray(0, this.#length));
    return out;
  }
}

/** Thrown inside decoders only; each turns it into a typed failure at its door. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

export class ByteReader {
  readonly #bytes: Uint8Array;
  #at: number;

  /** `at`: position of the first byte that is read. */
  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.#at = at;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  byte(): number {
    if (this.left < 1) throw new DecodeError("ends too early");
    return this.#bytes[this.#at++] as number;
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8; i++) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) throw new DecodeError("a number is too large");
        return value;
      }
      scale *= 128;
    }
    throw new DecodeError("a number does not end");
  }

  /** Returns a view of the input. */
  bytes(length: number): Uint8Array {
    if (this.left < length) throw new DecodeError("ends too early");
    const view = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return view;
  }

  skip(length: number): void {
    if (this.left < length) throw new DecodeError("ends too early");
    this.#at += length;
  }

  sized(): Uint8Array {
    return this.bytes(this.varint());
  }
}
