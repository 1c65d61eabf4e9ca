/**
 * Judges one blob with many writers by what clients saw of it. Three kinds of blobs:
 *
 *     log      an append blob: every acknowledged append is at the offset that was answered, once; its order is that of time; a read sees a
 *              beginning of the last content, with all that was acknowledged before the read
 *     pages    a page blob: a page has what was written last, or something that was written beside
 *     blocks   uncommitted blocks of a blob: all acknowledged ones are listed, and none that nobody sent
 */

/** Times of a request, in milliseconds. Without an answer it may happen at any time after it was sent. */
export interface CallTimes {
  readonly sentMs: number;
  readonly answeredMs: number | undefined;
}

interface Append extends CallTimes {
  readonly record: string;
  /** Undefined if it was not answered. */
  readonly offset: number | undefined;
}

/** A request that may be seen before it is answered. */
interface Sent {
  readonly sentMs: number;
  /** Time at which it was acknowledged. */
  answeredMs: number | undefined;
}

type Answered = CallTimes & { readonly answeredMs: number };

const before = (one: CallTimes, other: CallTimes): boolean => (one.answeredMs ?? Number.POSITIVE_INFINITY) <= other.sentMs;

const acknowledge =
  (one: Sent) =>
  (answeredMs: number): void => {
    one.answeredMs = answeredMs;
  };

/** Records of a log begin with "[" and end with "]". */
export const recordsOf = (content: string): readonly { readonly record: string; readonly offset: number }[] =>
  [...content.matchAll(/\[[^[\]]*\]/g)].map((match) => ({ record: match[0], offset: match.index }));

export class WritersJudge {
  readonly #appends: Append[] = [];
  readonly #behind: (Answered & { readonly position: number })[] = [];
  readonly #reads: (Answered & { readonly content: string })[] = [];
  readonly #pages = new Map<string, (Sent & { readonly value: number })[]>();
  readonly #blocks: (Sent & { readonly id: string })[] = [];

  appended(one: Append): void {
    this.#appends.push(one);
  }

  /** An append at this position was refused, because the log was longer. `position`: a length that the log had before. */
  refusedBehind(one: Answered & { readonly position: number }): void {
    this.#behind.push(one);
  }

  readLog(one: Answered & { readonly content: string }): void {
    this.#reads.push(one);
  }

  /** Call what it returns when the write is acknowledged. */
  writesPage(page: string, one: { readonly value: number; readonly sentMs: number }): (answeredMs: number) => void {
    const write = { ...one, answeredMs: undefined };
    const writes = this.#pages.get(page) ?? [];
    writes.push(write);
    this.#pages.set(page, writes);
    return acknowledge(write);
  }

  /** Returns the breach. `value`: 0 for a page that was never written. */
  readPage(page: string, read: Answered & { readonly value: number }): string | undefined {
    const writes = this.#pages.get(page) ?? [];
    const seen = writes.find(({ value }) => value === read.value);
    const origin: CallTimes = { sentMs: Number.NEGATIVE_INFINITY, answeredMs: Number.NEGATIVE_INFINITY };
    if (seen === undefined && read.value !== 0) return `page ${page} has ${read.value}, which nobody wrote`;
    const over = writes.find((write) => write !== seen && before(seen ?? origin, write) && before(write, read));
    return over && `page ${page} had ${read.value} at ${read.sentMs.toFixed(0)} ms, although ${over.value} was written over it before`;
  }

  /** Call what it returns when the block is acknowledged. */
  putsBlock(one: { readonly id: string; readonly sentMs: number }): (answeredMs: number) => void {
    const block = { ...one, answeredMs: undefined };
    this.#blocks.push(block);
    return acknowledge(block);
  }

  /** Returns the breach. */
  listBlocks(list: Answered & { readonly ids: readonly string[] }): string | undefined {
    const listed = new Set(list.ids);
    const lost = this.#blocks.find((block) => before(block, list) && !listed.has(block.id));
    if (lost)
      return `block ${lost.id} was acknowledged at ${lost.answeredMs?.toFixed(0)} ms and is not listed at ${list.sentMs.toFixed(0)} ms`;
    const sent = new Set(this.#blocks.map(({ id }) => id));
    const strange = list.ids.find((id) => !sent.has(id));
    if (strange !== undefined) return `block ${strange} is listed, and nobody put it`;
    return listed.size < list.ids.length ? "a block is listed twice" : undefined;
  }

  /** Returns the breach of the log, by its last content. */
  checkLog(content: string): string | undefined {
    const found = recordsOf(content);
    if (found.reduce((sum, { record }) => sum + record.length, 0) !== content.length) return "the log has bytes that are no record";
    const offsets = new Map(found.map(({ record, offset }) => [record, offset]));
    if (offsets.size < found.length) return "a record is in the log twice";
    const known = new Set(this.#appends.map(({ record }) => record));
    const strange = found.find(({ record }) => !known.has(record));
    if (strange) return `${strange.record} is in the log, and nobody appended it`;
    for (const { record, offset, answeredMs } of this.#appends) {
      if (answeredMs === undefined || offsets.get(record) === offset) continue;
      return `${record} was acknowledged at offset ${offset}, and is at ${offsets.get(record) ?? "none"}`;
    }
    return this.#wrongOrder(offsets) ?? this.#wrongRefusal(found) ?? this.#wrongRead(content, offsets);
  }

  #wrongOrder(offsets: ReadonlyMap<string, number>): string | undefined {
    const inLog = this.#appends.filter(({ record }) => offsets.has(record));
    for (const one of inLog) {
      const early = inLog.find((other) => before(one, other) && (offsets.get(other.record) ?? 0) < (offsets.get(one.record) ?? 0));
      if (early) return `${early.record} was appended after ${one.record} was acknowledged, and is before it`;
    }
    return undefined;
  }

  /** Whoever was told that the log is longer was told of a record that is there now. */
  #wrongRefusal(found: readonly { readonly record: string; readonly offset: number }[]): string | undefined {
    for (const { position, answeredMs } of this.#behind) {
      const next = found.find(({ offset }) => offset === position);
      const append = this.#appends.find(({ record }) => record === next?.record);
      if (append !== undefined && append.sentMs < answeredMs) continue;
      return `an append at ${position} was refused at ${answeredMs.toFixed(0)} ms, and what made the log longer is lost`;
    }
    return undefined;
  }

  #wrongRead(content: string, offsets: ReadonlyMap<string, number>): string | undefined {
    for (const read of this.#reads) {
      const atMs = read.sentMs.toFixed(0);
      if (!content.startsWith(read.content)) return `the log was read at ${atMs} ms with other records than it has in the end`;
      const lacks = this.#appends.find((one) => before(one, read) && (offsets.get(one.record) ?? 0) >= read.content.length);
      if (lacks) return `${lacks.record} was acknowledged before the log was read at ${atMs} ms, and was not seen`;
      const later = this.#reads.find((other) => before(read, other) && other.content.length < read.content.length);
      if (later) return `the log was shorter at ${later.sentMs.toFixed(0)} ms than at ${atMs} ms`;
    }
    return undefined;
  }
}
