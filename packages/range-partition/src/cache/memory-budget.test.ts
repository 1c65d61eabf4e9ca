/** Memory tables of many partitions under one bound. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import fc from "fast-check";
import { MemoryBudget, type RangePartition } from "../index.ts";
import { put, rows, Stamp, write } from "../testing/harness.ts";

test("memory budget: the largest are written out until the rest is within it; who wants to add waits beyond twice as much", async () => {
  const step = fc.record({ member: fc.nat(5), bytes: fc.nat(40), done: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 200 }), async (steps) => {
      const budget = new MemoryBudget(100);
      const members = Array.from({ length: 6 }, () => ({ active: 0, frozen: 0 }));
      const shares = members.map((member) =>
        budget.join(() => {
          assert.ok(member.frozen === 0 && member.active > 0);
          assert.ok(
            members.every(({ active, frozen }) => frozen > 0 || active <= member.active),
            "the largest",
          );
          [member.frozen, member.active] = [member.active, 0];
          tell(members.indexOf(member));
        }),
      );
      const tell = (at: number): void => shares[at]?.set(members[at]?.active ?? 0, members[at]?.frozen ?? 0);
      for (const { member: at, bytes, done } of steps) {
        const member = members[at] as (typeof members)[number];
        if (done) member.frozen = 0;
        else member.active += bytes;
        tell(at);
        const active = members.reduce((sum, one) => sum + one.active, 0);
        const frozen = members.reduce((sum, one) => sum + one.frozen, 0);
        assert.equal(budget.bytes, active + frozen);
        assert.ok(active <= 100 || members.every((one) => one.frozen > 0 || one.active === 0), JSON.stringify(members));
        let waits = true;
        void budget.untilRoom().then(() => {
          waits = false;
        });
        await Promise.resolve();
        assert.equal(waits, active + frozen > 200);
      }
      for (const share of shares) share.close();
      assert.equal(budget.bytes, 0);
    }),
  );
});

test("memory budget: many partitions that are written to without pause stay within it, and lose nothing", async () => {
  const [ranges, bytesMax] = [8, 60_000];
  const memory = new MemoryBudget(bytesMax);
  const stamp = new Stamp(4, { memory, limits: { memoryTableBytesMax: 1_000_000 } });
  await stamp.sim.run(async () => {
    const ids = Array.from({ length: ranges }, (_, i) => `r${i}`);
    const partitions = await Promise.all(ids.map(async (rangeId) => unwrap(await stamp.load(1, "ps", { rangeId }))));
    let most = 0;
    const fill = async (partition: RangePartition, at: number): Promise<void> => {
      for (let i = 0; i < 100; i++) {
        unwrap(await write(partition, "l", [put(`k${i}`, `${at} `.repeat(200))]));
        most = Math.max(most, memory.bytes);
      }
    };
    await Promise.all(partitions.map(fill));
    assert.ok(most > bytesMax / 2 && most < 3 * bytesMax, `${most} bytes`);
    assert.ok(
      partitions.every(({ stats }) => stats.checkpoints > 0),
      "each wrote something out long before its own bound",
    );
    for (const [at, partition] of partitions.entries()) {
      const found = await rows(partition.scan({}));
      assert.equal(found.length, 100);
      assert.ok(found.every(([, value]) => value === `${at} `.repeat(200)));
    }
    for (const partition of partitions) await partition.close();
    assert.equal(memory.bytes, 0, "what is closed holds nothing");
  });
});
