/**
 * Reads acknowledged bytes from any replica. What is at an acknowledged place never changes, so any answer will do; a replica that may
 * not serve (away, stale, damaged) refuses, and another is asked. Locations come from a bounded cache; only when every replica of a
 * cached location refused is the stream manager asked. An extent that is stored as fragments is read from these (coded-reads.ts).
 */

import { create } from "@bufbuild/protobuf";
import { concatBytes, type Failed, type Failure, FailureError, type Outcome, ok, refused } from "@stamp/base";
import { causedBy, jittered, sleep, type World } from "@stamp/ports";
import { ExtentNode, fromWire, type ReadBlocksResponse, ReadBlocksResponseSchema, toWire } from "@stamp/wire";
import type { Location } from "../place.ts";
import type { Place, ReadOptions, ReadPlacesOptions } from "../types.ts";
import { type CodedAt, CodedReads, isCoded, type RawBlocks } from "./coded-reads.ts";
import type { KnownPlaces } from "./fragment-race.ts";
import type { HedgeFigures } from "./hedge-budget.ts";
import { LocationCache } from "./location-cache.ts";
import { lengthOfRun, type PlaceRun, runsOfPlaces } from "./place-runs.ts";
import { NodeHistories, type RaceOptions, type ReplicaAttempt, raceReplicas } from "./replica-race.ts";

export const readBytesMax: number = 4 * 1024 * 1024;
const windowBytesMax = 4 * 1024 * 1024;
/** Number of calls that one reader of places has under way. Bounds what a window of tiny places asks for. */
const readsAheadMax = 16;
const backoffStartMs = 10;
const backoffMaxMs = 250;
/** Extents are divided into regions of this size, in bytes. Reads of one region go to the same replica first. */
const regionBytes = 1024 * 1024;

/** Place of a read, with its length if that is known. */
type Start = Pick<Place, "extentId" | "offsetBytes"> & Partial<Pick<Place, "lengthBytes">>;

export type LocateExtents = (extentIds: readonly number[], timeoutMs: number) => Promise<Outcome<readonly Location[]>>;

export class ExtentReader {
  readonly #world: World;
  readonly #locate: LocateExtents;
  readonly #locations: LocationCache;
  readonly #histories = new NodeHistories();
  readonly #coded: CodedReads;
  readonly #locating = new Map<number, Promise<Outcome<Location>>>();

  constructor(world: World, locate: LocateExtents, options: { readonly locationsMax: number }) {
    this.#world = world;
    this.#locate = locate;
    this.#coded = new CodedReads(world, this.#histories);
    this.#locations = new LocationCache(options.locationsMax);
  }

  /** Counts of reads of coded extents and of their hedges, since the process started. */
  get hedges(): HedgeFigures {
    return this.#histories.hedges.figures;
  }

  /** Learns locations, so that a read need not ask for them. */
  learn(locations: readonly Location[]): void {
    for (const location of locations) {
      if (location.addresses.length > 0 || isCoded(location)) this.#locations.learn(location);
    }
  }

  /** Returns the bytes of a place (at most 4 MiB, inside one block). Borrowed from the message they came in. */
  async read(place: Place, options: ReadOptions): Promise<Outcome<Uint8Array>> {
    if (place.lengthBytes < 1 || place.lengthBytes > readBytesMax) {
      return refused("invalidArgument", "badRequest", `a read of ${place.lengthBytes} bytes`);
    }
    const { offsetBytes, lengthBytes } = place;
    return this.#fromReplicas(
      place,
      options,
      (address, timeoutMs, signal) => this.#readAt(address, place, { ...options, timeoutMs, signal }),
      (at, left, places) => this.#coded.read(at, offsetBytes, lengthBytes, left, places),
    );
  }

  async #readAt(address: string, place: Place, options: ReadOptions): Promise<Outcome<Uint8Array>> {
    const request = { extentId: toWire(place.extentId), offsetBytes: toWire(place.offsetBytes), lengthBytes: place.lengthBytes };
    const answer = await this.#world.transport.client(address, ExtentNode).read(request, { ...options, ...causedBy(options.cause) });
    return answer.ok ? exactly(answer.value.payload, place.lengthBytes, address) : answer;
  }

  /** Returns the bytes of a run of places (see place-runs.ts), in one call. */
  async #readRun(run: PlaceRun, options: ReadOptions): Promise<Outcome<Uint8Array>> {
    const first = run[0];
    if (run.length === 1) return this.read(first, options);
    const request = {
      extentId: toWire(first.extentId),
      offsetsBytes: run.map(({ offsetBytes }) => toWire(offsetBytes)),
      lengthsBytes: run.map(({ lengthBytes }) => lengthBytes),
    };
    const fromNode = async (address: string, timeoutMs: number, signal: AbortSignal): Promise<Outcome<Uint8Array>> => {
      const asked = { timeoutMs, signal, ...causedBy(options.cause) };
      const answer = await this.#world.transport.client(address, ExtentNode).readPlaces(request, asked);
      if (answer.ok) return exactly(answer.value.payload, lengthOfRun(run), address);
      if (answer.failure.code !== "unimplemented") return answer;
      // A node of an older version, in the middle of an upgrade.
      const pieces: Uint8Array[] = [];
      for (const place of run) {
        const piece = await this.#readAt(address, place, { ...options, timeoutMs, signal });
        if (!piece.ok) return piece;
        pieces.push(piece.value);
      }
      return ok(concatBytes(pieces));
    };
    return this.#fromReplicas({ ...first, lengthBytes: lengthOfRun(run) }, options, fromNode, (at, left, places) =>
      this.#codedRun(at, run, left, places),
    );
  }

  /** Reads a run of places as a whole, because it spans little more than they. */
  async #codedRun(at: CodedAt, run: PlaceRun, options: ReadOptions, places: KnownPlaces): Promise<Outcome<Uint8Array>> {
    const begin = Math.min(...run.map(({ offsetBytes }) => offsetBytes));
    const end = Math.max(...run.map(({ offsetBytes, lengthBytes }) => offsetBytes + lengthBytes));
    const span = await this.#coded.read(at, begin, end - begin, options, places);
    if (!span.ok) return span;
    const piece = ({ offsetBytes, lengthBytes }: Place): Uint8Array =>
      span.value.subarray(offsetBytes - begin, offsetBytes - begin + lengthBytes);
    return ok(concatBytes(run.map(piece)));
  }

  /** Returns the whole blocks from a block's header on, of a sealed extent of this length. */
  async readBlocks(
    extentId: number,
    offsetBytes: number,
    sealedLengthBytes: number,
    maxBytes: number,
    options: ReadOptions,
  ): Promise<Outcome<ReadBlocksResponse>> {
    const fromNode = async (address: string, timeoutMs: number, signal: AbortSignal): Promise<Outcome<ReadBlocksResponse>> => {
      const request = { extentId: toWire(extentId), offsetBytes: toWire(offsetBytes), maxBytes };
      const answer = await this.#world.transport.client(address, ExtentNode).readBlocks(request, { timeoutMs, signal });
      if (!answer.ok) return answer;
      const next = fromWire(answer.value.nextOffsetBytes);
      if (next <= offsetBytes || (answer.value.end && next < sealedLengthBytes)) {
        return refused("unavailable", "extentStale", `${address} holds extent ${extentId} to ${next} of ${sealedLengthBytes} bytes`);
      }
      return answer;
    };
    const coded = (at: CodedAt, left: ReadOptions, places: KnownPlaces) => this.#codedBlocks(at, offsetBytes, maxBytes, left, places);
    return this.#fromReplicas({ extentId, offsetBytes }, options, fromNode, coded);
  }

  async #codedBlocks(
    at: CodedAt,
    offsetBytes: number,
    maxBytes: number,
    options: ReadOptions,
    places: KnownPlaces,
  ): Promise<Outcome<ReadBlocksResponse>> {
    const blocks = await this.#coded.readBlocks(at, offsetBytes, maxBytes, options, places);
    return blocks.ok ? ok(blocksOnWire(blocks.value, at.sealedLengthBytes)) : blocks;
  }

  /**
   * Like `readBlocks`, up to whatever end a replica knows to be acknowledged, which may be nothing. Each replica is
   * asked at most once.
   */
  async readBlocksOnce(
    extentId: number,
    offsetBytes: number,
    maxBytes: number,
    options: ReadOptions,
  ): Promise<Outcome<ReadBlocksResponse>> {
    const request = { extentId: toWire(extentId), offsetBytes: toWire(offsetBytes), maxBytes };
    const deadlineMs = this.#world.clock.monotonicMs() + options.timeoutMs;
    const isCached = this.#locations.get(extentId) !== undefined;
    const located = await this.#locationOf(extentId, options.timeoutMs);
    if (!located.ok) return located;
    const timeoutLeftMs = Math.max(1, deadlineMs - this.#world.clock.monotonicMs());
    const left = { ...options, timeoutMs: timeoutLeftMs };
    if (isCoded(located.value)) return this.#codedBlocks(located.value, offsetBytes, maxBytes, left, this.#known(extentId, isCached));
    const { addresses } = located.value;
    const race = { deadlineMs, signal: options.signal, isCached };
    const result = await this.#race({ extentId, offsetBytes }, addresses, race, (address, timeoutMs, signal) =>
      this.#world.transport.client(address, ExtentNode).readBlocks(request, { timeoutMs, signal }),
    );
    return "answer" in result ? ok(result.answer) : (result.failures.at(-1) as Failed);
  }

  /**
   * Yields the bytes of all places, in order, in chunks of at most 1 MiB. Neighbouring places of one extent are one call and one chunk. Up to
   * `windowBytes` in at most `readsAheadMax` calls are asked for ahead. Throws FailureError. Leaving early cancels what was asked for.
   */
  async *readPlaces(places: Iterable<Place>, options: ReadPlacesOptions = {}): AsyncGenerator<Uint8Array, undefined, undefined> {
    const windowBytes = Math.min(options.windowBytes ?? windowBytesMax, windowBytesMax);
    const timeoutMs = options.timeoutMs ?? 10_000;
    const stop = new AbortController();
    const onAbort = (): void => stop.abort();
    options.signal?.addEventListener("abort", onAbort, { once: true });
    if (options.signal?.aborted) stop.abort();
    const runs = runsOfPlaces(places, windowBytes);
    const ahead: { readonly lengthBytes: number; readonly answer: Promise<Outcome<Uint8Array>> }[] = [];
    let aheadBytes = 0;
    let upcoming = runs.next();
    try {
      for (;;) {
        while (!upcoming.done && ahead.length < readsAheadMax) {
          const lengthBytes = lengthOfRun(upcoming.value);
          if (ahead.length > 0 && aheadBytes + lengthBytes > windowBytes) break;
          aheadBytes += lengthBytes;
          ahead.push({ lengthBytes, answer: this.#readRun(upcoming.value, { timeoutMs, signal: stop.signal, cause: options.cause }) });
          upcoming = runs.next();
        }
        const first = ahead.shift();
        if (first === undefined) return undefined;
        const outcome = await first.answer;
        if (!outcome.ok) throw new FailureError(outcome.failure);
        aheadBytes -= first.lengthBytes;
        try {
          yield outcome.value;
        } finally {
          if (options.isBorrowed) this.#world.transport.giveBack?.(outcome.value);
        }
      }
    } finally {
      options.signal?.removeEventListener("abort", onAbort);
      stop.abort();
    }
  }

  /** Asks replicas until one answers, the deadline passes, or all of a fresh location say what will not change by waiting. */
  async #fromReplicas<T>(
    at: Start,
    options: ReadOptions,
    attempt: ReplicaAttempt<T>,
    coded: (at: CodedAt, options: ReadOptions, places: KnownPlaces) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const { clock, random } = this.#world;
    const { extentId } = at;
    const deadlineMs = clock.monotonicMs() + options.timeoutMs;
    let backoffMs = backoffStartMs;
    let last: Failed | undefined;
    for (;;) {
      if (options.signal?.aborted) return cancelled;
      const fresh = this.#locations.get(extentId) === undefined;
      // Whoever has moved since would be waited for until the deadline if another node of the old location is silent.
      const isCached = !fresh && this.#world.rules.on("doubtedPlacesRefreshed");
      const located = await this.#locationOf(extentId, deadlineMs - clock.monotonicMs());
      if (located.ok && isCoded(located.value)) {
        const left = { ...options, timeoutMs: Math.max(1, deadlineMs - clock.monotonicMs()) };
        const answer = await coded(located.value, left, this.#known(extentId, isCached));
        if (answer.ok) return answer;
        last = answer;
        this.#locations.forget(extentId);
        // A lost or damaged fragment may be mended by a repair; bytes beyond the end never come.
        if (fresh && (answer.failure.reason === "outOfRange" || answer.failure.code === "invalidArgument")) return last;
        if (!fresh) continue;
      } else if (located.ok) {
        const race = { deadlineMs, signal: options.signal, isCached };
        const result = await this.#race(at, located.value.addresses, race, attempt);
        if ("answer" in result) return ok(result.answer);
        last = result.failures.at(-1) as Failed;
        this.#locations.forget(extentId);
        if (fresh && result.failures.every(({ failure }) => isFinal(failure))) return last;
        // A stale location is asked for again at once; anything else is given time.
        if (!fresh) continue;
      } else {
        last = located;
        if (located.failure.reason === "unknownExtent") return located;
      }
      if (options.signal?.aborted) return cancelled;
      const pauseMs = jittered(random, backoffMs);
      backoffMs = Math.min(backoffMs * 2, backoffMaxMs);
      if (clock.monotonicMs() + pauseMs >= deadlineMs) return last;
      await sleep(clock, pauseMs, options.signal);
    }
  }

  /**
   * Everybody begins at the same replica of a region, so that it is in the page cache of one node and not of three; regions that follow each
   * other are at different ones, so that whoever reads much at once reads it from several disks.
   */
  #race<T>(at: Start, addresses: readonly string[], options: RaceOptions, attempt: ReplicaAttempt<T>) {
    const { clock } = this.#world;
    const first = (at.extentId + Math.floor(at.offsetBytes / regionBytes)) % addresses.length;
    const order = this.#histories.order(addresses, first, clock.monotonicMs());
    return raceReplicas(clock, this.#histories, order, { ...options, bytes: at.lengthBytes }, attempt);
  }

  #known(extentId: number, isCached: boolean): KnownPlaces {
    return { isCached, disproved: () => this.#locations.forget(extentId) };
  }

  async #locationOf(extentId: number, timeoutMs: number): Promise<Outcome<Location>> {
    const cached = this.#locations.get(extentId);
    return cached === undefined ? this.#find(extentId, timeoutMs) : ok(cached);
  }

  /** Looks an extent up, with one question for all readers that wait. */
  #find(extentId: number, timeoutMs: number): Promise<Outcome<Location>> {
    let asked = this.#locating.get(extentId);
    if (asked === undefined) {
      asked = this.#ask(extentId, timeoutMs).finally(() => this.#locating.delete(extentId));
      this.#locating.set(extentId, asked);
    }
    return asked;
  }

  async #ask(extentId: number, timeoutMs: number): Promise<Outcome<Location>> {
    if (timeoutMs <= 0) return refused("deadlineExceeded", "timeout", `no time left to locate extent ${extentId}`);
    const answer = await this.#locate([extentId], timeoutMs);
    if (!answer.ok) return answer;
    this.learn(answer.value);
    const found = answer.value.find((location) => location.extentId === extentId);
    if (found === undefined) return refused("notFound", "unknownExtent", `extent ${extentId} is unknown to the stream manager`);
    if (found.addresses.length === 0 && !isCoded(found))
      return refused("unavailable", "noPlacement", `extent ${extentId} has no replica now`);
    return ok(found);
  }
}

const blocksOnWire = ({ offsetsBytes, payload, nextOffsetBytes }: RawBlocks, sealedLengthBytes: number): ReadBlocksResponse =>
  create(ReadBlocksResponseSchema, {
    offsetsBytes: offsetsBytes.map(toWire),
    nextOffsetBytes: toWire(nextOffsetBytes),
    end: nextOffsetBytes >= sealedLengthBytes,
    payload,
  });

/** True if every replica of a fresh location answers so: waiting will not help. */
const isFinal = (failure: Failure): boolean =>
  failure.reason === "unknownExtent" ||
  failure.reason === "outOfRange" ||
  failure.reason === "damaged" ||
  failure.code === "invalidArgument";

const cancelled: Failed = refused("cancelled", "cancelled", "the reader went away");

const exactly = (bytes: Uint8Array, lengthBytes: number, address: string): Outcome<Uint8Array> =>
  bytes.length === lengthBytes ? ok(bytes) : refused("internal", "outOfRange", `${address} gave ${bytes.length} bytes for ${lengthBytes}`);
