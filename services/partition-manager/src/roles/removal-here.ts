/**
 * Removal of accounts from this stamp, over all ranges (docs/design/geo-shipping.md "Removal"): how far it is, and its end when an
 * account comes back. Also the queues that this stamp alone has of an account.
 *
 * Invariant: an account is removed when every range that has keys of it says so, under one map.
 */
import { type Outcome, ok } from "@stamp/base";
import { type AccountRole, removalOf, roleOf, tenureOf } from "@stamp/geo";
import { accountKeys, objectTables, queuesTable } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import { Turns, type World } from "@stamp/ports";
import { type AccountRemoval, fromWire, PartitionServer, type RangeRemoval, toWire } from "@stamp/wire";
import type { MapState } from "../map/map-state.ts";
import type { NamedRole } from "./roles-here.ts";
import { onRanges } from "./shipping-here.ts";

const askTimeoutMs = 5_000;
/** Accounts that one question is about; the next one is about those behind them. */
const askedMax = 1_000;
const queuesMax = 10;
/** Tables of which something is removed. The row of the account's role stays. */
const removedTables = objectTables.filter((table) => table !== "Account");

function ofAccount(map: MapState, account: string): readonly Range[] {
  const { low, high } = accountKeys(account);
  return removedTables.flatMap((table) => map.current.within(table, low, high));
}
const withQueues = (map: MapState, account: string): readonly Range[] =>
  ofAccount(map, account).filter(({ table }) => table === queuesTable);

/** Ends earlier removals of an account that comes back by a command: no range deletes more of it. */
export async function endRemovalHere(
  world: World,
  map: MapState,
  account: string,
  obeyed: { readonly operation: number; readonly phase: number },
): Promise<Outcome<void>> {
  const ended = await onRanges(map, account, ofAccount, ({ rangeId, rangeVersion, serverAddress }) => {
    const request = { rangeId, rangeVersion: toWire(rangeVersion), account, tenure: toWire(tenureOf(obeyed)) };
    return world.transport.client(serverAddress, PartitionServer).endRemoval(request, { timeoutMs: askTimeoutMs });
  });
  return ended.ok ? ok() : ended;
}

/** Returns the names of the account's first queues here, in order. */
export async function queuesHere(world: World, map: MapState, account: string): Promise<Outcome<string[]>> {
  const found = await onRanges(map, account, withQueues, ({ rangeId, rangeVersion, serverAddress }) =>
    world.transport
      .client(serverAddress, PartitionServer)
      .listRangeQueues({ rangeId, rangeVersion: toWire(rangeVersion), account }, { timeoutMs: askTimeoutMs }),
  );
  if (!found.ok) return found;
  const names = found.value.flatMap((queues) => queues.names);
  return ok(names.sort().slice(0, queuesMax));
}

export class RemovalsHere {
  readonly #world: World;
  /** Roles of accounts whose removal has ended, as text. */
  readonly #ended = new Map<string, string>();
  /** Last account of the question before, if there were more; else empty. */
  #askedTo = "";

  constructor(world: World) {
    this.#world = world;
  }

  /** Removals that have not ended, as far as the servers answer. */
  async list(map: MapState, roles: readonly NamedRole[]): Promise<Outcome<Omit<AccountRemoval, "$typeName">[]>> {
    const turns = new Turns(this.#world.clock);
    const removed: Asked[] = [];
    for (const { account, geoRole } of roles) {
      if (turns.over) await turns.next();
      if (this.#ended.get(account) === geoRole) continue;
      const role = roleOf(geoRole);
      const tenure = role.ok ? removalOf(role.value as AccountRole) : undefined;
      if (tenure !== undefined) removed.push({ account, tenure, geoRole });
    }
    const asked = this.#slice(removed);
    if (asked.length === 0) return ok([]);
    const before = new Map(asked.map(({ account }) => [account, ofAccount(map, account)]));
    const servers = new Set([...before.values()].flat().flatMap(({ serverAddress }) => (serverAddress === "" ? [] : [serverAddress])));
    const request = { accounts: asked.map(({ account, tenure }) => ({ account, tenure: toWire(tenure) })) };
    const answers = await Promise.all(
      [...servers].map((server) => this.#world.transport.client(server, PartitionServer).getRemovals(request, { timeoutMs: askTimeoutMs })),
    );
    const told = new Map(
      answers
        .flatMap((answer) => (answer.ok ? answer.value.ranges : []))
        .map((one) => [idOf(one.account, one.rangeId, fromWire(one.ownerEpoch)), one]),
    );
    return ok(
      asked.flatMap(({ account, geoRole }) => {
        const ranges = before.get(account) ?? [];
        const facts = ranges.map(({ rangeId, ownerEpoch }) => told.get(idOf(account, rangeId, ownerEpoch)));
        const isSame = ofAccount(map, account).every((range, i) => range === ranges[i]);
        if (isSame && ranges.length > 0 && facts.every((one) => one?.ended === true)) {
          this.#ended.set(account, geoRole);
          return [];
        }
        return [removalOfAccount(account, facts)];
      }),
    );
  }

  /** Returns the accounts of this question, in the order of their names, behind the last question's. */
  #slice(removed: readonly Asked[]): readonly Asked[] {
    const sorted = [...removed].sort((a, b) => (a.account < b.account ? -1 : 1));
    const behind = sorted.findIndex(({ account }) => account > this.#askedTo);
    const from = Math.max(behind, 0);
    const asked = [...sorted.slice(from), ...sorted.slice(0, from)].slice(0, askedMax);
    this.#askedTo = sorted.length > askedMax ? (asked.at(-1)?.account ?? "") : "";
    return asked;
  }
}

/** A removal that has not ended. */
interface Asked {
  readonly account: string;
  readonly tenure: number;
  /** Text of the account's role. */
  readonly geoRole: string;
}

function removalOfAccount(account: string, facts: readonly (RangeRemoval | undefined)[]): Omit<AccountRemoval, "$typeName"> {
  const known = facts.filter((one) => one !== undefined);
  const silent = facts.length - known.length;
  const failure = known.find((one) => one.failure !== "");
  const trouble = failure === undefined ? "" : `range ${failure.rangeId}: ${failure.failure}`;
  return {
    account,
    rangesLeft: facts.filter((one) => one?.ended !== true).length,
    rows: known.reduce((sum, { rows }) => sum + rows, 0n),
    bytesLeft: known.reduce((sum, { bytesLeft }) => sum + bytesLeft, 0n),
    trouble: trouble === "" && silent > 0 ? `${silent} ranges are not served now` : trouble,
    stamp: "",
  };
}

const idOf = (account: string, rangeId: string, ownerEpoch: number): string => `${account} ${rangeId} ${ownerEpoch}`;
