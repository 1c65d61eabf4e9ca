/**
 * In which order ranges are loaded when many wait: those first that were asked most when they were served last, so many at a server at once.
 * Thousands of loads at once would all end late; one after another they would not use the machine.
 */
export interface Waiting {
  readonly server: string;
  /** What is larger goes first. */
  readonly heat: number;
  readonly go: () => void;
}

export class LoadQueue {
  readonly #atOnceMax: number;
  readonly #waiting: Waiting[] = [];
  readonly #running = new Map<string, number>();

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves when it is this one's turn at the server; call what it gives when it is over. Those that come in one turn are sorted first. */
  async enter(server: string, heat: number): Promise<() => void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push({ server, heat, go: resolve });
      // Not before the others of this turn are here too.
      void Promise.resolve().then(() => this.#next());
    });
    return () => {
      const left = this.#at(server) - 1;
      if (left > 0) this.#running.set(server, left);
      else this.#running.delete(server);
      this.#next();
    };
  }

  #at(server: string): number {
    return this.#running.get(server) ?? 0;
  }

  #next(): void {
    if (this.#waiting.length === 0) return;
    this.#waiting.sort((a, b) => b.heat - a.heat);
    for (let i = 0; i < this.#waiting.length; ) {
      const { server, go } = this.#waiting[i] as Waiting;
      if (this.#at(server) >= this.#atOnceMax) {
        i++;
        continue;
      }
      this.#waiting.splice(i, 1);
      this.#running.set(server, this.#at(server) + 1);
      go();
    }
  }
}
