/** Byte arrays: comparison, concatenation, hexadecimal and UTF-8. All functions borrow their inputs and return owned arrays. */
const encoder = new TextEncoder();
// A U+FEFF at the start belongs to the text: names, keys and values come back as they were given.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export const emptyBytes: Uint8Array = new Uint8Array(0);

export const utf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text);

/** Throws TypeError on malformed UTF-8. */
export const fromUtf8 = (bytes: Uint8Array): string => decoder.decode(bytes);

/** Returns a negative number, zero or a positive one, by unsigned byte order; a prefix sorts before what it begins. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

export const equalBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && compareBytes(a, b) === 0;

export function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return bytes.length >= prefix.length && compareBytes(bytes.subarray(0, prefix.length), prefix) === 0;
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let length = 0;
  for (const part of parts) length += part.length;
  const joined = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** Returns the first key that sorts after every key with this prefix; undefined when there is none (all bytes are 0xff). */
export function prefixEnd(prefix: Uint8Array): Uint8Array | undefined {
  for (let i = prefix.length - 1; i >= 0; i--) {
    const byte = prefix[i] as number;
    if (byte !== 0xff) {
      const end = new Uint8Array(i + 1);
      end.set(prefix.subarray(0, i + 1));
      end[i] = byte + 1;
      return end;
    }
  }
  return undefined;
}

const hexOfByte: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function toHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += hexOfByte[byte];
  return text;
}

/** Returns undefined when the text is not an even number of hexadecimal digits. */
export function fromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return undefined;
  const bytes = new Uint8Array(text.length / 2);
  for (let i = 0; i < bytes.length; i++) bytes[i] = Number.parseInt(text.slice(i * 2, i * 2 + 2), 16);
  return bytes;
}

export const totalLength = (parts: readonly Uint8Array[]): number => parts.reduce((sum, part) => sum + part.length, 0);
