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
import { assert, concatBytes, type Failed, fromUtf8, type Outcome, ok, refused, utf8 } from "@stamp/base";

export type KeyElement = number | string | Uint8Array;
export type KeyComponent = readonly KeyElement[];

const bytesTag = 0x01;
const stringTag = 0x02;
const componentTag = 0x05;
const numberTag = 0x14;
const numberBytesMax = 7;
const terminator = Uint8Array.of(0x00);

/** Encodes a whole key. */
export const encodeKey = (components: readonly KeyComponent[]): Uint8Array<ArrayBuffer> => concatBytes(components.map(encodeComponent));

export function encodeComponent(component: KeyComponent): Uint8Array<ArrayBuffer> {
  return concatBytes([Uint8Array.of(componentTag), ...component.map(encodeElement), terminator]);
}

/** The bytes with which every component starts that begins with these elements; the component is left open. */
export function encodeOpenComponent(elements: KeyComponent): Uint8Array<ArrayBuffer> {
  return concatBytes([Uint8Array.of(componentTag), ...elements.map(encodeElement)]);
}

/** The bytes with which an encoded string element starts whose text begins with `prefix`. */
export const encodeStringPrefix = (prefix: string): Uint8Array<ArrayBuffer> =>
  concatBytes([Uint8Array.of(stringTag), escaped(utf8(prefix))]);

function encodeElement(element: KeyElement): Uint8Array<ArrayBuffer> {
  if (typeof element === "number") return encodeNumber(element);
  if (typeof element === "string") return concatBytes([Uint8Array.of(stringTag), escaped(utf8(element)), terminator]);
  return concatBytes([Uint8Array.of(bytesTag), escaped(element), terminator]);
}

function escaped(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  let zeros = 0;
  for (const byte of bytes) if (byte === 0) zeros++;
  const out = new Uint8Array(bytes.length + zeros);
  if (zeros === 0) {
    out.set(bytes);
    return out;
  }
  let at = 0;
  for (const byte of bytes) {
    out[at++] = byte;
    if (byte === 0) out[at++] = 0xff;
  }
  return out;
}

function encodeNumber(value: number): Uint8Array<ArrayBuffer> {
  assert(Number.isSafeInteger(value), `a key holds safe integers only: ${value}`);
  let rest = Math.abs(value);
  const digits: number[] = [];
  while (rest > 0) {
    digits.push(rest % 256);
    rest = Math.floor(rest / 256);
  }
  const out = new Uint8Array(1 + digits.length);
  out[0] = value < 0 ? numberTag - digits.length : numberTag + digits.length;
  for (let i = 0; i < digits.length; i++) {
    const digit = digits[digits.length - 1 - i] as number;
    out[1 + i] = value < 0 ? 0xff - digit : digit;
  }
  return out;
}

const damaged = (what: string): Failed => refused("dataLoss", "damaged", `key: ${what}`);

/** Refused with `damaged` for what encodeKey never makes. */
export function decodeKey(key: Uint8Array): Outcome<KeyComponent[]> {
  const components: KeyComponent[] = [];
  let at = 0;
  while (at < key.length) {
    if (key[at++] !== componentTag) return damaged("a component does not start with its tag");
    const elements: KeyElement[] = [];
    for (;;) {
      if (at >= key.length) return damaged("a component does not end");
      const tag = key[at++] as number;
      if (tag === 0x00) break;
      const element = tag === bytesTag || tag === stringTag ? decodeText(key, at, tag) : decodeNumber(key, at, tag);
      if (!element.ok) return element;
      elements.push(element.value.element);
      at = element.value.next;
    }
    components.push(elements);
  }
  return ok(components);
}

function decodeText(key: Uint8Array, from: number, tag: number): Outcome<{ element: KeyElement; next: number }> {
  const out: number[] = [];
  let at = from;
  for (;;) {
    if (at >= key.length) return damaged("a string does not end");
    const byte = key[at++] as number;
    if (byte !== 0) {
      out.push(byte);
    } else if (key[at] === 0xff) {
      out.push(0);
      at++;
    } else {
      break;
    }
  }
  const bytes = Uint8Array.from(out);
  if (tag === bytesTag) return ok({ element: bytes, next: at });
  try {
    return ok({ element: fromUtf8(bytes), next: at });
  } catch {
    return damaged("a string is not UTF-8");
  }
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
