/**
 * A stream taken over under an owner epoch: the only one who appends to it, until a higher epoch takes it over. The machine is
 * `append-window.ts`; this shell sends, waits and asks the stream manager.
 *
 * No stream-manager call on a steady-state append: only when an extent is full or failed.
 */
import { type Failed, type Failure, type Outcome, type OwnerEpoch, ok, refused, unknownOutcome, WakeUp } from "@stamp/base";
import { causedBy, jittered, sleep, type Timer, within } from "@stamp/ports";
import { type ExtentLocation, ExtentNode, fromWire, toWire } from "@stamp/wire";
import { AppendBlocks } from "./append-blocks.ts";
import { hopelessRefusals, isNotTaken, lateOutcome, payloadBytes, sizeRefused, unreachable } from "./append-refusals.ts";
import { AppendWindow, type PendingAppend, type WindowEffect, type WindowEnd } from "./append-window.ts";
import { changeBackoffMaxMs, changeTimeoutMs, ManagerCalls } from "./manager-calls.ts";
import { OwnedExtents } from "./owned-extents.ts";
import type { OwnedStreamParts } from "./owned-stream-parts.ts";
import { type Location, locationFromWire } from "./place.ts";
import { type ReadAllOptions, type ReadParts, readBetween, readFrom } from "./read/read-stream.ts";
import type { AppendOptions, Place, StoredBlock, StreamExtent, StreamPlace } from "./types.ts";

interface Item {
  readonly blocks: AppendBlocks;
  readonly resolve: (outcome: Outcome<readonly Place[]>) => void;
  /** True if the append waits for as long as no extent node has room. */
  readonly waitsForRoom: boolean;
  timer: Timer | undefined;
}

const changeBackoffStartMs = 10;
const overloadedPauseMs = 15;
/** Part of the deadline after which a failed append was late: the primary gives up a little before the owner does. */
const latePart = 3 / 4;

export class OwnedStream {
  readonly name: string;
  readonly ownerEpoch: OwnerEpoch;
  /** Lineage of the metadata store when the stream was opened; 0: it was never restored, or the stream was not opened but made. */
  lineage = 0;
  /** Resolves once, with why, when nothing can be appended any more: another owner, or data lost. Never after `close`. */
  readonly whenFenced: Promise<string>;
  readonly #parts: OwnedStreamParts;
  readonly #manager: ManagerCalls;
  readonly #window: AppendWindow<Item>;
  readonly #stop = new AbortController();
  /** Number of the stream's last extent when it was opened; 0: the list was empty. */
  readonly #lastAtOpen: number;
  readonly #extents: OwnedExtents;
  /** Addresses of the replicas of the open extent; the first is the primary. */
  #addresses: readonly string[] = [];
  /** Nodes that the last extent failed on. */
  #avoid: readonly string[] = [];
  #onFenced: (why: string) => void = () => {};
  readonly #idle = new WakeUp();
  readonly #quiet = new WakeUp();
  readonly #steady = new WakeUp();
  #closing = false;
  /** End of a stream that was closed or cut. */
  #endsAt: WindowEnd | undefined;
  readonly #opened = new WakeUp();
  /** Number of extents in a row that failed before they acknowledged anything. */
  #emptyExtents = 0;
  /** Time at which the primary first refused for want of room, with nothing acknowledged since. */
  #overloadedSinceMs: number | undefined;

  /** `extents` are sealed; `open`: the one behind them, when it is there already. */
  constructor(parts: OwnedStreamParts, name: string, ownerEpoch: OwnerEpoch, extents: readonly StreamExtent[], open?: Location) {
    this.name = name;
    this.ownerEpoch = ownerEpoch;
    this.#parts = parts;
    this.#manager = new ManagerCalls(parts.world, parts.manager, name, ownerEpoch);
    this.#extents = new OwnedExtents({
      world: parts.world,
      manager: this.#manager,
      stream: name,
      atOpen: extents,
      signal: this.#stop.signal,
      ended: () => this.#window.ended !== undefined,
      fence: (failure) => this.#fence(failure),
    });
    this.#lastAtOpen = extents.at(-1)?.extentId ?? 0;
    this.#window = new AppendWindow(parts.limits, this.#lastAtOpen, open?.extentId);
    if (open !== undefined) this.#list(open);
    this.whenFenced = new Promise((resolve) => {
      this.#onFenced = resolve;
    });
  }

  /** Extents in the order of the stream; all but the last are sealed. */
  get extents(): readonly StreamExtent[] {
    return this.#extents.all;
  }
  get fenced(): boolean {
    return this.#window.ended !== undefined;
  }
  get pendingAppends(): number {
    return this.#window.pending;
  }

  /**
   * Where it ends, when it was closed with every append and drop resolved, or cut: in an extent that was sealed before, or at what is
   * acknowledged of the one it wrote to. Undefined when that is not certain: it has to be opened again to be known.
   */
  get endsAt(): WindowEnd | undefined {
    return this.#endsAt;
  }

  /** Asks for the next extent before there is something to append. Resolves when the stream has an open extent, or has ended. */
  begin(): Promise<void> {
    this.#act(this.#window.begin());
    if (this.#window.openExtentId !== undefined || this.#window.ended !== undefined) return Promise.resolve();
    return this.#opened.next;
  }

  /** Resolves when no append waits or is in flight and it goes to no other extent, so that its end is known; or after `timeoutMs`. */
  async quiet(options: { readonly timeoutMs: number }): Promise<void> {
    if (this.#window.ended !== undefined || this.#window.quiet) return;
    await within(this.#parts.world.clock, options.timeoutMs, this.#quiet.next);
  }

  /** Resolves when the stream goes to no other extent, so that it can be cut; or after `timeoutMs`. */
  async steady(options: { readonly timeoutMs: number }): Promise<void> {
    if (this.#window.ended !== undefined || this.#window.acknowledgedTo !== undefined) return;
    await within(this.#parts.world.clock, options.timeoutMs, this.#steady.next);
  }

  /**
   * Ends the stream at its acknowledged bytes, for the caller that seals it there (`multiModify`): later bytes count for nothing then. The
   * caller abandons the stream at once, before more is acknowledged. False if the end is not known.
   */
  cut(): boolean {
    const end = this.#extents.dropsUnknown ? undefined : this.#window.acknowledgedTo;
    this.#endsAt ??= end;
    return end !== undefined;
  }

  /** Gives back, as not done, what waits and is not in flight. */
  withdrawWaiting(failure: Failure): void {
    this.#act(this.#window.withdrawAll(failure));
  }

  /** True if the extent is in the list of this stream. */
  knows(extentId: number): boolean {
    return this.#extents.knows(extentId);
  }

  /**
   * Appends blocks together, all or none, after everything that was appended before; many may be in flight. Blocks are borrowed until
   * the appends are resolved (which may be after the deadline). 1 byte to 4 MiB each, 8 MiB together.
   *
   * At the deadline (`Infinity`: none), or when there is no room, the caller hears `unknown` when it was sent, and the stream goes on with it: it
   * may still happen; one that was not sent is taken back. `staleOwnerEpoch`: another owner has the stream. `noPlacement`: see `noRoom`.
   */
  append(blocks: readonly Uint8Array[], options: AppendOptions): Promise<Outcome<readonly Place[]>> {
    const waitsForRoom = !Number.isFinite(options.timeoutMs) && options.refusedWithoutRoom !== true;
    const refusal = this.#refusal(blocks) ?? (waitsForRoom ? undefined : this.noRoom);
    if (refusal !== undefined) return Promise.resolve(refusal);
    const { clock } = this.#parts.world;
    return new Promise((resolve) => {
      const item: Item = { blocks: new AppendBlocks(blocks, options.whenFree, options.cause), resolve, waitsForRoom, timer: undefined };
      if (Number.isFinite(options.timeoutMs)) item.timer = clock.after(options.timeoutMs, () => this.#late(item));
      this.#act(
        this.#window.submit(
          item,
          blocks.map(({ length }) => length),
        ),
      );
    });
  }

  #refusal(blocks: readonly Uint8Array[]): Outcome<never> | undefined {
    const badSize = sizeRefused(blocks);
    if (badSize !== undefined) return badSize;
    if (this.#closing) return refused("unavailable", "stopping", `stream ${this.name} is being closed`);
    const { waitingBytesMax } = this.#parts.limits;
    const total = payloadBytes(blocks);
    if (this.#window.waitingBytes > 0 && this.#window.waitingBytes + total > waitingBytesMax) {
      return refused("resourceExhausted", "overloaded", `${this.#window.waitingBytes} bytes wait to be appended to stream ${this.name}`);
    }
    return undefined;
  }

  /** Reason why the next extent was not given, while it is waited for. */
  #noExtent: Failure | undefined;

  /**
   * Not enough extent nodes can take an extent: their disks are full, or too few of them are up. Until there is an extent, the stream refuses
   * with this at once what does not wait for room, and takes back what certainly did not happen. The stream goes on asking.
   */
  noRoom: Failed | undefined;

  #late(item: Item): void {
    const isCertain = this.#window.withdraw(item);
    item.resolve(lateOutcome(this.name, isCertain, this.#noExtent));
    if (isCertain) this.#checkIdle();
  }

  #act(effects: readonly WindowEffect<Item>[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case "send":
          this.#send(effect.append, effect.extentId, effect.offsetBytes);
          break;
        case "change":
          void this.#change(effect.extentId, effect.complete);
          break;
        case "ahead":
          // A hint: without it the successor is made when it is needed.
          void this.#manager.allocateAhead(effect.extentId);
          break;
        case "pause":
          void this.#pause(effect.extentId);
          break;
        case "settle":
          effect.append.item.timer?.cancel();
          effect.append.item.blocks.settled();
          effect.append.item.resolve(ok(effect.places));
          break;
        case "reject":
          effect.append.item.timer?.cancel();
          effect.append.item.resolve({ ok: false, failure: effect.failure });
          break;
      }
    }
    this.#checkIdle();
  }

  /** Sends an append. The call is made synchronously, so appends of one lane leave in offset order. */
  #send(append: PendingAppend<Item>, extentId: number, offsetBytes: number): void {
    const { world, limits } = this.#parts;
    const primary = this.#addresses[0] as string;
    const request = {
      extentId: toWire(extentId),
      ownerEpoch: toWire(this.ownerEpoch),
      expectedOffsetBytes: toWire(offsetBytes),
      payload: append.item.blocks.toSend() as Uint8Array<ArrayBuffer>[],
    };
    const sentMs = world.clock.monotonicMs();
    const options = { timeoutMs: limits.appendTimeoutMs, ...causedBy(append.item.blocks.cause) };
    const call = world.transport.client(primary, ExtentNode).append(request, options);
    void call.then((answer) => {
      const tookPart = (world.clock.monotonicMs() - sentMs) / limits.appendTimeoutMs;
      if (answer.ok) this.#window.paced(tookPart, append.extentBytes);
      else if (answer.failure.reason === "overloaded" || tookPart >= latePart) this.#window.paced(1, append.extentBytes);
      if (answer.ok && fromWire(answer.value.endBytes) === offsetBytes + append.extentBytes) {
        append.item.blocks.answered();
        this.#emptyExtents = 0;
        this.#overloadedSinceMs = undefined;
        this.#act(this.#window.acknowledged(extentId, Math.max(fromWire(answer.value.committedBytes), fromWire(answer.value.endBytes))));
        return;
      }
      if (this.#window.openExtentId !== extentId) {
        if (!answer.ok && isNotTaken(answer.failure)) this.#window.notTaken(extentId, append.item);
        return;
      }
      const facts = { stream: this.name, extentId, requestId: append.item.blocks.cause?.["request-id"] };
      if (!answer.ok && answer.failure.applied === "no" && hopelessRefusals.has(answer.failure.reason)) {
        const { reason, message } = answer.failure;
        world.logger.error("an append is refused for ever", { ...facts, primary, reason, message });
        this.#act(this.#window.refusedForEver(extentId, append.item, answer.failure));
        return;
      }
      if (!answer.ok && this.#waitsForPrimary(answer.failure)) {
        return this.#act(this.#window.refused(extentId, append.item, answer.failure.reason as "overloaded" | "offsetGap"));
      }
      this.#emptyExtents = this.#window.committedBytes > 0 ? 0 : this.#emptyExtents + 1;
      if (answer.ok) {
        world.logger.error("an append landed where it was not sent", { ...facts, offsetBytes });
      } else if (answer.failure.reason === "staleOwnerEpoch") {
        return this.#fence(answer.failure);
      } else {
        const { reason, message, details } = answer.failure;
        world.logger.info("an append failed, the next extent follows", { ...facts, primary, reason, message });
        this.#avoid = unreachable.has(reason) ? [primary] : (details?.lostReplica?.split(",") ?? []);
      }
      const tooLarge = !answer.ok && answer.failure.details?.refusedForEver === "messageTooLarge";
      const why = answer.ok ? "" : answer.failure.message;
      this.#act(
        this.#window.failed(
          extentId,
          tooLarge ? { item: append.item, failure: refused("invalidArgument", "messageTooLarge", why).failure } : undefined,
        ),
      );
      if (!answer.ok && isNotTaken(answer.failure)) this.#window.notTaken(extentId, append.item);
    });
  }

  /**
   * A primary that has too much to do did not take the append: the extent is as good as before. It is left only when nothing was
   * acknowledged for as long as an append may take.
   */
  #waitsForPrimary({ applied, reason }: Failure): boolean {
    if (applied !== "no" || (reason !== "overloaded" && reason !== "offsetGap")) return false;
    const nowMs = this.#parts.world.clock.monotonicMs();
    if (reason === "overloaded") this.#overloadedSinceMs ??= nowMs;
    if (this.#overloadedSinceMs === undefined) return this.#window.holding;
    return nowMs - this.#overloadedSinceMs < this.#parts.limits.appendTimeoutMs;
  }

  async #pause(extentId: number): Promise<void> {
    const { clock, random } = this.#parts.world;
    await sleep(clock, jittered(random, overloadedPauseMs), this.#stop.signal);
    this.#act(this.#window.resume(extentId));
  }

  /** Asks until there is an answer: without the sealed length nobody knows what happened. */
  async #change(extentId: number, complete: boolean): Promise<void> {
    const { clock, random, logger } = this.#parts.world;
    const startMs = clock.monotonicMs();
    let [backoffMs, toldWhy] = [changeBackoffStartMs, ""];
    if (this.#emptyExtents > 0) {
      // The next extent is asked for at once when one fails, but not in a storm when all do.
      const pauseMs = Math.min(changeBackoffStartMs * 2 ** Math.min(this.#emptyExtents - 1, 10), changeBackoffMaxMs);
      await sleep(clock, jittered(random, pauseMs), this.#stop.signal);
    }
    while (!this.#stop.signal.aborted && this.#window.ended === undefined) {
      const knownCommittedBytes = (): number => this.#window.committedBytes;
      const outcome = await this.#manager.sealAndAllocate(extentId, { complete, knownCommittedBytes, avoidAddresses: this.#avoid });
      if (this.#window.ended !== undefined) return;
      if (outcome.ok && outcome.value.extent !== undefined) {
        this.#noExtent = undefined;
        this.noRoom = undefined;
        this.#enter(extentId, fromWire(outcome.value.sealedLengthBytes), outcome.value.extent);
        this.#parts.onExtentChange?.({
          stream: this.name,
          fromExtentId: extentId,
          toExtentId: fromWire(outcome.value.extent.extentId),
          why: complete ? "full" : extentId === this.#lastAtOpen ? "first" : "failed",
          tookMs: clock.monotonicMs() - startMs,
        });
        return;
      }
      if (!outcome.ok && (outcome.failure.reason === "staleOwnerEpoch" || outcome.failure.reason === "streamNotFound")) {
        this.#fence(outcome.failure);
        return;
      }
      const why = outcome.ok ? "no successor in the answer" : `${outcome.failure.reason}: ${outcome.failure.message}`;
      // While all disks are full the answer comes at once, and again and again.
      if (why !== toldWhy) logger.warn("no next extent for a stream yet", { stream: this.name, extentId, why });
      toldWhy = why;
      this.#noExtent = outcome.ok ? undefined : outcome.failure;
      if (!outcome.ok && outcome.failure.reason === "noPlacement") {
        this.#refuseWithoutRoom(outcome.failure.message, clock.monotonicMs() - startMs > this.#parts.limits.appendTimeoutMs);
      }
      await sleep(clock, jittered(random, backoffMs), this.#stop.signal);
      backoffMs = Math.min(backoffMs * 2, changeBackoffMaxMs);
    }
  }

  /** `allAnswered`: no node will answer any more what was sent, so that who has a deadline hears now what would be the answer then. */
  #refuseWithoutRoom(message: string, allAnswered: boolean): void {
    this.noRoom = refused("resourceExhausted", "noPlacement", message);
    this.#act(this.#window.withdrawUndone(this.noRoom.failure, ({ waitsForRoom }) => !waitsForRoom));
    if (!allAnswered) return;
    const inDoubt = unknownOutcome("resourceExhausted", "noPlacement", message);
    for (const { timer, resolve } of this.#window.inDoubt) if (timer !== undefined) resolve(inDoubt);
  }

  #enter(sealed: number, sealedLengthBytes: number, location: ExtentLocation): void {
    const extentId = fromWire(location.extentId);
    this.#avoid = [];
    this.#overloadedSinceMs = undefined;
    this.#extents.seal(sealed, sealedLengthBytes);
    this.#list(locationFromWire(location));
    this.#act(this.#window.changed(sealed, sealedLengthBytes, extentId));
    this.#opened.notify();
    const ended = this.#window.ended;
    if (ended !== undefined) this.#lost(ended);
  }

  /** Makes the open extent the last one of the list. */
  #list(location: Location): void {
    const { extentId, addresses } = location;
    this.#parts.reader.learn([location]);
    this.#addresses = addresses;
    this.#extents.add(extentId);
  }

  #fence(failure: Failure): void {
    if (this.#window.ended !== undefined) return;
    this.#act(this.#window.end(failure));
    this.#lost(failure);
  }

  #lost(failure: Failure): void {
    this.#parts.world.logger.warn("this process lost a stream", {
      stream: this.name,
      ownerEpoch: this.ownerEpoch,
      reason: failure.reason,
      message: failure.message,
    });
    this.#stop.abort();
    this.#opened.notify();
    if (!this.#closing) this.#onFenced(`stream ${this.name}: ${failure.reason}: ${failure.message}`);
  }

  /** Drops the extents before this one from the list. Idempotent. */
  truncateBefore(extentId: number, options: { readonly timeoutMs: number }): Promise<Outcome<void>> {
    return this.#extents.truncateBefore(extentId, options);
  }

  /** Takes sealed extents out of the list: see `OwnedExtents`. */
  dropExtents(extentIds: ReadonlySet<number>, options: { readonly timeoutMs: number }): Promise<Outcome<readonly number[]>> {
    return this.#extents.drop(extentIds, options);
  }

  /**
   * Reads everything that was in the stream when it was opened, in order: all of it in sealed extents, so there is no tail that changes. Reads
   * one chunk ahead. Throws FailureError.
   */
  readAll(options: ReadAllOptions = {}): AsyncIterable<StoredBlock> {
    return readFrom(this.#reads, options);
  }

  /**
   * Reads acknowledged blocks in order, while appends go on. `from`: place of the first block; undefined: the first of the list. `to`: place
   * behind the last one; undefined: the end of what was in the stream when it was opened. Throws FailureError.
   */
  readBetween(from: StreamPlace | undefined, to: StreamPlace | undefined): AsyncIterable<StoredBlock> {
    return readBetween(this.#reads, from, to);
  }

  get #reads(): ReadParts {
    return { stream: this.name, reader: this.#parts.reader, extents: this.#extents, signal: this.#stop.signal };
  }

  /** Takes no new appends; resolves when those in flight are resolved, or after `timeoutMs`: the rest is unknown. */
  async close(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    this.#closing = true;
    if (this.#window.ended === undefined && this.#window.pending > 0) {
      const timer = this.#parts.world.clock.after(options.timeoutMs ?? changeTimeoutMs, () => this.abandon());
      await this.#idle.next;
      timer.cancel();
    }
    if (!this.#extents.dropsUnknown) this.#endsAt ??= this.#window.endsAt;
    this.abandon();
  }

  /** Ends the stream at once: nothing more is sent, and the outcome of what was sent is unknown. */
  abandon(): void {
    this.#closing = true;
    this.#stop.abort();
    this.#act(this.#window.end({ code: "unavailable", reason: "stopping", message: `stream ${this.name} was closed`, applied: "no" }));
    this.#opened.notify();
  }

  #checkIdle(): void {
    if (this.#window.pending === 0) this.#idle.notify();
    if (this.#window.quiet) this.#quiet.notify();
    if (this.#window.acknowledgedTo !== undefined) this.#steady.notify();
  }
}
