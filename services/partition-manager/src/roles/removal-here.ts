/**
 * Removal of accounts from this stamp, over all ranges (docs/design/geo.md "Removal"): how far it is, and its end when an
 * account comes back. Also the queues that this stamp alone has of an account.
 *
 * Invariant: an account is removed when every range that has keys of it says so, under one map.
 */
import { type Outcome, ok } from "@stamp/base";
import { type AccountRole, removalOf, roleOf, tenureOf } from "@stamp/geo";
import { holdsAccount } from "@stamp/objects";
import type { Range } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import { type AccountRemoval, fromWire, PartitionServer, type RangeRemoval, toWire } from "@stamp/wire";
import type { MapState } from "../map/map-state.ts";
import type { NamedRole } from "./roles-here.ts";
import { onRanges } from "./shipping-here.ts";

const askTimeoutMs = 5_000;
/** Accounts that one question is about; the next one is about others when these are removed. */
const askedMax = 1_000;
const queuesMax = 10;
/** Table with the row of the account's role, which stays. */
const rolesTable = "Account";
const queuesTable = "Message";

const ofAccount = (map: MapState, account: string): readonly Range[] =>
  map.current.ranges.filter((range) => range.table !== rolesTable && holdsAccount(range, account));
const withQueues = (map: MapState, account: string): readonly Range[] =>
  ofAccount(map, account).filter(({ table }) => table === queuesTable);

/** The account comes back to this stamp by a command: no range deletes what an earlier removal would. */
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

/** Names of the account's first queues here, in order. */
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
  /** Tenures of removals that have ended, by account. */
  readonly #ended = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Removals that have not ended, as far as the servers answer. */
  async list(map: MapState, roles: readonly NamedRole[]): Promise<Outcome<Omit<AccountRemoval, "$typeName">[]>> {
    const removed = roles.flatMap(({ account, geoRole }) => {
      const role = roleOf(geoRole);
      const tenure = role.ok ? removalOf(role.value as AccountRole) : undefined;
      return tenure === undefined || this.#ended.get(account) === tenure ? [] : [{ account, tenure }];
    });
    const asked = removed.slice(0, askedMax);
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
      asked.flatMap(({ account, tenure }) => {
        const ranges = before.get(account) ?? [];
        const facts = ranges.map(({ rangeId, ownerEpoch }) => told.get(idOf(account, rangeId, ownerEpoch)));
        const isSame = ofAccount(map, account).every((range, i) => range === ranges[i]);
        if (isSame && ranges.length > 0 && facts.every((one) => one?.ended === true)) {
          this.#ended.set(account, tenure);
          return [];
        }
        return [removalOfAccount(account, facts)];
      }),
    );
  }
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
