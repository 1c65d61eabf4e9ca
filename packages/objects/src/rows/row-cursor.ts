/**
 * Reads the properties of an encoded row where they lie: no object for the row, no views and no bigints. For rows that are read by the thousand
 * (listings); what it gives is what `decodeRow` gives, and it refuses the same rows, except for values that nobody asks for.
 *
 * Invariants:
 * - a cursor reads one row at a time: what `open` was given is good until the next `open`;
 * - texts and numbers that it returns are values of their own; bytes are views of the row.
 */
import { FailureError, fromUtf8 } from "@stamp/base";
import { RepeatedTexts } from "./repeated-texts.ts";
import {
  type DictionaryEntry,
  damagedRow,
  decodeDictionary,
  isKnownVersion,
  otherVersion,
  type Property,
  type Schema,
  typeCodeOf,
} from "./row.ts";
import { DecodeError } from "./varint.ts";

const two32 = 2 ** 32;
const ticksPerMs = 10_000;
const halves = new DataView(new ArrayBuffer(8));
const repeated = new RepeatedTexts();

export class RowCursor {
  /** Indexed by id: the type that a property must have; 0: not known. */
  readonly #types: Uint8Array;
  /** Indexed by id: where the value begins; -1: the row does not have it. */
  readonly #starts: Int32Array;
  readonly #ends: Int32Array;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;

  constructor(schema: Schema) {
    const properties = Object.values(schema);
    const size = properties.reduce((most, { id }) => Math.max(most, id), 0) + 1;
    this.#types = new Uint8Array(size);
    for (const { id, type } of properties) this.#types[id] = typeCodeOf(type);
    this.#starts = new Int32Array(size);
    this.#ends = new Int32Array(size);
  }

  /** Opens the row, and returns what `make` reads of it. Throws FailureError `damaged`, or that of a newer format. */
  read<T>(bytes: Uint8Array, make: (row: RowCursor) => T): T {
    try {
      this.#open(bytes);
      return make(this);
    } catch (error) {
      if (error instanceof DecodeError || error instanceof TypeError) throw new FailureError(damagedRow(error.message).failure);
      throw error;
    }
  }

  #open(bytes: Uint8Array): void {
    const [version = 0] = bytes;
    if (!isKnownVersion(version)) throw new FailureError(otherVersion(version).failure);
    this.#bytes = bytes;
    this.#at = 1;
    this.#starts.fill(-1);
    let lastId = -1;
    for (let count = this.#varint(); count > 0; count--) {
      const id = this.#varint();
      if (id <= lastId) throw new DecodeError("ids do not ascend");
      lastId = id;
      const code = this.#byte();
      const length = this.#varint();
      const start = this.#at;
      if (length > bytes.length - start) throw new DecodeError("ends too early");
      this.#at = start + length;
      const type = this.#types[id] ?? 0;
      if (type === 0) continue;
      if (type !== code) throw new DecodeError(`property ${id} has type ${code}, not ${type}`);
      this.#starts[id] = start;
      this.#ends[id] = this.#at;
    }
    if (this.#at !== bytes.length) throw new DecodeError("bytes after the last property");
  }

  #byte(): number {
    if (this.#at >= this.#bytes.length) throw new DecodeError("ends too early");
    return this.#bytes[this.#at++] as number;
  }

  #varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8; i++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) throw new DecodeError("a number is too large");
        return value;
      }
      scale *= 128;
    }
    throw new DecodeError("a number does not end");
  }

  /** Returns where a value of that length begins; -1: the row does not have it. */
  #sized({ id }: Property, length: number): number {
    const start = this.#starts[id] as number;
    if (start >= 0 && (this.#ends[id] as number) - start !== length)
      throw new DecodeError(`a value of ${(this.#ends[id] as number) - start} bytes where ${length} are due`);
    return start;
  }

  /** Returns the value of a text; undefined if the row does not have it. */
  text({ id }: Property<"string">): string | undefined {
    const start = this.#starts[id] as number;
    return start < 0 ? undefined : fromUtf8(this.#bytes.subarray(start, this.#ends[id]));
  }

  /** Returns the text of a field that has the same few values in many rows. A value that was decoded before is not decoded again. */
  word({ id }: Property<"string">): string | undefined {
    const start = this.#starts[id] as number;
    return start < 0 ? undefined : repeated.get(this.#bytes, start, this.#ends[id] as number);
  }

  /** Returns a view. */
  bytes({ id }: Property<"binary">): Uint8Array | undefined {
    const start = this.#starts[id] as number;
    return start < 0 ? undefined : this.#bytes.subarray(start, this.#ends[id]);
  }

  /** Returns a view of 16 bytes. */
  guid(property: Property<"GUID">): Uint8Array | undefined {
    const start = this.#sized(property, 16);
    return start < 0 ? undefined : this.#bytes.subarray(start, start + 16);
  }

  /** Reads a boolean; false if the row lacks the property. */
  flag(property: Property<"bool">): boolean {
    const start = this.#sized(property, 1);
    if (start < 0) return false;
    const byte = this.#bytes[start] as number;
    if (byte > 1) throw new DecodeError("a bool is 0 or 1");
    return byte === 1;
  }

  int32(property: Property<"int32">): number | undefined {
    const start = this.#sized(property, 4);
    return start < 0 ? undefined : this.#high(start);
  }

  /** Returns the value as a number; 0 if the row does not have it. */
  int64(property: Property<"int64">): number {
    const start = this.#sized(property, 8);
    return start < 0 ? 0 : this.#high(start) * two32 + this.#low(start);
  }

  /** Returns the time in 100 ns since 1970; undefined if the row does not have it. */
  ticks(property: Property<"DateTime">): bigint | undefined {
    const start = this.#sized(property, 8);
    if (start < 0) return undefined;
    halves.setInt32(0, this.#high(start));
    halves.setUint32(4, this.#low(start));
    return halves.getBigInt64(0);
  }

  /** Returns the whole milliseconds since 1970; undefined if the row does not have it. */
  ms(property: Property<"DateTime">): number | undefined {
    const start = this.#sized(property, 8);
    if (start < 0) return undefined;
    const high = this.#high(start);
    const low = this.#low(start);
    if (high < 0) return Number(((BigInt(high) << 32n) | BigInt(low)) / BigInt(ticksPerMs));
    // By hand, as one learns at school: each step is exact.
    const quotient = Math.floor(high / ticksPerMs);
    const rest = high - quotient * ticksPerMs;
    return quotient * two32 + Math.floor((rest * two32 + low) / ticksPerMs);
  }

  /** Returns what `ms` leaves out of the time, in 100 ns: negative before 1970; 0 if the row does not have it. */
  restOfMs(property: Property<"DateTime">): number {
    const start = this.#sized(property, 8);
    if (start < 0) return 0;
    const high = this.#high(start);
    const rest = ((high % ticksPerMs) * two32 + this.#low(start)) % ticksPerMs;
    return rest > 0 && high < 0 ? rest - ticksPerMs : rest;
  }

  /** Returns where the value begins in the row; -1: the row does not have it. */
  startOf({ id }: Property): number {
    return this.#starts[id] as number;
  }

  /** Returns the offset of the value's end in the row, if the row has the property. */
  endOf({ id }: Property): number {
    return this.#ends[id] as number;
  }

  /** Returns the number of entries that a dictionary names; 0 if the row does not have it. */
  entries({ id }: Property<"DictionaryType">): number {
    const start = this.#starts[id] as number;
    if (start < 0) return 0;
    this.#at = start;
    return this.#varint();
  }

  dictionary({ id }: Property<"DictionaryType">): readonly DictionaryEntry[] | undefined {
    const start = this.#starts[id] as number;
    return start < 0 ? undefined : decodeDictionary(this.#bytes.subarray(start, this.#ends[id]), this.#bytes[0] as number);
  }

  #high(at: number): number {
    const bytes = this.#bytes;
    return ((bytes[at] as number) << 24) | ((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number);
  }

  #low(at: number): number {
    return this.#high(at + 4) >>> 0;
  }
}
