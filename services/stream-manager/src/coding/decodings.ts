/**
 * Decodings that people ask for: as many at once as codings, not begun faster than the rate that both share, the others in order.
 *
 * Invariants:
 * - One that waits is in no record, so its lost fragments are made anew meanwhile. A new leader does not know it.
 * - A decoding that an earlier leader recorded goes on at once, and counts among those that run.
 * - One that can't begin now goes behind the others.
 */
import { type ExtentId, type Outcome, ok, refused } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { notDecodable } from "@stamp/stream";
import type { RepairPace } from "../repair/repair-pace.ts";
import type { Term } from "../term/term.ts";

/** Time after one could not begin until the next is tried, in milliseconds. */
const restMs = 1_000;

/** Rate that codings, decodings and the comparison of what an earlier release coded share. */
export type CodingPace = RepairPace<"codings" | "decodings" | "checksums">;

export class Decodings {
  readonly #term: Term;
  readonly #pace: CodingPace;
  /** Function that records the attempt in the metadata. */
  readonly #record: (id: ExtentId) => Promise<Outcome<void>>;
  /** Sealed lengths in bytes, by extent, in the order of the requests. */
  readonly #waiting = new Map<ExtentId, number>();
  #waitingBytes = 0;
  #starting = 0;
  #working = false;
  #restsUntilMs = 0;

  constructor(term: Term, pace: CodingPace, record: (id: ExtentId) => Promise<Outcome<void>>) {
    this.#term = term;
    this.#pace = pace;
    this.#record = record;
  }

  /** Facts about decodings, for the status. */
  get facts() {
    return { waiting: this.#waiting.size, waitingBytes: this.#waitingBytes, running: this.#running };
  }

  waits(id: ExtentId): boolean {
    return this.#waiting.has(id);
  }

  /** Asks for a decoding. Resolves when the attempt is recorded, or at once if it has to wait. */
  async request(id: ExtentId): Promise<Outcome<void>> {
    if (this.#waiting.has(id)) return ok();
    const why = notDecodable(this.#term.state.extent(id));
    if (why !== undefined) return refused("aborted", "conflict", `extent ${id} can't be decoded: ${why}`);
    if (this.#waiting.size === 0 && this.#hasRoom && this.#pace.waitMs("decodings") === 0) return this.#start(id);
    this.#add(id);
    void this.#work();
    return ok();
  }

  /** Begins waiting decodings. Called every tick, and when an attempt has ended. */
  tick(): void {
    if (this.#waiting.size > 0) void this.#work();
  }

  get #running(): number {
    const { state } = this.#term;
    return [...state.attempts()].filter((id) => state.extent(id)?.attempt?.kind === "decode").length;
  }

  get #hasRoom(): boolean {
    return this.#starting === 0 && this.#running < this.#term.config.codingsMax;
  }

  #lengthOf(id: ExtentId): number {
    return this.#term.state.extent(id)?.sealedLengthBytes ?? 0;
  }

  #add(id: ExtentId): void {
    const bytes = this.#lengthOf(id);
    this.#waiting.set(id, bytes);
    this.#waitingBytes += bytes;
  }

  #take(): ExtentId | undefined {
    const [first] = this.#waiting;
    if (first === undefined) return undefined;
    const [id, bytes] = first;
    this.#waiting.delete(id);
    this.#waitingBytes -= bytes;
    return id;
  }

  async #work(): Promise<void> {
    const { ended, logger, clock } = { ...this.#term.world, ended: this.#term.ended };
    if (this.#working) return;
    this.#working = true;
    while (this.#waiting.size > 0 && this.#hasRoom && !ended.aborted && clock.monotonicMs() >= this.#restsUntilMs) {
      const waitMs = this.#pace.waitMs("decodings");
      if (waitMs > 0) {
        await sleep(clock, waitMs, ended);
        continue;
      }
      const id = this.#take();
      const begun = id === undefined ? ok() : await this.#start(id);
      if (id === undefined || begun.ok || ended.aborted) continue;
      this.#restsUntilMs = clock.monotonicMs() + restMs;
      const extent = this.#term.state.extent(id);
      // An attempt at it may be under way, or nodes may be away.
      const again = extent?.phase === "sealed" && extent.coded !== undefined;
      if (again) this.#add(id);
      logger.info("an extent is not decoded now", { extent: id, why: begun.failure.message, again });
    }
    this.#working = false;
  }

  /** Starts a decoding. Only a decoding that begins takes from the rate. */
  async #start(id: ExtentId): Promise<Outcome<void>> {
    this.#starting += 1;
    const begun = await this.#record(id).finally(() => {
      this.#starting -= 1;
    });
    if (begun.ok) this.#pace.spend("decodings", this.#lengthOf(id));
    return begun;
  }
}
