/**
 * Memory of the frames in which answers come. A caller that has done with an answer's payload gives it back (`Transport.giveBack`); a frame is
 * free when all payloads in it were given back. Payloads of calls that were given up have no caller, so they hold nothing.
 */
import { FrameMemory } from "./frame-memory.ts";

export class AnswerFrames {
  readonly memory: FrameMemory;
  readonly #given = new WeakMap<object, () => void>();

  constructor(reusedBytesMax: number) {
    this.memory = new FrameMemory(reusedBytesMax);
  }

  /** Returns undefined if the frame's memory is not used again. */
  hold(frame: Buffer): HeldFrame | undefined {
    if (!this.memory.isReused(frame)) return undefined;
    return new HeldFrame(
      () => this.memory.give(frame),
      (held, end) => this.#given.set(held, end),
    );
  }

  /** Gives back an object as it came: a payload, or an answer without one. Any other object is not held here. */
  giveBack(held: object): void {
    const end = this.#given.get(held);
    if (end === undefined) return;
    this.#given.delete(held);
    end();
  }
}

/** Frame with the number of answers that still look at it. */
export class HeldFrame {
  readonly #give: () => void;
  readonly #expect: (held: object, end: () => void) => void;
  /** The frame is looked through. */
  #holders = 1;

  constructor(give: () => void, expect: (held: object, end: () => void) => void) {
    this.#give = give;
    this.#expect = expect;
  }

  /** Notes a holder of the frame: a payload or an answer with views of it, which its caller may give back. */
  heldBy(held: object): void {
    this.#holders += 1;
    this.#expect(held, () => this.end());
  }

  /** Notes that one holder will not look at the frame any more. */
  end(): void {
    this.#holders -= 1;
    if (this.#holders === 0) this.#give();
  }
}
