/**
 * An owner of a stream that talks to the stream layer directly and believes only what it is told. It is more careless than
 * `@stamp/stream-client`: it never stops by itself, so that an old owner goes on writing as long as anybody lets it, and at times it
 * sends the next records although one failed.
 */
import type { Outcome } from "@stamp/base";
import { frameBytes } from "@stamp/extent";
import { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { sleep } from "@stamp/ports";
import { BrokenPromise } from "@stamp/virtual-time";
import type { ExtentLocation, StreamInfo } from "@stamp/wire";
import { ExtentNode, StreamManager } from "@stamp/wire";
import type { RecordName, StreamJudge } from "./judges/stream-judge.ts";
import { recordBytes } from "./judges/stream-judge.ts";

interface Pending {
  readonly record: RecordName;
  readonly bytes: Uint8Array;
}

interface Window {
  readonly extent: bigint;
  readonly primary: string;
  /** Where the next append is expected. */
  endBytes: number;
  committedBytes: number;
  readonly inFlight: Set<Promise<void>>;
  failed: boolean;
  /** How many more it sends although one failed. */
  careless: number;
}

export interface OwnerHabits {
  /** How long it asks the stream manager again and again for one thing before that is a promise broken. */
  readonly patienceMs?: number;
  /** Longest rest between appends, at times. */
  readonly restMs?: number;
}

const extentTargetBytes = 24_000;
const inFlightMax = 4;
const appendTimeoutMs = 800;
const managerTimeoutMs = 5_000;

export class RawOwner {
  readonly epoch: number;
  readonly stream: string;
  readonly #world: World;
  readonly #judge: StreamJudge;
  readonly #manager: LeaderCalls;
  #window: Window | undefined;
  /** Appends in order, the first not yet known to be in the list. */
  #pending: Pending[] = [];
  #sequence = 0;
  #sent = 0;
  readonly #patienceMs: number;
  readonly #restMs: number;

  constructor(world: World, lockService: string, stream: string, epoch: number, judge: StreamJudge, habits: OwnerHabits = {}) {
    this.#patienceMs = habits.patienceMs ?? Number.POSITIVE_INFINITY;
    this.#restMs = habits.restMs ?? 0;
    this.#world = world;
    this.stream = stream;
    this.epoch = epoch;
    this.#judge = judge;
    this.#manager = new LeaderCalls(world, { lockService, leaseName: "stream-manager" });
  }

  /** Returns the list as it is given to this owner; undefined when the stream is another's by now. */
  async open(): Promise<StreamInfo | undefined> {
    const request = { name: this.stream, ownerEpoch: BigInt(this.epoch), create: true };
    const endMs = this.#world.clock.monotonicMs() + this.#patienceMs;
    for (;;) {
      const opened = await this.#manager.call(
        managerTimeoutMs,
        (address, timeoutMs) => this.#world.transport.client(address, StreamManager).openStream(request, { timeoutMs }),
        { idempotent: true, attemptTimeoutMs: 1_500 },
      );
      if (opened.ok) return opened.value;
      if (opened.failure.reason === "staleOwnerEpoch") return undefined;
      this.#lose(endMs, "opened", opened.failure.message);
      await sleep(this.#world.clock, 100);
    }
  }

  /** Appends records until it is refused for good, or `enough` says so. */
  async write(after: bigint, enough: () => boolean, recordBytesMax: number): Promise<void> {
    let last = after;
    let known = 0;
    while (!enough()) {
      const next = await this.#allocate(last, known);
      if (!next) return;
      if (last !== 0n) this.#judge.told(last, next.sealed);
      this.#resolve(next.sealed);
      const { extent } = next;
      this.#window = {
        extent: extent.extentId,
        primary: extent.addresses[0] as string,
        endBytes: 0,
        committedBytes: 0,
        inFlight: new Set(),
        failed: false,
        careless: this.#world.random.float() < 0.3 ? 2 : 0,
      };
      await this.#fill(this.#window, enough, recordBytesMax);
      last = extent.extentId;
      known = this.#window.committedBytes;
    }
  }

  async #allocate(last: bigint, known: number): Promise<{ readonly sealed: number; readonly extent: ExtentLocation } | undefined> {
    const request = { name: this.stream, ownerEpoch: BigInt(this.epoch), extentId: last, knownCommittedBytes: BigInt(known) };
    const endMs = this.#world.clock.monotonicMs() + this.#patienceMs;
    for (;;) {
      const given = await this.#manager.call(
        managerTimeoutMs,
        (address, timeoutMs) => this.#world.transport.client(address, StreamManager).sealAndAllocate(request, { timeoutMs }),
        { idempotent: true, attemptTimeoutMs: 2_500 },
      );
      if (given.ok) {
        this.#judge.count("extents allocated");
        const extent = given.value.extent as ExtentLocation;
        this.#judge.begun(extent.extentId, { stream: this.stream, addresses: extent.addresses });
        return { sealed: Number(given.value.sealedLengthBytes), extent };
      }
      if (given.failure.reason === "staleOwnerEpoch" || given.failure.reason === "streamNotFound") return undefined;
      this.#judge.count(`allocate ${given.failure.reason}`);
      this.#lose(endMs, "given an extent", given.failure.message);
      await sleep(this.#world.clock, 50);
    }
  }

  #lose(endMs: number, what: string, why: string): void {
    if (this.#world.clock.monotonicMs() <= endMs) return;
    throw new BrokenPromise(`${this.stream} is not ${what} within ${this.#patienceMs} ms after the last fault: ${why}`);
  }

  /** Appends to one extent until it is full or something failed, and waits for what is in flight. */
  async #fill(window: Window, enough: () => boolean, recordBytesMax: number): Promise<void> {
    const { clock, random } = this.#world;
    this.#sent = 0;
    while ((!window.failed || window.careless > 0) && !enough() && window.endBytes < extentTargetBytes) {
      if (window.failed) window.careless -= 1;
      if (window.inFlight.size >= inFlightMax) {
        await Promise.race(window.inFlight);
        continue;
      }
      if (this.#sent === this.#pending.length) this.#pending.push(this.#make(recordBytesMax));
      this.#append(window, this.#pending[this.#sent] as Pending);
      this.#sent += 1;
      if (random.float() < 0.7) await sleep(clock, random.float() * 60);
      if (this.#restMs > 0 && random.float() < 0.1) await sleep(clock, random.float() * this.#restMs);
    }
    await Promise.all(window.inFlight);
  }

  #append(window: Window, { record, bytes }: Pending): void {
    const offset = window.endBytes;
    window.endBytes += frameBytes(bytes.length);
    const endBytes = window.endBytes;
    this.#judge.sent(this.stream, record);
    const call = this.#world.transport
      .client(window.primary, ExtentNode)
      .append(
        { extentId: window.extent, ownerEpoch: BigInt(this.epoch), expectedOffsetBytes: BigInt(offset), payload: [bytes] },
        { timeoutMs: appendTimeoutMs },
      )
      .then((outcome) => {
        window.inFlight.delete(call);
        this.#took(window, record, bytes.length, endBytes, outcome);
      });
    window.inFlight.add(call);
  }

  #took(
    window: Window,
    record: RecordName,
    lengthBytes: number,
    endBytes: number,
    outcome: Outcome<{ readonly offsetsBytes: readonly bigint[]; readonly endBytes: bigint; readonly committedBytes: bigint }>,
  ): void {
    if (!outcome.ok) {
      this.#judge.count(`append ${outcome.failure.reason}`);
      window.failed = true;
      return;
    }
    this.#judge.count("append acknowledged");
    window.committedBytes = Math.max(window.committedBytes, endBytes, Number(outcome.value.committedBytes));
    this.#judge.acknowledged(this.stream, record, {
      extent: window.extent,
      offsetBytes: Number(outcome.value.offsetsBytes[0]),
      lengthBytes,
    });
  }

  /** The last extent ended at `sealed`: what lies below happened, the rest is appended again. */
  #resolve(sealed: number): void {
    let end = 0;
    let happened = 0;
    for (const { bytes } of this.#pending.slice(0, this.#sent)) {
      end += frameBytes(bytes.length);
      if (end > sealed) break;
      happened += 1;
    }
    for (const { record } of this.#pending.slice(0, happened)) this.#judge.happened(this.stream, record);
    this.#pending = this.#pending.slice(happened);
    this.#sent = 0;
  }

  #make(recordBytesMax: number): Pending {
    const record: RecordName = { epoch: this.epoch, sequence: this.#sequence++ };
    const lengthBytes = 16 + Math.floor(this.#world.random.float() ** 2 * recordBytesMax);
    return { record, bytes: recordBytes(this.stream, record, lengthBytes) };
  }
}
