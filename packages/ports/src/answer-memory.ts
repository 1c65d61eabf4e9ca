/**
 * Memory of large answers, used again and again (ReusedMemory of @stamp/base): a handler writes its answer into it, the connection sends from
 * it, and when the system has taken the answer it is free.
 */
import { ReusedMemory } from "@stamp/base";
import type { Clock, Timer } from "./clock.ts";
import type { CallContext } from "./transport.ts";

/** Free memory that is kept for the next answers, in bytes: as much as one connection may have under way. */
const freeBytesMax = 32 * 1024 * 1024;
/** Time between two looks for memory that nobody needed and that is released, in milliseconds. */
const trimEveryMs = 5_000;
const pieceBytesMin = 64 * 1024;
/** Largest piece: a block of 4 MiB with its header. */
const pieceBytesMax = 4 * 1024 * 1024 + 64 * 1024;
const classBytes = 64 * 1024;

export class AnswerMemory {
  readonly #memory: ReusedMemory = new ReusedMemory({ freeBytesMax, pieceBytesMin, pieceBytesMax, classBytes });
  readonly #clock: Clock;
  /** Runs while memory is free. */
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Memory that waits for its next use, in bytes. */
  get freeBytes(): number {
    return this.#memory.freeBytes;
  }

  /** Returns undefined if the transport can't tell when the answer was sent: the answer then has memory of its own. */
  lend({ whenSent }: CallContext): LentMemory | undefined {
    return whenSent === undefined ? undefined : new LentMemory(this.#memory, whenSent, () => this.#trimLater());
  }

  #trimLater(): void {
    if (this.#memory.freeBytes === 0) return;
    this.#timer ??= this.#clock.after(trimEveryMs, () => {
      this.#timer = undefined;
      this.#memory.trim();
      this.#trimLater();
    });
  }
}

/** Memory for one answer. A call that fails leaves it to the garbage collector. */
export class LentMemory {
  readonly #memory: ReusedMemory;
  readonly #whenSent: (sent: () => void) => void;
  readonly #given: () => void;
  #taken: Uint8Array<ArrayBuffer> | undefined;

  constructor(memory: ReusedMemory, whenSent: (sent: () => void) => void, given: () => void) {
    this.#memory = memory;
    this.#whenSent = whenSent;
    this.#given = given;
  }

  /** Returns undefined if this few or many bytes have memory of their own. The last wanted size counts. */
  of(lengthBytes: number): Uint8Array<ArrayBuffer> | undefined {
    this.#taken = this.#memory.take(lengthBytes);
    return this.#taken;
  }

  /** Notes that the call was answered with these bytes, which may lie in the memory. */
  answered(bytes: Uint8Array): void {
    const taken = this.#taken;
    if (taken === undefined) return;
    const give = (): void => {
      this.#memory.give(taken);
      this.#given();
    };
    if (bytes.buffer === taken.buffer) this.#whenSent(give);
    else give();
  }
}
