/**
 * Clients of an account at two stamps, over HTTP. A writer has PartitionNames of its own and writes them at the stamp that takes it as primary.
 * A reader asks a stamp by the name of its copy, for all rows of a PartitionName and for Last Sync Time.
 */
import { parseRfc1123, timestampOfEtag } from "@stamp/azure-rest";
import { fromUtf8, type Prng, utf8 } from "@stamp/base";
import type { World } from "@stamp/ports";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import { HttpClient, type Received } from "../clients/http-client.ts";
import { changeRequest, entityPath, lengthOf, queryPage, transaction } from "../clients/table-http.ts";
import type { Tally } from "../run/workload.ts";
import { type GeoHistory, lastRow, type Rows } from "./history.ts";
import { otherStamp, type StampName, stampNames, type TwoStamps } from "./location.ts";

const table = "pairs";
const rowNames = ["r0", "r1", "r2", "r3", "r4"];

interface ShownRow {
  readonly RowKey: string;
  readonly write: number;
  readonly pad: string;
  readonly "odata.etag": string;
}

/** Parts of a run that all its clients share. */
export interface Scene {
  readonly sim: Simulation;
  readonly tally: Tally;
  readonly history: GeoHistory;
  readonly place: TwoStamps;
  /** Largest size of a row, in bytes. */
  readonly padMax: number;
}

const padOf = (write: number, row: string, padMax: number): string =>
  `${write}.`.repeat(1 + Math.floor((((write * 7_919 + row.length) % 97) / 97) ** 2 * (padMax / 4)));

const codeOf = (received: Received | undefined): string => received?.headers["x-ms-error-code"] ?? "";

/** Way of one client to one stamp. */
class StampTable {
  readonly stamp: StampName;
  readonly #secondary: boolean;
  readonly #scene: Scene;
  readonly #http: HttpClient;

  constructor(scene: Scene, client: string, world: World, stamp: StampName, secondary: boolean) {
    this.stamp = stamp;
    this.#secondary = secondary;
    this.#scene = scene;
    this.#http = new HttpClient(scene.sim, world, client, scene.place.door(stamp, secondary), "table");
  }

  async createTable(): Promise<boolean> {
    const body = utf8(JSON.stringify({ TableName: table }));
    const received = await this.#http.request("POST", "/Tables", lengthOf(body, "application/json"), body);
    return received?.status === 204 || received?.status === 201 || codeOf(received) === "TableAlreadyExists";
  }

  /** State of a PartitionName, with the ETag of its last row. Undefined: the stamp does not say. */
  async read(name: string): Promise<{ readonly id: number; readonly etag: string } | undefined> {
    const { history, sim, tally, padMax } = this.#scene;
    const { stamp } = this;
    const secondary = this.#secondary;
    const question = { name, stamp, secondary, calledMs: sim.nowMs, syncedMs: history.syncedMs, own: history.ownOf(stamp, name) };
    const page = await queryPage<ShownRow>(this.#http, table, `PartitionKey eq '${name}'`, 1_000, "");
    const what = `read at the ${secondary ? "secondary" : "primary"}`;
    if (!("entities" in page) || page.next !== "") {
      count(tally, `${what} unanswered`);
      return undefined;
    }
    const rows = new Map<string, number>();
    for (const { RowKey: row, write, pad } of page.entities) {
      if (pad !== padOf(write, row, padMax))
        throw new BrokenPromise(`row ${row} of ${name} at stamp ${stamp} is not as write ${write} left it`);
      rows.set(row, write);
    }
    count(tally, `${what} ok`);
    const id = history.shown(question, rows);
    return { id, etag: page.entities.find(({ RowKey: row }) => row === lastRow)?.["odata.etag"] ?? "" };
  }

  /** Replaces rows of a PartitionName in one transaction, if its last row has this ETag. Returns the new ETag of the last row. */
  async write(name: string, etag: string, before: Rows, after: Rows): Promise<{ readonly etag: string } | "refused" | "unknown"> {
    const requests = [lastRow, ...rowNames].flatMap((row) => {
      const write = after.get(row);
      if (write === before.get(row)) return [];
      const path = entityPath(table, name, row);
      if (write === undefined) return [changeRequest("DELETE", path, { "If-Match": "*" })];
      const body = JSON.stringify({ PartitionKey: name, RowKey: row, write, pad: padOf(write, row, this.#scene.padMax) });
      if (row !== lastRow) return [changeRequest("PUT", path, {}, body)];
      return [etag === "" ? changeRequest("POST", table, {}, body) : changeRequest("PUT", path, { "If-Match": etag }, body)];
    });
    const answer = await transaction(this.#http, requests);
    if ("etags" in answer) return { etag: answer.etags[0] ?? "" };
    return refusals.has(codeOf(answer.received)) ? "refused" : "unknown";
  }

  /** Last Sync Time, in milliseconds since 1970; undefined: it is not told. */
  async lastSyncMs(): Promise<number | undefined> {
    const received = await this.#http.request("GET", "/?restype=service&comp=stats", {});
    if (received?.status !== 200 || received.short) return undefined;
    const text = fromUtf8(received.body);
    const [, time = ""] = /<Status>live<\/Status><LastSyncTime>([^<]+)</.exec(text) ?? [];
    return parseRfc1123(time);
  }
}

const refusals: ReadonlySet<string> = new Set(["UpdateConditionNotSatisfied", "EntityAlreadyExists", "ResourceNotFound"]);

/** Timestamp of an ETag, in milliseconds since 1970, rounded down: ticks of 100 ns. */
const writtenMs = (etag: string): number => Number((timestampOfEtag(etag) ?? 0n) / 10_000n);

const count = (tally: Tally, what: string): void => {
  tally.counts[what] = (tally.counts[what] ?? 0) + 1;
};

export class Writer {
  readonly #scene: Scene;
  readonly #prng: Prng;
  readonly #names: readonly string[];
  readonly #tables: Readonly<Record<StampName, StampTable>>;
  readonly #known = new Map<string, { readonly id: number; readonly etag: string }>();
  #at: StampName = "north";

  constructor(scene: Scene, client: string, names: readonly string[]) {
    this.#scene = scene;
    this.#prng = scene.sim.prng.fork();
    this.#names = names;
    const at = (stamp: StampName): StampTable => new StampTable(scene, client, scene.sim.world(client), stamp, false);
    this.#tables = { north: at("north"), south: at("south") };
  }

  createTable(): Promise<boolean> {
    return this.#tables[this.#at].createTable();
  }

  async work(endMs: number, pauseMaxMs: number): Promise<void> {
    const { sim } = this.#scene;
    while (sim.nowMs < endMs) {
      await sim.sleep(this.#prng.float() * pauseMaxMs);
      await this.step(this.#prng.pick(this.#names));
    }
  }

  /** Writes a PartitionName, or finds out its state. */
  async step(name: string): Promise<void> {
    const known = this.#known.get(name);
    const read = known ?? (await this.#tables[this.#at].read(name));
    if (read === undefined) this.#turn();
    else if (known === undefined) this.#known.set(name, read);
    else await this.#write(name, known);
  }

  async #write(name: string, { id: parent, etag }: { readonly id: number; readonly etag: string }): Promise<void> {
    const { sim, history, tally } = this.#scene;
    const stamp = this.#at;
    const before = history.rowsOf(parent);
    const id = history.called(name, parent, (write) => this.#next(before, write), sim.nowMs);
    this.#known.delete(name);
    const done = await this.#tables[stamp].write(name, etag, before, history.rowsOf(id));
    if (typeof done === "object") {
      history.acknowledged(id, stamp, writtenMs(done.etag));
      this.#known.set(name, { id, etag: done.etag });
    } else if (done === "unknown") this.#turn();
    count(tally, `write ${typeof done === "object" ? `acknowledged by ${stamp}` : done}`);
  }

  /** Rows after a write: the last row, and some others put or deleted. */
  #next(before: Rows, write: number): Rows {
    const after = new Map(before).set(lastRow, write);
    for (const row of this.#prng.shuffle([...rowNames]).slice(0, this.#prng.below(3))) {
      if (after.has(row) && this.#prng.chance(0.4)) after.delete(row);
      else after.set(row, write);
    }
    return after;
  }

  /** The stamp may be the primary no more. */
  #turn(): void {
    if (this.#prng.chance(0.5)) this.#at = otherStamp(this.#at);
  }
}

export class Reader {
  readonly #scene: Scene;
  readonly #prng: Prng;
  readonly #names: readonly string[];
  readonly #copies: Readonly<Record<StampName, StampTable>>;
  readonly #tables: Readonly<Record<StampName, StampTable>>;

  constructor(scene: Scene, client: string, names: readonly string[]) {
    const { sim } = scene;
    this.#scene = scene;
    this.#prng = sim.prng.fork();
    this.#names = names;
    const at = (stamp: StampName, secondary: boolean): StampTable => new StampTable(scene, client, sim.world(client), stamp, secondary);
    this.#copies = { north: at("north", true), south: at("south", true) };
    this.#tables = { north: at("north", false), south: at("south", false) };
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
    count(tally, "Last Sync Time told");
    return told;
  }

  /** State of every PartitionName at a stamp; undefined: some are not told. */
  async all(stamp: StampName, secondary: boolean): Promise<ReadonlyMap<string, number> | undefined> {
    const found = new Map<string, number>();
    for (const name of this.#names) {
      const read = await (secondary ? this.#copies : this.#tables)[stamp].read(name);
      if (read === undefined) return undefined;
      found.set(name, read.id);
    }
    return found;
  }
}
