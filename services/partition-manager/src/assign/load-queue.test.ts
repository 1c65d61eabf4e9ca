import assert from "node:assert/strict";
import { test } from "node:test";
import { LoadQueue } from "./load-queue.ts";

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("load queue: the hottest first, so many at a server at once, and no server waits for another", async () => {
  const queue = new LoadQueue(2);
  const order: string[] = [];
  const ends = new Map<string, () => void>();
  const enter = (name: string, server: string, heat: number): void =>
    void queue.enter(server, heat).then((end) => {
      order.push(name);
      ends.set(name, end);
    });
  for (let heat = 0; heat < 6; heat++) enter(`a${heat}`, "a", heat);
  enter("b0", "b", 0);
  await settled();
  assert.deepEqual(order, ["a5", "a4", "b0"]);
  assert.equal(queue.waiting, 4);
  enter("a9", "a", 9);
  await settled();
  assert.equal(order.length, 3, "there is no place");
  ends.get("a4")?.();
  ends.get("a5")?.();
  await settled();
  assert.deepEqual(order.slice(3), ["a9", "a3"]);
  for (const name of ["a9", "a3"]) ends.get(name)?.();
  await settled();
  for (const name of ["a2", "a1"]) ends.get(name)?.();
  await settled();
  assert.deepEqual(order.slice(5), ["a2", "a1", "a0"]);
  assert.equal(queue.waiting, 0);
});

test("load queue: of equals the earlier goes first, also when others come between; nothing is left of a server when all are through", async () => {
  const queue = new LoadQueue(1);
  const order: string[] = [];
  const ends: (() => void)[] = [];
  const enter = (name: string): void =>
    void queue.enter("a", name.startsWith("hot") ? 1 : 0).then((end) => {
      order.push(name);
      ends.push(end);
    });
  for (const name of ["1", "2", "3", "4"]) enter(name);
  await settled();
  for (const name of ["hot 1", "5", "hot 2"]) enter(name);
  for (let left = 7; left > 0; left--) {
    assert.equal(ends.length, 1, "one at a time");
    ends.pop()?.();
    await settled();
  }
  assert.deepEqual(order, ["1", "hot 1", "hot 2", "2", "3", "4", "5"]);
  assert.ok(queue.empty);
});
