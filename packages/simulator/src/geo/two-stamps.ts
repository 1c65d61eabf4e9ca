/**
 * Two stamps on virtual time, with the roles of production, and a client of their tables. Nobody runs the location service: the client gives
 * the commands about the account's role itself. Rows are read and written at the partition servers, whatever role the account has.
 */
import { assert, compareBytes, type Outcome, unwrap } from "@stamp/base";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { FrontEndRole, frontEndConfigSchema } from "@stamp/front-end";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { type Route, routeOf } from "@stamp/objects";
import { PartitionManagerRole, partitionManagerConfigSchema } from "@stamp/partition-manager";
import { PartitionServerRole, partitionServerConfigSchema } from "@stamp/partition-server";
import { sleep, type World } from "@stamp/ports";
import { StreamManagerRole, streamManagerSchema } from "@stamp/stream-manager";
import type { RoleFactory, Simulation } from "@stamp/virtual-time";
import {
  Accounts,
  EntityAction,
  executeFields,
  PartitionManager,
  PartitionServer,
  type RangePartition,
  RoleCommand,
  type TableResult,
} from "@stamp/wire";

export const account = "acct";
const answerWithinMs = 60_000;

/** One row of a table. */
export interface EntityAt {
  readonly partitionKey: string;
  readonly rowKey: string;
}

type TableKind = { readonly case: string; readonly value: unknown };

export class OneStamp {
  readonly name: string;
  readonly world: World;
  readonly processes: string[] = [];
  readonly #sim: Simulation;
  /** Processes of the role are numbered behind this one: a process's role is its name without its number. */
  readonly #first: number;
  #incarnation: number | undefined;

  readonly #port: string;

  /** `port`: part of every process's address behind its name, e.g. ":1", as a location service wants it. */
  constructor(sim: Simulation, name: "a" | "b", port = "") {
    this.#port = port;
    this.#sim = sim;
    this.#first = name === "a" ? 0 : 10;
    this.name = name;
    this.world = sim.world(`client-${name}`);
    const { lockService } = this;
    const add = (role: string, count: number, make: (place: Place) => RoleFactory): void => {
      for (let i = 1; i <= count; i++) {
        const process = this.#at(role, i);
        this.processes.push(process);
        sim.addProcess(process, make({ name: process, listen: `${process}${port}`, lockService, init: true }), { restartAfterMs: 800 });
      }
    };
    add("lock-service", 1, (place) => (world) => new LockServiceRole(world, lockServiceSchema.parse(place)));
    add("stream-manager", 1, (place) => (world) => new StreamManagerRole(world, streamManagerSchema.parse(place)));
    const small = { journalSegmentBytes: 1 << 20, appendBytesMax: (1 << 20) - 100_000, reserveBytes: 0 };
    add("extent-node", 3, (place) => (world) => new ExtentNodeRole(world, extentNodeSchema.parse({ ...place, ...small })));
    const tables = {
      memoryTableBytesMax: 16_384,
      logBytesMax: 32_768,
      extentTargetBytes: 64 * 1024,
      geoRolesEveryMs: 500,
      collectGoneMs: 1,
      pinTermMs: 4_000,
    };
    add(
      "partition-server",
      2,
      (place) => (world) => new PartitionServerRole(world, partitionServerConfigSchema.parse({ ...place, ...tables })),
    );
    add("partition-manager", 1, (place) => (world) => new PartitionManagerRole(world, partitionManagerConfigSchema.parse(place)));
    const { door } = this;
    add(
      "front-end",
      1,
      (place) => (world) => new FrontEndRole(world, frontEndConfigSchema.parse({ ...place, blobListen: `${door}/http` })),
    );
  }

  /** Address of the front-end. */
  get door(): string {
    return `${this.#at("front-end", 1)}${this.#port}`;
  }

  /** Address of the lock service. */
  get lockService(): string {
    return `${this.#at("lock-service", 1)}${this.#port}`;
  }

  get manager(): string {
    return this.#at("partition-manager", 1);
  }

  server(i: number): string {
    return this.#at("partition-server", i);
  }

  /** Returns the name of the i-th process of a role, from 1 on. */
  process(role: string, i: number): string {
    return this.#at(role, i);
  }

  #at(role: string, i: number): string {
    return `${role}-${this.#first + i}`;
  }

  get ready(): boolean {
    return this.processes.every((name) => this.#sim.role(name)?.status.ready === true);
  }

  /** Repeats a call until it is answered well. */
  async until<T>(what: string, call: () => Promise<Outcome<T>>): Promise<T> {
    const { clock } = this.world;
    const endMs = clock.monotonicMs() + answerWithinMs;
    for (;;) {
      const answer = await call();
      if (answer.ok) return answer.value;
      assert(clock.monotonicMs() < endMs, `${what} at stamp ${this.name}: ${JSON.stringify(answer.failure)}`);
      await sleep(clock, 100);
    }
  }

  get accounts() {
    return this.world.transport.client(`${this.manager}${this.#port}`, Accounts);
  }

  /** Gives a command until it counts as answered. */
  async obey(command: RoleCommand, operation: number, fields: Readonly<Record<string, unknown>> = {}): Promise<void> {
    for (;;) {
      const request = { account, command, operation: BigInt(operation), ...fields };
      const { waitMs } = await this.until("a command", () => this.accounts.obey(request as never, { timeoutMs: 3_000 }));
      if (waitMs === 0) return;
      await sleep(this.world.clock, waitMs);
    }
  }

  async ranges(): Promise<readonly RangePartition[]> {
    const manager = this.world.transport.client(`${this.manager}${this.#port}`, PartitionManager);
    return (await this.until("the map", () => manager.getMap({}, { timeoutMs: 1_000 }))).ranges;
  }

  /** Runs an operation at the server of its range, until it is answered. */
  async #operate(routable: unknown, onWire: unknown) {
    const route: Route = routeOf(this.world.rules, routable as never);
    return this.until("an operation", async () => {
      const range = (await this.ranges()).find(
        ({ table, lowKey, highKey }) =>
          table === route.table && compareBytes(lowKey, route.key) <= 0 && (highKey.length === 0 || compareBytes(route.key, highKey) < 0),
      );
      assert(range !== undefined, "the ranges cover every key");
      const fields = executeFields({ kind: onWire } as never);
      const request = { rangeId: range.rangeId, rangeVersion: range.rangeVersion, ...fields };
      const answer = await this.world.transport.client(range.serverAddress, PartitionServer).execute(request, { timeoutMs: 3_000 });
      return answer.ok ? { ok: true, value: answer.value.result?.kind } : answer;
    });
  }

  async #table(kind: TableKind): Promise<TableResult["kind"] | { readonly case: "error" }> {
    const result = await this.#operate({ case: "table", value: kind }, { case: "table", value: { kind: onTheWire(kind) } });
    return result?.case === "table" ? result.value.kind : { case: "error" };
  }

  async createContainer(): Promise<void> {
    const create = { case: "createContainer", value: { account, container: "c" } };
    const done = await this.#operate(create, create);
    assert(done?.case === "container", `a container was answered by ${done?.case}`);
  }

  /** Makes the table, or finds it. Undefined: it is not there. */
  async #located(make: boolean) {
    if (this.#incarnation === undefined) {
      if (make) await this.#table({ case: "createTable", value: { account, table: "pairs" } });
      const found = await this.#table({ case: "getTable", value: { account, table: "pairs" } });
      if (found.case !== "table") return undefined;
      this.#incarnation = Number(found.value.incarnation);
    }
    return { account, table: "pairs", incarnation: this.#incarnation };
  }

  /** Writes entities of one PartitionKey in one transaction; `text` undefined deletes. Returns their timestamps. */
  async write(partitionKey: string, rows: readonly { readonly rowKey: string; readonly text: string | undefined }[]): Promise<void> {
    const table = await this.#located(true);
    const changes = rows.map(({ rowKey, text }) =>
      text === undefined
        ? { action: EntityAction.DELETE, rowKey, properties: [] }
        : {
            action: EntityAction.INSERT_OR_REPLACE,
            rowKey,
            properties: [{ name: "text", value: { kind: { case: "text" as const, value: text } } }],
          },
    );
    const done = await this.#table({ case: "changeEntities", value: { table, partitionKey, changes } });
    assert(done.case === "changed", `a write was answered by ${done.case}`);
  }

  /** Returns the entity, with its timestamp, as a text; undefined if it is not there. */
  async read(key: EntityAt): Promise<string | undefined> {
    const table = await this.#located(false);
    if (table === undefined) return undefined;
    const found = await this.#table({ case: "getEntity", value: { table, ...key, key, select: [] } });
    if (found.case !== "entity") return undefined;
    const { timestamp, properties } = found.value;
    return `${timestamp} ${JSON.stringify(properties.map(({ name, value }) => [name, String(value?.kind.value)]))}`;
  }

  /** Deletes the table's row; its entities are left to the collector. */
  async dropTable(): Promise<void> {
    await this.#table({ case: "deleteTable", value: { account, table: "pairs" } });
  }

  /** Passes of the collector over every range of entities. */
  async collect(passes: number): Promise<void> {
    const manager = this.world.transport.client(`${this.manager}${this.#port}`, PartitionManager);
    for (let pass = 0; pass < passes; pass++) {
      for (const { rangeId, table } of await this.ranges()) {
        if (table === "Entity") await this.until("a pass", () => manager.collectRange({ rangeId }, { timeoutMs: 20_000 }));
      }
      await sleep(this.world.clock, 50);
    }
  }

  async role(): Promise<string> {
    const { geoRole } = unwrap(await this.accounts.getRole({ account }, { timeoutMs: 3_000 }));
    return geoRole === "" ? "primary" : (JSON.parse(geoRole) as { role: string }).role;
  }

  /** Returns how far the copy at the other stamp is, as this stamp's manager puts it together; undefined: it does not answer. */
  async progress() {
    const asked = await this.accounts.getShipping({ account }, { timeoutMs: 5_000 });
    return asked.ok ? asked.value : undefined;
  }

  /** Returns Last Sync Time of the copy here, in milliseconds since 1970; undefined: it is not known. */
  async lastSyncMs(): Promise<number | undefined> {
    const asked = await this.accounts.getCopy({ account }, { timeoutMs: 3_000 });
    return asked.ok && asked.value.lastSyncMs !== undefined ? Number(asked.value.lastSyncMs) : undefined;
  }

  /** Returns the facts about the shipping of every range, as the partition servers tell them. */
  shipping(): readonly ShippingFact[] {
    return [1, 2].flatMap((i) => (this.#sim.role(this.server(i))?.status.facts.shipping ?? []) as readonly ShippingFact[]);
  }
}

/** Incarnations are numbers in routes, and 64 bits wide in messages. */
function onTheWire({ case: name, value }: TableKind): TableKind {
  const { table } = value as { readonly table?: unknown };
  if (typeof table !== "object" || table === null) return { case: name, value };
  const located = table as { readonly incarnation: number };
  const { partitionKey: _p, rowKey: _r, ...rest } = value as Readonly<Record<string, unknown>>;
  const fields = name === "getEntity" ? rest : (value as object);
  return { case: name, value: { ...fields, table: { ...located, incarnation: BigInt(located.incarnation) } } };
}

/** Two stamps; the account is at the first one and is written to there, a copy is begun at the second under a role epoch. */
export async function beginPair(sim: Simulation, written: (a: OneStamp) => Promise<void>, { epoch = 1n, withQueues = false } = {}) {
  const [a, b] = [new OneStamp(sim, "a"), new OneStamp(sim, "b")] as const;
  while (!a.ready || !b.ready) await sleep(a.world.clock, 200);
  const options = { timeoutMs: 3_000 };
  await a.until("an account", () => a.accounts.create({ account }, options));
  await written(a);
  await b.obey(RoleCommand.FOLLOW, 2, { epoch, peer: "a", withQueues });
  await a.obey(RoleCommand.PAIR, 2, { peer: "b", peerDoors: [b.door], withQueues });
  return { a, b };
}

export interface ShippingFact {
  readonly account: string;
  readonly rangeId: string;
  readonly state: string;
  readonly pending: number;
  readonly seededBytes: number;
  readonly sentWhole: number;
  readonly failure: string;
}

interface Place {
  readonly name: string;
  readonly listen: string;
  readonly lockService: string;
  readonly init: boolean;
}

const untilMs = 240_000;

/** Waits until it holds at a stamp; the time is virtual. Throws, with what the stamp ships, if that takes too long. */
export async function until(at: OneStamp, what: string, is: () => Promise<boolean>): Promise<void> {
  const { clock } = at.world;
  const endMs = clock.monotonicMs() + untilMs;
  while (!(await is())) {
    assert(clock.monotonicMs() < endMs, `${what}: ${JSON.stringify(at.shipping())}`);
    await sleep(clock, 200);
  }
}

/** Waits until a stamp has shipped everything. The manager counts a range that has not begun as not known. */
export const untilShipped = (at: OneStamp): Promise<void> =>
  until(at, "everything is shipped", async () => (await at.progress())?.pendingCommits === 0n);
