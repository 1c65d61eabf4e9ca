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

  /** False when it would have to wait. More than the whole budget counts as the whole. */
  tryTake(bytes: number): boolean {
    const counted = Math.min(bytes, this.bytesMax);
    if (this.#waiting.length > 0 || this.#used + counted > this.bytesMax) return false;
    this.#used += counted;
    return true;
  }

  async take(bytes: number): Promise<void> {
    if (this.tryTake(bytes)) return;
    await new Promise<void>((resolve) => {
      this.#waiting.push({ bytes: Math.min(bytes, this.bytesMax), resolve });
    });
  }

  /** Exactly what was taken, once. */
  give(bytes: number): void {
    this.#used -= Math.min(bytes, this.bytesMax);
    assert(this.#used >= 0, "no more bytes are given back than were taken");
    for (let first = this.#waiting[0]; first && this.#used + first.bytes <= this.bytesMax; first = this.#waiting[0]) {
      this.#waiting.shift();
      this.#used += first.bytes;
      first.resolve();
    }
  }
}
