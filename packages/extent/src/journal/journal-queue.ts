/**
 * The records that wait for the journal, and the order in which they are written. A record may be held until something
 * else is done (a pointer, until the bytes it points to are synced). The records of one extent are written in the order
 * in which they came, so those behind a held one wait as well; those of other extents do not. When an append fails,
 * those behind it of the same extent fail with it: none lands behind a hole.
 */
import type { ExtentId } from "@stamp/base";
import { journalHeaderBytes } from "./journal-record.ts";

export interface WaitingRecord<T> {
  readonly item: T;
  readonly extentId: ExtentId;
  readonly bodyBytes: number;
  /** True for an append: no other record can fail. */
  readonly append: boolean;
}

interface Entry<T> extends WaitingRecord<T> {
  readonly number: number;
  held: boolean;
  /** Reason why the record fails as soon as nothing holds it; undefined: it does not fail. */
  failing: string | undefined;
}

export interface FailedRecord<T> {
  readonly item: T;
  readonly why: string;
}

export class JournalQueue<T> {
  #entries: Entry<T>[] = [];
  #added = 0;
  #bodyBytes = 0;

  /** Body bytes of the waiting records. */
  get bodyBytes(): number {
    return this.#bodyBytes;
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /** Number of the record added last; they are counted from 1. */
  get lastNumber(): number {
    return this.#added;
  }

  /** Number of the first that waits; infinite when none does. */
  get firstNumber(): number {
    return this.#entries[0]?.number ?? Number.POSITIVE_INFINITY;
  }

  /** True if every waiting record is an append. Other records can't fail, and never wait for room. */
  get onlyAppends(): boolean {
    return this.#entries.every((entry) => entry.append);
  }

  /** Gives the record's number. */
  add(record: WaitingRecord<T>, held: boolean): number {
    this.#added += 1;
    this.#bodyBytes += record.bodyBytes;
    this.#entries.push({ ...record, number: this.#added, held, failing: undefined });
    return this.#added;
  }

  /** Releases a held record, or fails it for the reason `why`. Returns the records that fail by it. */
  letGo(number: number, why?: string): readonly FailedRecord<T>[] {
    const entry = this.#entries.find((each) => each.number === number);
    if (entry === undefined) return [];
    entry.held = false;
    const reason = entry.failing ?? why;
    if (reason === undefined) return [];
    return this.#fail((each) => each.extentId === entry.extentId && each.number >= number, reason);
  }

  /** Fails all appends; those that are held fail when they are let go. */
  failAppends(why: string): readonly FailedRecord<T>[] {
    return this.#fail(() => true, why);
  }

  #fail(which: (entry: Entry<T>) => boolean, why: string): readonly FailedRecord<T>[] {
    const failed: FailedRecord<T>[] = [];
    const kept: Entry<T>[] = [];
    for (const entry of this.#entries) {
      const fails = entry.append && which(entry);
      if (fails) entry.failing ??= why;
      if (fails && !entry.held) failed.push({ item: entry.item, why: entry.failing ?? why });
      else kept.push(entry);
      if (fails && !entry.held) this.#bodyBytes -= entry.bodyBytes;
    }
    this.#entries = kept;
    return failed;
  }

  get hasReady(): boolean {
    return this.#ready().next().done !== true;
  }

  *#ready(): Generator<Entry<T>> {
    const waiting = new Set<ExtentId>();
    for (const entry of this.#entries) {
      if (entry.held) waiting.add(entry.extentId);
      else if (!waiting.has(entry.extentId)) yield entry;
    }
  }

  /**
   * Takes the records that may be written now, in order: at least one, if there is any, and more as far as they fit
   * with their headers.
   */
  take(spaceBytes: number): T[] {
    const taken = new Set<Entry<T>>();
    let bytes = 0;
    for (const entry of this.#ready()) {
      bytes += journalHeaderBytes + entry.bodyBytes;
      if (taken.size > 0 && bytes > spaceBytes) break;
      taken.add(entry);
      this.#bodyBytes -= entry.bodyBytes;
    }
    this.#entries = this.#entries.filter((entry) => !taken.has(entry));
    return [...taken].map((entry) => entry.item);
  }
}
