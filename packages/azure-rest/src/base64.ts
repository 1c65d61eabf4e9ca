/** Base64 (RFC 4648), strict in both directions: one text for each byte sequence, so that what was signed is what was meant. */
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const values: Int8Array = new Int8Array(128).fill(-1);
for (let i = 0; i < 64; i++) values[alphabet.charCodeAt(i)] = i;

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const group =
      ((bytes[i] as number) << 16) | ((left > 1 ? (bytes[i + 1] as number) : 0) << 8) | (left > 2 ? (bytes[i + 2] as number) : 0);
    text += alphabet.charAt(group >>> 18) + alphabet.charAt((group >>> 12) & 63);
    text += (left > 1 ? alphabet.charAt((group >>> 6) & 63) : "=") + (left > 2 ? alphabet.charAt(group & 63) : "=");
  }
  return text;
}

/** Returns undefined for what is not base64: wrong characters, padding or length, or bits that mean nothing. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array((text.length / 4) * 3 - padding);
  const digits = text.length - padding;
  let held = 0;
  let heldBits = 0;
  let at = 0;
  for (let i = 0; i < digits; i++) {
    const code = text.charCodeAt(i);
    const value = code < 128 ? (values[code] as number) : -1;
    if (value < 0) return undefined;
    held = ((held << 6) | value) & 0xffff;
    heldBits += 6;
    if (heldBits >= 8) {
      heldBits -= 8;
      bytes[at++] = (held >>> heldBits) & 0xff;
    }
  }
  return (held & ((1 << heldBits) - 1)) === 0 ? bytes : undefined;
}

/** Encodes for URLs and tokens: no padding, `-` and `_`. */
export const toBase64Url = (bytes: Uint8Array): string => toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return undefined;
  const padded = text.replaceAll("-", "+").replaceAll("_", "/") + "=".repeat((4 - (text.length % 4)) % 4);
  return fromBase64(padded);
}
