/** The stream layer as the partition layer sees it: streams taken over, appended to and read; extents located. */
import { type Outcome, type OwnerEpoch, ok } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { type ExtentLocation, StreamManager, toWire } from "@stamp/wire";
import { ExtentReader } from "./extent-reader.ts";
import { OwnedStream, type OwnedStreamLimits } from "./owned-stream.ts";
import { type Location, locationFromWire } from "./place.ts";
import type { StreamClientOptions } from "./types.ts";

const mebibyte = 1024 * 1024;
/** One attempt at one leader; taking a stream over includes a seal, which may wait 2 s for answers. */
const openAttemptMs = 5_000;
const locateAttemptMs = 1_000;

export class StreamClient {
  readonly reader: ExtentReader;
  readonly #world: World;
  readonly #manager: LeaderCalls;
  readonly #limits: OwnedStreamLimits;

  constructor(world: World, options: StreamClientOptions) {
    this.#world = world;
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
  async openForOwner(
    name: string,
    ownerEpoch: OwnerEpoch,
    options: { readonly create: boolean; readonly timeoutMs: number },
  ): Promise<Outcome<OwnedStream>> {
    const request = { name, ownerEpoch: toWire(ownerEpoch), create: options.create };
    const answer = await this.#manager.call(
      options.timeoutMs,
      (address, timeoutMs) => this.#world.transport.client(address, StreamManager).openStream(request, { timeoutMs }),
      { idempotent: true, attemptTimeoutMs: openAttemptMs },
    );
    if (!answer.ok) return answer;
    const locations = answer.value.extents.map(locationFromWire);
    this.reader.learn(locations);
    const extents = locations.map(({ extentId, sealedLengthBytes }) => ({ extentId, sealedLengthBytes }));
    const parts = { world: this.#world, manager: this.#manager, reader: this.reader, limits: this.#limits };
    return ok(new OwnedStream(parts, name, ownerEpoch, extents));
  }

  /** Unknown extents are left out. */
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
