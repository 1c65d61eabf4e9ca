/** Bounds the memory of all copies of bytes that one process has under way to one other stamp. A copy that is larger than the bound goes alone. */

interface Waiting {
  readonly bytes: number;
  readonly go: (isTaken: boolean) => void;
}

export class ByteGate {
  readonly #bytesMax: number;
  #freeBytes: number;
  readonly #waiting: Waiting[] = [];

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#freeBytes = bytesMax;
  }

  /** Resolves when there is room, in the order of the calls; with false, and nothing is taken, if the signal ends the wait. */
  async take(wantedBytes: number, signal: AbortSignal): Promise<boolean> {
    const bytes = Math.min(wantedBytes, this.#bytesMax);
    if (signal.aborted) return false;
    if (this.#waiting.length === 0 && bytes <= this.#freeBytes) {
      this.#freeBytes -= bytes;
      return true;
    }
    return new Promise<boolean>((resolve) => {
      const waiting: Waiting = {
        bytes,
        go: (isTaken) => {
          signal.removeEventListener("abort", onAbort);
          resolve(isTaken);
        },
      };
      const onAbort = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
        waiting.go(false);
        this.#admit();
      };
      this.#waiting.push(waiting);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  give(bytes: number): void {
    this.#freeBytes += Math.min(bytes, this.#bytesMax);
    this.#admit();
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next !== undefined && next.bytes <= this.#freeBytes; next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#freeBytes -= next.bytes;
      next.go(true);
    }
  }
}

/** Gates by the name of the other stamp: a silent stamp stops no copies to others. */
export class ByteGates {
  readonly #bytesMax: number;
  /** Bounded by the number of stamps that have had a copy of an account of this stamp. */
  readonly #gates = new Map<string, ByteGate>();

  /** `bytesMax`: bound of each gate. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  to(stamp: string): ByteGate {
    const gate = this.#gates.get(stamp) ?? new ByteGate(this.#bytesMax);
    this.#gates.set(stamp, gate);
    return gate;
  }
}
