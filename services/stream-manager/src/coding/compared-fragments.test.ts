import assert from "node:assert/strict";
import { test } from "node:test";
import { neededLevels, ok, type RuleName, unknownOutcome, unwrap } from "@stamp/base";
import { fragmentBytesOf, fragmentChunkBytes } from "@stamp/extent";
import type { Client, Transport } from "@stamp/ports";
import { ExtentFragments } from "@stamp/wire";
import {
  clusterOf,
  code,
  config,
  contentOf,
  fragments,
  infoOf,
  isCoded,
  names,
  type Sealed,
  sealed,
  timeoutMs,
} from "../testing/coding-harness.ts";
import { setLevel, stampOfBefore } from "../testing/stamp-of-before.ts";
import { AttemptSteps } from "./attempt-steps.ts";
import { HeldFragments } from "./held-fragments.ts";

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
const codedBefore = (
  seed: number,
  work: (cluster: Cluster, extent: Sealed) => Promise<void>,
  without: readonly RuleName[] = [],
): Promise<void> =>
  stampOfBefore(
    seed,
    async (cluster) => {
      const extent = await sealed(cluster);
      unwrap(await setLevel(cluster, neededLevels.fragmentChecksums - 1));
      unwrap(await code(cluster, extent.id));
      await cluster.until("coded", () => isCoded(cluster, extent.id), 60_000);
      assert.ok((await recordedOf(cluster, extent))?.every((checksum) => checksum === undefined));
      await work(cluster, extent);
    },
    without,
  );

/** The same, by a release that compared nothing. */
async function remadeWrong(cluster: Cluster, extent: Sealed, index: number): Promise<void> {
  const { verify } = AttemptSteps.prototype;
  AttemptSteps.prototype.verify = async () => ok(undefined);
  await remadeWithFlippedBit(cluster, extent, index).finally(() => {
    AttemptSteps.prototype.verify = verify;
  });
}

/** True if no attempt is under way and the node of this fragment serves it as the one that is recorded. */
async function isThere(cluster: Cluster, extent: Sealed, index: number): Promise<boolean> {
  const info = await infoOf(cluster, extent.id);
  const place = info?.coded?.fragments[index];
  if (info === undefined || place === undefined || info.attempt !== "") return false;
  const recorded = {
    ...(info.checksum !== undefined && { checksum: info.checksum }),
    ...(place.checksum !== undefined && { fragmentChecksum: place.checksum }),
  };
  const request = { extentId: extent.id, version: place.version, index, offsetBytes: 0n, lengthBytes: 1, ...recorded };
  return (await fragments(cluster, place.address).readFragment(request, { timeoutMs })).ok;
}

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
      await remadeWrong(cluster, extent, wrong);
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
        async () => (await isThere(cluster, extent, wrong)) && (await versionOf(cluster, extent, wrong)) !== made,
        60_000,
      );
      assert.deepEqual(await contentOf(cluster, extent), extent.content);
    });
  }
});

/** A leader dies when it has recorded the checksums of fragments of which one is wrong. `work` goes on after 60 s of the next leader. */
async function recordedByTheDead(without: readonly RuleName[], work: (cluster: Cluster, extent: Sealed) => Promise<void>): Promise<void> {
  const attack = async (cluster: Cluster, extent: Sealed): Promise<void> => {
    await remadeWrong(cluster, extent, 5);
    const { missing } = HeldFragments.prototype;
    const died = Promise.withResolvers<void>();
    // It comes no further than to the record.
    HeldFragments.prototype.missing = () => died.resolve();
    try {
      unwrap(await setLevel(cluster, neededLevels.fragmentChecksums));
      await died.promise;
      for (const name of ["sm1", "sm2"]) cluster.sim.crash(name, { stayDown: true });
    } finally {
      HeldFragments.prototype.missing = missing;
    }
    for (const name of ["sm1", "sm2"]) cluster.sim.restart(name);
    // Nobody reads meanwhile: a read that names the checksum would make its node report it.
    await cluster.sim.sleep(60_000);
    await work(cluster, extent);
  };
  await codedBefore(175, attack, without);
}

test("coding: a leader that dies when it has recorded the checksums leaves a wrong fragment that the next one makes anew", async () => {
  await recordedByTheDead([], async (cluster, extent) => {
    assert.ok(await isThere(cluster, extent, 5), "the wrong fragment is made anew");
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    await cluster.until(
      "the wrong file is deleted",
      async () =>
        names.every(
          (name) =>
            cluster.sim
              .disk(name)
              .paths()
              .filter((path) => path.endsWith(".fragment")).length <= 1,
        ),
      120_000,
    );
  });
});

test("coding: with the rule wrongFragmentGivenUp off, the next leader takes the wrong fragment for intact", async () => {
  await recordedByTheDead(["wrongFragmentGivenUp"], async (cluster, extent) => assert.ok(!(await isThere(cluster, extent, 5))));
});

/** The node that verifies first computes the checksum of the first coding fragment of bytes with a flipped bit, and compares them as they were. */
function flipsChecksum(cluster: Cluster, extent: Sealed, isVerifying: () => boolean): { count: number } {
  const flips = { count: 0 };
  const lanes = new Set<number>();
  let flipped: { readonly node: string; readonly bytes: Uint8Array } | undefined;
  const flip = (bytes: Uint8Array): void => {
    bytes[0] = (bytes[0] as number) ^ 4;
  };
  cluster.inMemory = (node, bytes) => {
    if (flipped?.node === node) {
      flip(flipped.bytes);
      flipped = undefined;
    }
    // Lanes of the kernel lie in one memory.
    const isLane = bytes.length === fragmentBytesOf(extent.content.length, 4) && bytes.buffer.byteLength > 6 * bytes.length;
    if (flips.count > 0 || !isLane || !isVerifying()) return;
    lanes.add(bytes.byteOffset);
    if (lanes.size < 5) return;
    flips.count += 1;
    flip(bytes);
    flipped = { node, bytes };
  };
  return flips;
}

test("coding: the checksums of an older extent are recorded if two nodes find the same", async () => {
  const attack = async (cluster: Cluster, extent: Sealed): Promise<void> => {
    const flips = flipsChecksum(cluster, extent, () => true);
    unwrap(await setLevel(cluster, neededLevels.fragmentChecksums));
    const isRecorded = async (): Promise<boolean> => (await recordedOf(cluster, extent))?.every((each) => each !== undefined) === true;
    // An extent that could not be compared is left alone for an hour.
    await cluster.until("recorded", isRecorded, 4_000_000);
    assert.equal(flips.count, 1);
    for (let index = 0; index < 6; index++)
      await cluster.until(`fragment ${index} is the one that is recorded`, () => isThere(cluster, extent, index), 60_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  };
  await codedBefore(177, attack);
  await assert.rejects(codedBefore(177, attack, ["checksumsAgreed"]), /fragment 4 is the one that is recorded/);
});

test("coding: where the answer of the maker is lost, two nodes say which checksums the fragments have before they are recorded", async () => {
  const cluster = clusterOf(176, []);
  await cluster.sim.run(async () => {
    let [made, verified] = [0, 0];
    cluster.addManager("sm1", config, (world) => {
      const { transport } = world;
      const client: Transport["client"] = (address, service) => {
        const real = transport.client(address, service);
        if (service.typeName !== ExtentFragments.typeName) return real;
        const { makeFragments, verifyFragments } = real as unknown as Client<typeof ExtentFragments>;
        const withLostAnswer: Partial<Client<typeof ExtentFragments>> = {
          makeFragments: async (...given) => {
            const answer = await makeFragments(...given);
            made += 1;
            return made === 1 ? unknownOutcome("unavailable", "connectionLost", "the answer was lost") : answer;
          },
          verifyFragments: (...given) => {
            verified += 1;
            return verifyFragments(...given);
          },
        };
        return new Proxy(real, { get: (of, name) => Reflect.get(withLostAnswer, name) ?? Reflect.get(of, name) });
      };
      return { ...world, transport: { client, serve: (...given) => transport.serve(...given), close: () => transport.close() } };
    });
    const extent = await sealed(cluster, "/s0");
    const flips = flipsChecksum(cluster, extent, () => verified === 1);
    unwrap(await code(cluster, extent.id));
    await cluster.until("the attempt is over", async () => flips.count > 0 && (await infoOf(cluster, extent.id))?.attempt === "", 60_000);
    if (!(await isCoded(cluster, extent.id))) unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id), 60_000);
    assert.deepEqual([made > 1, flips.count], [true, 1]);
    for (let index = 0; index < 6; index++)
      await cluster.until(`fragment ${index} is the one that is recorded`, () => isThere(cluster, extent, index), 60_000);
  });
});
