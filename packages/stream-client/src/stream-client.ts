/** The partition layer's door to the stream layer: streams opened for ownership, and places read from any replica. */
import { type Outcome, ok } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { StreamManager, toWire } from "@stamp/wire";
import { ExtentReader } from "./extent-reader.ts";
import { OwnedStream, type OwnedStreamOptions, ownedStreamDefaults } from "./owned-stream.ts";
import { locationFromWire } from "./place.ts";

export class StreamClient {
  readonly reader: ExtentReader;
  readonly #world: World;
  readonly #manager: LeaderCalls;
  readonly #options: OwnedStreamOptions;

  constructor(world: World, options: { readonly lockService: string } & Partial<OwnedStreamOptions>) {
    this.#world = world;
    this.#options = { ...ownedStreamDefaults, ...options };
    this.#manager = new LeaderCalls(world, { lockService: options.lockService, leaseName: "stream-manager" });
    this.reader = new ExtentReader(world, this.#manager);
  }

  /**
   * Takes the stream over: records the owner epoch, so that every lower one is refused from now on, and seals what was open. `onFenced`
   * runs once when a higher epoch took it away. Refused with `staleOwnerEpoch`, or `streamNotFound` without `create`.
   */
  async openForOwner(
    name: string,
    ownerEpoch: number,
    options: { readonly create?: boolean; readonly timeoutMs: number; readonly onFenced: (why: string) => void },
  ): Promise<Outcome<OwnedStream>> {
    const request = { name, ownerEpoch: toWire(ownerEpoch), create: options.create ?? false };
    const answer = await this.#manager.call(
      options.timeoutMs,
      (address, timeoutMs) => this.#world.transport.client(address, StreamManager).openStream(request, { timeoutMs }),
      { idempotent: true, attemptTimeoutMs: 5_000 },
    );
    if (!answer.ok) return answer;
    const opened = { name, ownerEpoch, extents: answer.value.extents.map(locationFromWire) };
    return ok(new OwnedStream(this.#world, this.#manager, this.reader, opened, options.onFenced, this.#options));
  }
}
