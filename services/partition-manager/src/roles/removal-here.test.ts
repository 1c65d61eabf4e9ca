/** Tests of the questions to partition servers about removals, over many accounts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, unwrap } from "@stamp/base";
import { encodeRole } from "@stamp/geo";
import { objectTables } from "@stamp/objects";
import { firstRangeOf, type Range, RangeMap } from "@stamp/partition-map";
import type { World } from "@stamp/ports";
import type { MapState } from "../map/map-state.ts";
import { RemovalsHere } from "./removal-here.ts";

const removedBy = (operation: number): string => encodeRole({ role: "removed", epoch: 1, obeyed: { operation, phase: 5 } });
const nameOf = (i: number): string => `acct${String(i).padStart(5, "0")}`;

test("removals here: questions go over all accounts by turns, and an ended removal is asked about again only after another one", async () => {
  const ranges = objectTables.map(
    (table): Range => ({ ...firstRangeOf(table), rangeId: `${table}-1`, ownerEpoch: 1 as Range["ownerEpoch"], serverAddress: "ps-1" }),
  );
  const map = { current: new RangeMap(1, ranges) } as unknown as MapState;
  const asked: string[][] = [];
  const ended = new Set<string>();
  const getRemovals = async ({ accounts }: { accounts: readonly { account: string }[] }) => {
    asked.push(accounts.map(({ account }) => account));
    const facts = accounts.flatMap(({ account }) =>
      ranges.map(({ rangeId, table }) => ({
        rangeId,
        ownerEpoch: 1n,
        account,
        ended: table === "Account" ? false : ended.has(account),
        rows: 1n,
        bytesLeft: 10n,
        failure: "",
      })),
    );
    return ok({ ranges: facts });
  };
  const world = { clock: { monotonicMs: () => 0 }, transport: { client: () => ({ getRemovals }) } } as unknown as World;
  const here = new RemovalsHere(world);
  const roles = Array.from({ length: 2_500 }, (_, i) => ({ account: nameOf(i), geoRole: removedBy(3) }));
  for (let i = 0; i < 3; i++) unwrap(await here.list(map, roles.toReversed()));
  assert.deepEqual(
    asked.map((accounts) => [accounts.length, accounts[0], accounts.at(-1)]),
    [
      [1_000, nameOf(0), nameOf(999)],
      [1_000, nameOf(1_000), nameOf(1_999)],
      [1_000, nameOf(2_000), nameOf(499)],
    ],
  );
  const few = roles.slice(0, 2);
  ended.add(nameOf(0));
  const removals = unwrap(await here.list(map, few));
  assert.deepEqual(
    removals.map(({ account, rangesLeft, rows, bytesLeft }) => [account, rangesLeft, Number(rows), Number(bytesLeft)]),
    [[nameOf(1), 3, 3, 30]],
  );
  unwrap(await here.list(map, few));
  assert.deepEqual(asked.at(-1), [nameOf(1)]);
  unwrap(await here.list(map, [{ account: nameOf(0), geoRole: removedBy(9) }]));
  assert.deepEqual(asked.at(-1), [nameOf(0)]);
});
