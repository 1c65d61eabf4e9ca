import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, type Outcome, ok, refused, unwrap } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";
import { aheadMax, OwnerEpochs, ownerEpochKey } from "./owner-epochs.ts";

/** A store of one key; `fail` refuses the next transactions. */
function storeOfOne() {
  const held = { version: 0, value: new Uint8Array() as Uint8Array, transactions: 0, fail: 0, fences: new Set<string>() };
  const store: Pick<MetadataClient, "get" | "transact"> = {
    get: async () => ok([{ key: ownerEpochKey, version: held.version, value: held.value }]),
    transact: async ({ fence, conditions = [], writes = [] }) => {
      held.fences.add(`${fence?.leaseName} ${fence?.leaseEpoch}`);
      await new Promise((resolve) => setImmediate(resolve));
      held.transactions++;
      if (held.fail > 0) {
        held.fail--;
        return refused("unavailable", "notReady", "not now");
      }
      if (conditions[0]?.version !== held.version) return refused("failedPrecondition", "conflict", "another version");
      held.version++;
      held.value = writes[0]?.value ?? held.value;
      return ok([{ key: ownerEpochKey, version: held.version }]) as never;
    },
  };
  return { held, store };
}

test("owner epochs: many who want some at once get different ones, in few transactions", async () => {
  const { held, store } = storeOfOne();
  const epochs = new OwnerEpochs(store, 1);
  const counts = Array.from({ length: 100 }, (_, i) => (i % 3) + 1);
  const minted = await Promise.all(counts.map((count) => epochs.mint(count)));
  const given = minted.flatMap((one, i) => Array.from({ length: counts[i] ?? 0 }, (_, at) => unwrap(one) + at));
  const total = counts.reduce((sum, count) => sum + count, 0);
  assert.deepEqual(
    given,
    Array.from({ length: total }, (_, i) => i + 1),
  );
  assert.ok(held.transactions <= 2, `${held.transactions} transactions`);
  assert.equal(unwrap(await epochs.mint(1)), total + 1);
  assert.equal(fromUtf8(held.value), String(total + 1));
});

test("owner epochs: they are minted under the term: who leads no more is refused by the store", async () => {
  const { held, store } = storeOfOne();
  unwrap(await new OwnerEpochs(store, 7).mint(2));
  assert.deepEqual([...held.fences], ["partition-manager 7"]);
});

test("owner epochs: a transaction that fails fails for those who shared it; later ones are minted again", async () => {
  const { held, store } = storeOfOne();
  const epochs = new OwnerEpochs(store, 1);
  held.fail = 1;
  const failed: Outcome<number>[] = await Promise.all([epochs.mint(1)]);
  assert.ok(failed.every((one) => !one.ok));
  assert.equal(unwrap(await epochs.mint(2)), 1);
  assert.equal(unwrap(await epochs.mint(1)), 3);
});

test("owner epochs: those after a higher one that a stream has are above it, in one step, and never far above the last one", async () => {
  const { held, store } = storeOfOne();
  const epochs = new OwnerEpochs(store, 7);
  assert.equal(unwrap(await epochs.mint(1)), 1);
  epochs.told(200);
  epochs.told(Number.NaN);
  assert.deepEqual([unwrap(await epochs.mint(2)), unwrap(await epochs.mint(1))], [201, 203]);
  epochs.told(Number.MAX_SAFE_INTEGER);
  assert.equal(unwrap(await epochs.mint(1)), 203 + aheadMax + 1);
  assert.equal(fromUtf8(held.value), String(203 + aheadMax + 1));
});
