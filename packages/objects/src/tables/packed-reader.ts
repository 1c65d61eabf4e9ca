/**
 * Reads the entities of a page where they lie (packed-entities.ts): no object for an entity, its key and its properties. What it gives is what
 * `unpackEntities` gives, and it refuses the same bytes.
 *
 * Invariants:
 * - one entity at a time: what it says is good until the next `next`;
 * - a plain text has only bytes that stand in JSON as they are (plain-bytes.ts), so one for each character;
 * - the page ends before the entity that would make it larger than `bytesMax`, as the service counts bytes.
 */
import { emptyBytes, FailureError, fromUtf8 } from "@stamp/base";
import { appendComponents } from "../rows/key.ts";
import { PlainBytes } from "../rows/plain-bytes.ts";
import { RepeatedTexts } from "../rows/repeated-texts.ts";
import { damagedRow, type ScalarType, scalarTypeOf } from "../rows/row.ts";
import { RowCursor } from "../rows/row-cursor.ts";
import { entitySchema } from "../rows/schemas.ts";
import { DecodeError } from "../rows/varint.ts";
import { fixedBytes } from "./entity-rows.ts";
import { entityKeyOf } from "./keys.ts";
import type { EntityKey } from "./operation.ts";
import { lengthsBytes } from "./packed-entities.ts";

/** Bytes of a row key in front of its text (the tags of component and text), and behind it (the ends of both). */
const beforeRowKey = 2;
const afterRowKey = 2;
const names = new RepeatedTexts();
const cursor = new RowCursor(entitySchema);

/** Property of the entity that was read last. */
export class PackedProperty {
  name = "";
  type: ScalarType = "bool";
  /** Offset of the value in the page. */
  start = 0;
  end = 0;
  /** Value of a text that is not plain; undefined for any other value. */
  text: string | undefined;
}

export interface PageBound {
  readonly bytesMax: number;
  /** True if the first entity belongs to the page, whatever its size. */
  readonly isEmpty: boolean;
}

export class PackedEntities {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly #plain: PlainBytes;
  readonly #bound: PageBound;
  readonly #properties: PackedProperty[] = [];
  /** Bytes of the key in front of the row key, as the entity before had them. */
  #prefix: Uint8Array = emptyBytes;
  #at = 0;
  #rowAt = 0;
  #lastKeyAt = 0;
  #lastKeyEnd = 0;
  /** Number of entities that were read. */
  count = 0;
  /** Size of the entities so far, as the service counts it, in bytes. */
  countedBytes = 0;
  /** True if the page ends before the entity that follows. */
  isCut = false;
  partitionKey = "";
  /** True if the PartitionKey is that of the entity before. */
  isSamePartition = false;
  /** Offset of a plain row key. */
  rowKeyStart = 0;
  rowKeyEnd = 0;
  /** Row key, if it is not plain (`PlainBytes`); undefined: it is. */
  rowKeyText: string | undefined;
  /** Timestamp in whole milliseconds since 1970, and its rest in 100 ns. */
  timestampMs = 0;
  timestampRest = 0;
  propertyCount = 0;

  constructor(packed: Uint8Array, bound: PageBound) {
    this.bytes = packed;
    this.view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
    this.#plain = new PlainBytes(packed);
    this.#bound = bound;
  }

  /** Goes to the next entity; false: there is none, or it belongs to the next page. Throws as `unpackEntities` does. */
  next(): boolean {
    const { length } = this.bytes;
    const at = this.#at;
    if (at >= length || this.isCut) return false;
    const row = at + lengthsBytes <= length ? at + lengthsBytes + this.view.getUint32(at, true) : Number.POSITIVE_INFINITY;
    const end = row <= length ? row + this.view.getUint32(at + 4, true) : row;
    if (end > length) throw new FailureError(damagedRow("packed rows are cut off").failure);
    this.#readKey(at + lengthsBytes, row);
    this.#rowAt = row;
    const bytes = cursor.read(this.bytes.subarray(row, end), this.#readRow);
    this.isCut = this.countedBytes + bytes > this.#bound.bytesMax && !(this.#bound.isEmpty && this.count === 0);
    if (this.isCut) return false;
    this.countedBytes += bytes;
    this.count++;
    this.#lastKeyAt = at + lengthsBytes;
    this.#lastKeyEnd = row;
    this.#at = end;
    return true;
  }

  /** Returns the property of the entity; `index` is below `propertyCount`. */
  property(index: number): PackedProperty {
    return this.#properties[index] as PackedProperty;
  }

  /** Returns the key of the last entity that was read; undefined: there was none. */
  lastKey(): EntityKey | undefined {
    return this.count === 0 ? undefined : entityKeyOf(this.bytes.subarray(this.#lastKeyAt, this.#lastKeyEnd));
  }

  #readKey(start: number, end: number): void {
    const { bytes } = this;
    const prefix = this.#prefix;
    const textAt = start + prefix.length + beforeRowKey;
    const textEnd = end - afterRowKey;
    this.isSamePartition = prefix.length > 0 && textEnd >= textAt && isAt(prefix, bytes, start);
    if (
      this.isSamePartition &&
      bytes[textAt - 2] === 0x05 &&
      bytes[textAt - 1] === 0x02 &&
      bytes[textEnd] === 0 &&
      bytes[textEnd + 1] === 0 &&
      this.#plain.has(textAt, textEnd)
    ) {
      this.rowKeyStart = textAt;
      this.rowKeyEnd = textEnd;
      this.rowKeyText = undefined;
      return;
    }
    const { partitionKey, rowKey } = entityKeyOf(bytes.subarray(start, end));
    this.partitionKey = partitionKey;
    this.rowKeyText = rowKey;
    const prefixBytes = end - start - appendComponents(emptyBytes, [[rowKey]]).length;
    if (!this.isSamePartition) this.#prefix = bytes.slice(start, start + Math.max(prefixBytes, 0));
  }

  /** Returns the size of the entity as the service counts it. */
  readonly #readRow = (row: RowCursor): number => {
    const rest = row.restOfMs(entitySchema.timestamp);
    // Rounded down, also before 1970.
    this.timestampMs = (row.ms(entitySchema.timestamp) ?? 0) - (rest < 0 ? 1 : 0);
    this.timestampRest = rest < 0 ? rest + 10_000 : rest;
    const rowKeyCharacters = this.rowKeyText === undefined ? this.rowKeyEnd - this.rowKeyStart : this.rowKeyText.length;
    let counted = 4 + (this.partitionKey.length + rowKeyCharacters) * 2;
    const { bytes } = this;
    const start = row.startOf(entitySchema.properties);
    this.propertyCount = 0;
    if (start < 0) return counted;
    const end = this.#rowAt + row.endOf(entitySchema.properties);
    this.#at = this.#rowAt + start;
    const count = this.#varint(end);
    for (let index = 0; index < count; index++) {
      const nameBytes = this.#varint(end);
      const nameAt = this.#sized(nameBytes, end);
      const type = scalarTypeOf(bytes[this.#byteAt(end)] as number);
      const valueBytes = this.#varint(end);
      const valueAt = this.#sized(valueBytes, end);
      if (type === undefined) throw new DecodeError("a dictionary holds scalars only");
      const property = this.#propertyAt(index);
      property.name = names.get(bytes, nameAt, nameAt + nameBytes);
      property.type = type;
      property.start = valueAt;
      property.end = valueAt + valueBytes;
      property.text = undefined;
      counted += 8 + property.name.length * 2 + this.#counted(property, valueBytes);
    }
    if (this.#at !== end) throw new DecodeError("bytes after the last entry");
    this.propertyCount = count;
    return counted;
  };

  /** Returns the size of the value as the service counts it. */
  #counted(property: PackedProperty, lengthBytes: number): number {
    const { start, end, type } = property;
    if (type === "binary") return lengthBytes + 4;
    if (type === "string") {
      if (this.#plain.has(start, end)) return lengthBytes * 2 + 4;
      property.text = fromUtf8(this.bytes.subarray(start, end));
      return property.text.length * 2 + 4;
    }
    const due = fixedBytes[type] ?? 0;
    if (lengthBytes !== due) throw new DecodeError(`a value of ${lengthBytes} bytes where ${due} are due`);
    if (type === "bool" && (this.bytes[start] as number) > 1) throw new DecodeError("a bool is 0 or 1");
    return due;
  }

  #propertyAt(index: number): PackedProperty {
    const held = this.#properties[index];
    if (held !== undefined) return held;
    const made = new PackedProperty();
    this.#properties.push(made);
    return made;
  }

  #byteAt(end: number): number {
    if (this.#at >= end) throw new DecodeError("ends too early");
    return this.#at++;
  }

  /** Returns where bytes of that length begin; goes behind them. */
  #sized(lengthBytes: number, end: number): number {
    const at = this.#at;
    if (lengthBytes > end - at) throw new DecodeError("ends too early");
    this.#at = at + lengthBytes;
    return at;
  }

  #varint(end: number): number {
    const { bytes } = this;
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8; i++) {
      const byte = bytes[this.#byteAt(end)] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw new DecodeError("a number does not end");
  }
}

function isAt(prefix: Uint8Array, bytes: Uint8Array, start: number): boolean {
  for (let at = 0; at < prefix.length; at++) if (prefix[at] !== bytes[start + at]) return false;
  return true;
}
