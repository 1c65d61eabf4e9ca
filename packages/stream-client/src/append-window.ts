/**
 * The owner's appends, in order: those that wait, those in flight on the current extent, and what a seal says of them. Pure.
 *
 *      waiting ──next()──> in flight ──acked()──> done
 *         ^                    │
 *         └──── sealed(): not below the sealed length (in order, before everything that waits)
 *                              └──── sealed(): below it ──> done
 *
 * Invariants: items leave `done` in the order in which they came; an item in flight has the offset that follows the one before it; an
 * item is put into a second extent only when the first was sealed below it (stream-layer.md, Append; faults.md "did it happen?").
 */
import { assert } from "@stamp/base";

interface Flying<T> {
  readonly item: T;
  readonly offsetBytes: number;
  readonly endBytes: number;
}

export interface Done<T> {
  readonly item: T;
  readonly extentId: number;
  readonly offsetBytes: number;
}

export type Next<T> =
  /** Send it with this expected offset. */
  | { readonly kind: "send"; readonly item: T; readonly extentId: number; readonly offsetBytes: number; readonly endBytes: number }
  /** There is no extent, or it is full: ask for the next one. */
  | { readonly kind: "roll" }
  | { readonly kind: "idle" };

export interface WindowLimits {
  /** An extent is rolled when the next append would make it longer; a single larger append still fits into an empty one. */
  readonly extentTargetBytes: number;
  readonly inFlightAppendsMax: number;
  readonly inFlightBytesMax: number;
}

export class AppendWindow<T> {
  readonly #limits: WindowLimits;
  readonly #framedBytes: (item: T) => number;
  #waiting: T[] = [];
  #flying: Flying<T>[] = [];
  #extentId = 0;
  #endBytes = 0;
  #committedBytes = 0;
  #sealing = false;

  constructor(limits: WindowLimits, framedBytes: (item: T) => number) {
    this.#limits = limits;
    this.#framedBytes = framedBytes;
  }

  /** 0: there is none. */
  get extentId(): number {
    return this.#extentId;
  }
  /** The largest committed length of the current extent that the owner knows of. */
  get committedBytes(): number {
    return this.#committedBytes;
  }
  get waiting(): number {
    return this.#waiting.length;
  }
  get inFlight(): number {
    return this.#flying.length;
  }
  get sealing(): boolean {
    return this.#sealing;
  }

  add(item: T): void {
    this.#waiting.push(item);
  }

  /** An item that was never sent is taken back; false: it is in flight or done. */
  takeBack(item: T): boolean {
    const at = this.#waiting.indexOf(item);
    if (at < 0) return false;
    this.#waiting.splice(at, 1);
    return true;
  }

  next(): Next<T> {
    const item = this.#waiting[0];
    if (item === undefined || this.#sealing) return { kind: "idle" };
    if (this.#extentId === 0) return { kind: "roll" };
    const lengthBytes = this.#framedBytes(item);
    if (this.#endBytes > 0 && this.#endBytes + lengthBytes > this.#limits.extentTargetBytes) {
      return this.#flying.length === 0 ? { kind: "roll" } : { kind: "idle" };
    }
    const flyingBytes = this.#endBytes - (this.#flying[0]?.offsetBytes ?? this.#endBytes);
    if (
      this.#flying.length >= this.#limits.inFlightAppendsMax ||
      (this.#flying.length > 0 && flyingBytes + lengthBytes > this.#limits.inFlightBytesMax)
    ) {
      return { kind: "idle" };
    }
    this.#waiting.shift();
    const offsetBytes = this.#endBytes;
    this.#endBytes += lengthBytes;
    this.#flying.push({ item, offsetBytes, endBytes: this.#endBytes });
    return { kind: "send", item, extentId: this.#extentId, offsetBytes, endBytes: this.#endBytes };
  }

  /** The primary acknowledged everything up to here. Late answers of an extent that is being sealed change nothing. */
  acked(extentId: number, endBytes: number): readonly Done<T>[] {
    if (extentId !== this.#extentId || this.#sealing) return [];
    const done: Done<T>[] = [];
    while (this.#flying[0] !== undefined && this.#flying[0].endBytes <= endBytes) {
      const { item, offsetBytes } = this.#flying.shift() as Flying<T>;
      done.push({ item, extentId, offsetBytes });
    }
    this.#committedBytes = Math.max(this.#committedBytes, endBytes);
    return done;
  }

  /** An append failed, or the extent is full: nothing is sent until `sealed`. False: it is so already, or about an older extent. */
  seal(extentId: number): boolean {
    if (extentId !== this.#extentId || this.#sealing) return false;
    this.#sealing = true;
    return true;
  }

  /** The extent was sealed at this length; appends go on at the start of the next one. */
  sealed(sealedLengthBytes: number, nextExtentId: number): readonly Done<T>[] {
    assert(this.#sealing, "sealed without being asked");
    assert(this.#committedBytes <= sealedLengthBytes || this.#extentId === 0, "sealed below what was acknowledged");
    const done: Done<T>[] = [];
    const again: T[] = [];
    for (const { item, offsetBytes, endBytes } of this.#flying) {
      if (endBytes <= sealedLengthBytes) done.push({ item, extentId: this.#extentId, offsetBytes });
      else again.push(item);
    }
    this.#waiting = [...again, ...this.#waiting];
    this.#flying = [];
    this.#extentId = nextExtentId;
    this.#endBytes = 0;
    this.#committedBytes = 0;
    this.#sealing = false;
    return done;
  }

  /** The stream has another owner, or this one leaves: what was sent is unknown, what waited never happened. */
  end(): { readonly sent: readonly T[]; readonly waiting: readonly T[] } {
    const sent = this.#flying.map((flying) => flying.item);
    const waiting = this.#waiting;
    this.#flying = [];
    this.#waiting = [];
    this.#sealing = true;
    return { sent, waiting };
  }
}
