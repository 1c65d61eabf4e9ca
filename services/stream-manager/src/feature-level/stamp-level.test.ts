/**
 * The feature level of a stamp of the release before: nothing of the next level is written before it is recorded; it is recorded only if every
 * process is known to read it; afterwards it holds for ever, and a folder that a process has used under it is refused by the release before.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { featureLevel, release, unwrap, utf8 } from "@stamp/base";
import { decodeLevel, encodeLevel, levelKey } from "@stamp/metadata-store";
import { decodeFormatMarker, formatMarkerFile } from "@stamp/ports";
import { FeatureLevels } from "@stamp/wire";
import { Cluster } from "../testing/cluster.ts";
import { code, infoOf, isCoded, sealed } from "../testing/coding-harness.ts";
import { setLevel, stampOfBefore } from "../testing/stamp-of-before.ts";

const levelOf = async (cluster: Cluster) => {
  const { transport } = cluster.sim.world("owner");
  return unwrap(
    await cluster.calls.call(20_000, (address, left) => transport.client(address, FeatureLevels).getFeatureLevel({}, { timeoutMs: left }), {
      idempotent: true,
    }),
  );
};

/** Returns the processes whose folder's marker names the level. */
async function marked(cluster: Cluster, names: Iterable<string>, level: number): Promise<string[]> {
  const found: string[] = [];
  for (const name of names) {
    const { digest, disk } = cluster.sim.world(name);
    const bytes = await disk.readWhole(formatMarkerFile);
    if (bytes !== undefined && decodeFormatMarker(bytes, digest.crc32c)?.["feature-level"]?.version === level) found.push(name);
  }
  return found;
}

test("feature level: a new stamp begins at the level of its release, every process announces itself, and notes the level in its folder", async () => {
  const cluster = new Cluster({ seed: 401, managers: ["sm1", "sm2"] });
  await cluster.sim.run(async () => {
    await cluster.until("all have announced themselves", async () => (await levelOf(cluster)).processes.length === 6);
    const { level, known, recordedBy, processes, inTheWay } = await levelOf(cluster);
    assert.deepEqual([level, known, recordedBy, inTheWay], [featureLevel, featureLevel, release, []]);
    assert.deepEqual(
      processes.map(({ name }) => name),
      ["en1", "en2", "en3", "en4", "sm1", "sm2"],
    );
    assert.ok(processes.every((each) => each.featureLevel === featureLevel && each.release === release));
    await cluster.until("noted", async () => (await marked(cluster, ["lock", "en1", "sm1", "sm2"], featureLevel)).length === 4);
  });
});

test("feature level: a stamp of the release before has level 0; no extent is coded before the level is recorded, and is afterwards", async () => {
  await stampOfBefore(402, async (cluster) => {
    const extent = await sealed(cluster);
    const before = await levelOf(cluster);
    assert.deepEqual([before.level, before.recordedWallMs, before.recordedBy], [0, 0n, ""]);
    const refusal = await code(cluster, extent.id);
    assert.ok(!refusal.ok && refusal.failure.reason === "conflict");
    assert.match(refusal.failure.message, /need feature level 1, and the stamp has level 0/);
    await cluster.sim.sleep(20_000);
    const all = [...cluster.nodes, "lock", "sm1", "sm2"];
    assert.deepEqual(await marked(cluster, all, 1), [], "the release before can be started on every folder");
    assert.deepEqual((await levelOf(cluster)).inTheWay, []);
    unwrap(await setLevel(cluster, 1));
    unwrap(await setLevel(cluster, 1));
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id), 60_000);
    await cluster.until("noted", async () => (await marked(cluster, all, 1)).length === all.length);
  });
});

test("feature level: with the rule formatsAwaitTheirLevel off, fragments are written that the release before can't read after a way back", async () => {
  await stampOfBefore(
    403,
    async (cluster) => {
      const extent = await sealed(cluster);
      assert.equal((await levelOf(cluster)).level, 0);
      unwrap(await code(cluster, extent.id));
      await cluster.until("coded", () => isCoded(cluster, extent.id), 60_000);
      assert.ok((await infoOf(cluster, extent.id))?.coded !== undefined);
    },
    ["formatsAwaitTheirLevel"],
  );
});

test("feature level: a node that is down, and a process that knows less, are in the way by name; once they are gone the level is recorded", async () => {
  await stampOfBefore(404, async (cluster) => {
    await cluster.until("all have announced themselves", async () => (await levelOf(cluster)).processes.length === 10);
    const announce = (featureLevelOfIt: number, incarnation: bigint) => {
      const { transport } = cluster.sim.world("owner");
      const request = { role: "front-end", name: "fe1", incarnation, release: "0.0.9", versions: { featureLevel: featureLevelOfIt } };
      return cluster.calls.call(20_000, (address, left) => transport.client(address, FeatureLevels).announce(request, { timeoutMs: left }));
    };
    cluster.sim.crash("en8", { unsynced: "lost", silent: false, stayDown: true });
    unwrap(await announce(0, 7n));
    await cluster.until(
      "en8 is not heard any more",
      async () => (await levelOf(cluster)).inTheWay.some((text) => text.startsWith("en8")),
      60_000,
    );
    unwrap(await announce(0, 7n));
    const refusal = await setLevel(cluster, 1);
    assert.ok(!refusal.ok && refusal.failure.reason === "conflict");
    assert.match(refusal.failure.message, /en8 \(extent-node\) is down/);
    assert.match(refusal.failure.message, /fe1 \(front-end, release 0\.0\.9\) knows level 0/);
    assert.equal((await levelOf(cluster)).level, 0);
    unwrap(await announce(featureLevel, 8n));
    unwrap(await announce(0, 7n));
    cluster.sim.restart("en8");
    await cluster.until("nobody is in the way", async () => (await levelOf(cluster)).inTheWay.length === 0, 60_000);
    unwrap(await setLevel(cluster, featureLevel));
    const above = await setLevel(cluster, featureLevel + 1);
    assert.ok(!above.ok && above.failure.reason === "badRequest");
    const back = await setLevel(cluster, 0);
    assert.ok(!back.ok && back.failure.reason === "conflict");
    for (const name of ["lock", "sm1", "sm2"]) cluster.sim.crash(name);
    await cluster.sim.sleep(1_000);
    for (const name of ["lock", "sm1", "sm2"]) cluster.sim.restart(name);
    await cluster.until("a later leader has the level", async () => (await levelOf(cluster)).level === featureLevel, 60_000);
  });
});

test("feature level: a record that is cut, changed, or of another kind is damaged; a level above that of this release is newer", () => {
  const sum = (bytes: Uint8Array): number => bytes.reduce((total, byte) => (total * 31 + byte) >>> 0, 7);
  const record = { level: 1, wallMs: 1_764_072_000_000, release: "0.1.0" };
  const bytes = encodeLevel(record, sum);
  assert.deepEqual(unwrap(decodeLevel(bytes, sum)), record);
  assert.equal(levelKey, "feature-level");
  const golden = new URL("../../../../tests/golden/metadata/v1/feature-level.bin", import.meta.url);
  if (process.env.STAMP_WRITE_GOLDEN && !existsSync(golden)) writeFileSync(golden, bytes);
  assert.deepEqual(new Uint8Array(readFileSync(golden)), bytes);
  for (let i = 0; i < bytes.length; i++) {
    const flipped = bytes.map((byte, at) => (at === i ? byte ^ 1 : byte));
    assert.ok(!decodeLevel(flipped, sum).ok, `byte ${i}`);
    assert.ok(!decodeLevel(bytes.subarray(0, i), sum).ok, `first ${i} bytes`);
  }
  const above = decodeLevel(encodeLevel({ ...record, level: featureLevel + 1, release: "7.3.1" }, sum), sum);
  assert.ok(!above.ok && above.failure.reason === "newerFormat");
  assert.match(above.failure.message, /release 7\.3\.1 wrote it.*Start the release that wrote it/);
  const none = decodeLevel(utf8("no record"), sum);
  assert.ok(!none.ok && none.failure.reason === "damaged");
});
