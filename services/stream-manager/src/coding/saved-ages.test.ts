/** Ages of extents outlive the leader that saw them; a record that can't be read lets them begin anew. */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { extentId, unwrap } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";
import { codingAgesKey, decodeCodingAges, ExtentAges, encodeCodingAges } from "@stamp/stream";
import type { Term } from "../term/term.ts";
import { clusterOf, infoOf, isCoded, sealed } from "../testing/coding-harness.ts";
import { SavedAges } from "./saved-ages.ts";

const afterSeconds = 240;
const policy = { profile: "auto" as const, afterSeconds, minBytes: 500_000 };

test("ages of extents: under the next leader an extent waits for the rest of the time only", async () => {
  const cluster = clusterOf(211, ["sm1", "sm2"], [], { erasureCoding: policy });
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    const sealedMs = sim.nowMs;
    await sim.sleep(200_000);
    assert.ok(!(await isCoded(cluster, extent.id)));
    const leader = ["sm1", "sm2"].find((name) => sim.role(name)?.status.state === "leader") ?? "";
    sim.crash(leader, { stayDown: true });
    await cluster.until("coded", () => isCoded(cluster, extent.id), 120_000);
    assert.ok(sim.nowMs - sealedMs >= (afterSeconds - 20) * 1_000, "not before its time");
    unwrap(await cluster.sm((sm, timeoutMs) => sm.replicateExtent({ extentId: extent.id }, { timeoutMs })));
    await cluster.until("replicated", async () => (await infoOf(cluster, extent.id))?.intactCopies === 3, 60_000);
    // The extent's age began anew, for later leaders as well. Looks are kept 17 s apart.
    const decodedMs = sim.nowMs;
    await sim.sleep(1_000);
    sim.restart(leader);
    const other = leader === "sm1" ? "sm2" : "sm1";
    sim.crash(other, { stayDown: true });
    await cluster.until("coded again", () => isCoded(cluster, extent.id), 300_000);
    assert.ok(sim.nowMs - decodedMs >= (afterSeconds - 20) * 1_000, `${sim.nowMs - decodedMs} ms after it was decoded`);
  });
});

test("ages of extents: a look that the wall clock puts into the future is left out, and one of long ago makes old", () => {
  const looks = [{ wallMs: 1_000, lastId: 9, young: [4] }];
  const restored = (wallMs: number): ExtentAges => {
    const ages = new ExtentAges(60_000);
    ages.restore(looks, 500, wallMs);
    return ages;
  };
  assert.equal(restored(61_000).isOld(extentId(3), 500), true);
  assert.equal(restored(61_000).isOld(extentId(4), 500), false, "it was not sealed then");
  assert.equal(restored(61_000).isOld(extentId(10), 500), false, "it did not exist then");
  assert.equal(restored(60_000).isOld(extentId(3), 500), false);
  assert.equal(restored(60_000).isOld(extentId(3), 1_500), true);
  assert.equal(restored(999).isOld(extentId(3), 1_000_000), false);
  assert.deepEqual(restored(61_000).saved(1_500, 62_000), looks);
});

const sum = (bytes: Uint8Array): number => bytes.reduce((total, byte) => (total * 31 + byte) >>> 0, 7);

test("ages of extents: the record is written as it always was; damage lets ages begin anew, and too many numbers are left out", () => {
  const looks = [
    { wallMs: 1_764_000_000_000, lastId: 17, young: [16, 17] },
    { wallMs: 1_764_000_257_000, lastId: 20, young: [] },
  ];
  const url = new URL("../../../../tests/golden/metadata/v1/erasure-coding-ages.bin", import.meta.url);
  if (process.env.STAMP_WRITE_GOLDEN && !existsSync(url)) writeFileSync(url, encodeCodingAges(looks, sum));
  const bytes = new Uint8Array(readFileSync(url));
  assert.deepEqual(encodeCodingAges(looks, sum), bytes);
  assert.deepEqual(unwrap(decodeCodingAges(bytes, sum)), looks);
  const warned: string[] = [];
  const world = {
    clock: { monotonicMs: () => 0, wallMs: () => 1_764_000_400_000 },
    digest: { crc32c: sum },
    logger: { warn: (message: string) => warned.push(message) },
  };
  const restore = (stored: Uint8Array): ExtentAges => {
    const ages = new ExtentAges(60_000);
    new SavedAges({ world } as unknown as Term, {} as MetadataClient, stored).restore(ages);
    return ages;
  };
  assert.equal(restore(bytes).isOld(extentId(3), 0), true);
  for (let i = 0; i < bytes.length; i++) assert.equal(restore(bytes.with(i, (bytes[i] as number) ^ 4)).isOld(extentId(3), 0), false);
  assert.equal(warned.length, bytes.length);
  const many = { wallMs: 1, lastId: 9, young: Array.from({ length: 15_000 }, (_, i) => i) };
  assert.equal(unwrap(decodeCodingAges(encodeCodingAges([many, many], sum), sum)).length, 1);
  assert.equal(codingAgesKey, "erasure-coding/ages");
});
