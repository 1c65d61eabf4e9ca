/** Keys of a range and places in its commit log, as the stored state of a partition names them. */
import { compareBytes } from "@stamp/base";

/** `low` inclusive, `high` exclusive; an empty `high` is no end. */
export interface KeyBounds {
  readonly low: Uint8Array;
  readonly high: Uint8Array;
}

export interface LogPlace {
  readonly extentId: number;
  /** Offset of a block's header, in bytes; 0 for the first. */
  readonly offsetBytes: number;
}

export const holdsKey = ({ low, high }: KeyBounds, key: Uint8Array): boolean =>
  compareBytes(key, low) >= 0 && (high.length === 0 || compareBytes(key, high) < 0);

export function intersect(a: KeyBounds, b: KeyBounds): KeyBounds {
  const low = compareBytes(a.low, b.low) >= 0 ? a.low : b.low;
  const high = a.high.length === 0 ? b.high : b.high.length === 0 || compareBytes(a.high, b.high) <= 0 ? a.high : b.high;
  return { low, high };
}
