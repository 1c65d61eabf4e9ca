/**
 * How far the copy of an account at its second stamp is (docs/design/geo-shipping.md "Completion"): asks the owner of every range
 * that has keys of the account, and puts the answers together.
 *
 * Invariant: what every range had committed before the question counts. An answer of a range's earlier owner, or of a range
 * that was split, merged or moved meanwhile, does not.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import {
  type AccountProgress,
  type AccountRole,
  accountProgress,
  type GeoPoint,
  type RangeProgress,
  type RangeShippingState,
} from "@stamp/geo";
import { holdsAccount, isShippedFor, isShippedTable } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { fromWire, PartitionServer, type RangeShippingFacts, toWire } from "@stamp/wire";
import type { MapState } from "../map/map-state.ts";

const askTimeoutMs = 3_000;
const attemptsMax = 3;

export interface ShippingHere {
  readonly progress: AccountProgress;
  /** Number of ranges that have keys of the account: those of `ranges`, and those that say nothing. */
  readonly rangeCount: number;
  /** Ranges in key order, table by table. */
  readonly ranges: readonly RangeShippingFacts[];
}

/**
 * Role of the account whose shipping is asked for. `drainedMsAgo`: time since the last front-end may have admitted a write of the drained account,
 * in milliseconds; undefined if the account is not drained.
 */
export interface AskedRole extends Pick<AccountRole, "epoch" | "paired" | "queues"> {
  readonly drainedMsAgo?: number | undefined;
  /** Lineage that the copy's stamp told last; undefined or 0: not known. */
  readonly copyLineage?: number | undefined;
}

export async function shippingHere(world: World, map: MapState, account: string, role: AskedRole): Promise<Outcome<ShippingHere>> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const before = rangesOf(map, account, role);
    const answers = await Promise.all([...serversOf(before)].map((server) => ask(world, server, account, role)));
    const told = new Map(answers.flat().map((facts) => [idOf(facts.rangeId, fromWire(facts.ownerEpoch)), facts]));
    if (namesOf(rangesOf(map, account, role)) !== namesOf(before)) continue;
    const found = before.map((range) => [range.rangeId, told.get(idOf(range.rangeId, range.ownerEpoch))] as const);
    const progress = accountProgress(new Map(found.map(([rangeId, facts]) => [rangeId, facts && progressOf(facts)])));
    return ok({ progress, rangeCount: before.length, ranges: found.flatMap(([, facts]) => (facts === undefined ? [] : [facts])) });
  }
  return refused("unavailable", "notReady", `the ranges of account ${account} are split, merged or moved again and again`);
}

/**
 * Ends what is shipped to this stamp's copy of an account under a role epoch: every range of the account takes nothing more,
 * durably, and nothing of it is under way (rule `geoPromotionFences`). Answers with an empty point: the copy's rows say
 * themselves, for each PartitionName, where the copy ended (docs/formats/shipped-version.md).
 */
export async function fenceHere(world: World, map: MapState, account: string, role: AccountRole): Promise<Outcome<GeoPoint>> {
  const { epoch } = role;
  const ranges = (now: MapState) => rangesOf(now, account, role);
  const fenced = await onRanges(map, account, ranges, ({ rangeId, rangeVersion, serverAddress }) => {
    const request = { rangeId, rangeVersion: toWire(rangeVersion), account, epoch: toWire(epoch) };
    return world.transport.client(serverAddress, PartitionServer).fenceShipped(request, { timeoutMs: askTimeoutMs });
  });
  return fenced.ok ? ok([]) : fenced;
}

/**
 * Asks the owner of each range of an account, one after the other. The answers count together if no range was split, merged or moved meanwhile: a
 * range that was has what its parents recorded, and is asked again.
 */
export async function onRanges<T>(
  map: MapState,
  account: string,
  ranges: (map: MapState, account: string) => readonly Range[],
  ask: (range: Range) => Promise<Outcome<T>>,
): Promise<Outcome<T[]>> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const before = ranges(map, account);
    const answers: T[] = [];
    for (const range of before) {
      const answer = await ask(range);
      if (!answer.ok) return answer;
      answers.push(answer.value);
    }
    if (namesOf(ranges(map, account)) === namesOf(before)) return ok(answers);
  }
  return refused("unavailable", "notReady", `the ranges of account ${account} are split, merged or moved again and again`);
}

/** Returns the ranges of the tables without whose rows a copy of an account with this role is not complete. */
const rangesOf = (map: MapState, account: string, role: Pick<AccountRole, "queues">): readonly Range[] =>
  map.current.ranges.filter((range) => isShippedFor(role, range.table) && holdsAccount(range, account));

/** Returns the ranges of the tables of which a report may have rows, also one of an earlier copy. */
export const rangesOfReports = (map: MapState, account: string): readonly Range[] =>
  map.current.ranges.filter((range) => isShippedTable(range.table) && holdsAccount(range, account));

const idOf = (rangeId: string, ownerEpoch: number): string => `${rangeId} ${ownerEpoch}`;
const namesOf = (ranges: readonly Range[]): string => ranges.map(({ rangeId, ownerEpoch }) => idOf(rangeId, ownerEpoch)).join();
const serversOf = (ranges: readonly Range[]): Set<string> =>
  new Set(ranges.filter(({ loaded, serverAddress }) => loaded && serverAddress !== "").map(({ serverAddress }) => serverAddress));

/** Asks servers; one that does not answer gives nothing: its ranges are not known. */
async function ask(
  world: World,
  server: string,
  account: string,
  { epoch, paired = 0, drainedMsAgo, copyLineage = 0 }: AskedRole,
): Promise<readonly RangeShippingFacts[]> {
  const client = world.transport.client(server, PartitionServer);
  const drained = drainedMsAgo === undefined ? {} : { drainedMsAgo: toWire(drainedMsAgo) };
  const request = { account, epoch: toWire(epoch), paired: toWire(paired), copyLineage: toWire(copyLineage), ...drained };
  const answer = await client.getShipping(request, { timeoutMs: askTimeoutMs });
  return answer.ok ? answer.value.ranges : [];
}

const states: readonly string[] = ["waiting", "seeding", "shipping", "unshipped"] satisfies RangeShippingState[];

function progressOf(facts: RangeShippingFacts): RangeProgress | undefined {
  if (!states.includes(facts.state)) return undefined;
  return {
    rangeId: facts.rangeId,
    table: facts.table,
    state: facts.state as RangeShippingState,
    complete: facts.complete,
    pendingCommits: fromWire(facts.pendingCommits),
    pendingBytes: fromWire(facts.pendingBytes),
    lastSyncMs: facts.lastSyncMs === undefined ? undefined : fromWire(facts.lastSyncMs),
    seededBytes: fromWire(facts.seededBytes),
    seedBytes: fromWire(facts.seedBytes),
    seedBytesPerSecond: fromWire(facts.seedBytesPerSecond),
    rates: facts.rates,
    failure: facts.failure,
  };
}
