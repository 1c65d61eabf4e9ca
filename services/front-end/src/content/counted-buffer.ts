/**
 * Bytes of one request as they come, in one buffer that grows with them. Its capacity is what is counted in the budget, and no more than twice
 * what came (or what came in one chunk): an announced length takes nothing, and many tiny chunks cost no more than their bytes. Only an owner
 * that has reason to expect more bytes soon reserves room for them.
 */
import { type Outcome, ok, type ReusedMemory } from "@stamp/base";
import type { ByteShare } from "./byte-budget.ts";

const startBytes = 4 * 1024;

export class CountedBuffer {
  readonly #share: ByteShare;
  readonly #capacityMax: number;
  readonly #memory: ReusedMemory | undefined;
  #buffer: Uint8Array = none;
  #filled = 0;

  /** Never grows beyond `capacityMax`, in bytes. `memory`: memory of large buffers; undefined: each has memory of its own. */
  constructor(share: ByteShare, capacityMax: number, memory?: ReusedMemory) {
    this.#share = share;
    this.#memory = memory;
    this.#capacityMax = capacityMax;
  }

  get lengthBytes(): number {
    return this.#filled;
  }

  /** Bytes of the buffer, borrowed until the next call. */
  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#filled);
  }

  /** Appends a chunk; false, and nothing changed, if the budget has no room now. */
  tryAppend(chunk: Uint8Array): boolean {
    const needed = this.#filled + chunk.length;
    if (needed <= this.#buffer.length || this.#tryGrow(this.#usual(needed)) || this.#tryGrow(needed)) this.#put(chunk);
    else return false;
    return true;
  }

  /** Makes room for `capacity` bytes in all, whatever came by now. False, and nothing changed, if the budget has no room now. */
  tryReserve(capacity: number): boolean {
    return capacity <= this.#buffer.length || this.#tryGrow(capacity);
  }

  /** Waits for that room; refused when that takes too long: then nothing changed. */
  async reserve(capacity: number): Promise<Outcome<void>> {
    if (this.tryReserve(capacity)) return ok();
    const taken = await this.#share.take(capacity - this.#buffer.length);
    if (taken.ok) this.#resize(capacity);
    return taken;
  }

  /** True if there is room that no byte was needed for. */
  get hasUnused(): boolean {
    return this.#buffer.length > this.#filled;
  }

  /** Gives room that is not needed back to the budget. */
  trim(): void {
    const unused = this.#buffer.length - this.#filled;
    this.#resize(this.#filled);
    this.#share.give(unused);
  }

  /** Waits for room; refused when that takes too long: then nothing changed. */
  async append(chunk: Uint8Array): Promise<Outcome<void>> {
    if (this.tryAppend(chunk)) return ok();
    const needed = this.#filled + chunk.length;
    const taken = await this.#share.take(needed - this.#buffer.length);
    if (!taken.ok) return taken;
    this.#resize(needed);
    this.#put(chunk);
    return ok();
  }

  /** Returns the bytes, which are the caller's now, and what it gives back for them to the budget. `free`: nobody looks at the bytes any more. */
  handOver(): { readonly payload: Uint8Array; readonly countedBytes: number; readonly free: () => void } {
    const buffer = this.#buffer;
    const handed = { payload: this.bytes, countedBytes: buffer.length, free: () => this.#free(buffer) };
    this.#buffer = none;
    this.#filled = 0;
    return handed;
  }

  drop(): void {
    const { countedBytes, free } = this.handOver();
    this.#share.give(countedBytes);
    free();
  }

  #free(buffer: Uint8Array): void {
    if (this.#memory?.isOut(buffer)) this.#memory.give(buffer);
  }

  #usual(needed: number): number {
    return Math.min(this.#capacityMax, Math.max(needed, startBytes, 2 * this.#buffer.length));
  }

  #tryGrow(capacity: number): boolean {
    if (!this.#share.tryTake(capacity - this.#buffer.length)) return false;
    this.#resize(capacity);
    return true;
  }

  #resize(capacity: number): void {
    const grown = this.#memory?.take(capacity) ?? new Uint8Array(capacity);
    grown.set(this.bytes);
    this.#free(this.#buffer);
    this.#buffer = grown;
  }

  #put(chunk: Uint8Array): void {
    this.#buffer.set(chunk, this.#filled);
    this.#filled += chunk.length;
  }
}

const none = new Uint8Array(0);
