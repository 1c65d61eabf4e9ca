import assert from "node:assert/strict";
import { test } from "node:test";
import { neededLevels, ok, type RuleName, unwrap } from "@stamp/base";
import { fragmentChunkBytes } from "@stamp/extent";
import { clusterOf, code, contentOf, infoOf, isCoded, type Sealed, sealed } from "../testing/coding-harness.ts";
import { setLevel, stampOfBefore } from "../testing/stamp-of-before.ts";
import { AttemptSteps } from "./attempt-steps.ts";

type Cluster = ReturnType<typeof clusterOf>;

const versionOf = async (cluster: Cluster, extent: Sealed, index: number) =>
  (await infoOf(cluster, extent.id))?.coded?.fragments[index]?.version;

const recordedOf = async (cluster: Cluster, extent: Sealed) =>
  (await infoOf(cluster, extent.id))?.coded?.fragments.map(({ checksum }) => checksum);

/** Takes the disk of the node that has this fragment, and waits until it was made anew. A bit flips in the memory of the node that makes it. */
async function remadeWithFlippedBit(cluster: Cluster, extent: Sealed, index: number): Promise<void> {
  const { sim } = cluster;
  const before = await infoOf(cluster, extent.id);
  const victim = before?.fragmentNodeIds[index] as string;
  const others = before?.fragmentNodeIds.toSpliced(index, 1);
  let isFlipped = false;
  let last = "";
  // The checksum of a chunk follows that of its name. A node without another fragment computes it first when it writes.
  cluster.inMemory = (node, bytes) => {
    const isChunk = last === `${node} 24` && bytes.length === fragmentChunkBytes;
    last = `${node} ${bytes.length}`;
    if (isFlipped || !isChunk || others?.includes(node)) return;
    isFlipped = true;
    bytes[1_000] = (bytes[1_000] as number) ^ 4;
  };
  sim.crash(victim, { stayDown: true });
  sim.disk(victim).wipe();
  sim.keyValue(victim).wipe();
  sim.restart(victim);
  await cluster.until(
    `fragment ${index} is made anew`,
    async () => {
      const now = await infoOf(cluster, extent.id);
      return now?.attempt === "" && now.coded?.fragments[index]?.version !== before?.coded?.fragments[index]?.version;
    },
    120_000,
  );
  assert.ok(isFlipped);
}

const differs = (a: Uint8Array, b: Uint8Array): number => a.reduce((count, byte, at) => count + Number(byte !== b[at]), 0);

/** One extent is coded, and then two of its fragments are made anew, each with a flipped bit. Returns the number of wrong bytes that nodes serve. */
async function wrongBytes(without: RuleName[]): Promise<number> {
  const cluster = clusterOf(172, ["sm1"], without);
  return cluster.sim.run(async () => {
    const extent = await sealed(cluster, "/s0");
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    const recorded = await recordedOf(cluster, extent);
    assert.ok(recorded?.every((checksum) => checksum !== undefined));
    await remadeWithFlippedBit(cluster, extent, 0);
    await remadeWithFlippedBit(cluster, extent, 1);
    assert.deepEqual(await recordedOf(cluster, extent), recorded);
    return differs(await contentOf(cluster, extent), extent.content);
  });
}

test("coding: a bit that flips in the memory of the node that repairs is found, and neither served nor a source", async () => {
  assert.equal(await wrongBytes([]), 0);
});

test("coding: with the rule fragmentsCompared off, flipped bits are served as intact", async () => {
  assert.ok((await wrongBytes(["fragmentsCompared"])) > 0);
});

/** A stamp at the level of the release before checksums of fragments, with one coded extent. */
const codedBefore = (seed: number, work: (cluster: Cluster, extent: Sealed) => Promise<void>): Promise<void> =>
  stampOfBefore(seed, async (cluster) => {
    const extent = await sealed(cluster);
    unwrap(await setLevel(cluster, neededLevels.fragmentChecksums - 1));
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id), 60_000);
    assert.ok((await recordedOf(cluster, extent))?.every((checksum) => checksum === undefined));
    await work(cluster, extent);
  });

test("coding: without recorded checksums a fragment that was made anew is compared with the others and with the extent's checksum", async () => {
  await codedBefore(173, async (cluster, extent) => {
    await remadeWithFlippedBit(cluster, extent, 0);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    assert.ok(
      (await recordedOf(cluster, extent))?.every((checksum) => checksum === undefined),
      "nothing is recorded below its level",
    );
  });
});

test("coding: at its level the checksums of older extents are recorded, and a fragment that the release before made wrong is found", async () => {
  for (const wrong of [0, 5]) {
    await codedBefore(174, async (cluster, extent) => {
      const { verify } = AttemptSteps.prototype;
      // The release before compared nothing.
      AttemptSteps.prototype.verify = async () => ok(undefined);
      await remadeWithFlippedBit(cluster, extent, wrong).finally(() => {
        AttemptSteps.prototype.verify = verify;
      });
      if (wrong === 0) assert.notDeepEqual(await contentOf(cluster, extent), extent.content);
      const made = await versionOf(cluster, extent, wrong);
      unwrap(await setLevel(cluster, neededLevels.fragmentChecksums));
      await cluster.until(
        "recorded",
        async () => (await recordedOf(cluster, extent))?.every((each) => each !== undefined) === true,
        60_000,
      );
      await cluster.until(
        "the wrong fragment is made anew",
        async () => (await isCoded(cluster, extent.id)) && (await versionOf(cluster, extent, wrong)) !== made,
        60_000,
      );
      assert.deepEqual(await contentOf(cluster, extent), extent.content);
    });
  }
});
