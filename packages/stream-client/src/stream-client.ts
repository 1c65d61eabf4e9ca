/** The stream layer as the partition layer sees it: streams taken over, appended to, read and changed; extents located. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Outcome, type OwnerEpoch, ok, present, refused } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import type { Address, Client, World } from "@stamp/ports";
import { type ExtentLocation, fromWire, type StreamEditSchema, type StreamInfo, StreamManager, type StreamStat, toWire } from "@stamp/wire";
import { ManagerCalls } from "./manager-calls.ts";
import { OwnedStream } from "./owned-stream.ts";
import type { OwnedStreamLimits } from "./owned-stream-parts.ts";
import { type Location, locationFromWire } from "./place.ts";
import { ExtentReader } from "./read/extent-reader.ts";
import type { StreamClientOptions, StreamExtent } from "./types.ts";

const mebibyte = 1024 * 1024;
/** One attempt at one leader; taking a stream over includes a seal, which may wait 2 s for answers. */
const openAttemptMs = 5_000;
const locateAttemptMs = 1_000;

export interface OpenOptions {
  /** True to make streams that do not exist. */
  readonly create: boolean;
  readonly timeoutMs: number;
}

export class StreamClient {
  readonly reader: ExtentReader;
  readonly #world: World;
  readonly #manager: LeaderCalls;
  readonly #limits: OwnedStreamLimits;
  readonly #onExtentChange: StreamClientOptions["onExtentChange"];

  constructor(world: World, options: StreamClientOptions) {
    this.#world = world;
    this.#onExtentChange = options.onExtentChange;
    this.#manager = new LeaderCalls(world, { lockService: options.lockService, leaseName: "stream-manager" });
    this.#limits = {
      extentTargetBytes: options.extentTargetBytes ?? 64 * mebibyte,
      appendTimeoutMs: options.appendTimeoutMs ?? 800,
      inFlightBytesMax: options.inFlightBytesMax ?? 16 * mebibyte,
      inFlightAppendsMax: options.inFlightAppendsMax ?? 256,
      waitingBytesMax: options.waitingBytesMax ?? 48 * mebibyte,
    };
    const locate = async (extentIds: readonly number[], timeoutMs: number): Promise<Outcome<readonly Location[]>> => {
      const found = await this.locate(extentIds, { timeoutMs });
      return found.ok ? ok(found.value.map(locationFromWire)) : found;
    };
    this.reader = new ExtentReader(world, locate, { locationsMax: options.locationsMax ?? 10_000 });
  }

  /**
   * Takes the stream over: every lower epoch is fenced and the last extent sealed when it is answered. Repeated until the deadline (it
   * is idempotent). Refused with `staleOwnerEpoch` when a higher epoch has it, `streamNotFound` without `create`.
   */
  async openForOwner(name: string, ownerEpoch: OwnerEpoch, options: OpenOptions): Promise<Outcome<OwnedStream>> {
    const opened = await this.openAllForOwner([name], ownerEpoch, options);
    return opened.ok ? ok(present(opened.value[0], "the stream")) : opened;
  }

  /** Takes several streams over (at most 16) in one call, as `openForOwner` does one: all of them or none. */
  async openAllForOwner(names: readonly string[], ownerEpoch: OwnerEpoch, options: OpenOptions): Promise<Outcome<OwnedStream[]>> {
    const request = { names: [...names], ownerEpoch: toWire(ownerEpoch), create: options.create };
    const deadlineMs = this.#world.clock.monotonicMs() + options.timeoutMs;
    const answer = await this.#manager.call(
      options.timeoutMs,
      (address, timeoutMs) => this.#world.transport.client(address, StreamManager).openStreams(request, { timeoutMs }),
      { idempotent: true, attemptTimeoutMs: openAttemptMs, mayLackMethod: true },
    );
    if (!answer.ok && answer.failure.reason === "unknownMethod") return this.#openOneByOne(names, ownerEpoch, options);
    if (!answer.ok) return answer;
    const streams: OwnedStream[] = [];
    for (const info of answer.value.streams) {
      const stream = await this.#opened(info, ownerEpoch, deadlineMs);
      if (!stream.ok) return stream;
      streams.push(stream.value);
    }
    return ok(streams);
  }

  /** Opens streams one by one, at a stream manager of an earlier version during an upgrade. */
  async #openOneByOne(names: readonly string[], ownerEpoch: OwnerEpoch, options: OpenOptions): Promise<Outcome<OwnedStream[]>> {
    const deadlineMs = this.#world.clock.monotonicMs() + options.timeoutMs;
    const streams: OwnedStream[] = [];
    for (const name of names) {
      const request = { name, ownerEpoch: toWire(ownerEpoch), create: options.create };
      const answer = await this.#manager.call(
        Math.max(1, deadlineMs - this.#world.clock.monotonicMs()),
        (address, timeoutMs) => this.#world.transport.client(address, StreamManager).openStream(request, { timeoutMs }),
        { idempotent: true, attemptTimeoutMs: openAttemptMs },
      );
      const stream = answer.ok ? await this.#opened(answer.value, ownerEpoch, deadlineMs) : answer;
      if (!stream.ok) return stream;
      streams.push(stream.value);
    }
    return ok(streams);
  }

  async #opened(info: StreamInfo, ownerEpoch: OwnerEpoch, deadlineMs: number): Promise<Outcome<OwnedStream>> {
    // The pages after the first: nobody but this owner changes the list.
    const calls = new ManagerCalls(this.#world, this.#manager, info.name, ownerEpoch);
    const leftMs = Math.max(1, deadlineMs - this.#world.clock.monotonicMs());
    const rest = info.more ? await calls.extents(info.extents.at(-1)?.extentId ?? 0n, leftMs) : ok([]);
    if (!rest.ok) return rest;
    const locations = [...info.extents, ...rest.value].map(locationFromWire);
    const open = locations.find(({ sealedLengthBytes }) => sealedLengthBytes === undefined);
    if (open !== undefined)
      return refused("unavailable", "notReady", `extent ${open.extentId} of stream ${info.name} has no sealed length yet`);
    this.reader.learn(locations);
    const extents = locations.map(({ extentId, sealedLengthBytes }) => ({ extentId, sealedLengthBytes }));
    return ok(Object.assign(this.ownedStream(info.name, ownerEpoch, extents), { lineage: fromWire(info.lineage) }));
  }

  /**
   * Returns a stream that this owner has made by `multiModify` of lists that it knows: all extents sealed, and `open` what was opened behind them
   * by it. Nothing has to be asked.
   */
  ownedStream(name: string, ownerEpoch: OwnerEpoch, extents: readonly StreamExtent[], open?: Location): OwnedStream {
    const parts = {
      world: this.#world,
      manager: this.#manager,
      reader: this.reader,
      limits: this.#limits,
      onExtentChange: this.#onExtentChange,
    };
    return new OwnedStream(parts, name, ownerEpoch, extents, open);
  }

  /** Gives a hint: the first extent that a stream will want which `multiModify` is about to make is made now. `lastExtentId`: 0 when it has none. */
  async allocateAhead(name: string, ownerEpoch: OwnerEpoch, lastExtentId: number, options: { readonly timeoutMs: number }): Promise<void> {
    const request = { name, ownerEpoch: toWire(ownerEpoch), extentId: toWire(lastExtentId) };
    await this.#call(options.timeoutMs, true, (manager, timeoutMs) => manager.allocateAhead(request, { timeoutMs }));
  }

  /** Returns the owner epoch, version and size of the list. Refused with `streamNotFound`. */
  stat(name: string, options: { readonly timeoutMs: number }): Promise<Outcome<StreamStat>> {
    return this.#call(options.timeoutMs, true, (manager, timeoutMs) => manager.statStream({ name }, { timeoutMs }));
  }

  /**
   * Makes one atomic change of several streams' lists: each edit names the owner epoch and, when given, the list version that must still be
   * recorded. Refused with `staleOwnerEpoch`, `conflict` (another list version; an extent that is not sealed), `streamExists`, `streamNotFound`.
   * After an unknown outcome `stat` of a stream that got a new owner epoch says whether it happened. Gives what was opened (`openAhead`), by
   * stream.
   */
  async multiModify(
    edits: readonly MessageInitShape<typeof StreamEditSchema>[],
    options: { readonly timeoutMs: number },
  ): Promise<Outcome<ReadonlyMap<string, Location>>> {
    const request = { edits: [...edits] };
    const answer = await this.#call(options.timeoutMs, false, (manager, timeoutMs) => manager.multiModify(request, { timeoutMs }));
    if (!answer.ok) return answer;
    return ok(
      new Map(answer.value.opened.flatMap(({ stream, extent }) => (extent === undefined ? [] : [[stream, locationFromWire(extent)]]))),
    );
  }

  /** Deletes a stream. Idempotent. What no other list holds is kept for the grace period and then deleted. */
  async deleteStream(name: string, ownerEpoch: OwnerEpoch, options: { readonly timeoutMs: number }): Promise<Outcome<void>> {
    const request = { name, ownerEpoch: toWire(ownerEpoch) };
    const answer = await this.#call(options.timeoutMs, true, (manager, timeoutMs) => manager.deleteStream(request, { timeoutMs }));
    return answer.ok ? ok() : answer;
  }

  #call<T>(
    timeoutMs: number,
    idempotent: boolean,
    work: (manager: Client<typeof StreamManager>, timeoutMs: number) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> {
    const attempt = (address: Address, leftMs: number) => work(this.#world.transport.client(address, StreamManager), leftMs);
    return this.#manager.call(timeoutMs, attempt, { idempotent, attemptTimeoutMs: openAttemptMs });
  }

  /** Finds where extents are. Unknown extents are left out. */
  async locate(extentIds: readonly number[], options: { readonly timeoutMs: number }): Promise<Outcome<readonly ExtentLocation[]>> {
    const request = { extentIds: extentIds.map(toWire) };
    const answer = await this.#manager.call(
      options.timeoutMs,
      (address, timeoutMs) => this.#world.transport.client(address, StreamManager).locateExtents(request, { timeoutMs }),
      { idempotent: true, attemptTimeoutMs: locateAttemptMs },
    );
    return answer.ok ? ok(answer.value.extents) : answer;
  }
}
