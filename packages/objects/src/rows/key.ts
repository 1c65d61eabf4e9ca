/**
 * Keys of object tables: (AccountName, PartitionName, ObjectName), each a tuple of numbers, strings and byte strings, encoded so that
 * byte order is key order. Format: docs/formats/key.md.
 *
 *   component  = 0x05 element* 0x00          (the terminator sorts before every element, so a shorter tuple sorts first)
 *   bytes      = 0x01 escaped 0x00           (a byte 0x00 inside is written 0x00 0xff)
 *   string     = 0x02 escaped(UTF-8) 0x00    (so strings sort by code point)
 *   number     = 0x14+n, n bytes big-endian  (n = 0..7: the fewest that hold it; negative: 0x14-n and the ones' complement)
 *
 * Invariants: decode(encode(k)) = k; encode(a) < encode(b) by bytes exactly when a < b element by element; no encoded key is a prefix
 * of another one with as many components.
 */
import { assert, type Failed, fromUtf8, type Outcome, ok, refused, utf8 } from "@stamp/base";
import { RepeatedTexts } from "./repeated-texts.ts";

export type KeyElement = number | string | Uint8Array;
export type KeyComponent = readonly KeyElement[];

const bytesTag = 0x01;
const stringTag = 0x02;
const componentTag = 0x05;
const numberTag = 0x14;
const numberBytesMax = 7;
/** Number of components whose texts are looked up first: neighbours often have the same account, container, table or PartitionKey. */
const sharedComponents = 2;
const repeated = new RepeatedTexts();

/** Encodes a whole key from its components. */
export function encodeKey(components: readonly KeyComponent[]): Uint8Array<ArrayBuffer> {
  const writer = new KeyWriter();
  for (const component of components) writer.component(component);
  return writer.finish();
}

/** Returns the bytes of a key that goes on behind another one: `start`, then these components. */
export function appendComponents(start: Uint8Array, components: readonly KeyComponent[]): Uint8Array<ArrayBuffer> {
  const writer = new KeyWriter();
  writer.raw(start);
  for (const component of components) writer.component(component);
  return writer.finish();
}

/**
 * Returns the bytes with which every key starts that begins with these components and then with a component that begins with `elements`, its next
 * element being a string that begins with `prefix` when one is given. What is given last is left open.
 */
export function encodeKeyPrefix(components: readonly KeyComponent[], elements: KeyComponent, prefix?: string): Uint8Array<ArrayBuffer> {
  const writer = new KeyWriter();
  for (const component of components) writer.component(component);
  writer.open(elements, prefix);
  return writer.finish();
}

/** Appends components like encodeKeyPrefix, behind a start that is encoded already. */
export function appendOpenComponent(start: Uint8Array, elements: KeyComponent): Uint8Array<ArrayBuffer> {
  const writer = new KeyWriter();
  writer.raw(start);
  writer.open(elements);
  return writer.finish();
}

/** Keys are made several times per operation, so they are written in one go. The scratch is used by one writer at a time: nothing waits. */
let scratch: Uint8Array<ArrayBuffer> = new Uint8Array(512);

class KeyWriter {
  #length = 0;

  component(elements: KeyComponent): void {
    this.open(elements);
    this.#byte(0x00);
  }

  open(elements: KeyComponent, prefix?: string): void {
    this.#byte(componentTag);
    for (const element of elements) {
      if (typeof element === "number") {
        this.#number(element);
        continue;
      }
      if (typeof element === "string") this.#text(element);
      else {
        this.#byte(bytesTag);
        this.#escaped(element);
      }
      this.#byte(0x00);
    }
    if (prefix !== undefined) this.#text(prefix);
  }

  raw(bytes: Uint8Array): void {
    this.#room(bytes.length);
    scratch.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  finish(): Uint8Array<ArrayBuffer> {
    return scratch.slice(0, this.#length);
  }

  #room(more: number): void {
    if (this.#length + more <= scratch.length) return;
    const grown = new Uint8Array(Math.max(this.#length + more, scratch.length * 2));
    grown.set(scratch.subarray(0, this.#length));
    scratch = grown;
  }

  #byte(value: number): void {
    this.#room(1);
    scratch[this.#length++] = value;
  }

  /** Writes a text; ASCII, as nearly all names are, is copied, the rest goes through UTF-8. */
  #text(text: string): void {
    this.#byte(stringTag);
    this.#room(text.length);
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === 0 || code > 0x7f) {
        this.#escaped(utf8(text.slice(i)));
        return;
      }
      scratch[this.#length++] = code;
    }
  }

  #escaped(bytes: Uint8Array): void {
    this.#room(bytes.length * 2);
    for (const byte of bytes) {
      scratch[this.#length++] = byte;
      if (byte === 0) scratch[this.#length++] = 0xff;
    }
  }

  #number(value: number): void {
    assert(Number.isSafeInteger(value), `a key holds safe integers only: ${value}`);
    const absolute = Math.abs(value);
    let digits = 0;
    for (let rest = absolute; rest > 0; rest = Math.floor(rest / 256)) digits++;
    this.#room(1 + digits);
    scratch[this.#length++] = value < 0 ? numberTag - digits : numberTag + digits;
    for (let rest = absolute, i = digits - 1; i >= 0; i--, rest = Math.floor(rest / 256)) {
      const digit = rest % 256;
      scratch[this.#length + i] = value < 0 ? 0xff - digit : digit;
    }
    this.#length += digits;
  }
}

/** Compares by code point, as keys sort. In UTF-16 surrogates (from U+10000 on) lie before U+E000; they are moved behind. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return codePointOrder(left) - codePointOrder(right);
  }
  return a.length - b.length;
}

const codePointOrder = (unit: number): number => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800);

/** Returns the key with which the rows of this key's PartitionName start, so that they are never split; undefined when it has no whole one. */
export function partitionStart(key: Uint8Array): Uint8Array | undefined {
  const components = decodeKey(key, 2);
  return components.ok && components.value.length >= 2 ? encodeKey(components.value.slice(0, 2)) : undefined;
}

const damaged = (what: string): Failed => refused("dataLoss", "damaged", `key: ${what}`);

/** Decodes a key. Refuses with `damaged` what encodeKey never makes; ignores everything behind `componentsMax` components. */
export function decodeKey(key: Uint8Array, componentsMax: number = Number.POSITIVE_INFINITY): Outcome<KeyComponent[]> {
  const components: KeyComponent[] = [];
  let at = 0;
  while (at < key.length && components.length < componentsMax) {
    if (key[at++] !== componentTag) return damaged("a component does not start with its tag");
    const elements: KeyElement[] = [];
    for (;;) {
      if (at >= key.length) return damaged("a component does not end");
      const tag = key[at++] as number;
      if (tag === 0x00) break;
      const isText = tag === bytesTag || tag === stringTag;
      const element = isText ? decodeText(key, at, tag, components.length < sharedComponents) : decodeNumber(key, at, tag);
      if (!element.ok) return element;
      elements.push(element.value.element);
      at = element.value.next;
    }
    components.push(elements);
  }
  return ok(components);
}

function decodeText(key: Uint8Array, from: number, tag: number, shared: boolean): Outcome<{ element: KeyElement; next: number }> {
  let end = key.indexOf(0, from);
  let escapes = 0;
  for (; end >= 0 && key[end + 1] === 0xff; end = key.indexOf(0, end + 2)) escapes++;
  if (end < 0) return damaged("a string does not end");
  const next = end + 1;
  if (tag === bytesTag) return ok({ element: unescaped(key, from, end, escapes), next });
  try {
    if (escapes > 0) return ok({ element: fromUtf8(unescaped(key, from, end, escapes)), next });
    return ok({ element: shared ? repeated.get(key, from, end) : fromUtf8(key.subarray(from, end)), next });
  } catch {
    return damaged("a string is not UTF-8");
  }
}

/** Returns a copy of the bytes, without the byte behind each 0. */
function unescaped(key: Uint8Array, from: number, end: number, escapes: number): Uint8Array {
  const bytes = new Uint8Array(end - from - escapes);
  for (let at = from, to = 0; at < end; at++) {
    const byte = key[at] as number;
    bytes[to++] = byte;
    if (byte === 0) at++;
  }
  return bytes;
}

function decodeNumber(key: Uint8Array, from: number, tag: number): Outcome<{ element: KeyElement; next: number }> {
  const length = Math.abs(tag - numberTag);
  if (length > numberBytesMax) return damaged("an unknown tag");
  if (from + length > key.length) return damaged("a number does not end");
  let value = 0;
  for (let i = 0; i < length; i++) {
    const byte = key[from + i] as number;
    value = value * 256 + (tag < numberTag ? 0xff - byte : byte);
  }
  if (!Number.isSafeInteger(value)) return damaged("a number is too large");
  return ok({ element: tag < numberTag ? -value : value, next: from + length });
}
