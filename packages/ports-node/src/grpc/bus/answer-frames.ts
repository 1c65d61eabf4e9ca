/**
 * Memory of the frames in which answers come. A caller that has done with an answer's payload gives it back (`Transport.giveBack`); a frame is
 * free when all payloads in it were given back. Payloads of calls that were given up have no caller, so they hold nothing.
 */
import { FrameMemory } from "./frame-memory.ts";

export class AnswerFrames {
  readonly memory: FrameMemory;
  readonly #given = new WeakMap<Uint8Array, () => void>();

  constructor(reusedBytesMax: number) {
    this.memory = new FrameMemory(reusedBytesMax);
  }

  /** Undefined if the frame's memory is not used again. */
  hold(frame: Buffer): HeldFrame | undefined {
    if (!this.memory.isReused(frame)) return undefined;
    return new HeldFrame(
      () => this.memory.give(frame),
      (payload, end) => this.#given.set(payload, end),
    );
  }

  /** `payload`: the very object that came in the answer. Anything else is not held here. */
  giveBack(payload: Uint8Array): void {
    const end = this.#given.get(payload);
    if (end === undefined) return;
    this.#given.delete(payload);
    end();
  }
}

/** One frame, and how many still look at it. */
export class HeldFrame {
  readonly #give: () => void;
  readonly #expect: (payload: Uint8Array, end: () => void) => void;
  /** The frame is looked through. */
  #holders = 1;

  constructor(give: () => void, expect: (payload: Uint8Array, end: () => void) => void) {
    this.#give = give;
    this.#expect = expect;
  }

  /** `payload`: bytes of an answer that its caller may give back; anything else is kept for as long as its caller likes. */
  heldBy(payload: unknown): void {
    this.#holders += 1;
    if (payload instanceof Uint8Array) this.#expect(payload, () => this.end());
  }

  /** One holder will not look at the frame any more. */
  end(): void {
    this.#holders -= 1;
    if (this.#holders === 0) this.#give();
  }
}
