/** Little-endian reading and writing of the formats in this package. Numbers of 64 bits are safe integers or the input is malformed. */
import { assert, type FormatName, fromUtf8, type NewerFormat, utf8 } from "@stamp/base";

/** Thrown inside decoders only; each decoder catches it and returns a typed `invalid`. */
export class Malformed extends Error {
  override readonly name = "Malformed";
}

const twoTo32 = 2 ** 32;

export const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

export function putU64(view: DataView, at: number, value: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, `not a safe non-negative integer: ${value}`);
  view.setUint32(at, value % twoTo32, true);
  view.setUint32(at + 4, Math.floor(value / twoTo32), true);
}

export function getU64(view: DataView, at: number): number {
  const high = view.getUint32(at + 4, true);
  if (high > 0x1fffff) throw new Malformed("number over 2^53");
  return high * twoTo32 + view.getUint32(at, true);
}

/** Writer of fixed-size fields; its buffer grows as needed. */
export class FieldWriter {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(256);
  #view: DataView = viewOf(this.#bytes);
  #at = 0;

  #room(length: number): number {
    const at = this.#at;
    if (at + length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(this.#bytes.length * 2, at + length));
      larger.set(this.#bytes);
      this.#bytes = larger;
      this.#view = viewOf(larger);
    }
    this.#at = at + length;
    return at;
  }

  // Room first: it may replace the buffer and its view.
  u8(value: number): void {
    const at = this.#room(1);
    this.#view.setUint8(at, value);
  }
  u32(value: number): void {
    const at = this.#room(4);
    this.#view.setUint32(at, value, true);
  }
  u64(value: number): void {
    const at = this.#room(8);
    putU64(this.#view, at, value);
  }
  /** Writes a text of at most 65,535 bytes of UTF-8. */
  text(value: string): void {
    const bytes = utf8(value);
    assert(bytes.length <= 0xffff, "text too long");
    const at = this.#room(2 + bytes.length);
    this.#view.setUint16(at, bytes.length, true);
    this.#bytes.set(bytes, at + 2);
  }
  done(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#at);
  }
}

/** Throws `Malformed` past the end. */
export class Reader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
  }

  #take(length: number): number {
    const at = this.#at;
    if (at + length > this.#bytes.length) throw new Malformed("truncated");
    this.#at = at + length;
    return at;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }
  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }
  u64(): number {
    return getU64(this.#view, this.#take(8));
  }
  text(): string {
    const length = this.#view.getUint16(this.#take(2), true);
    const at = this.#take(length);
    try {
      return fromUtf8(this.#bytes.subarray(at, at + length));
    } catch {
      throw new Malformed("text is not UTF-8");
    }
  }
  end(): void {
    if (this.#at !== this.#bytes.length) throw new Malformed("bytes after the end");
  }
}

export type Decoded<T> = { readonly kind: "ok"; readonly value: T } | { readonly kind: "invalid"; readonly why: string };

/** Result of a decoder whose format has a version: intact bytes of a later version are never `invalid`. */
export type Versioned<T> = Decoded<T> | ({ readonly kind: "newer" } & NewerFormat);

class Newer extends Error {
  override readonly name = "Newer";
  readonly found: NewerFormat;
  constructor(found: NewerFormat) {
    super(`${found.format} ${found.version}`);
    this.found = found;
  }
}

/** Throws if the version is not among those that can be read. Decoders call it after the checksum has matched. */
export function checkVersion(format: FormatName, version: number, read: readonly number[]): void {
  if (read.includes(version)) return;
  if (version > Math.max(...read)) throw new Newer({ format, version });
  throw new Malformed(`format version ${version}`);
}

/** Runs a decoder that asks `checkVersion`. */
export function decodingVersioned<T>(decode: () => T): Versioned<T> {
  try {
    return decoding(decode);
  } catch (error) {
    if (error instanceof Newer) return { kind: "newer", ...error.found };
    throw error;
  }
}

/** Runs a decoder; what it throws as `Malformed` becomes a typed result. */
export function decoding<T>(decode: () => T): Decoded<T> {
  try {
    return { kind: "ok", value: decode() };
  } catch (error) {
    if (error instanceof Malformed) return { kind: "invalid", why: error.message };
    throw error;
  }
}
