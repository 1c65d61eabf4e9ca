/**
 * A client that writes, without pause unless it is told a pace, and believes nothing: it keeps what was acknowledged, reads it back while
 * the fault is on and again at the end, and holds the stamp to
 *   - an acknowledged write is there, with its bytes, whatever happened meanwhile;
 *   - a counter that is overwritten under its ETag takes exactly the values that were written, in order: a write without an answer may have
 *     happened or not, nothing else may.
 * How long writes were held up is the longest time from the first attempt of a write to its acknowledgement, retries included.
 */
import { createHash } from "node:crypto";
import type { BlobClient, BlobResult } from "./blob-client.ts";

export interface CheckingOptions {
  readonly client: BlobClient;
  readonly container: string;
  readonly smallWriters?: number;
  readonly counters?: number;
  readonly largeWriters?: number;
  /** Pause of each client between its blobs of 4 MiB, so that the disk does not fill, in milliseconds. */
  readonly largePauseMs?: number;
  /** Pause of each of the others between its operations, so that the processors have room. Without it writers make none. */
  readonly pauseMs?: number;
}

export interface WriteCounts {
  acknowledged: number;
  /** Attempts without a definite answer. */
  unknown: number;
  /** Attempts refused with a 5xx. */
  refused: number;
}

export interface CheckingReport {
  readonly small: WriteCounts;
  readonly large: WriteCounts;
  readonly counter: WriteCounts;
  readonly readsWhileRunning: number;
  readonly readBack: number;
  /** Broken promises, in words. */
  readonly broken: readonly string[];
}

/** One write from its first attempt to its acknowledgement. */
export interface WriteTime {
  readonly startMs: number;
  readonly endMs: number;
}

interface Written {
  readonly digest: string;
  /** True once the write was acknowledged. Until then it may be absent. */
  acknowledged: boolean;
}

const smallBytes = 1_024;
const largeBytes = 4 * 1_024 * 1_024;
const retryPauseMs = 20;
const readPauseMs = 2;
const brokenMax = 20;
/** Value of a counter that was not written yet. */
const absent = -1;

const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("base64");
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export class CheckingClient {
  readonly #client: BlobClient;
  readonly #container: string;
  readonly #options: CheckingOptions;
  readonly #written = new Map<string, Written>();
  readonly #names: string[] = [];
  readonly #counters = new Map<string, ReadonlySet<number>>();
  readonly #counts = { small: zero(), large: zero(), counter: zero() };
  readonly #broken: string[] = [];
  readonly times: WriteTime[] = [];
  #running = false;
  #giveUp = false;
  #loops: Promise<void>[] = [];
  #reads = 0;
  #readBack = 0;

  constructor(options: CheckingOptions) {
    this.#client = options.client;
    this.#container = options.container;
    this.#options = options;
  }

  async start(): Promise<void> {
    const made = await this.#untilAnswered(() => this.#client.createContainer(this.#container));
    if (made.status !== 201 && made.status !== 409)
      throw new Error(`the container can't be made: ${made.status} ${made.body.toString("utf8").slice(0, 300)}`);
    this.#running = true;
    for (let writer = 0; writer < (this.#options.smallWriters ?? 4); writer++)
      this.#loops.push(this.#writeFresh(`small-${writer}`, smallBytes, this.#counts.small, this.#pauseMs));
    for (let writer = 0; writer < (this.#options.largeWriters ?? 1); writer++)
      this.#loops.push(this.#writeFresh(`large-${writer}`, largeBytes, this.#counts.large, this.#options.largePauseMs ?? 250));
    for (let counter = 0; counter < (this.#options.counters ?? 2); counter++) this.#loops.push(this.#count(`counter-${counter}`));
    this.#loops.push(this.#readAlong());
  }

  /** Stops writes; those under way have `timeoutMs` to be acknowledged. */
  async stop(timeoutMs: number): Promise<void> {
    this.#running = false;
    const timer = setTimeout(() => {
      this.#giveUp = true;
    }, timeoutMs);
    await Promise.all(this.#loops);
    clearTimeout(timer);
  }

  /** Reads everything that was written and compares. */
  async verify(concurrency = 32): Promise<CheckingReport> {
    const names = [...this.#written.keys()];
    let next = 0;
    const reader = async (): Promise<void> => {
      while (next < names.length && this.#broken.length < brokenMax) {
        const name = names[next++] as string;
        await this.#check(name, "afterwards");
        this.#readBack++;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, reader));
    for (const [name, possible] of this.#counters) {
      this.#isPossible(name, await this.#untilAnswered(() => this.#client.get(this.#container, name)), possible);
      this.#readBack++;
    }
    return { ...this.#counts, readsWhileRunning: this.#reads, readBack: this.#readBack, broken: this.#broken };
  }

  get #pauseMs(): number {
    return this.#options.pauseMs ?? 0;
  }

  get broken(): readonly string[] {
    return this.#broken;
  }

  async #writeFresh(prefix: string, bytes: number, counts: WriteCounts, pauseMs: number): Promise<void> {
    for (let number = 0; this.#running; number++) {
      const name = `${prefix}-${number}`;
      const body = contentOf(name, bytes);
      const entry: Written = { digest: digestOf(body), acknowledged: false };
      this.#written.set(name, entry);
      const startMs = performance.now();
      for (;;) {
        const result = await this.#client.put(this.#container, name, body);
        if (result.kind === "answer" && result.status === 201) {
          entry.acknowledged = true;
          this.#names.push(name);
          counts.acknowledged++;
          this.times.push({ startMs, endMs: performance.now() });
          break;
        }
        this.#failedAttempt(counts, `write of ${name}`, result);
        if (this.#giveUp || this.#broken.length >= brokenMax) return;
        await pause(retryPauseMs);
      }
      if (pauseMs > 0) await pause(pauseMs);
    }
  }

  /**
   * One writer per counter. `possible` is what it may be: one value, or several while an attempt without an answer may still land. Such an
   * attempt can't land any more once a write of its own succeeded under a newer ETag.
   */
  async #count(name: string): Promise<void> {
    const counts = this.#counts.counter;
    const possible = new Set([absent]);
    this.#counters.set(name, possible);
    let startMs = performance.now();
    while (this.#running || (possible.size > 1 && !this.#giveUp)) {
      if (this.#broken.length >= brokenMax) return;
      const read = await this.#client.get(this.#container, name);
      if (read.kind !== "answer" || read.status >= 500) {
        await pause(retryPauseMs);
        continue;
      }
      if (!this.#isPossible(name, read, possible)) return;
      const condition: Record<string, string> = read.status === 200 ? { "if-match": read.headers.etag ?? "" } : { "if-none-match": "*" };
      const wanted = Math.max(...possible) + 1;
      const result = await this.#client.put(this.#container, name, Buffer.from(String(wanted)), condition);
      if (result.kind === "answer" && result.status === 201) {
        possible.clear();
        possible.add(wanted);
        counts.acknowledged++;
        this.times.push({ startMs, endMs: performance.now() });
        if (this.#pauseMs > 0) await pause(this.#pauseMs);
        startMs = performance.now();
      } else if (result.kind === "answer" && (result.status === 412 || result.status === 409)) {
        // Right only when an earlier attempt landed between the read and the write.
        if (possible.size > 1) continue;
        this.#break(`${name}: nobody else writes it, but a write under its ETag got ${result.status}`);
        return;
      } else {
        this.#failedAttempt(counts, `write of ${name}`, result);
        if (result.kind !== "unsent") possible.add(wanted);
        await pause(retryPauseMs);
      }
    }
  }

  #isPossible(name: string, read: Extract<BlobResult, { kind: "answer" }>, possible: ReadonlySet<number>): boolean {
    const found = read.status === 404 ? absent : Number(read.body.toString("utf8"));
    if (possible.has(found) && (read.status === 200 || read.status === 404)) return true;
    this.#break(`${name} is ${found === absent ? "absent" : found} (${read.status}), but only ${[...possible].join(" or ")} can be`);
    return false;
  }

  /** Reads what was acknowledged, while the fault is on. */
  async #readAlong(): Promise<void> {
    for (let number = 0; this.#running; number++) {
      const name = this.#names[(number * 7_919) % Math.max(this.#names.length, 1)];
      if (name === undefined) await pause(50);
      else if (await this.#check(name, "while it ran")) this.#reads++;
      await pause(Math.max(readPauseMs, this.#pauseMs));
    }
  }

  /** Reads the object and compares it; false: it could not be read now. */
  async #check(name: string, when: string): Promise<boolean> {
    const entry = this.#written.get(name);
    if (entry === undefined) return false;
    const untilMs = performance.now() + 30_000;
    for (;;) {
      const wasAcknowledged = entry.acknowledged;
      const result = await this.#client.get(this.#container, name);
      if (result.kind === "answer" && result.status < 500) {
        if (result.status === 404 && !wasAcknowledged) return true;
        if (result.status !== 200) this.#break(`${name} was acknowledged, but reading it ${when} gives ${result.status}`);
        else if (digestOf(result.body) !== entry.digest) this.#break(`${name}: other bytes than were written, read ${when}`);
        return true;
      }
      if (when === "while it ran" && !this.#running) return false;
      if (performance.now() > untilMs) {
        if (when === "afterwards") this.#break(`${name} can't be read: ${describe(result)}`);
        return false;
      }
      await pause(retryPauseMs);
    }
  }

  #failedAttempt(counts: WriteCounts, what: string, result: BlobResult): void {
    if (result.kind === "answer" && result.status < 500) this.#break(`${what} was refused: ${describe(result)}`);
    else if (result.kind === "answer") counts.refused++;
    else counts.unknown++;
  }

  async #untilAnswered(attempt: () => Promise<BlobResult>): Promise<Extract<BlobResult, { kind: "answer" }>> {
    const untilMs = performance.now() + 30_000;
    for (;;) {
      const result = await attempt();
      if (result.kind === "answer" && result.status < 500) return result;
      if (performance.now() > untilMs) throw new Error(`the stamp does not answer: ${describe(result)}`);
      await pause(retryPauseMs);
    }
  }

  #break(what: string): void {
    if (this.#broken.length < brokenMax) this.#broken.push(what);
  }
}

const zero = (): WriteCounts => ({ acknowledged: 0, unknown: 0, refused: 0 });

const describe = (result: BlobResult): string =>
  result.kind === "answer" ? `${result.status} ${result.headers["x-ms-error-code"] ?? ""}`.trim() : result.why;

/** Returns the bytes that belong to this name only and do not compress. */
export function contentOf(name: string, bytes: number): Buffer {
  const body = Buffer.alloc(bytes);
  let state = createHash("sha256").update(name).digest().readUInt32LE(0) | 1;
  for (let at = 0; at + 4 <= bytes; at += 4) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    body.writeInt32LE(state, at);
  }
  return body;
}
