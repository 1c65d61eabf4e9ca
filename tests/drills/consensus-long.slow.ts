/** Thirty faults of lock services one after another, on real processes: each kind at each of the three, and the leader killed eight times. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertKept, runRounds } from "./consensus-rounds.ts";

test("three lock services, thirty faults: nothing that was acknowledged is lost or wrong", { timeout: 1_500_000 }, async () => {
  const ran = await runRounds(30);
  assertKept(ran);
  const struck = (kind: string): number => new Set(ran.rounds.filter((round) => round.kind === kind).map(({ victim }) => victim)).size;
  assert.deepEqual([struck("lost"), struck("older"), struck("bit")], [3, 3, 3]);
  // A bit may lie where nothing is read any more, but not in each round.
  assert.ok(ran.rounds.some(({ setAside }) => setAside));
});
