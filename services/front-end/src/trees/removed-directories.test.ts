/** The order and the pauses of what is taken below removed directories. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TreeName } from "@stamp/objects";
import type { World } from "@stamp/ports";
import { CountedClock, settled } from "../testing/clock.ts";
import { RemovedDirectories, type TakenBelow } from "./removed-directories.ts";

const tree: TreeName = { account: "acct", filesystem: "fs", incarnation: 7 };

/** `turns`: ends of the turns of each directory, one after another; the last one stays. */
function started(turns: Readonly<Record<string, readonly (TakenBelow | Error)[]>>) {
  const clock = new CountedClock();
  const taken: string[] = [];
  const warned: string[] = [];
  const logger = { warn: (_message: string, { directory }: { directory: string }) => warned.push(directory) };
  const counts = new Map<string, number>();
  const removed = new RemovedDirectories({ clock, logger } as unknown as World, async (_tree, directory) => {
    taken.push(directory);
    const count = counts.get(directory) ?? 0;
    counts.set(directory, count + 1);
    const mine = turns[directory] ?? [];
    const turn = mine[Math.min(count, mine.length - 1)] ?? { end: "done", below: [] };
    if (turn instanceof Error) throw turn;
    return turn;
  });
  const still = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn++) await settled();
  };
  return { removed, clock, taken, warned, still };
}

const later: TakenBelow = { end: "later", below: [] };
const done: TakenBelow = { end: "done", below: [] };

test("removed directories: what is below comes next, and a directory with more is taken until it is empty", async () => {
  const now = started({ a: [{ end: "more", below: ["b"] }, done], b: [{ end: "done", below: ["c"] }] });
  now.removed.add(tree, "a");
  await now.still();
  assert.deepEqual(now.taken, ["a", "b", "c", "a"]);
});

test("removed directories: a directory with more directories below than may wait, all are taken", async () => {
  const below = (turn: number) => Array.from({ length: 64 }, (_, index) => `${turn}/${index}`);
  const turns = Array.from({ length: 200 }, (_, turn): TakenBelow => ({ end: "more", below: below(turn) }));
  const now = started({ a: [...turns, done] });
  now.removed.add(tree, "a");
  for (let round = 0; now.taken.length < 201 * 65 && round < 1_000; round++) await now.still();
  assert.equal(new Set(now.taken).size, 1 + 200 * 64);
});

test("removed directories: what was not answered is taken again after a pause, and others come first", async () => {
  const now = started({ a: [later, later, done] });
  now.removed.add(tree, "a");
  now.removed.add(tree, "b");
  await now.still();
  assert.deepEqual(now.taken, ["a"], "it does not ask again at once");
  await now.clock.pass(250);
  await now.still();
  assert.deepEqual(now.taken, ["a", "b", "a"]);
  await now.clock.pass(60_000);
  await now.still();
  assert.deepEqual(now.taken, ["a", "b", "a", "a"]);
  now.removed.add(tree, "c");
  await now.still();
  assert.equal(now.taken.at(-1), "c", "it goes on when it was done");
});

test("removed directories: one with a row that can't be read is left out, and the others are taken", async () => {
  const now = started({ a: [new Error("damaged")] });
  now.removed.add(tree, "b");
  now.removed.add(tree, "a");
  await now.still();
  assert.deepEqual([now.taken, now.warned], [["b", "a"], ["a"]]);
  now.removed.add(tree, "c");
  await now.still();
  assert.equal(now.taken.at(-1), "c");
});

test("removed directories: nothing is taken after the end", async () => {
  const now = started({ a: [later] });
  now.removed.add(tree, "a");
  await now.still();
  now.removed.end();
  await now.clock.pass(600_000);
  now.removed.add(tree, "b");
  await now.still();
  assert.deepEqual(now.taken, ["a"]);
});
