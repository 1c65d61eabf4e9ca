/** Placement by capacity: where a new account goes, what is refused and why, which accounts a plan moves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { MovableAccount, PlacedStamp, StampState } from "./placement.ts";
import { placeAccount, proposeMoves } from "./placement.ts";

const stamp = (name: string, usedBytes: number, more: Partial<PlacedStamp> = {}): PlacedStamp => ({
  name,
  location: "north",
  state: "open",
  capacity: { usedBytes, totalBytes: 100, requestsPerSecond: 0, reportedMs: 1_000 },
  ...more,
});
const account = (name: string, at: string, bytes: number): MovableAccount => ({ name, stamp: at, bytes, requestsPerSecond: 0 });

test("placement: a new account goes to the emptiest stamp of its location that takes one", () => {
  const stamps = [stamp("a", 40), stamp("b", 30), stamp("c", 10, { location: "south" }), stamp("d", 0, { state: "closed" })];
  assert.deepEqual(placeAccount(stamps, "north", 1_000), { ok: true, value: "b" });
  assert.deepEqual(placeAccount(stamps, "north", 1_000, ["b"]), { ok: true, value: "a" });
  const said = (location: string, nowMs: number, without: readonly string[] = []): string => {
    const placed = placeAccount(stamps, location, nowMs, without);
    return placed.ok ? placed.value : `${placed.failure.reason}: ${placed.failure.message}`;
  };
  assert.equal(said("west", 1_000), "noPlacement: location west has no stamp that is a choice; locations are: north, south");
  assert.equal(
    said("north", 61_000),
    "noPlacement: no stamp of location north takes a new account: a: its last report is 60 s old; b: its last report is 60 s old; d: it is closed",
  );
  const full = [stamp("a", 80), stamp("b", 0, { state: "draining" }), { name: "c", location: "north", state: "open" as const }];
  const refused = placeAccount(full, "north", 1_000);
  assert.ok(!refused.ok);
  assert.match(refused.failure.message, /a: 80\.0% of its bytes are used, 80\.0% is the limit; b: it is draining; c: it has not reported/);
});

test("placement: a plan takes the smallest account that is enough, else the largest ones, and never fills the target", () => {
  const stamps = [stamp("a", 78), stamp("b", 40), stamp("c", 60)];
  const accounts = [account("x", "a", 30), account("y", "a", 9), account("z", "a", 5), account("w", "a", 1)];
  assert.deepEqual(proposeMoves(stamps, accounts, 1_000), [{ account: "y", from: "a", to: "b", bytes: 9 }]);
  const small = [account("y", "a", 5), account("z", "a", 4), account("w", "a", 1)];
  assert.deepEqual(
    proposeMoves(stamps, small, 1_000).map((move) => move.account),
    ["y", "z"],
  );
  assert.deepEqual(proposeMoves([stamp("a", 90), stamp("b", 69)], [account("x", "a", 30)], 1_000), []);
  assert.deepEqual(proposeMoves([stamp("a", 90), stamp("b", 0, { location: "south" })], [account("x", "a", 30)], 1_000), []);
  const leaving = [stamp("a", 10, { state: "draining" }), stamp("b", 10)];
  assert.equal(proposeMoves(leaving, [account("x", "a", 10), account("e", "a", 0)], 1_000).length, 2);
});

test("placement: a plan is over when it was carried out, and no target is above its limit", () => {
  const anyStamp = fc.record({
    used: fc.integer({ min: 0, max: 100 }),
    state: fc.constantFrom<StampState>("open", "closed", "draining"),
    accounts: fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 6 }),
  });
  fc.assert(
    fc.property(fc.array(anyStamp, { maxLength: 5 }), (drawn) => {
      const stamps = drawn.map(({ used, state }, at) => stamp(`s${at}`, used, { state }));
      const accounts = drawn.flatMap((each, at) => each.accounts.map((bytes, n) => account(`s${at}n${n}`, `s${at}`, bytes)));
      const moves = proposeMoves(stamps, accounts, 1_000);
      assert.equal(new Set(moves.map((move) => move.account)).size, moves.length, "an account moves twice");
      const gain = (name: string): number =>
        moves.reduce((sum, { from, to, bytes }) => sum + (to === name ? bytes : 0) - (from === name ? bytes : 0), 0);
      const after = stamps.map((each) => stamp(each.name, (each.capacity?.usedBytes ?? 0) + gain(each.name), { state: each.state }));
      for (const { to } of moves)
        assert.ok((after.find(({ name }) => name === to)?.capacity?.usedBytes ?? 0) <= 70, "a target is above 70%");
      const moved = accounts.map((each) => ({ ...each, stamp: moves.find((move) => move.account === each.name)?.to ?? each.stamp }));
      assert.deepEqual(proposeMoves(after, moved, 1_000), [], "a second plan moves again");
    }),
    { numRuns: 1_000 },
  );
});
