/**
 * The JSON of a page of entities, written from rows as they are stored: what `EntitiesJson` makes of the same entities, byte for byte. Texts that
 * stand in JSON as they are get copied, names and times that came before are not made again.
 *
 *     {"odata.etag":"W/\"datetime' time Z'\"" ,"PartitionKey":"…" ,"RowKey":" key " ,"Timestamp":" time Z" ,"name": value … }
 */
import { utf8 } from "@stamp/base";
import { toBase64 } from "../base64.ts";
import { doubleJson, type EdmType, edmNames, formatDateTime, formatGuid } from "./edm.ts";
import { annotated, type EntitiesJson, type JsonForm, quoted, typeSuffix } from "./entity-json.ts";

/** Property of a stored row. */
export interface StoredProperty {
  readonly name: string;
  readonly type: EdmType;
  /** Position at which the value begins, in big-endian. */
  readonly start: number;
  readonly end: number;
  /** Text that JSON must escape; undefined for any other value. */
  readonly text: string | undefined;
}

/** The entity that a reader of rows is at. */
export interface StoredEntity {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly partitionKey: string;
  /** True if the PartitionKey is that of the entity before. */
  readonly isSamePartition: boolean;
  /** Offset of a row key that needs no escape in JSON. */
  readonly rowKeyStart: number;
  readonly rowKeyEnd: number;
  /** Row key that needs escapes in JSON; undefined: `rowKeyStart` says where it lies. */
  readonly rowKeyText: string | undefined;
  /** Time in whole milliseconds since 1970, and the rest of it in 100 ns. */
  readonly timestampMs: number;
  readonly timestampRest: number;
  readonly propertyCount: number;
  property(index: number): StoredProperty;
}

/** Receiver of bytes, which are written one piece behind the other. */
export interface ByteSink {
  readonly bytes: Uint8Array;
  /** Number of bytes that are written. */
  length: number;
  /** Makes room for this many more bytes; `bytes` may be another array then. */
  room(bytes: number): void;
}

/** Upper bound of the bytes of an entity beside its partition key, its row key and its properties. */
const frameBytes = 256;
const ticksPerSecond = 10_000_000;
const encoder = new TextEncoder();

export class EntitiesBytes {
  readonly #isBare: boolean;
  readonly #sink: ByteSink;
  readonly #page: EntitiesJson;
  /** Second of the times that are written; NaN: none yet. */
  #second = Number.NaN;
  /** Start of an entity's JSON, up to the second of its time. */
  #start: Uint8Array = new Uint8Array(0);
  /** Text behind the row key, up to the second of the entity's time. */
  #timestamp: Uint8Array = new Uint8Array(0);
  /** Text from behind the time to the row key. */
  #partition: Uint8Array | undefined;
  /** Names and types of the properties of the entity before, by index, and what stands in front of their values. */
  readonly #names: string[] = [];
  readonly #types: (EdmType | undefined)[] = [];
  readonly #heads: Uint8Array[] = [];
  readonly #encoded = new Map<string, Uint8Array>();

  /** True if entities are written so in this form. With full metadata they are not. */
  static writes(form: JsonForm): boolean {
    return form.metadata !== "full";
  }

  /** `page`: writer of the entities that are not stored ones. */
  constructor(form: JsonForm, page: EntitiesJson, sink: ByteSink) {
    this.#isBare = form.metadata === "none";
    this.#page = page;
    this.#sink = sink;
  }

  /** Writes an entity, with a comma before all but the first. */
  add(entity: StoredEntity): void {
    const sink = this.#sink;
    const partition = this.#partitionOf(entity);
    sink.room(frameBytes + partition.length + entity.rowKeyEnd - entity.rowKeyStart);
    if (!this.#page.isFirst) sink.bytes[sink.length++] = 0x2c;
    this.#page.isFirst = false;
    const second = Math.floor(entity.timestampMs / 1000);
    const fraction = (entity.timestampMs - second * 1000) * 10_000 + entity.timestampRest;
    if (second !== this.#second) this.#setSecond(second);
    this.#copy(this.#start);
    if (!this.#isBare) this.#fraction(fraction);
    this.#copy(partition);
    if (entity.rowKeyText === undefined) this.#quote(entity.bytes, entity.rowKeyStart, entity.rowKeyEnd);
    else {
      this.#text(quoted(entity.rowKeyText));
      sink.room(frameBytes);
    }
    this.#copy(this.#timestamp);
    this.#fraction(fraction);
    this.#ascii('Z"');
    const count = entity.propertyCount;
    for (let index = 0; index < count; index++) this.#property(index, entity, entity.property(index));
    sink.room(1);
    sink.bytes[sink.length++] = 0x7d;
  }

  #partitionOf(entity: StoredEntity): Uint8Array {
    if (this.#partition === undefined || !entity.isSamePartition) {
      const before = this.#isBare ? "" : `Z'\\"",`;
      this.#partition = utf8(`${before}"PartitionKey":${quoted(entity.partitionKey)},"RowKey":`);
    }
    return this.#partition;
  }

  #setSecond(second: number): void {
    const time = formatDateTime(BigInt(second) * BigInt(ticksPerSecond)).slice(0, -1);
    this.#second = second;
    this.#start = utf8(this.#isBare ? "{" : `{"odata.etag":"W/\\"datetime'${time.replaceAll(":", "%3A")}`);
    this.#timestamp = utf8(`,"Timestamp":"${time}`);
  }

  #property(index: number, { bytes, view }: StoredEntity, property: StoredProperty): void {
    const { type, start, end, text } = property;
    const isPlain = type === "string" && text === undefined;
    const head = this.#headOf(index, property, view);
    const sink = this.#sink;
    sink.room(head.length + (isPlain ? end - start : 0) + 64);
    this.#copy(head);
    if (isPlain) this.#quote(bytes, start, end);
    else if (text !== undefined) this.#text(quoted(text));
    else if (type === "binary") this.#text(`"${toBase64(bytes.subarray(start, end))}"`);
    else this.#ascii(fixedJson(type, start, bytes, view));
  }

  /** Returns the text in front of the value: a comma, the type unless the value shows it, and the name. */
  #headOf(index: number, { name, type, start }: StoredProperty, view: DataView): Uint8Array {
    if (type === "double") return this.#newHead(name, type, !this.#isBare && annotated({ type, value: view.getFloat64(start) }));
    if (this.#names[index] === name && this.#types[index] === type) return this.#heads[index] as Uint8Array;
    const head = this.#newHead(name, type, !this.#isBare && annotated({ type, value: 0 }));
    this.#names[index] = name;
    this.#types[index] = type;
    this.#heads[index] = head;
    return head;
  }

  #newHead(name: string, type: EdmType, isAnnotated: boolean): Uint8Array {
    const text = `${isAnnotated ? `,${quoted(name + typeSuffix)}:"${edmNames[type]}"` : ""},${quoted(name)}:`;
    const held = this.#encoded.get(text);
    if (held !== undefined) return held;
    const head = utf8(text);
    this.#encoded.set(text, head);
    return head;
  }

  #copy(bytes: Uint8Array): void {
    this.#sink.bytes.set(bytes, this.#sink.length);
    this.#sink.length += bytes.length;
  }

  #quote(bytes: Uint8Array, start: number, end: number): void {
    const sink = this.#sink;
    sink.bytes[sink.length++] = 0x22;
    sink.bytes.set(bytes.subarray(start, end), sink.length);
    sink.length += end - start;
    sink.bytes[sink.length++] = 0x22;
  }

  /** Digits of a part of a second in 100 ns, without zeros at the end. */
  #fraction(ticks: number): void {
    if (ticks === 0) return;
    let digits = 7;
    let rest = ticks;
    for (; rest % 10 === 0; rest /= 10) digits--;
    const { bytes, length } = this.#sink;
    bytes[length] = 0x2e;
    for (let at = length + digits; at > length; at--) {
      bytes[at] = 0x30 + (rest % 10);
      rest = Math.floor(rest / 10);
    }
    this.#sink.length = length + 1 + digits;
  }

  /** Writes a text of ASCII for which there is room. */
  #ascii(text: string): void {
    const { bytes, length } = this.#sink;
    for (let at = 0; at < text.length; at++) bytes[length + at] = text.charCodeAt(at);
    this.#sink.length = length + text.length;
  }

  #text(text: string): void {
    const sink = this.#sink;
    sink.room(text.length * 3);
    sink.length += encoder.encodeInto(text, sink.bytes.subarray(sink.length)).written;
  }
}

/** Returns the value of a type whose values have one size. */
function fixedJson(type: EdmType, start: number, bytes: Uint8Array, view: DataView): string {
  switch (type) {
    case "bool":
      return bytes[start] === 1 ? "true" : "false";
    case "int32":
      return String(view.getInt32(start));
    case "int64":
      return `"${view.getBigInt64(start)}"`;
    case "double":
      return doubleJson(view.getFloat64(start));
    case "DateTime":
      return `"${formatDateTime(view.getBigInt64(start))}"`;
    default:
      return `"${formatGuid(bytes.subarray(start, start + 16))}"`;
  }
}
