/**
 * Clients of an account at two stamps. A writer has names of its own and writes them at the stamp that takes it as primary. A reader asks a
 * stamp by the name of its copy, for the state of a name and for Last Sync Time.
 */
import type { Prng } from "@stamp/base";
import { lastRow, type Rows } from "./history.ts";
import { otherStamp, type StampName, stampNames } from "./location.ts";
import { count, isBlob, type Read, rowNames, type Scene, StampDoor } from "./stamp-door.ts";

type Doors = Readonly<Record<StampName, StampDoor>>;

function doorsOf(scene: Scene, client: string, secondary: boolean): Doors {
  const at = (stamp: StampName): StampDoor => new StampDoor(scene, client, scene.sim.world(client), stamp, secondary);
  return { north: at("north"), south: at("south") };
}

export class Writer {
  readonly #scene: Scene;
  readonly #prng: Prng;
  readonly #names: readonly string[];
  readonly #doors: Doors;
  readonly #known = new Map<string, Read>();
  #at: StampName = "north";

  constructor(scene: Scene, client: string, names: readonly string[]) {
    this.#scene = scene;
    this.#prng = scene.sim.prng.fork();
    this.#names = names;
    this.#doors = doorsOf(scene, client, false);
  }

  /** Makes the table and the container. */
  create(): Promise<boolean> {
    return this.#doors[this.#at].create();
  }

  async work(endMs: number, pauseMaxMs: number): Promise<void> {
    const { sim } = this.#scene;
    while (sim.nowMs < endMs) {
      await sim.sleep(this.#prng.float() * pauseMaxMs);
      await this.step(this.#prng.pick(this.#names));
    }
  }

  /** Writes a name, takes a snapshot of it, or finds out its state. */
  async step(name: string): Promise<void> {
    const known = this.#known.get(name);
    const read = known ?? (await this.#doors[this.#at].read(name));
    if (read === undefined) this.#turn();
    else if (known === undefined) this.#known.set(name, read);
    else if (isBlob(name) && known.etag !== "" && this.#prng.chance(0.1)) await this.#snapshot(name);
    else await this.#write(name, known);
  }

  async #write(name: string, { id: parent, etag }: Read): Promise<void> {
    const { sim, history, tally } = this.#scene;
    const stamp = this.#at;
    const before = history.rowsOf(parent);
    const id = history.called(name, parent, (write) => this.#next(name, before, write), sim.nowMs);
    this.#known.delete(name);
    const done = await this.#doors[stamp].write(name, id, parent, etag);
    if (typeof done === "object") {
      history.acknowledged(id, stamp, done.writtenMs, sim.nowMs);
      this.#known.set(name, { id, etag: done.etag });
    } else if (done === "unknown") this.#turn();
    const what = `write of a ${isBlob(name) ? "blob" : "table"}`;
    count(tally.counts, `${what} ${typeof done === "object" ? `acknowledged by ${stamp}` : done}`);
  }

  async #snapshot(name: string): Promise<void> {
    if (await this.#doors[this.#at].snapshot(name)) count(this.#scene.tally.counts, "snapshot taken");
  }

  /** Returns the rows after a write: the last row, and some others put or deleted. */
  #next(name: string, before: Rows, write: number): Rows {
    const after = new Map(before).set(lastRow, write);
    if (isBlob(name)) return after;
    for (const row of this.#prng.shuffle([...rowNames]).slice(0, this.#prng.below(3))) {
      if (after.has(row) && this.#prng.chance(0.4)) after.delete(row);
      else after.set(row, write);
    }
    return after;
  }

  /** Turns to the other stamp in half of the cases, because this one may be the primary no more. */
  #turn(): void {
    if (this.#prng.chance(0.5)) this.#at = otherStamp(this.#at);
  }
}

export class Reader {
  readonly #scene: Scene;
  readonly #prng: Prng;
  readonly #names: readonly string[];
  readonly #copies: Doors;
  readonly #own: Doors;

  constructor(scene: Scene, client: string, names: readonly string[]) {
    this.#scene = scene;
    this.#prng = scene.sim.prng.fork();
    this.#names = names;
    this.#copies = doorsOf(scene, client, true);
    this.#own = doorsOf(scene, client, false);
  }

  async work(endMs: number, pauseMaxMs: number): Promise<void> {
    const { sim } = this.#scene;
    while (sim.nowMs < endMs) {
      await sim.sleep(this.#prng.float() * pauseMaxMs);
      const stamp = this.#prng.pick(stampNames);
      if (this.#prng.chance(0.3)) await this.lastSync(stamp);
      else await this.#copies[stamp].read(this.#prng.pick(this.#names));
    }
  }

  /** Asks for Last Sync Time of the copy at a stamp. */
  async lastSync(stamp: StampName): Promise<number | undefined> {
    const { history, sim, tally } = this.#scene;
    const told = await this.#copies[stamp].lastSyncMs();
    if (told === undefined) return undefined;
    history.told(stamp, sim.nowMs, told);
    count(tally.counts, "Last Sync Time told");
    return told;
  }

  /** Asks a stamp for the whole account. Undefined: it does not tell everything. */
  async all(stamp: StampName, secondary: boolean): Promise<Shown | undefined> {
    const door = (secondary ? this.#copies : this.#own)[stamp];
    const states = new Map<string, number>();
    for (const name of this.#names) {
      const read = await door.read(name);
      if (read === undefined) return undefined;
      states.set(name, read.id);
    }
    const blobs = await door.list();
    return blobs === undefined ? undefined : { states, blobs };
  }
}

/** An account as one stamp shows it. */
export interface Shown {
  /** State of every name. */
  readonly states: ReadonlyMap<string, number>;
  /** Its blobs and their snapshots, as the list tells them. */
  readonly blobs: string;
}
