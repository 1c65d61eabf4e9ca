/**
 * A front-end with real neighbours where they matter to it: the lock service and the partition server are the real roles; the partition
 * manager and the extent node are scripted here, and rows and blob data lie in memory. So a test can say what goes wrong on the way of a
 * request: a server that refuses, an answer that is lost, an extent that is gone.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defaultServiceProperties, encodeServiceProperties, type ServiceProperties } from "@stamp/azure-rest";
import { compareBytes, featureLevel, type Outcome, ok, type Rules, refused, unwrap } from "@stamp/base";
import { type FrontEndConfig, FrontEndRole, frontEndConfigSchema } from "@stamp/front-end";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { type Decision, type ObjectTable, objectTables, type RowEntry, type VisitRow } from "@stamp/objects";
import { firstRangeOf, type Range } from "@stamp/partition-map";
import { PartitionServerRole, partitionServerConfigSchema } from "@stamp/partition-server";
import {
  type Client,
  type HttpClient,
  type HttpHandler,
  type HttpRequest,
  type Role,
  raiseFeatureLevel,
  served,
  type World,
} from "@stamp/ports";
import { type HttpListener, InProcessNetwork, NodeHttpClient, nodeWorld, oidcIssuer, serveHttp } from "@stamp/ports-node";
import { ExtentNode, executeFields, fromWire, LockService, PartitionManager, PartitionServer, toWire } from "@stamp/wire";
import type { BlobSettings, ScopeControl } from "./target.ts";

export const accountName = "devstoreaccount1";
export const accountKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
export const secondKey = "c2Vjb25kIGtleSBvZiB0aGUgYWNjb3VudCwgZm9yIHJvdGF0aW9u";

export interface ScriptedOptions {
  readonly frontEnd?: Partial<FrontEndConfig>;
  readonly rules?: Rules;
  /** Last Sync Time of copies at this stamp. */
  readonly lastSyncMs?: () => number | undefined;
  /** By which it reaches other places; else that of a real front-end. */
  readonly http?: HttpClient;
  /** Sees every answer of the Blob service. */
  readonly onAnswer?: (request: HttpRequest, status: number) => void;
  readonly onQueueAnswer?: (request: HttpRequest, status: number) => void;
  readonly onTableAnswer?: (request: HttpRequest, status: number) => void;
  /** Low keys of further ranges of the Blob table. */
  readonly splitAt?: readonly Uint8Array[];
  /** And of the Entity table. */
  readonly splitEntitiesAt?: readonly Uint8Array[];
}

export interface ScriptedStamp {
  readonly endpoint: string;
  /** Of the Queue service. */
  readonly queueEndpoint: string;
  readonly tableEndpoint: string;
  readonly frontEnd: FrontEndRole;
  readonly world: World;
  readonly data: MemoryData;
  /** With the same keys. */
  readonly addAccount: (name: string) => Promise<void>;
  setBlobSettings(settings: BlobSettings): Promise<void>;
  /** Gives the account a role at this stamp, as `encodeRole` of @stamp/geo writes it; empty: it has none. */
  setRole(geoRole: string): Promise<void>;
  readonly scopes: ScopeControl;
  readonly scopesOf: (account: string) => ScopeControl;
  stop(): Promise<void>;
}

/** What a test changes of the account, as the partition manager would. */
interface AccountChange {
  readonly serviceProperties?: Record<string, string>;
  readonly newEncryptionScope?: { readonly name: string; readonly key: Uint8Array };
  readonly encryptionScopeState?: { readonly name: string; readonly disabled: boolean };
}

/** Blob data by extent; every append is a new extent. */
export class MemoryData {
  readonly extents = new Map<number, Uint8Array>();
  reads = 0;
  /** Before a read of this extent; what it gives is the answer. */
  onRead: ((extentId: number) => Outcome<never> | undefined | Promise<undefined>) | undefined;
  /** Whether rows may refer to it; said no to what has to be written again. */
  mayReferTo: (extentId: number) => boolean = (extentId) => this.extents.has(extentId);
  #next = 1;

  append(payload: Uint8Array): number {
    const id = this.#next++;
    this.extents.set(id, Uint8Array.from(payload));
    return id;
  }
}

class MemoryRows {
  #keys: Uint8Array[] = [];
  readonly #values = new Map<string, Uint8Array>();
  sequence = 0;

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#values.get(String(key));
  }

  scan(low: Uint8Array, high: Uint8Array, rowsMax: number): { rows: RowEntry[]; more: boolean; deleted: number } {
    const from = this.#find(low);
    const rows: RowEntry[] = [];
    for (let i = from; i < this.#keys.length; i++) {
      const key = this.#keys[i] as Uint8Array;
      if (high.length > 0 && compareBytes(key, high) >= 0) break;
      if (rows.length === rowsMax) return { rows, more: true, deleted: 0 };
      rows.push({ key, value: this.#values.get(String(key)) as Uint8Array });
    }
    return { rows, more: false, deleted: 0 };
  }

  walk(low: Uint8Array, high: Uint8Array, visit: VisitRow): void {
    for (let from: Uint8Array | undefined = low; from !== undefined; ) {
      const key: Uint8Array | undefined = this.#keys[this.#find(from)];
      if (key === undefined || compareBytes(key, high) >= 0) return;
      from = visit({ key, value: this.#values.get(String(key)) as Uint8Array });
    }
  }

  apply(writes: Decision["writes"]): void {
    for (const write of writes) {
      const at = this.#find(write.key);
      const there = this.#values.has(String(write.key));
      if (write.kind === "delete") {
        if (there) this.#keys.splice(at, 1);
        this.#values.delete(String(write.key));
      } else {
        if (!there) this.#keys.splice(at, 0, write.key);
        this.#values.set(String(write.key), write.value);
      }
    }
  }

  #find(key: Uint8Array): number {
    let from = 0;
    let to = this.#keys.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (compareBytes(this.#keys[middle] as Uint8Array, key) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}

export async function startScriptedStamp(options: ScriptedOptions = {}): Promise<ScriptedStamp> {
  const folder = mkdtempSync(join(tmpdir(), "stamp-conformance-"));
  const network = new InProcessNetwork();
  const worldOf = (name: string): World =>
    nodeWorld({
      dataDir: join(folder, name),
      name,
      logLevel: "error",
      transport: network.transport(name),
      ...(options.rules ? { rules: options.rules } : {}),
      onFatal: (reason) => {
        throw new Error(`${name}: ${reason}`);
      },
    });
  const roles: Role[] = [];
  const start = async <R extends Role>(role: R): Promise<R> => {
    roles.unshift(role);
    await role.start();
    return role;
  };
  const lockService = "lock-service";
  await start(new LockServiceRole(worldOf(lockService), lockServiceSchema.parse({ name: lockService, listen: lockService, init: true })));

  const data = new MemoryData();
  const rows = new Map<string, MemoryRows>();
  const ranges = rangesOf({ Blob: options.splitAt ?? [], Entity: options.splitEntitiesAt ?? [] });
  // Nobody assigns its ranges anew here: a machine that stands still for seconds must not end its lease.
  const lease = { leaseTermMs: 300_000, leaseRenewEveryMs: 60_000 };
  const serverConfig = partitionServerConfigSchema.parse({ name: "ps-1", listen: "ps-1", lockService, ...lease });
  const serverWorld = worldOf("ps-1");
  // There is no stream manager that would tell it.
  await raiseFeatureLevel(serverWorld, featureLevel);
  await start(
    new PartitionServerRole(serverWorld, serverConfig, {
      locate: async (ids) => ids.filter((id) => data.extents.has(id)).map((id) => locationOf(id)) as never,
      load: async (range) => {
        const held = rows.get(range.rangeId) ?? new MemoryRows();
        rows.set(range.rangeId, held);
        return ok(engineOf(held, data));
      },
      handoff: () => {
        throw new Error("splits and merges are not scripted");
      },
    }),
  );

  const tester = worldOf("tester");
  await tester.transport.serve("extent-node", [
    served(ExtentNode, { ...unused(ExtentNode), read: async (request) => readOf(data, request) }),
  ]);
  const leader = tester.transport.client(lockService, LockService);
  const map = await loadAll(tester, ranges, leader);
  await tester.transport.serve("pm", [
    served(PartitionManager, {
      ...unused(PartitionManager),
      getMap: async ({ knownVersion, waitMs }) => {
        if (knownVersion >= 1n) await new Promise((resolve) => setTimeout(resolve, Math.min(waitMs, 500)));
        return ok({ version: 1n, ranges: map });
      },
      listServers: async () => ok({}),
    }),
  ]);

  const frontEndWorld = worldOf("front-end-1");
  const config = frontEndConfigSchema.parse({ name: "front-end-1", listen: "front-end-1", lockService, ...options.frontEnd });
  const lastSyncMs = options.lastSyncMs === undefined ? {} : { lastSyncMs: async () => options.lastSyncMs?.() };
  const outside = { issuerOf: oidcIssuer, http: options.http ?? new NodeHttpClient(), ...lastSyncMs };
  const frontEnd = await start(new FrontEndRole(frontEndWorld, config, outside));
  const serve = (handler: HttpHandler, onAnswer: ScriptedOptions["onAnswer"]): Promise<HttpListener> => {
    const watched: HttpHandler = async (request) => {
      const answer = await handler(request);
      onAnswer?.(request, answer.status);
      return answer;
    };
    return serveHttp(Object.assign(watched, handler.refused && { refused: handler.refused }), { listen: "127.0.0.1:0" });
  };
  const http = await serve(frontEnd.blob, options.onAnswer);
  const queueHttp = await serve(frontEnd.queue, options.onQueueAnswer);
  const tableHttp = await serve(frontEnd.table, options.onTableAnswer);
  for (let i = 0; !frontEnd.status.ready; i++) {
    if (i > 500) throw new Error(`not ready: ${frontEnd.status.waitingFor.join(", ")}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const changeAccount = async (change: AccountChange, account = accountName): Promise<void> => {
    const range = map.find((each) => each.table === "Account");
    const operation = { kind: { case: "changeAccount" as const, value: { account, ...change } } };
    const asked = { rangeId: range?.rangeId ?? "", rangeVersion: 1n, operation };
    unwrap(await tester.transport.client("ps-1", PartitionServer).execute(asked, { timeoutMs: 5000 }));
    frontEnd.forgetAccount(account);
  };
  const setRole = async (geoRole: string): Promise<void> => {
    const { rangeId } = firstRangeOf("Account");
    const fields = executeFields({ kind: { case: "changeAccount", value: { account: accountName, geoRole } } });
    const client = tester.transport.client("ps-1", PartitionServer);
    unwrap(await client.execute({ rangeId, rangeVersion: 1n, ...fields }, { timeoutMs: 5000 }));
    frontEnd.forgetAccount(accountName);
  };
  const scopesOf = (account: string): ScopeControl => ({
    create: (name) => changeAccount({ newEncryptionScope: { name, key: tester.random.bytes(32) } }, account),
    setDisabled: (name, disabled) => changeAccount({ encryptionScopeState: { name, disabled } }, account),
  });
  return {
    endpoint: `http://${http.address}`,
    queueEndpoint: `http://${queueHttp.address}`,
    tableEndpoint: `http://${tableHttp.address}`,
    frontEnd,
    world: frontEndWorld,
    setBlobSettings: async ({ versioning = false, containerDeleteRetentionDays: days = 0, allowPublicAccess = true }) => {
      const properties: ServiceProperties = {
        ...defaultServiceProperties,
        versioning,
        publicAccessForbidden: !allowPublicAccess,
        containerDeleteRetention: days === 0 ? { enabled: false } : { enabled: true, days },
      };
      await changeAccount({ serviceProperties: { blob: encodeServiceProperties(properties) } });
    },
    setRole,
    scopes: scopesOf(accountName),
    scopesOf,
    data,
    addAccount: async (name) => {
      const range = map.find((each) => each.table === "Account");
      const operation = { kind: { case: "putAccount" as const, value: { account: { name, keys: [accountKey, secondKey] } } } };
      const asked = { rangeId: range?.rangeId ?? "", rangeVersion: 1n, operation };
      unwrap(await tester.transport.client("ps-1", PartitionServer).execute(asked, { timeoutMs: 5000 }));
    },
    stop: async () => {
      await http.close(100);
      await queueHttp.close(100);
      await tableHttp.close(100);
      for (const role of roles) await role.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function rangesOf(splits: Partial<Record<ObjectTable, readonly Uint8Array[]>>): Range[] {
  const ranges: Range[] = objectTables.map(firstRangeOf);
  for (const first of [...ranges]) {
    let last = first;
    for (const [index, key] of (splits[first.table] ?? []).entries()) {
      ranges[ranges.indexOf(last)] = { ...last, high: key };
      last = { ...last, rangeId: `${first.rangeId}-${index + 2}`, low: key };
      ranges.push(last);
    }
  }
  return ranges;
}

async function loadAll(tester: World, ranges: readonly Range[], lock: Client<typeof LockService>) {
  const term = unwrap(
    await lock.acquireLease(
      { name: "partition-manager", holder: "pm", incarnation: 1n, address: "pm", termMs: 300_000 },
      { timeoutMs: 5000 },
    ),
  );
  let server = unwrap(await lock.getLease({ name: "ps/ps-1" }, { timeoutMs: 5000 }));
  for (let i = 0; server.leaseEpoch === 0n && i < 200; i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    server = unwrap(await lock.getLease({ name: "ps/ps-1" }, { timeoutMs: 5000 }));
  }
  const map = ranges.map((range) => ({
    rangeId: range.rangeId,
    table: range.table,
    lowKey: range.low,
    highKey: range.high,
    rangeVersion: 1n,
    ownerEpoch: 1n,
    streams: range.streams,
    server: "ps-1",
    serverAddress: "ps-1",
    leaseEpoch: server.leaseEpoch,
    loaded: true,
  }));
  const client = tester.transport.client("ps-1", PartitionServer);
  for (const range of map) {
    const command = { pmTerm: term.leaseEpoch, leaseEpoch: server.leaseEpoch, range };
    for (let i = 0; ; i++) {
      const loaded = await client.loadPartition(command, { timeoutMs: 5000 });
      if (loaded.ok) break;
      if (i > 100) unwrap(loaded);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  const account = map.find((range) => range.table === "Account");
  const kind = { case: "putAccount" as const, value: { account: { name: accountName, keys: [accountKey, secondKey] } } };
  unwrap(await client.execute({ rangeId: account?.rangeId ?? "", rangeVersion: 1n, operation: { kind } }, { timeoutMs: 5000 }));
  return map;
}

function engineOf(rows: MemoryRows, data: MemoryData) {
  const view = {
    get: async (key: Uint8Array) => ok(rows.get(key)),
    scan: async (low: Uint8Array, high: Uint8Array, limits: { rowsMax: number }) => ok(rows.scan(low, high, limits.rowsMax)),
    walk: async (low: Uint8Array, high: Uint8Array, visit: VisitRow) => ok(rows.walk(low, high, visit)),
  };
  let turn: Promise<unknown> = Promise.resolve();
  return {
    read: <T>(work: (seen: typeof view) => Promise<Outcome<T>>) => work(view),
    transact: (_keys: unknown, decide: (seen: typeof view, sequence: number) => Promise<Outcome<Decision>>) => {
      const decided = turn.then(async () => {
        const decision = await decide(view, rows.sequence + 1);
        if (decision.ok && decision.value.writes.length > 0) {
          rows.sequence++;
          rows.apply(decision.value.writes);
        }
        return decision;
      });
      turn = decided;
      return decided;
    },
    appendData: async (payload: Uint8Array) => ok({ extentId: data.append(payload), offsetBytes: 0, lengthBytes: payload.length }),
    mayReferTo: (place: { extentId: number }) => data.mayReferTo(place.extentId),
    facts: { sequence: 0, memoryTableBytes: 0, checkpointCount: 0, checkpointBytes: 0 },
    checkpoint: async () => ok(),
    begin: async () => {},
    keySamples: () => [],
    sealedDataExtents: () => [],
    settleExtents: async () => ok([]),
    pinData: () => ok([]),
    goneSinceMs: () => ({}),
    recordGone: async () => ok(),
    needRows: async () => ok(),
    copyData: async () => ok([]),
    leaveExtents: async () => {},
    dropExtents: async () => ok([]),
    close: async () => {},
    forgetCached: async () => {},
  };
}

const locationOf = (extentId: number) => ({ extentId: toWire(extentId), version: 1n, addresses: ["extent-node"] });

async function readOf(
  data: MemoryData,
  request: { extentId: bigint; offsetBytes: bigint; lengthBytes: number },
): Promise<Outcome<{ payload: Uint8Array }>> {
  data.reads++;
  const extentId = fromWire(request.extentId);
  const scripted = await data.onRead?.(extentId);
  if (scripted) return scripted;
  const bytes = data.extents.get(extentId);
  if (!bytes) return refused("notFound", "unknownExtent", `no extent ${extentId}`);
  const offset = fromWire(request.offsetBytes);
  return ok({ payload: bytes.subarray(offset, offset + request.lengthBytes) });
}

/** Handlers that nobody should call. */
// biome-ignore lint/suspicious/noExplicitAny: one refusal for methods of every type.
function unused(service: { readonly method: Record<string, unknown> }): any {
  const refuse = async () => refused("unimplemented", "unknownMethod", "not in this test");
  return Object.fromEntries(Object.keys(service.method).map((name) => [name, refuse]));
}
