import assert from "node:assert/strict";
import { test } from "node:test";
import { JoinedWork, WorkInTurn } from "./shared-work.ts";

test("joined work: callers of one key share a run, and a failed run is told to all of them and not kept", async () => {
  const joined = new JoinedWork<string, number>();
  let runs = 0;
  const failing = (): Promise<number> => {
    runs += 1;
    return Promise.reject(new Error(`run ${runs}`));
  };
  const both = [joined.run("a", failing), joined.run("a", failing)];
  const other = joined.run("b", () => Promise.resolve(3));
  assert.equal(joined.size, 2);
  for (const each of both) await assert.rejects(each, /run 1/);
  assert.equal(await other, 3);
  assert.equal(joined.size, 0);
  assert.equal(await joined.run("a", () => Promise.resolve(7)), 7);
  await assert.rejects(joined.run("a", failing), /run 2/);
});

test("joined work: a key whose run has ended begins another one, also in the turn in which it ended", async () => {
  const joined = new JoinedWork<string, number>();
  let runs = 0;
  const work = (): Promise<number> => Promise.resolve(++runs);
  const again = joined.run("a", work).then(() => joined.run("a", work));
  assert.equal(await again, 2);
});

test("work in turn: one at a time, in order, and a failure is the caller's alone", async () => {
  const turns = new WorkInTurn();
  const seen: string[] = [];
  const first = turns.run(async () => {
    await Promise.resolve();
    seen.push("first");
    throw new Error("failed");
  });
  const second = turns.run(() => {
    seen.push("second");
    return 2;
  });
  await assert.rejects(first, /failed/);
  assert.equal(await second, 2);
  assert.deepEqual(seen, ["first", "second"]);
});
