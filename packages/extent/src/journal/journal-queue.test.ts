/** The queue of the journal: held records, records that wait behind them, and records that fail with them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId } from "@stamp/base";
import fc from "fast-check";
import { JournalQueue, type WaitingRecord } from "./journal-queue.ts";
import { journalHeaderBytes } from "./journal-record.ts";

const append = (item: string, extent = 1, bodyBytes = 10): WaitingRecord<string> => ({
  item,
  extentId: extentId(extent),
  bodyBytes,
  append: true,
});
const state = (item: string, extent = 1): WaitingRecord<string> => ({ ...append(item, extent, 0), append: false });
const all = Number.POSITIVE_INFINITY;

test("journal queue: behind a held record its extent waits, others do not", () => {
  const queue = new JournalQueue<string>();
  queue.add(append("a"), false);
  const large = queue.add(append("large"), true);
  queue.add(append("b"), false);
  queue.add(state("fence"), false);
  queue.add(append("other", 2), false);
  assert.deepEqual([queue.bodyBytes, queue.firstNumber, queue.lastNumber, queue.onlyAppends], [40, 1, 5, false]);
  assert.deepEqual(queue.take(all), ["a", "other"]);
  assert.deepEqual([queue.hasReady, queue.isEmpty, queue.firstNumber], [false, false, 2]);
  assert.deepEqual(queue.letGo(large), []);
  assert.deepEqual(queue.take(all), ["large", "b", "fence"]);
  assert.deepEqual([queue.bodyBytes, queue.isEmpty, queue.firstNumber, queue.lastNumber], [0, true, all, 5]);
});

test("journal queue: a batch ends where the next record does not fit, and has at least one", () => {
  const queue = new JournalQueue<string>();
  for (const item of ["a", "b", "c"]) queue.add(append(item, 1, 100), false);
  assert.deepEqual(queue.take(2 * (100 + journalHeaderBytes)), ["a", "b"]);
  assert.deepEqual(queue.take(1), ["c"]);
});

test("journal queue: with a held record that fails the appends of its extent behind it fail; those that are held too, when they are let go", () => {
  const queue = new JournalQueue<string>();
  queue.add(append("before"), false);
  const first = queue.add(append("first"), true);
  queue.add(append("between"), false);
  const second = queue.add(append("second"), true);
  queue.add(state("fence"), false);
  queue.add(append("other", 2), false);
  assert.deepEqual(queue.letGo(first, "no room"), [
    { item: "first", why: "no room" },
    { item: "between", why: "no room" },
  ]);
  assert.deepEqual(queue.take(all), ["before", "other"], "a fence waits for what is on its way");
  assert.deepEqual(queue.letGo(second), [{ item: "second", why: "no room" }]);
  assert.deepEqual(queue.take(all), ["fence"]);
  assert.equal(queue.bodyBytes, 0);
});

test("journal queue: when the disk is full appends fail, and not what is held before it is let go; state records stay", () => {
  const queue = new JournalQueue<string>();
  const large = queue.add(append("large"), true);
  queue.add(append("a"), false);
  queue.add(state("fence"), false);
  assert.deepEqual(queue.failAppends("full"), [{ item: "a", why: "full" }]);
  assert.deepEqual([queue.hasReady, queue.onlyAppends], [false, false]);
  assert.deepEqual(queue.letGo(large), [{ item: "large", why: "full" }]);
  assert.deepEqual(queue.take(all), ["fence"]);
});

test("journal queue, any course: each record is written or fails once, in order within its extent, and none behind a failed append", () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("add" as const), extent: fc.integer({ min: 1, max: 3 }), held: fc.boolean() }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("letGo" as const), which: fc.nat(), fails: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant("take" as const), count: fc.integer({ min: 1, max: 4 }) }) },
    { weight: 1, arbitrary: fc.constant({ do: "full" as const }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const queue = new JournalQueue<number>();
      const extents = new Map<number, number>();
      const held: number[] = [];
      const written = new Set<number>();
      const failed = new Set<number>();
      /** Were there, behind one of their extent, when that failed. */
      const doomed = new Set<number>();
      const ends = (numbers: readonly number[], into: Set<number>): void => {
        for (const number of numbers) {
          assert.ok(!written.has(number) && !failed.has(number) && !held.includes(number), `record ${number}`);
          into.add(number);
          if (into === written) assert.ok(!doomed.has(number), `record ${number} is behind one that failed`);
          else for (const [other, extent] of extents) if (other > number && extent === extents.get(number)) doomed.add(other);
        }
      };
      for (const each of steps) {
        if (each.do === "add") {
          const record = { item: queue.lastNumber + 1, extentId: extentId(each.extent), bodyBytes: 1, append: true };
          const number = queue.add(record, each.held);
          extents.set(number, each.extent);
          if (each.held) held.push(number);
        } else if (each.do === "letGo" && held.length > 0) {
          const [number = 0] = held.splice(each.which % held.length, 1);
          ends(
            queue.letGo(number, each.fails ? "test" : undefined).map(({ item }) => item),
            failed,
          );
        } else if (each.do === "take") {
          const taken = queue.take(each.count * (journalHeaderBytes + 1));
          for (const number of taken) {
            for (const [other, extent] of extents) {
              if (extent === extents.get(number) && other < number)
                assert.ok(written.has(other) || failed.has(other) || taken.includes(other));
            }
          }
          assert.deepEqual(
            taken,
            taken.toSorted((a, b) => a - b),
          );
          ends(taken, written);
        } else if (each.do === "full") {
          ends(
            queue.failAppends("full").map(({ item }) => item),
            failed,
          );
        }
      }
      for (const number of held.splice(0))
        ends(
          queue.letGo(number).map(({ item }) => item),
          failed,
        );
      ends(queue.take(all), written);
      assert.equal(written.size + failed.size, extents.size);
      assert.deepEqual([queue.isEmpty, queue.bodyBytes], [true, 0]);
    }),
  );
});
