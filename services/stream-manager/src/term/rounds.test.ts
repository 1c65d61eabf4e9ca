import assert from "node:assert/strict";
import { test } from "node:test";
import { Rounds } from "./rounds.ts";

test("rounds: each part goes on where the last one ended, and a new round begins behind the last item", () => {
  const items = new Set([1, 2, 3, 4, 5]);
  const rounds = new Rounds(() => items, 2);
  assert.deepEqual([...rounds.next()], [1, 2]);
  items.delete(3);
  items.add(6);
  assert.deepEqual([...rounds.next()], [4, 5]);
  assert.deepEqual([...rounds.next()], [6]);
  assert.deepEqual([...rounds.next()], [1, 2]);
  items.clear();
  assert.deepEqual([...rounds.next()], []);
  assert.deepEqual([...rounds.next()], []);
});
