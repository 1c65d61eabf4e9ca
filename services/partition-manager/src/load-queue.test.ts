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
