/** Each fault of a lock service once, on real processes: killed, its folder deleted, replaced by an older one, and hurt by a bit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertKept, runRounds } from "./consensus-rounds.ts";

test("three lock services, a fault of each kind: nothing that was acknowledged is lost or wrong", { timeout: 600_000 }, async () => {
  const ran = await runRounds(4);
  assertKept(ran);
  assert.deepEqual(
    ran.rounds.map(({ kind }) => kind),
    ["killed", "lost", "older", "bit"],
  );
});
