/** Parts of a term, over partition servers, a lock service and tables that do as a test says. */
import { type Outcome, ok, refused, toHex, unwrap, utf8 } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";
import { firstRangeOf, isLive, type Progress, type Range } from "@stamp/partition-map";
import { served, sleep, type World } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { LockService, PartitionServer, toWire } from "@stamp/wire";
import { Assigner, type AssignerOptions } from "../assign/assigner.ts";
import { OwnerEpochs, ownerEpochKey } from "../assign/owner-epochs.ts";
import { Servers } from "../assign/servers.ts";
import { MapState } from "../map/map-state.ts";
import type { OwnTable } from "../map/map-table.ts";
import { Reshaper, type StreamLayer } from "../reshape/reshaper.ts";

type Handler = (request: never) => Promise<Outcome<object>>;
const calls = [
  "loadPartition",
  "closePartition",
  "reshapePartitions",
  "suggestSplitKey",
  "checkpointPartition",
  "listPartitions",
  "execute",
] as const;
export type ServerCall = (typeof calls)[number];

/** Surroundings of a term. */
export interface Surroundings {
  readonly sim: Simulation;
  readonly world: World;
  readonly table: OwnTable;
  readonly store: MetadataClient;
  readonly streams: StreamLayer;
  /** Epochs of the leases of the servers; 0: ended. */
  readonly leases: Record<string, number>;
  /** Answers of a server other than yes, and its acts before them. */
  readonly answers: Record<string, Partial<Record<ServerCall, Handler>>>;
  /** `server call range`, in order; without the looks at what they serve. */
  readonly asked: string[];
  /** How long things take, in milliseconds. */
  readonly takes: { mintMs: number; writeMs: number };
  /** Refusals of the metadata store, the stream manager and the lock service. */
  readonly refusals: { mint?: Outcome<never>; fence?: Outcome<never>; refuseRenewals?: Outcome<never>; lacks?: Outcome<never> };
  /** Whether the stream manager says that the children are there. */
  readonly happened: { value: boolean };
  /** Number of writes to the table. */
  readonly written: { count: number };
  /** Owner epochs under which streams were fenced. */
  readonly fenced: number[];
  /** Why the stream manager can make no extents. */
  readonly lacks: string[];
}

export interface Parts extends Surroundings {
  readonly map: MapState;
  readonly servers: Servers;
  readonly assigner: Assigner;
  readonly reshaper: Reshaper;
  /** Why the term ended. */
  readonly ended: string[];
  progressOf(rangeId: string): Progress["kind"];
  /** Until it holds; the time is virtual. */
  until(what: () => boolean, withinMs: number, text: string): Promise<void>;
}

export const rangeOf = (table: Range["table"], rangeId: string, bounds: { low?: Uint8Array; high?: Uint8Array } = {}): Range => ({
  ...firstRangeOf(table),
  rangeId,
  ...bounds,
  ownerEpoch: 1,
  server: "ps-1",
  serverAddress: "ps-1",
  leaseEpoch: 1,
  loaded: true,
  hasStreams: true,
});

export async function surroundings(sim: Simulation): Promise<Surroundings> {
  const world = sim.world("pm");
  const leases: Surroundings["leases"] = { "ps-1": 1, "ps-2": 1 };
  const answers: Surroundings["answers"] = {};
  const asked: string[] = [];
  const takes = { mintMs: 2, writeMs: 2 };
  for (const name of Object.keys(leases)) await serveServer(sim, name, answers, asked);
  const refusals: Surroundings["refusals"] = {};
  await serveLeases(sim, leases, refusals, asked);
  const happened = { value: false };
  const fenced: number[] = [];
  const lacks: string[] = [];
  const streams: StreamLayer = {
    fence: async (_, ownerEpoch) => {
      fenced.push(ownerEpoch);
      return refusals.fence ?? ok("fenced" as const);
    },
    exists: async () => ok(happened.value),
    lacks: async () => refusals.lacks ?? ok([...lacks]),
    names: async () => ok(new Set<string>()),
    prepend: async () => ok(),
    remove: async () => ok(),
  };
  const written = { count: 0 };
  const [table, store] = [tableOf(world, takes, written), storeOf(world, takes, refusals)];
  return { sim, world, table, store, streams, leases, answers, asked, takes, refusals, happened, written, fenced, lacks };
}

/** Every range is loaded when `work` begins, and turns go on until it ends. Owner epochs are minted from 100 on. */
export function withParts(
  ranges: readonly Range[],
  work: (parts: Parts) => Promise<void>,
  loads: Pick<AssignerOptions, "loadsAtOnceMax" | "heatOf"> = { loadsAtOnceMax: 64, heatOf: () => 0 },
): Promise<void> {
  const sim = new Simulation({ seed: 1 });
  return sim.run(async () => {
    const parts = await makeParts(await surroundings(sim), ranges, loads);
    let over = false;
    const turns = async (): Promise<void> => {
      for (let i = 0; !over; i++) {
        await parts.servers.look();
        if (i % 20 === 0) await Promise.all(parts.servers.leases.filter(isLive).map((lease) => parts.servers.probe(lease)));
        await parts.assigner.turn();
        await sleep(parts.world.clock, 50);
      }
    };
    const turning = turns();
    await parts.until(() => parts.assigner.calm, 5_000, "every range is loaded");
    parts.asked.length = 0;
    await work(parts);
    over = true;
    await turning;
  });
}

async function makeParts(
  around: Surroundings,
  ranges: readonly Range[],
  loads: Pick<AssignerOptions, "loadsAtOnceMax" | "heatOf">,
): Promise<Parts> {
  const { sim, world, table, store, streams } = around;
  const ended: string[] = [];
  const map = unwrap(await MapState.open(world, table));
  unwrap(await map.change(() => ok({ changed: ranges })));
  const limits = { unreachableAfterMs: 5_000, loadTimeoutMs: 10_000, heldQuestionMs: 0 };
  const servers = new Servers(world, { lockService: "lock", pmTerm: 1, ...limits });
  const epochs = new OwnerEpochs(store, 1);
  const end = (why: string): void => void ended.push(why);
  const assigner: Assigner = new Assigner(world, epochs, map, servers, {
    pmTerm: 1,
    ...loads,
    hasRoom: () => around.lacks.length === 0,
    again: () => {},
    resolve: (range) => reshaper.resolve(range),
    end,
  });
  const reshaper: Reshaper = new Reshaper(world, { epochs, map, servers, assigner, streams }, { pmTerm: 1, reshapeTimeoutMs: 60_000, end });
  return {
    ...around,
    map,
    assigner,
    reshaper,
    servers,
    ended,
    progressOf: (rangeId) => assigner.progressOf(rangeId),
    until: (what, withinMs, text) => sim.until(async () => what(), withinMs, text),
  };
}

async function serveLeases(
  sim: Simulation,
  leases: Surroundings["leases"],
  refusals: Surroundings["refusals"],
  asked: string[],
): Promise<void> {
  const listLeases: Handler = async () =>
    ok({
      leases: Object.entries(leases).map(([server, leaseEpoch]) => ({
        name: `ps/${server}`,
        address: server,
        leaseEpoch: toWire(leaseEpoch || 1),
        ended: leaseEpoch === 0,
      })),
    });
  const refuseRenewals: Handler = async ({ name }: { name: string }) => {
    asked.push(`lock refuseRenewals ${name}`);
    return refusals.refuseRenewals ?? ok({});
  };
  await serveAll(sim, "lock", LockService, { listLeases, refuseRenewals });
}

async function serveServer(sim: Simulation, name: string, answers: Surroundings["answers"], asked: string[]): Promise<void> {
  const times = { heldMs: 1, prepareMs: 1, drainMs: 0, writeMs: 0, handOverMs: 0, loadMs: 0, beginMs: 0, dataHeldMs: 0 };
  const yes: Partial<Record<ServerCall, object>> = { reshapePartitions: { times }, suggestSplitKey: { key: utf8("m") } };
  const handlers = calls.map((call): [string, Handler] => [
    call,
    async (request) => {
      const { range, rangeId, parents } = request as { range?: { rangeId: string }; rangeId?: string; parents?: { rangeId: string }[] };
      if (call !== "listPartitions")
        asked.push(`${name} ${call} ${range?.rangeId ?? rangeId ?? parents?.map((one) => one.rangeId).join()}`);
      return (await answers[name]?.[call]?.(request)) ?? ok(yes[call] ?? {});
    },
  ]);
  await serveAll(sim, name, PartitionServer, Object.fromEntries(handlers));
}

async function serveAll(
  sim: Simulation,
  name: string,
  service: typeof LockService | typeof PartitionServer,
  handlers: Record<string, Handler>,
): Promise<void> {
  const unused: Handler = async () => refused("unimplemented", "unknownMethod", "not in this test");
  const all = { ...Object.fromEntries(Object.keys(service.method).map((method) => [method, unused])), ...handlers };
  await sim.world(name).transport.serve(name, [served(service, all as never)]);
}

function tableOf(world: World, takes: Surroundings["takes"], written: Surroundings["written"]): OwnTable {
  const rows = new Map<string, { key: Uint8Array; value: Uint8Array }>();
  let sequence = 0;
  return {
    readAll: async () => ok([...rows.values()]),
    write: async (changes) => {
      written.count++;
      await sleep(world.clock, takes.writeMs);
      for (const change of changes) {
        if ("value" in change) rows.set(toHex(change.key), change);
        else rows.delete(toHex(change.key));
      }
      return ok(++sequence);
    },
    get sequence() {
      return sequence;
    },
    close: async () => {},
  };
}

function storeOf(world: World, takes: Surroundings["takes"], refusals: Surroundings["refusals"]): MetadataClient {
  let held: Uint8Array = utf8("99");
  let version = 1;
  const store: Pick<MetadataClient, "get" | "transact"> = {
    get: async () => ok([{ key: ownerEpochKey, version, value: held }]),
    transact: async ({ writes = [] }) => {
      await sleep(world.clock, takes.mintMs);
      if (refusals.mint) return refusals.mint;
      held = writes[0]?.value ?? held;
      return ok([{ key: ownerEpochKey, version: ++version }]) as never;
    },
  };
  return store as MetadataClient;
}
