/** Quorums: what a majority and a wide quorum share, for every set of voters up to seven. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { acknowledgedIndex, majorityOf, verdictOf, wideOf } from "./quorum.ts";

const ids = ["a", "b", "c", "d", "e", "f", "g"];

test("quorum: two majorities share a member, and a wide quorum shares two with every majority and every wide quorum", () => {
  for (let voters = 1; voters <= 7; voters++) {
    const majority = majorityOf(voters);
    const wide = wideOf(voters);
    assert.ok(majority + majority - voters >= 1, `${voters} voters: two majorities`);
    assert.ok(wide + majority - voters >= 2, `${voters} voters: a wide quorum and a majority`);
    assert.ok(wide + wide - voters >= 2, `${voters} voters: two wide quorums`);
  }
  assert.deepEqual([1, 2, 3, 4, 5].map(wideOf), [2, 2, 3, 3, 4]);
});

test("quorum: a set wins by a majority with standing or by a wide quorum, and loses when neither can come about", () => {
  for (let voters = 1; voters <= 5; voters++) {
    const group = ids.slice(0, voters);
    // Each voter: full yes, returning yes, no, or silent.
    for (let code = 0; code < 4 ** voters; code++) {
      const kinds = group.map((_, at) => Math.floor(code / 4 ** at) % 4);
      const count = (kind: number): number => kinds.filter((each) => each === kind).length;
      const voices = new Map(group.map((id, at) => [id, kinds[at] as number]));
      const verdict = verdictOf([group], (id) => {
        const kind = voices.get(id);
        return kind === undefined || kind === 3 ? undefined : { granted: kind < 2, full: kind === 0 };
      });
      const wins = (more: number): boolean => count(0) + more >= majorityOf(voters) || count(0) + count(1) + more >= wideOf(voters);
      assert.equal(verdict, wins(0) ? "won" : wins(count(3)) ? "open" : "lost", `${voters} voters: ${kinds}`);
    }
  }
});

test("quorum: while two configurations decide, both have to agree", () => {
  const voices = new Map([
    ["a", { granted: true, full: true }],
    ["b", { granted: true, full: true }],
    ["c", { granted: false, full: true }],
    ["d", { granted: false, full: true }],
  ]);
  const before = ["a", "b", "c"];
  const after = ["a", "b", "c", "d"];
  assert.equal(
    verdictOf([before], (id) => voices.get(id)),
    "won",
  );
  assert.equal(
    verdictOf([after], (id) => voices.get(id)),
    "lost",
  );
  assert.equal(
    verdictOf([before, after], (id) => voices.get(id)),
    "lost",
  );
});

test("quorum: an empty configuration elects nobody", () => {
  assert.equal(
    verdictOf([[]], () => ({ granted: true, full: true })),
    "lost",
  );
});

test("quorum: the acknowledged index is the highest that a majority with standing has, or a wide quorum has", () => {
  const index = (...matches: readonly (readonly [any: number, full: number])[]): number =>
    acknowledgedIndex([ids.slice(0, matches.length)], (id) => {
      const [any, full] = matches[ids.indexOf(id)] ?? [0, 0];
      return { any, full };
    });
  assert.equal(index([5, 5]), 5);
  assert.equal(index([5, 0]), 0, "alone and without standing");
  assert.equal(index([9, 9], [7, 7], [3, 3]), 7);
  assert.equal(index([9, 9], [7, 0], [3, 3]), 3, "the second has no standing");
  assert.equal(index([9, 0], [7, 0], [6, 0]), 6, "all three without standing");
  assert.equal(index([9, 9], [8, 8], [7, 7], [6, 6], [5, 5]), 7);
  assert.equal(index([9, 0], [8, 0], [7, 0], [6, 0], [0, 0]), 6);
  const both = acknowledgedIndex([["a"], ["a", "b"]], (id) => ({ any: id === "a" ? 4 : 2, full: id === "a" ? 4 : 2 }));
  assert.equal(both, 2, "two configurations");
});
