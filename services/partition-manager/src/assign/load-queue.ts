/**
 * Order in which ranges are loaded when many wait: those with most requests when they were last served go first, and each server loads at most
 * `atOnceMax` at a time. Thousands of loads at once would all end late; one after another they would not use the machine.
 */
interface Waiting {
  /** Heat of the range; hotter ones go first. */
  readonly heat: number;
  /** Number of the arrival: of equally hot ranges the earlier goes first. */
  readonly number: number;
  readonly go: () => void;
}

interface AtServer {
  running: number;
  /** Waiting loads, sorted by heat when the next one is taken, the hottest last. */
  readonly waiting: Waiting[];
  sorted: boolean;
  /** True while a turn of the event loop is awaited in which the ranges that came together are sorted and begin. */
  due: boolean;
}

export class LoadQueue {
  readonly #atOnceMax: number;
  readonly #servers = new Map<string, AtServer>();
  #entered = 0;

  constructor(atOnceMax: number) {
    this.#atOnceMax = atOnceMax;
  }

  get waiting(): number {
    return this.#servers.values().reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  /** True if nothing runs or waits. */
  get empty(): boolean {
    return this.#servers.size === 0;
  }

  /** Resolves when it is this one's turn at the server; call what it gives when it is over. Those that come in one turn are sorted first. */
  async enter(name: string, heat: number): Promise<() => void> {
    const server: AtServer = this.#servers.get(name) ?? { running: 0, waiting: [], sorted: true, due: false };
    this.#servers.set(name, server);
    await new Promise<void>((resolve) => {
      server.waiting.push({ heat, number: this.#entered++, go: resolve });
      server.sorted = false;
      this.#soon(server);
    });
    return () => {
      server.running--;
      this.#next(server);
      if (server.running === 0 && server.waiting.length === 0) this.#servers.delete(name);
    };
  }

  #soon(server: AtServer): void {
    if (server.due) return;
    server.due = true;
    void Promise.resolve().then(() => {
      server.due = false;
      this.#next(server);
    });
  }

  #next(server: AtServer): void {
    if (server.waiting.length === 0 || server.running >= this.#atOnceMax) return;
    if (!server.sorted) server.waiting.sort((a, b) => a.heat - b.heat || b.number - a.number);
    server.sorted = true;
    while (server.running < this.#atOnceMax) {
      const next = server.waiting.pop();
      if (next === undefined) return;
      server.running++;
      next.go();
    }
  }
}
