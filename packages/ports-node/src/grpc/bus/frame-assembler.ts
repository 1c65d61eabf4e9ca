/**
 * Frames out of the bytes of a plain connection (docs/formats/bus.md). The socket reads straight into the memory that this class offers: a small
 * one for beginnings and small frames, and for a frame that does not fit there, its own, of which the rest is read in place. So a large
 * payload is written to memory once, by the kernel.
 *
 *     the handshake (handshake-format.ts), then frames:   | length u32 | kind u8 | 0 0 0 | length bytes |
 */
import { FailureError } from "@stamp/base";
import type { FrameMemory } from "./frame-memory.ts";

export const headBytes = 8;
/** Kinds of frames: 0 has calls (BusFrames), 1 is a sign of life without content. */
export const kinds = { frames: 0, alive: 1 } as const;

const scratchBytes = 32 * 1024;

export function writeHead(target: Buffer, lengthBytes: number, kind: number): void {
  target.writeUInt32LE(lengthBytes, 0);
  target.writeUInt32LE(kind, 4);
}

export interface AssembledEvents {
  /** Takes received handshake bytes, borrowed. Returns the number of bytes used, or undefined: more has to come. */
  handshake(bytes: Buffer): number | undefined;
  /** Takes a frame and owns its bytes. */
  frame(bytes: Buffer): void;
}

const malformed = (what: string): FailureError =>
  new FailureError({ code: "invalidArgument", reason: "badRequest", message: `malformed connection: ${what}`, applied: "no" });

export class FrameAssembler {
  readonly #frameBytesMax: number;
  readonly #take: AssembledEvents;
  readonly #memory: FrameMemory;
  readonly #scratch: Buffer = Buffer.allocUnsafeSlow(scratchBytes);
  /** Part of the scratch that is there and not yet taken. */
  #begin = 0;
  #end = 0;
  #greeted: boolean;
  /** A frame that is not complete. */
  #frame: Buffer | undefined;
  #filled = 0;

  /** `greeted`: true if the handshake is over, so that only frames come. */
  constructor(frameBytesMax: number, greeted: boolean, memory: FrameMemory, take: AssembledEvents) {
    this.#memory = memory;
    this.#frameBytesMax = frameBytesMax;
    this.#greeted = greeted;
    this.#take = take;
  }

  /** Returns where the next bytes belong; never empty. */
  space(): Buffer {
    return this.#frame?.subarray(this.#filled) ?? this.#scratch.subarray(this.#end);
  }

  /** Takes bytes that were written to the beginning of `space`. Throws FailureError `badRequest`. */
  received(countBytes: number): void {
    if (this.#frame !== undefined) {
      this.#filled += countBytes;
      if (this.#filled < this.#frame.length) return;
      const frame = this.#frame;
      this.#frame = undefined;
      this.#take.frame(frame);
      return;
    }
    this.#end += countBytes;
    if (!this.#greeted) {
      const taken = this.#take.handshake(this.#scratch.subarray(this.#begin, this.#end));
      if (taken === undefined) {
        if (this.#end === scratchBytes) throw malformed("a handshake without end");
        return;
      }
      this.#greeted = true;
      this.#begin += taken;
    }
    while (this.#end - this.#begin >= headBytes && this.#frame === undefined) this.#takeOne();
    this.#scratch.copyWithin(0, this.#begin, this.#end);
    this.#end -= this.#begin;
    this.#begin = 0;
  }

  #takeOne(): void {
    const head = this.#begin;
    this.#begin += headBytes;
    const lengthBytes = this.#scratch.readUInt32LE(head);
    const kind = this.#scratch.readUInt32LE(head + 4);
    if (kind === kinds.alive && lengthBytes === 0) return;
    if (kind !== kinds.frames) throw malformed(`a frame of kind ${kind} and ${lengthBytes} bytes`);
    if (lengthBytes === 0 || lengthBytes > this.#frameBytesMax) throw malformed(`a frame of ${lengthBytes} bytes`);
    const frame = this.#memory.take(lengthBytes);
    const there = this.#scratch.copy(frame, 0, this.#begin, Math.min(this.#end, this.#begin + lengthBytes));
    this.#begin += there;
    if (there === lengthBytes) this.#take.frame(frame);
    else {
      this.#frame = frame;
      this.#filled = there;
    }
  }
}
