/**
 * Clients of the SDK behind something like a load balancer: an attempt that fails moves a client to the front-end of the next host. Some share a few
 * blobs and record what they saw, which one order of all operations must explain; others write fresh blobs, which must be there at the end.
 */
import { Prng } from "@stamp/base";
import { type Answer, type BlobCondition, type BlobDoor, contentOf, ObjectClients, writeOf } from "@stamp/histories";
import { judgeHistory } from "./real-stage.ts";
import { SdkBlobDoor } from "./sdk-doors.ts";

/** Time of one attempt of a client, in milliseconds; a person's load balancer would have about as much. */
const attemptMs = 3_000;
const pauseMaxMs = 60;
const freshPauseMs = 30;
const freshBytes = 4_096;
const sharing = 3;
const sharedBlobs = ["a", "b", "c/d"];
const writing = 3;
const fresh = "fresh";

/** Attempts of a pause that are kept, the first ones: a client whose every attempt is refused makes hundreds. */
const keptAttempts = 40;

/** One attempt without an answer, e.g. `{ at: 1, ms: 3002, answer: "unknown" }`. */
export interface Attempt {
  /** Place of the front-end in the list of connection strings. */
  readonly at: number;
  /** Time from the attempt's begin to its end, in milliseconds. */
  readonly ms: number;
  readonly answer: string;
}

export interface Pause {
  readonly ms: number;
  /** Client that waited, e.g. "writer 2". */
  readonly client: string;
  /** Time of the last answer before the pause by the wall clock, to compare with logs, e.g. "2026-11-26T14:05:09.120Z". */
  readonly since: string;
  /** Attempts of the client meanwhile, in order. The last one is the attempt that was answered, if the pause is over. */
  readonly attempts: readonly Attempt[];
}

/** One client's doors, one for each host. */
class MovingDoor implements BlobDoor {
  readonly name: string;
  readonly #doors: readonly BlobDoor[];
  #at: number;
  #answeredMs = performance.now();
  #attempts: Attempt[] = [];
  #longest: Omit<Pause, "client"> = { ms: 0, since: "", attempts: [] };

  constructor(name: string, doors: readonly BlobDoor[], at: number) {
    this.name = name;
    this.#doors = doors;
    this.#at = at;
  }

  /** Returns the longest time without an answer since the last call, which may go on still. */
  takeLongest(): Pause {
    this.#measure();
    const longest = { ...this.#longest, client: this.name };
    this.#longest = { ms: 0, since: "", attempts: [] };
    this.#answered();
    return longest;
  }

  createContainer(container: string): Promise<Answer> {
    return this.#through((door) => door.createContainer(container));
  }
  deleteContainer(container: string): Promise<Answer> {
    return this.#through((door) => door.deleteContainer(container));
  }
  put(container: string, blob: string, bytes: Uint8Array, condition: BlobCondition): Promise<Answer> {
    return this.#through((door) => door.put(container, blob, bytes, condition));
  }
  get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    return this.#through((door) => door.get(container, blob));
  }
  delete(container: string, blob: string, condition: BlobCondition): Promise<Answer> {
    return this.#through((door) => door.delete(container, blob, condition));
  }
  list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    return this.#through((door) => door.list(container));
  }

  async #through<T extends { readonly kind: string }>(work: (door: BlobDoor) => Promise<T>): Promise<T> {
    const [at, beginMs] = [this.#at, performance.now()];
    const answer = await work(this.#doors[at] as BlobDoor);
    const attempt = { at, ms: Math.round(performance.now() - beginMs), answer: answer.kind };
    if (this.#attempts.length < keptAttempts) this.#attempts.push(attempt);
    if (answer.kind === "unknown" || answer.kind === "notDone") this.#at = (at + 1) % this.#doors.length;
    else {
      this.#measure();
      this.#answered();
    }
    return answer;
  }

  #measure(): void {
    const ms = Math.round(performance.now() - this.#answeredMs);
    if (ms <= this.#longest.ms) return;
    const since = new Date(performance.timeOrigin + this.#answeredMs).toISOString();
    this.#longest = { ms, since, attempts: this.#attempts };
  }

  #answered(): void {
    this.#answeredMs = performance.now();
    this.#attempts = [];
  }
}

export class MovingClients {
  readonly counts: Record<string, number> = {};
  readonly #shared: ObjectClients;
  readonly #sharers: readonly MovingDoor[];
  readonly #writers: readonly MovingDoor[];
  readonly #acknowledged: { readonly name: string; readonly write: number }[] = [];
  readonly #work: Promise<void>[] = [];
  readonly #prng = new Prng(1);
  #running = true;
  #write = 1_000_000;

  private constructor(doors: (at: number, name: string) => MovingDoor, blobs: readonly string[]) {
    const stage = {
      nowMs: () => performance.now(),
      sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
      count: (what: string, by = 1) => {
        this.counts[what] = (this.counts[what] ?? 0) + by;
      },
    };
    this.#shared = new ObjectClients(stage, new Map([["shared", blobs]]), { pauseMaxMs, recreateOneIn: 0 });
    this.#sharers = Array.from({ length: sharing }, (_, i) => doors(i, `sharer ${i + 1}`));
    this.#writers = Array.from({ length: writing }, (_, i) => doors(i, `writer ${i + 1}`));
  }

  /**
   * `connectionStrings`: of the front-ends, each client's first one in turn. `blobs`: names that clients share. The judge's search grows with the
   * operations on one of them, and with the attempts without an answer among those: long runs share more.
   */
  static async start(connectionStrings: readonly string[], blobs: readonly string[] = sharedBlobs): Promise<MovingClients> {
    const doors = (first: number, name: string): MovingDoor =>
      new MovingDoor(
        name,
        connectionStrings.map((text) => new SdkBlobDoor(text, attemptMs)),
        first % connectionStrings.length,
      );
    const clients = new MovingClients(doors, blobs);
    await clients.#shared.createContainer(clients.#sharers[0] as MovingDoor, "shared");
    const made = await clients.#writers[0]?.createContainer(fresh);
    if (made?.kind !== "ok") throw new Error(`the container can't be made: ${made?.kind}`);
    for (const door of clients.#sharers) clients.#work.push(clients.#shared.work(door, clients.#prng.fork(), () => clients.#running));
    for (const door of clients.#writers) clients.#work.push(clients.#writeFresh(door));
    clients.takeLongest();
    return clients;
  }

  /** Number of fresh blobs that were acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged.length;
  }

  /** Returns the longest time that a client went without an answer since the last call. */
  takeLongest(): Pause {
    const all = [...this.#sharers, ...this.#writers].map((door) => door.takeLongest());
    return all.reduce((longest, each) => (each.ms > longest.ms ? each : longest));
  }

  /** Ends the clients' work, also after a failure: nothing else ends it. */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#work);
  }

  /** Stops, reads everything back, and returns what is wrong. */
  async finish(): Promise<string[]> {
    await this.stop();
    const wrong: string[] = [];
    const door = this.#sharers[0] as MovingDoor;
    await this.#shared.readBack(door, this.#prng, 60_000);
    wrong.push(...judgeHistory(this.#shared));
    const reader = async (every: number, first: number): Promise<void> => {
      for (let i = first; i < this.#acknowledged.length; i += every) {
        const { name, write } = this.#acknowledged[i] as { readonly name: string; readonly write: number };
        let answer = await door.get(fresh, name);
        for (let tries = 0; tries < 10 && (answer.kind === "unknown" || answer.kind === "notDone"); tries++)
          answer = await door.get(fresh, name);
        if (answer.kind !== "ok" || !("bytes" in answer)) wrong.push(`${name} was acknowledged and is ${answer.kind}`);
        else if (writeOf(answer.bytes, name) !== write) wrong.push(`${name} has the bytes of another write`);
      }
    };
    await Promise.all(Array.from({ length: 8 }, (_, i) => reader(8, i)));
    return wrong;
  }

  async #writeFresh(door: MovingDoor): Promise<void> {
    while (this.#running) {
      const write = this.#write++;
      const name = `blob-${write}`;
      const answer = await door.put(fresh, name, contentOf(write, freshBytes), { kind: "none" });
      if (answer.kind === "ok") this.#acknowledged.push({ name, write });
      await new Promise((resolve) => setTimeout(resolve, freshPauseMs));
    }
  }
}
