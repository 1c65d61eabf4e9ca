/**
 * How clients reach the bank: over HTTP through the front-end, or straight to the partition servers with a map that may be old, also to
 * servers that it does not name. What is read is told page by page; a page is of one moment.
 *
 * Accounts are numbered in the order of their keys: a branch is a PartitionKey, its accounts are RowKeys.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { entityEtag, timestampOfEtag } from "@stamp/azure-rest";
import type { Prng } from "@stamp/base";
import { compareBytes, utf8 } from "@stamp/base";
import { routeOf } from "@stamp/objects";
import type { World } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import type { Entity, OperationResult, RangePartition, TableOperationSchema } from "@stamp/wire";
import { EntityAction, PartitionManager, PartitionServer, propertyFromWire, propertyToWire } from "@stamp/wire";
import type { WholeCluster } from "../cluster.ts";
import { HttpClient, type Received } from "./http-client.ts";
import { changeRequest, entityPath, lengthOf, queryPage, transaction } from "./table-http.ts";

export const tableName = "bank";
export const branchCount = 6;
export const accountsPerBranch = 8;

export interface Account {
  /** The transfer that wrote it; no two have the same number. */
  readonly write: number;
  readonly balance: number;
  readonly pad: string;
  readonly timestamp: bigint;
}

/** The accounts from `first` on, in order, as they were at one moment; undefined: there is none of that number. */
export interface Page {
  readonly first: number;
  readonly accounts: readonly (Account | undefined)[];
}

export interface AccountChange {
  readonly number: number;
  /** Expected state of the account; undefined if it must not exist. */
  readonly from: Account | undefined;
  /** Undefined: it is deleted. */
  readonly to: Omit<Account, "timestamp"> | undefined;
}

export interface Teller {
  /** `afterAll`: nothing is behind these pages. Undefined: no answer. */
  read(number: number): Promise<Page | undefined>;
  /** Accounts from `from` on, of its branch only or of all branches. Each page is of one moment; `next`: where the next answer begins. */
  scan(from: number, branchOnly: boolean): Promise<{ readonly pages: readonly Page[]; readonly next: number | undefined } | undefined>;
  /**
   * Changes accounts of one branch, whole or not at all. Returns the new timestamps, in order, as far as they were
   * told.
   */
  change(changes: readonly AccountChange[]): Promise<{ readonly kind: "done"; readonly timestamps: readonly bigint[] } | NotDone>;
}

export interface NotDone {
  /** `refused`: an account is not what it had to be. `notDone`: it says nothing of them. */
  readonly kind: "refused" | "notDone" | "unknown";
}

export const branchOf = (number: number): number => Math.floor(number / accountsPerBranch);
export const endOfBranch = (number: number): number => (branchOf(number) + 1) * accountsPerBranch;
export const accountCount: number = branchCount * accountsPerBranch;

const partitionKeyOf = (number: number): string => `branch-${branchOf(number)}`;
const rowKeyOf = (number: number): string => String.fromCharCode(97 + (number % accountsPerBranch));

function numberOf(partitionKey: string, rowKey: string): number {
  const number = Number(partitionKey.slice("branch-".length)) * accountsPerBranch + rowKey.charCodeAt(0) - 97;
  if (!(number >= 0 && number < accountCount)) throw new BrokenPromise(`account ${partitionKey}/${rowKey} that nobody opened`);
  return number;
}

/** Returns the accounts from `first` up to `end`; those that are not listed do not exist. */
function pageOf(first: number, end: number, listed: ReadonlyMap<number, Account>): Page {
  return { first, accounts: Array.from({ length: Math.max(0, end - first) }, (_, i) => listed.get(first + i)) };
}

/** By number; they are told in the order of their keys, each once. */
function listing(from: number, all: readonly { readonly number: number; readonly account: Account }[]): ReadonlyMap<number, Account> {
  let last = from - 1;
  for (const { number } of all) {
    if (number <= last) throw new BrokenPromise(`a page from account ${from} on shows ${number} behind ${last}`);
    last = number;
  }
  return new Map(all.map(({ number, account }) => [number, account]));
}

interface ShownAccount {
  readonly PartitionKey: string;
  readonly RowKey: string;
  readonly write: number;
  readonly balance: number;
  readonly pad: string;
  readonly "odata.etag": string;
}

export class HttpTeller implements Teller {
  readonly #http: HttpClient;
  readonly #prng: Prng;

  constructor(sim: Simulation, name: string, cluster: WholeCluster) {
    this.#http = new HttpClient(sim, sim.world(name), name, cluster, "table");
    this.#prng = sim.prng.fork();
  }

  async createTable(): Promise<boolean> {
    const body = utf8(JSON.stringify({ TableName: tableName }));
    const received = await this.#http.request("POST", "/Tables", lengthOf(body, "application/json"), body);
    return received?.status === 204 || received?.status === 201 || codeOf(received) === "TableAlreadyExists";
  }

  async read(number: number): Promise<Page | undefined> {
    const path = `/${entityPath(tableName, partitionKeyOf(number), rowKeyOf(number))}`;
    const received = await this.#http.request("GET", path, { accept: "application/json;odata=fullmetadata" });
    if (codeOf(received) === "ResourceNotFound") return { first: number, accounts: [undefined] };
    if (received?.status !== 200 || received.short) return undefined;
    const shown = JSON.parse(new TextDecoder().decode(received.body)) as ShownAccount;
    return { first: number, accounts: [accountOf(shown)] };
  }

  /** A page may be put together from several ranges, so only what it shows of one branch is sure to be of one moment. */
  async scan(
    from: number,
    branchOnly: boolean,
  ): Promise<{ readonly pages: readonly Page[]; readonly next: number | undefined } | undefined> {
    const [branch, row] = [partitionKeyOf(from), rowKeyOf(from)];
    const rest = `PartitionKey eq '${branch}' and RowKey ge '${row}'`;
    const filter = branchOnly ? rest : `(${rest}) or PartitionKey gt '${branch}'`;
    const page = await queryPage<ShownAccount>(this.#http, tableName, filter, this.#prng.pick([5, 20, 1_000]), "");
    if (!("entities" in page)) {
      if (codeOf(page.received) === "TableNotFound") throw new BrokenPromise("the table is gone");
      return undefined;
    }
    const shown = page.entities.map((each) => ({ number: numberOf(each.PartitionKey, each.RowKey), account: accountOf(each) }));
    const listed = listing(from, shown);
    const all = branchOnly ? endOfBranch(from) : accountCount;
    const last = shown.at(-1)?.number;
    const end = page.next === "" ? all : last === undefined ? from : last + 1;
    const pages: Page[] = [];
    for (let at = from; at < end; at = endOfBranch(at)) pages.push(pageOf(at, Math.min(end, endOfBranch(at)), listed));
    return { pages, next: end < all ? end : undefined };
  }

  async change(changes: readonly AccountChange[]): Promise<{ readonly kind: "done"; readonly timestamps: readonly bigint[] } | NotDone> {
    const answer = await transaction(this.#http, changes.map(requestOf));
    if (!("etags" in answer)) return notDoneOf(answer.received);
    const timestamps = answer.etags.map((etag) => timestampOfEtag(etag)).filter((timestamp) => timestamp !== undefined);
    return { kind: "done", timestamps: changes.some(({ to }) => to === undefined) ? [] : timestamps };
  }
}

const accountOf = (shown: ShownAccount): Account => ({
  write: shown.write,
  balance: shown.balance,
  pad: shown.pad,
  timestamp: timestampOfEtag(shown["odata.etag"]) ?? 0n,
});

function requestOf({ number, from, to }: AccountChange): string {
  const [partitionKey, rowKey] = [partitionKeyOf(number), rowKeyOf(number)];
  const path = entityPath(tableName, partitionKey, rowKey);
  const match: Record<string, string> = from ? { "If-Match": entityEtag(from.timestamp) } : {};
  if (!to) return changeRequest("DELETE", path, match);
  const body = JSON.stringify({ PartitionKey: partitionKey, RowKey: rowKey, ...to });
  return from ? changeRequest("PUT", path, match, body) : changeRequest("POST", tableName, {}, body);
}

const codeOf = (received: Received | undefined): string => received?.headers["x-ms-error-code"] ?? "";

/** An account is not there, is there already, or is another than it had to be. */
const refusals: ReadonlySet<string> = new Set(["UpdateConditionNotSatisfied", "EntityAlreadyExists", "ResourceNotFound"]);

/** A 500 and no answer are unknown, everything else that is no success was not done. */
function notDoneOf(received: Received | undefined): NotDone {
  if (received === undefined || received.status === 500 || received.status < 300) return { kind: "unknown" };
  const code = codeOf(received);
  if (code === "TableNotFound") throw new BrokenPromise("the table is gone");
  return { kind: refusals.has(code) ? "refused" : "notDone" };
}

type TableKind = NonNullable<MessageInitShape<typeof TableOperationSchema>["kind"]>;

/** With the range that was asked; `unknown`: whether it may have happened. */
type Executed = { readonly kind: OperationResult["kind"]; readonly range: RangePartition } | { readonly unknown: boolean };

const timeoutsMs = [700, 3_000, 20_000] as const;
const mapTimeoutMs = 500;

/** Looks at the map seldom, and asks servers that it does not name too: who does not serve a range any more has to say so. */
export class OldMapTeller implements Teller {
  readonly #sim: Simulation;
  readonly #world: World;
  readonly #cluster: WholeCluster;
  readonly #servers: readonly string[];
  readonly #prng: Prng;
  #ranges: readonly RangePartition[] = [];
  #version = 0n;
  #incarnation = 0n;

  constructor(sim: Simulation, name: string, cluster: WholeCluster) {
    this.#sim = sim;
    this.#world = sim.world(name);
    this.#cluster = cluster;
    this.#servers = cluster.processes.filter((process) => process.startsWith("partition-server-"));
    this.#prng = sim.prng.fork();
  }

  /** Returns the key at which a branch starts, once it knows the table. */
  branchStart(branch: number): Uint8Array | undefined {
    return this.#incarnation === 0n ? undefined : this.#keyOf(branch * accountsPerBranch);
  }

  async read(number: number): Promise<Page | undefined> {
    const key = { partitionKey: partitionKeyOf(number), rowKey: rowKeyOf(number) };
    const done = await this.#execute(this.#keyOf(number), { case: "getEntity", value: { table: this.#table(), key } });
    if (!("kind" in done)) return undefined;
    const { kind } = done;
    if (kind.case === "error" && kind.value.code === "ResourceNotFound") return { first: number, accounts: [undefined] };
    const found = kind.case === "table" ? kind.value.kind : undefined;
    return found?.case === "entity" ? { first: number, accounts: [accountOnWire(found.value)] } : undefined;
  }

  /** One go of one range. */
  async scan(
    from: number,
    branchOnly: boolean,
  ): Promise<{ readonly pages: readonly Page[]; readonly next: number | undefined } | undefined> {
    const before = from - 1;
    const after =
      from % accountsPerBranch === 0
        ? { partitionKey: partitionKeyOf(from), rowKey: "" }
        : { partitionKey: partitionKeyOf(before), rowKey: rowKeyOf(before) };
    const entitiesMax = this.#prng.pick([5, 1_000, 1_000]);
    const query = { table: this.#table(), filter: [], select: [], after, entitiesMax };
    const done = await this.#execute(this.#keyOf(from), { case: "queryEntities", value: query });
    if (!("kind" in done) || done.kind.case !== "table") return undefined;
    const found = done.kind.value.kind;
    if (found.case !== "entities") return undefined;
    const { entities, more } = found.value;
    const listed = listing(
      from,
      entities.map((entity) => ({
        number: numberOf(entity.key?.partitionKey ?? "", entity.key?.rowKey ?? ""),
        account: accountOnWire(entity),
      })),
    );
    const all = branchOnly ? endOfBranch(from) : accountCount;
    const last = [...listed.keys()].at(-1);
    const ofRange = this.#endOfRange(from, done.range);
    if (last !== undefined && last >= ofRange)
      throw new BrokenPromise(`range ${done.range.rangeId} shows account ${last} of another range`);
    const end = Math.min(all, more ? (last === undefined ? from : last + 1) : ofRange);
    return { pages: [pageOf(from, end, listed)], next: end < all ? end : undefined };
  }

  async change(changes: readonly AccountChange[]): Promise<{ readonly kind: "done"; readonly timestamps: readonly bigint[] } | NotDone> {
    const [first] = changes;
    if (!first) return { kind: "notDone" };
    const value = {
      table: this.#table(),
      partitionKey: partitionKeyOf(first.number),
      changes: changes.map(({ number, from, to }) => ({
        action: to === undefined ? EntityAction.DELETE : from === undefined ? EntityAction.INSERT : EntityAction.REPLACE,
        rowKey: rowKeyOf(number),
        properties: to ? propertiesOf(to) : [],
        ...(from ? { ifTimestamp: from.timestamp } : {}),
      })),
    };
    const done = await this.#execute(this.#keyOf(first.number), { case: "changeEntities", value });
    if (!("kind" in done)) return { kind: done.unknown ? "unknown" : "notDone" };
    const { kind } = done;
    if (kind.case === "error") return { kind: refusals.has(kind.value.code) ? "refused" : "notDone" };
    const found = kind.case === "table" ? kind.value.kind : undefined;
    if (found?.case !== "changed") throw new BrokenPromise(`a transaction was answered with ${found?.case ?? kind.case}`);
    return { kind: "done", timestamps: found.value.timestamps };
  }

  /** Whether it knows the table and a map now. */
  async start(): Promise<boolean> {
    if (!(await this.#look())) return false;
    const { account } = this.#cluster;
    const table = { account, table: tableName };
    const { key } = routeOf(this.#sim.rules, { case: "table", value: { case: "getTable", value: table } });
    const done = await this.#execute(key, { case: "getTable", value: table });
    const found = "kind" in done && done.kind.case === "table" ? done.kind.value.kind : undefined;
    if (found?.case !== "table") return false;
    this.#incarnation = found.value.incarnation;
    return true;
  }

  #table() {
    return { account: this.#cluster.account, table: tableName, incarnation: this.#incarnation };
  }

  #keyOf(number: number): Uint8Array {
    const table = { ...this.#table(), incarnation: Number(this.#incarnation) };
    const value = { table, partitionKey: partitionKeyOf(number), changes: [] };
    return routeOf(this.#sim.rules, { case: "table", value: { case: "changeEntities", value } }).key;
  }

  /** Returns the first account from `from` on that lies behind the range; at most all there are. */
  #endOfRange(from: number, range: RangePartition): number {
    let end = endOfBranch(from);
    if (range.highKey.length === 0) return accountCount;
    while (end < accountCount && compareBytes(this.#keyOf(end), range.highKey) < 0) end += accountsPerBranch;
    return end;
  }

  /** At the server that the map names, or at any other. */
  async #execute(key: Uint8Array, kind: TableKind): Promise<Executed> {
    if (this.#ranges.length === 0 || this.#prng.chance(0.15)) await this.#look();
    const range = this.#ranges.find(
      ({ lowKey, highKey }) => compareBytes(lowKey, key) <= 0 && (highKey.length === 0 || compareBytes(key, highKey) < 0),
    );
    const server = this.#prng.chance(0.25) ? this.#prng.pick(this.#servers) : range?.serverAddress;
    if (range === undefined || server === undefined || server === "") return { unknown: false };
    const request = {
      rangeId: range.rangeId,
      rangeVersion: range.rangeVersion,
      operation: { kind: { case: "table", value: { kind } } },
    } as const;
    const outcome = await this.#world.transport
      .client(server, PartitionServer)
      .execute(request, { timeoutMs: this.#prng.pick(timeoutsMs) });
    if (outcome.ok) return outcome.value.result ? { kind: outcome.value.result.kind, range } : { unknown: true };
    // An old map is asked with again, now and then.
    if (outcome.failure.reason === "wrongPartition" && this.#prng.chance(0.5)) await this.#look();
    return { unknown: outcome.failure.applied === "unknown" };
  }

  async #look(): Promise<boolean> {
    const managers = this.#cluster.processes.filter((process) => process.startsWith("partition-manager-"));
    for (const manager of managers) {
      const map = await this.#world.transport.client(manager, PartitionManager).getMap({}, { timeoutMs: mapTimeoutMs });
      if (!map.ok || map.value.version < this.#version) continue;
      this.#version = map.value.version;
      this.#ranges = map.value.ranges.filter(({ table }) => table === "Entity");
      return true;
    }
    return false;
  }
}

const propertiesOf = ({ write, balance, pad }: Omit<Account, "timestamp">) => [
  propertyToWire({ name: "write", type: "int32", value: write }),
  propertyToWire({ name: "balance", type: "int32", value: balance }),
  propertyToWire({ name: "pad", type: "string", value: pad }),
];

function accountOnWire({ timestamp, properties }: Entity): Account {
  const values = new Map(properties.map((property) => [property.name, propertyFromWire(property)?.value]));
  return { write: Number(values.get("write")), balance: Number(values.get("balance")), pad: String(values.get("pad")), timestamp };
}
