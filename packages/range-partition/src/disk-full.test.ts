import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { nodeNames, put, read, Stamp, write } from "./testing/harness.ts";

const mebibyte = 1 << 20;

test("disk full: a checkpoint that finds no room waits for it; reads go on meanwhile", async () => {
  const stamp = new Stamp(31);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "a", [put("key", "value")]));
    const sizes = nodeNames.map((name) => stamp.sim.disk(name).options);
    for (const name of nodeNames) {
      const disk = stamp.sim.disk(name);
      disk.options = { ...disk.options, totalBytes: disk.usedBytes() + 100 * mebibyte };
    }
    await stamp.sim.sleep(2_000);
    let written = false;
    const checkpoint = partition.checkpoint().then((outcome) => {
      written = true;
      return outcome;
    });
    for (let i = 0; i < 60; i++) {
      await stamp.sim.sleep(1_000);
      assert.equal(await read(partition, "key"), "value");
    }
    assert.equal(written, false);
    for (const [at, name] of nodeNames.entries()) stamp.sim.disk(name).options = sizes[at] as (typeof sizes)[number];
    unwrap(await checkpoint);
    assert.equal(partition.stats.checkpoints, 1);
    unwrap(await write(partition, "a", [put("key", "other")]));
    await partition.close();
  });
});
