/** One version of one row. Versions of a key are ordered newest first, keys by unsigned byte order. */
import { compareBytes } from "@stamp/base";

export interface Entry {
  readonly key: Uint8Array;
  /** Sequence of the commit that wrote the entry. */
  readonly sequence: number;
  /** Value of the entry; undefined: a tombstone. */
  readonly value: Uint8Array | undefined;
}

/** Inclusive start, exclusive end. */
export interface KeyRange {
  readonly gte?: Uint8Array;
  readonly lt?: Uint8Array;
  readonly reverse?: boolean;
  /** True if rows are read past the cache. */
  readonly background?: boolean;
  /** Position from which a forward walk goes on, set by its reader. */
  readonly cursor?: Cursor;
}

/** Set by the reader between two rows: what lies before this key is skipped without being read. */
export interface Cursor {
  from: Uint8Array | undefined;
}

/** Orders by key, then newest first. */
export const compareEntries = (a: Entry, b: Entry): number => compareBytes(a.key, b.key) || b.sequence - a.sequence;

/** Length of the longest key, in bytes. */
export const keyBytesMax: number = 16 * 1024;
