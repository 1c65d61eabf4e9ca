/** The record names the versions that a loading release must know before any row has them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatVersions, ok, unwrap, utf8 } from "@stamp/base";
import { put, Stamp, write } from "./testing/harness.ts";

const later = formatVersions.row + 1;

test("needs: rows of a later version are recorded, also behind a checkpoint, and a load by a release without it is refused", async () => {
  const stamp = new Stamp(1);
  await stamp.sim.run(async () => {
    const partition = await stamp.open(1);
    unwrap(await write(partition, "l", [put("a", "1")]));
    unwrap(await partition.need("row", formatVersions.row));
    const known = await stamp.open(2);
    unwrap(
      await known.transact(
        utf8("l"),
        async () => {
          assert.deepEqual(await Promise.all([known.need("row", later), known.need("row", formatVersions.row)]), [ok(), ok()]);
          return { writes: [put("b", "later")], result: ok() };
        },
        { timeoutMs: 10_000 },
      ),
    );
    unwrap(await known.checkpoint());
    const refused = await stamp.load(3);
    assert.ok(!refused.ok && refused.failure.reason === "newerFormat", JSON.stringify(refused));
  });
});

test("needs: a partition that is fenced records nothing, and says that nothing happened", async () => {
  const stamp = new Stamp(2);
  await stamp.sim.run(async () => {
    const first = await stamp.open(1);
    await stamp.open(2);
    const refused = await first.need("row", formatVersions.row);
    assert.ok(!refused.ok && refused.failure.applied === "no", JSON.stringify(refused));
  });
});
