/**
 * A stream in the hands of its owner: appends in order, pipelined, to the last extent's primary; when anything fails, seal, next
 * extent, re-append what is not below the sealed length (AppendWindow decides). No stream-manager call on a steady-state append.
 *
 * An append that was sent is resolved only by an acknowledgement or by a seal; a caller whose deadline passes is told `unknown` and the
 * append goes on. When anybody says that the owner epoch is too low, the stream is fenced: nothing more is sent, ever.
 */
import { assert, type Failure, type Outcome, ok, refused, totalLength, unknownOutcome } from "@stamp/base";
import { frameBytes, frameHeaderBytes } from "@stamp/extent";
import type { LeaderCalls } from "@stamp/metadata-store";
import { jittered, sleep, type Timer, type World } from "@stamp/ports";
import { ExtentNode, fromWire, type SealAndAllocateResponse, StreamManager, toWire } from "@stamp/wire";
import { AppendWindow, type Done } from "./append-window.ts";
import type { ExtentReader } from "./extent-reader.ts";
import { type Location, locationFromWire, type Place } from "./place.ts";
import { readBlocks, type StreamBlock } from "./sequential.ts";

export interface OwnedStreamOptions {
  readonly extentTargetBytes: number;
  readonly inFlightAppendsMax: number;
  readonly inFlightBytesMax: number;
  /** Appends that wait behind those in flight; more are refused with `overloaded`. */
  readonly waitingMax: number;
  /** Of one append at the primary. */
  readonly appendTimeoutMs: number;
  /** Of one call to the stream manager; it is repeated. */
  readonly sealTimeoutMs: number;
}

export const ownedStreamDefaults: OwnedStreamOptions = {
  extentTargetBytes: 64 * 1024 * 1024,
  inFlightAppendsMax: 32,
  inFlightBytesMax: 16 * 1024 * 1024,
  waitingMax: 4096,
  appendTimeoutMs: 800,
  sealTimeoutMs: 10_000,
};

interface Item {
  readonly blocks: readonly Uint8Array[];
  readonly framedBytes: number;
  resolve: (outcome: Outcome<readonly Place[]>) => void;
  timer: Timer | undefined;
}

export class OwnedStream {
  readonly name: string;
  readonly ownerEpoch: number;
  readonly #world: World;
  readonly #manager: LeaderCalls;
  readonly #reader: ExtentReader;
  readonly #options: OwnedStreamOptions;
  readonly #window: AppendWindow<Item>;
  readonly #onFenced: (why: string) => void;
  #extents: Location[];
  #ids: Set<number>;
  #current: Location | undefined;
  #ended: Failure | undefined;
  #seals = 0;

  constructor(
    world: World,
    manager: LeaderCalls,
    reader: ExtentReader,
    opened: { readonly name: string; readonly ownerEpoch: number; readonly extents: readonly Location[] },
    onFenced: (why: string) => void,
    options: OwnedStreamOptions,
  ) {
    this.#world = world;
    this.#manager = manager;
    this.#reader = reader;
    this.name = opened.name;
    this.ownerEpoch = opened.ownerEpoch;
    this.#extents = [...opened.extents];
    this.#ids = new Set(this.#extents.map((extent) => extent.extentId));
    this.#onFenced = onFenced;
    this.#options = options;
    this.#window = new AppendWindow(options, (item) => item.framedBytes);
    reader.learn(this.#extents);
  }

  /** In order; all but the last are sealed. */
  get extents(): readonly Location[] {
    return this.#extents;
  }
  get ended(): Failure | undefined {
    return this.#ended;
  }
  /** Times an extent was left for the next one. */
  get seals(): number {
    return this.#seals;
  }
  /** Appends that wait or are in flight. */
  get pending(): number {
    return this.#window.inFlight + this.#window.waiting;
  }

  /** Whether the extent is in this stream (and was not truncated away). */
  knows(extentId: number): boolean {
    return this.#ids.has(extentId);
  }

  /**
   * Appends the blocks (1 byte to 4 MiB each, 8 MiB together; borrowed until it resolves, and longer if the outcome is unknown) as a
   * whole, after every append called before. Answers where each lies once they are durable on every replica.
   */
  append(blocks: readonly Uint8Array[], options: { readonly timeoutMs: number }): Promise<Outcome<readonly Place[]>> {
    assert(blocks.length > 0, "an append has blocks");
    if (this.#ended !== undefined) return Promise.resolve({ ok: false, failure: { ...this.#ended, applied: "no" } });
    if (this.#window.waiting >= this.#options.waitingMax) {
      const waiting = `${this.#window.waiting} appends to ${this.name} wait`;
      return Promise.resolve(refused("resourceExhausted", "overloaded", waiting));
    }
    let framedBytes = 0;
    for (const block of blocks) framedBytes += frameBytes(block.length);
    return new Promise((resolve) => {
      const item: Item = { blocks, framedBytes, resolve, timer: undefined };
      item.timer = this.#world.clock.after(options.timeoutMs, () => this.#late(item));
      this.#window.add(item);
      this.#pump();
    });
  }

  /** Every block of the extents that were sealed at open, in order, from `fromExtentId` on (from the first without it). */
  readAll(options: { readonly fromExtentId?: number; readonly timeoutMs: number }): AsyncGenerator<StreamBlock, void, void> {
    const sealed = this.#extents.filter((extent) => extent.sealedLengthBytes !== undefined);
    const from = options.fromExtentId === undefined ? 0 : sealed.findIndex((extent) => extent.extentId === options.fromExtentId);
    assert(from >= 0, "reading starts in the stream");
    return readBlocks(this.#world, this.#reader, sealed.slice(from), options.timeoutMs);
  }

  /** Drops the extents before this one from the list. */
  async truncateBefore(extentId: number, timeoutMs: number): Promise<Outcome<void>> {
    if (!this.#ids.has(extentId)) return refused("notFound", "unknownExtent", `extent ${extentId} is not in ${this.name}`);
    const answer = await this.#manager.call(
      timeoutMs,
      (address, leftMs) =>
        this.#world.transport
          .client(address, StreamManager)
          .truncateStream(
            { name: this.name, ownerEpoch: toWire(this.ownerEpoch), beforeExtentId: toWire(extentId) },
            { timeoutMs: leftMs },
          ),
      { idempotent: true, attemptTimeoutMs: 2_000 },
    );
    if (!answer.ok) {
      if (answer.failure.reason === "staleOwnerEpoch") this.#fence(answer.failure.message);
      return answer;
    }
    const at = this.#extents.findIndex((extent) => extent.extentId === extentId);
    for (const dropped of this.#extents.splice(0, Math.max(0, at))) this.#ids.delete(dropped.extentId);
    return ok();
  }

  /** Sends nothing more. What was sent stays unknown to its callers; the next owner's OpenStream resolves it. */
  close(): void {
    this.#end({ code: "cancelled", reason: "stopping", message: `${this.name} was closed`, applied: "no" });
  }

  #late(item: Item): void {
    if (this.#window.takeBack(item)) {
      item.resolve(refused("deadlineExceeded", "timeout", `no time left to append to ${this.name}`));
      return;
    }
    item.resolve(unknownOutcome("deadlineExceeded", "timeout", `an append to ${this.name} is not resolved yet`));
  }

  #pump(): void {
    for (;;) {
      const next = this.#window.next();
      if (next.kind === "idle") return;
      if (next.kind === "roll") {
        if (this.#window.seal(this.#window.extentId)) void this.#seal([]);
        return;
      }
      void this.#send(next.item, next.extentId, next.offsetBytes, next.endBytes);
    }
  }

  async #send(item: Item, extentId: number, offsetBytes: number, endBytes: number): Promise<void> {
    const primary = this.#current?.addresses[0];
    assert(primary !== undefined, "an open extent has a primary");
    const answer = await this.#world.transport.client(primary, ExtentNode).append(
      {
        extentId: toWire(extentId),
        ownerEpoch: toWire(this.ownerEpoch),
        expectedOffsetBytes: toWire(offsetBytes),
        payload: item.blocks as Uint8Array[],
      },
      { timeoutMs: this.#options.appendTimeoutMs },
    );
    if (this.#ended !== undefined) return;
    if (answer.ok) {
      assert(fromWire(answer.value.endBytes) === endBytes, "the primary put the append where it was expected");
      this.#finish(this.#window.acked(extentId, endBytes));
      this.#pump();
      return;
    }
    if (!this.#window.seal(extentId)) return;
    const { reason, message } = answer.failure;
    this.#world.logger.info("append failed, sealing the extent", { stream: this.name, extentId, primary, reason, message });
    await this.#seal(reason === "connectFailed" || reason === "connectionLost" || reason === "timeout" ? [primary] : []);
  }

  /** Seals the current extent and goes on in its successor. Ends only with success, or with this owner. */
  async #seal(avoidAddresses: string[]): Promise<void> {
    const { clock, random, logger, transport } = this.#world;
    const known = this.#window.extentId === 0 ? this.#extents.at(-1) : undefined;
    const extentId = this.#window.extentId === 0 ? (known?.extentId ?? 0) : this.#window.extentId;
    const request = {
      name: this.name,
      ownerEpoch: toWire(this.ownerEpoch),
      extentId: toWire(extentId),
      knownCommittedBytes: toWire(known?.sealedLengthBytes ?? this.#window.committedBytes),
      avoidAddresses,
    };
    for (let attempt = 1; this.#ended === undefined; attempt++) {
      const answer = await this.#manager.call(
        this.#options.sealTimeoutMs,
        (address, leftMs) => transport.client(address, StreamManager).sealAndAllocate(request, { timeoutMs: leftMs }),
        { idempotent: true, attemptTimeoutMs: 3_000 },
      );
      if (this.#ended !== undefined) return;
      if (answer.ok) return this.#goOn(extentId, answer.value);
      const { reason, message } = answer.failure;
      if (reason === "staleOwnerEpoch" || reason === "streamNotFound") return this.#fence(message);
      logger.warn("no next extent yet", { stream: this.name, extentId, attempt, reason, message });
      await sleep(clock, jittered(random, Math.min(20 * 2 ** Math.min(attempt, 6), 1_000)));
    }
  }

  #goOn(extentId: number, answer: SealAndAllocateResponse): void {
    const next = answer.extent;
    assert(next !== undefined, "the stream manager names the successor");
    const location = locationFromWire(next);
    const sealedLengthBytes = fromWire(answer.sealedLengthBytes);
    const last = this.#extents.at(-1);
    if (last !== undefined && last.extentId === extentId) {
      this.#extents[this.#extents.length - 1] = { ...last, sealedLengthBytes };
    }
    this.#extents.push(location);
    this.#ids.add(location.extentId);
    this.#reader.learn([location]);
    this.#current = location;
    this.#seals++;
    this.#finish(this.#window.sealed(sealedLengthBytes, location.extentId));
    this.#pump();
  }

  #finish(done: readonly Done<Item>[]): void {
    for (const { item, extentId, offsetBytes } of done) {
      item.timer?.cancel();
      let at = offsetBytes;
      const places = item.blocks.map((block) => {
        const place = { extentId, offsetBytes: at + frameHeaderBytes(block.length), lengthBytes: block.length };
        at += frameBytes(block.length);
        return place;
      });
      assert(at - offsetBytes === item.framedBytes && totalLength(item.blocks) > 0, "places follow one another");
      item.resolve(ok(places));
    }
  }

  #fence(why: string): void {
    if (this.#ended !== undefined) return;
    this.#end({ code: "failedPrecondition", reason: "staleOwnerEpoch", message: why, applied: "no" });
    this.#onFenced(`${this.name}: ${why}`);
  }

  #end(failure: Failure): void {
    if (this.#ended !== undefined) return;
    this.#ended = failure;
    const { sent, waiting } = this.#window.end();
    for (const item of sent) {
      item.timer?.cancel();
      item.resolve({ ok: false, failure: { ...failure, applied: "unknown" } });
    }
    for (const item of waiting) {
      item.timer?.cancel();
      item.resolve({ ok: false, failure });
    }
  }
}
