/**
 * ETags and times of objects. An ETag is made of the sequence of the commit that wrote the object: it is never the same for two states of
 * one object. It has the form users know from the service: "0x8" and fourteen hexadecimal digits, in quotes.
 */
import { fromHex } from "@stamp/base";

export const etagOf = (sequence: number): string => `"0x8${sequence.toString(16).toUpperCase().padStart(14, "0")}"`;

/** Returns the sequence of an ETag as a client sent it, quotes or not; undefined for what we never gave. */
export function sequenceOfEtag(text: string): number | undefined {
  const bare = text.startsWith('"') && text.endsWith('"') && text.length >= 2 ? text.slice(1, -1) : text;
  if (!/^0[xX]8[0-9a-fA-F]{14}$/.test(bare)) return undefined;
  const bytes = fromHex(bare.slice(3));
  if (!bytes) return undefined;
  const value = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Returns the whole seconds of wall time, and never before the object's last one, also when the clock was set back. */
export const lastModifiedMs = (wallMs: number, previousMs: number | undefined): number =>
  Math.max(Math.floor(wallMs / 1000) * 1000, previousMs ?? 0);
