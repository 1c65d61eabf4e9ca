/** Rows of an account that was removed from the stamp are deleted page by page, and nothing of an account that has come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError, type RuleName, refused, unwrap, utf8 } from "@stamp/base";
import { tenureOf, tenureOfCopy } from "@stamp/geo";
import {
  applySeed,
  applyShipped,
  hasRowsBetween,
  markerKey,
  type RangePartition,
  type RemovedPage,
  type RemovedRange,
  removePage,
} from "../index.ts";
import { put, rows, Stamp, write } from "../testing/harness.ts";

/** Keys are PartitionName, slash, row. */
const nameOf = (key: Uint8Array): Uint8Array => key.subarray(0, key.indexOf(0x2f) + 1);
const options = { timeoutMs: 10_000 };
const prefix = utf8("p");
const keys = { low: prefix, high: utf8("q") };
const removal = tenureOf({ operation: 3, phase: 5 });

const shipped = (stamp: Stamp, range: RangePartition, name: string, sequence: number, paired: number) =>
  applyShipped(
    stamp.sim.world("door"),
    range,
    { epoch: 1, paired, name: utf8(name), commits: [{ sequence, lastTicket: 1, writes: [put(`${name}a`, `${sequence}`)] }] },
    options,
  );

async function removeAll(stamp: Stamp, range: RangePartition, tenure = removal): Promise<number[]> {
  const pages: number[] = [];
  for (let from: Uint8Array | undefined = keys.low; from !== undefined; ) {
    const page: RemovedPage = unwrap(
      await removePage(stamp.sim.world("server"), range, { ...keys, low: from }, { prefix, tenure, nameOf }),
    );
    pages.push(page.rows);
    from = page.next;
  }
  return pages;
}

const left = async (range: RangePartition) => (await rows(range.scan({ gte: utf8("a"), lt: utf8("z"), hidden: true }))).map(([key]) => key);

test("removal: every row and marker of the account goes, in pages, and those of other accounts stay", async () => {
  const stamp = new Stamp(1);
  await stamp.sim.run(async () => {
    const range = await stamp.open(1);
    for (let i = 0; i < 1_200; i += 300) {
      const some = Array.from({ length: 300 }, (_, j) => put(`p1/${String(i + j).padStart(4, "0")}`, "x"));
      unwrap(await write(range, "p1/", some));
    }
    unwrap(await shipped(stamp, range, "p2/", 4, 2));
    unwrap(await write(range, "o/", [put("o/1", "before")]));
    unwrap(await write(range, "q/", [put("q/1", "behind")]));
    unwrap(await range.fences.raiseTenure(prefix, removal));
    assert.deepEqual(await removeAll(stamp, range), [500, 500, 202]);
    assert.deepEqual(await left(range), ["o/1", "q/1"]);
    assert.deepEqual(await removeAll(stamp, range), [0]);
    // A later owner has the same, and goes on.
    assert.deepEqual(await left(await stamp.open(2)), ["o/1", "q/1"]);
  });
});

for (const without of [[], ["geoRemovalEnds"]] as readonly RuleName[][]) {
  const told =
    without.length === 0
      ? "keeps its rows, also from a later owner that has not heard of it"
      : "loses them without the rule geoRemovalEnds";
  test(`removal: an account that has come back ${told}`, async () => {
    const stamp = new Stamp(2, { without });
    await stamp.sim.run(async () => {
      const first = await stamp.open(1);
      unwrap(await shipped(stamp, first, "p1/", 4, 2));
      unwrap(await first.fences.raiseTenure(prefix, removal));
      unwrap(await first.fences.raiseTenure(prefix, tenureOfCopy(4)));
      const range = await stamp.open(2);
      unwrap(await shipped(stamp, range, "p1/", 5, 4));
      const page = await removePage(stamp.sim.world("server"), range, keys, { prefix, tenure: removal, nameOf });
      assert.equal(page.ok, without.length > 0);
      assert.equal((await left(range)).length, without.length > 0 ? 0 : 2);
    });
  });
}

test("removal: what was shipped to the copy before is refused, also at a later owner, and the next copy is not hindered by what was left", async () => {
  const stamp = new Stamp(3);
  await stamp.sim.run(async () => {
    const range = await stamp.open(1);
    unwrap(await shipped(stamp, range, "p1/", 4, 2));
    unwrap(await range.fences.raiseTenure(prefix, removal));
    await removeAll(stamp, range);
    const next = await stamp.open(2);
    unwrap(await next.fences.raiseTenure(prefix, tenureOfCopy(4)));
    const late = await shipped(stamp, next, "p1/", 5, 2);
    assert.ok(!late.ok && late.failure.reason === "staleRoleEpoch", JSON.stringify(late));
    // The primary wrote nothing since: the part has the same version as the marker that was deleted.
    const part = {
      epoch: 1,
      paired: 4,
      sequence: 4,
      lastTicket: 1,
      low: utf8("p1/"),
      high: utf8("p10"),
      rows: [[utf8("p1/a"), utf8("4")]],
    } as const;
    unwrap(await applySeed(stamp.sim.world("door"), next, part, { ...options, nameOf }));
    assert.equal((await left(next)).length, 2);
    const older = await applySeed(stamp.sim.world("door"), next, { ...part, paired: 2, sequence: 9 }, { ...options, nameOf });
    assert.ok(!older.ok && older.failure.reason === "staleRoleEpoch", JSON.stringify(older));
    assert.ok((await next.get(markerKey(utf8("p1/")))) !== undefined);
  });
});

test("removal: a range that is closed within a page, and rows that can't be read, are refusals and no errors", async () => {
  const stamp = new Stamp(4);
  await stamp.sim.run(async () => {
    const world = stamp.sim.world("server");
    const range = await stamp.open(1);
    unwrap(await write(range, "p1/", [put("p1/a", "x"), put("p1/b", "x"), put("p1/c", "x")]));
    const unreadable: RemovedRange = {
      fences: range.fences,
      scan: async function* (keys) {
        for await (const row of range.scan(keys)) {
          yield row;
          throw new FailureError(refused("dataLoss", "damaged", "three replicas of a block are damaged").failure);
        }
      },
      transact: (locks, decide, how) => range.transact(locks, decide, how),
    };
    const closing: RemovedRange = {
      ...unreadable,
      scan: async function* (keys) {
        for await (const row of range.scan(keys)) {
          yield row;
          await range.close();
        }
      },
    };
    const removed = async (of: RemovedRange) => {
      const page = await removePage(world, of, keys, { prefix, tenure: removal, nameOf });
      return page.ok ? "deleted" : page.failure.reason;
    };
    assert.equal(unwrap(await hasRowsBetween(unreadable, keys.low, keys.high)), true);
    assert.equal(await removed(unreadable), "damaged");
    assert.equal((await left(range)).length, 3);
    assert.equal(await removed(closing), "stopping");
    const closed = await hasRowsBetween(range, keys.low, keys.high);
    assert.equal(closed.ok, false);
    assert.equal((await left(await stamp.open(2))).length, 3);
  });
});
