/**
 * Reads acknowledged bytes from any replica. A node that did not answer within what is usual is not waited for alone: the next replica
 * is asked as well, the first good answer wins and the loser is cancelled. A replica that refuses is passed over at once.
 */
import { type Failed, FailureError, type Outcome, ok, refused } from "@stamp/base";
import type { LeaderCalls } from "@stamp/metadata-store";
import { sleep, type World } from "@stamp/ports";
import { ExtentNode, toWire } from "@stamp/wire";
import { LocationCache } from "./location-cache.ts";
import { NodeScores } from "./node-scores.ts";
import type { Location, Place } from "./place.ts";

export interface ReaderOptions {
  readonly chunkBytesMax: number;
  readonly windowBytesMax: number;
  readonly roundsMax: number;
}

export const readerDefaults: ReaderOptions = { chunkBytesMax: 1024 * 1024, windowBytesMax: 4 * 1024 * 1024, roundsMax: 4 };

export class ExtentReader {
  readonly locations: LocationCache;
  readonly #world: World;
  readonly #options: ReaderOptions;
  readonly #scores: NodeScores;

  constructor(world: World, manager: LeaderCalls, options: ReaderOptions = readerDefaults) {
    this.#world = world;
    this.#options = options;
    this.locations = new LocationCache(world, manager);
    this.#scores = new NodeScores(world);
  }

  learn(locations: readonly Location[]): void {
    this.locations.learn(locations);
  }

  /** The bytes of one place, at most 4 MiB. Owned by the caller, possibly a view of a larger buffer. */
  async read(place: Place, options: { readonly timeoutMs: number; readonly signal?: AbortSignal }): Promise<Outcome<Uint8Array>> {
    const answer = await this.fromAny(
      place.extentId,
      options.timeoutMs,
      (address, timeoutMs, signal) =>
        this.#world.transport
          .client(address, ExtentNode)
          .read(
            { extentId: toWire(place.extentId), offsetBytes: toWire(place.offsetBytes), lengthBytes: place.lengthBytes },
            { timeoutMs, signal },
          ),
      options.signal,
    );
    if (!answer.ok) return answer;
    const { payload } = answer.value;
    if (payload.length !== place.lengthBytes) {
      return refused("internal", "bug", `asked for ${place.lengthBytes} bytes of extent ${place.extentId}, got ${payload.length}`);
    }
    return ok(payload);
  }

  /** The bytes of these places in order, in pieces of at most 1 MiB, read ahead by at most 4 MiB. Throws FailureError. */
  async *readPlaces(
    places: readonly Place[],
    options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): AsyncGenerator<Uint8Array, void, void> {
    const deadlineMs = this.#world.clock.monotonicMs() + options.timeoutMs;
    const controller = new AbortController();
    const onAbort = (): void => controller.abort();
    options.signal?.addEventListener("abort", onAbort, { once: true });
    const ahead: { readonly bytes: number; readonly answer: Promise<Outcome<Uint8Array>> }[] = [];
    let aheadBytes = 0;
    try {
      const pieces = split(places, this.#options.chunkBytesMax);
      let next = pieces.next();
      for (;;) {
        while (!next.done && (ahead.length === 0 || aheadBytes + next.value.lengthBytes <= this.#options.windowBytesMax)) {
          const timeoutMs = deadlineMs - this.#world.clock.monotonicMs();
          ahead.push({ bytes: next.value.lengthBytes, answer: this.read(next.value, { timeoutMs, signal: controller.signal }) });
          aheadBytes += next.value.lengthBytes;
          next = pieces.next();
        }
        const first = ahead.shift();
        if (first === undefined) return;
        const outcome = await first.answer;
        if (!outcome.ok) throw new FailureError(outcome.failure);
        aheadBytes -= first.bytes;
        yield outcome.value;
      }
    } finally {
      options.signal?.removeEventListener("abort", onAbort);
      controller.abort();
    }
  }

  /** Asks replicas of this extent until one answers well, in rounds over fresh locations, until the deadline. */
  async fromAny<T>(
    extentId: number,
    timeoutMs: number,
    ask: (address: string, timeoutMs: number, signal: AbortSignal) => Promise<Outcome<T>>,
    signal?: AbortSignal,
  ): Promise<Outcome<T>> {
    const { clock } = this.#world;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    let last: Failed = refused("deadlineExceeded", "timeout", `no time to read extent ${extentId}`);
    for (let round = 0; round < this.#options.roundsMax; round++) {
      const leftMs = deadlineMs - clock.monotonicMs();
      if (leftMs <= 0 || signal?.aborted) return last;
      const location = await this.locations.find(extentId, leftMs);
      if (!location.ok) return location;
      const addresses = this.#scores.order(location.value.addresses);
      const answer = await this.#race(addresses, deadlineMs, ask, signal);
      if (answer.ok) return answer;
      last = answer;
      // Perhaps they moved, or wait to learn a sealed length.
      this.locations.forget(extentId);
      if ((await sleep(clock, Math.min(20 * 4 ** round, 500), signal)) === "aborted") return last;
    }
    return last;
  }

  /** One pass over the replicas, the next one asked when the one before failed or is slow. */
  #race<T>(
    addresses: readonly string[],
    deadlineMs: number,
    ask: (address: string, timeoutMs: number, signal: AbortSignal) => Promise<Outcome<T>>,
    signal: AbortSignal | undefined,
  ): Promise<Outcome<T>> {
    const { clock } = this.#world;
    return new Promise((resolve) => {
      const controller = new AbortController();
      const onAbort = (): void => controller.abort();
      if (signal?.aborted) onAbort();
      signal?.addEventListener("abort", onAbort, { once: true });
      let next = 0;
      let pending = 0;
      let settled = false;
      let last: Failed = refused("unavailable", "unknownExtent", "no replica is known");
      const settle = (outcome: Outcome<T>): void => {
        if (settled) return;
        settled = true;
        signal?.removeEventListener("abort", onAbort);
        controller.abort();
        resolve(outcome);
      };
      const start = (): void => {
        const address = addresses[next++];
        if (address === undefined || settled) {
          if (pending === 0) settle(last);
          return;
        }
        pending++;
        let slow = false;
        const startedMs = clock.monotonicMs();
        const hedge = clock.after(this.#scores.hedgeAfterMs, () => {
          slow = true;
          if (next < addresses.length) start();
        });
        void ask(address, Math.max(1, deadlineMs - startedMs), controller.signal).then((outcome) => {
          hedge.cancel();
          pending--;
          if (settled) return;
          if (outcome.ok) {
            this.#scores.answered(address, clock.monotonicMs() - startedMs);
            settle(outcome);
            return;
          }
          this.#scores.failed(address);
          last = outcome;
          if (!slow || pending === 0) start();
        });
      };
      start();
    });
  }
}

function* split(places: readonly Place[], chunkBytesMax: number): Generator<Place, void, void> {
  for (const place of places) {
    for (let at = 0; at < place.lengthBytes; at += chunkBytesMax) {
      yield {
        extentId: place.extentId,
        offsetBytes: place.offsetBytes + at,
        lengthBytes: Math.min(chunkBytesMax, place.lengthBytes - at),
      };
    }
  }
}
