/** A merge waits for what other stamps lack, and for ranges that are seeded alike. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, refused } from "@stamp/base";
import { untilMergeable } from "./mergeable.ts";

const parent = (notes: Readonly<Record<string, string>>, acknowledged: Outcome<void> = ok()) => ({
  followers: { notes: new Map(Object.entries(notes)), untilAcknowledged: async () => acknowledged },
  stats: { checkpointedSequence: 9 },
});

const asked = async (...parents: readonly ReturnType<typeof parent>[]): Promise<string> => {
  const answer = await untilMergeable(parents, 1_000);
  return answer.ok ? "ok" : answer.failure.message;
};

test("merge: it waits while a follower would begin anew, and goes on when both ranges have it with one note, or one has it", async () => {
  assert.equal(await asked(parent({}), parent({})), "ok");
  assert.equal(await asked(parent({ a: "1", b: "2" }), parent({ a: "1", c: "3" })), "ok");
  assert.match(await asked(parent({ a: "1", b: "2" }), parent({ a: "1", b: "3" })), /account b are not seeded alike/);
  const behind = refused("unavailable", "notReady", "lacks 7 commits");
  assert.equal(await asked(parent({ a: "1" }), parent({ a: "1" }, behind)), "lacks 7 commits");
});
