import assert from "node:assert/strict";
import { test } from "node:test";
import { EndedError, RoleLife } from "./life.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("life: while it is paused nothing begins and nothing is heard; then all of it, in order", async () => {
  const life = new RoleLife();
  const seen: string[] = [];
  let finish = (): void => {};
  const begun = life.call(() => new Promise<void>((resolve) => (finish = resolve))).then(() => seen.push("first"));
  life.pause();
  finish();
  const later = life.call(async () => void seen.push("second begins")).then(() => seen.push("second"));
  life.deliver(() => seen.push("timer"));
  await turn();
  assert.deepEqual(seen, []);
  life.resume();
  await Promise.all([begun, later]);
  assert.deepEqual(seen, ["second begins", "timer", "first", "second"]);
});

test("life: after its end nothing begins and nothing is heard; only callers outside see that it ended", async () => {
  const life = new RoleLife();
  let heard = 0;
  let begun = 0;
  const never = new Promise<void>(() => {});
  void life.call(() => turn()).then(() => heard++);
  const outside = assert.rejects(
    life.outside(() => never),
    EndedError,
  );
  life.end();
  life.resume();
  void life.call(async () => void begun++);
  life.deliver(() => begun++);
  await Promise.all([
    outside,
    assert.rejects(
      life.outside(() => never),
      EndedError,
    ),
  ]);
  await turn();
  await turn();
  assert.deepEqual([begun, heard], [0, 0]);
});

test("life: a stream that its reader leaves is given back, also before its first step", async () => {
  const life = new RoleLife();
  let left = 0;
  const stream: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({
      next: async () => ({ done: false, value: 1 }),
      return: async () => {
        left++;
        return { done: true, value: undefined };
      },
    }),
  };
  for await (const value of life.each(() => stream)) {
    assert.equal(value, 1);
    break;
  }
  await life
    .eachOutside(() => stream)
    [Symbol.asyncIterator]()
    .return?.();
  assert.equal(left, 2);
});
