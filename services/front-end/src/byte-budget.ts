/** A bound on bytes held by all requests together. First come, first served; who waits, holds nothing of what it waits for. */
import { assert } from "@stamp/base";

interface Waiting {
  readonly bytes: number;
  readonly resolve: () => void;
}

export class ByteBudget {
  readonly bytesMax: number;
  #used = 0;
  readonly #waiting: Waiting[] = [];

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  get usedBytes(): number {
    return this.#used;
  }

  /** False when it would have to wait. More than the whole budget is let through when nothing else is held. */
  tryTake(bytes: number): boolean {
    if (this.#waiting.length > 0 || !this.#fits(bytes)) return false;
    this.#used += bytes;
    return true;
  }

  async take(bytes: number): Promise<void> {
    if (this.tryTake(bytes)) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push({ bytes, resolve });
    });
  }

  /** What was taken, in any parts. */
  give(bytes: number): void {
    this.#used -= bytes;
    assert(this.#used >= 0, "no more bytes are given back than were taken");
    for (let first = this.#waiting[0]; first && this.#fits(first.bytes); first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#used += first.bytes;
      first.resolve();
    }
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || this.#used + bytes <= this.bytesMax;
  }
}
