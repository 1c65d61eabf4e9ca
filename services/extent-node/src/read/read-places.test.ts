import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, unwrap } from "@stamp/base";
import { Cluster, pattern, reasonOf } from "../testing/harness.ts";

const timeoutMs = 5_000;

interface Asked {
  readonly offset: bigint;
  readonly length: number;
}

const readPlaces = (cluster: Cluster, name: string, id: number, places: readonly Asked[]) =>
  cluster.node(name).readPlaces(
    {
      extentId: BigInt(id),
      offsetsBytes: places.map(({ offset }) => offset),
      lengthsBytes: places.map(({ length }) => length),
    },
    { timeoutMs },
  );

test("read places: small, large, partial, repeated and unordered places give what single reads give, from every replica", async () => {
  const cluster = new Cluster(81, { config: { journalSegmentBytes: 1 << 22, appendBytesMax: 1 << 20 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const sizes = [1, 100, 65_536, 65_537, 17, 900_000, 300_000, 5];
    let end = 0;
    const places: Asked[] = [];
    for (const [i, size] of sizes.entries()) {
      const answer = unwrap(await cluster.append("en-1", id, end, [pattern(size, i)]));
      end = Number(answer.endBytes);
      places.push({ offset: answer.offsetsBytes[0] as bigint, length: size });
    }
    const [one, hundred, , large, small, , far, last] = places as [Asked, Asked, Asked, Asked, Asked, Asked, Asked, Asked];
    const part = { offset: large.offset + 60_000n, length: 5_537 };
    const farPart = { offset: far.offset + 70_000n, length: 100_000 };
    for (const asked of [
      [hundred, one, small, hundred],
      [part, large, part],
      // Further apart than one read of the disk reaches.
      [last, one, farPart, small],
    ]) {
      const expected: Uint8Array[] = [];
      for (const { offset, length } of asked) expected.push(unwrap(await cluster.read("en-2", id, offset, length)).payload);
      for (const name of ["en-1", "en-2", "en-3"]) {
        assert.deepEqual(unwrap(await readPlaces(cluster, name, id, asked)).payload, concatBytes(expected));
      }
    }
  });
});

test("read places: no places, too many, too many bytes, a place outside of a block or beyond the end are refused", async () => {
  const cluster = new Cluster(82);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const answer = unwrap(await cluster.append("en-1", id, 0, [pattern(10, 1), pattern(500_000, 2)]));
    const [small, large] = answer.offsetsBytes as [bigint, bigint];
    const good = { offset: small, length: 10 };
    const reason = async (asked: readonly Asked[]) => reasonOf(await readPlaces(cluster, "en-2", id, asked));
    assert.equal(await reason(Array.from({ length: 1_024 }, () => good)), "ok");
    assert.equal(await reason(Array.from({ length: 1_025 }, () => good)), "badRequest");
    assert.equal(await reason([]), "badRequest");
    assert.equal(await reason([good, { offset: small, length: 0 }]), "badRequest");
    assert.equal(await reason(Array.from({ length: 9 }, () => ({ offset: large, length: 500_000 }))), "badRequest");
    assert.equal(await reason([good, { offset: small, length: 11 }]), "badPlace");
    assert.equal(await reason([good, { offset: small - 1n, length: 5 }]), "badPlace");
    assert.equal(await reason([good, { offset: large + 499_999n, length: 2 }]), "outOfRange");
    const uneven = { extentId: BigInt(id), offsetsBytes: [small, small], lengthsBytes: [10] };
    assert.equal(reasonOf(await cluster.node("en-2").readPlaces(uneven, { timeoutMs })), "badRequest");
  });
});

for (const [rule, expected] of [
  [[], "damaged"],
  [["checksumBeforeServing"], "ok"],
] as const) {
  test(`read places: a block that rotted is ${expected === "ok" ? "served without" : "found with"} the rule checksumBeforeServing`, async () => {
    const cluster = new Cluster(83, { off: [...rule] });
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create(["en-1"]);
      const answer = unwrap(await cluster.append("en-1", id, 0, [pattern(100, 1), pattern(1_000, 2), pattern(100, 3)]));
      unwrap(await cluster.seal("en-1", id, Number(answer.endBytes)));
      await cluster.sim.sleep(500);
      const disk = cluster.sim.disk("en-1");
      const path = disk.paths().find((each) => each.endsWith(".extent")) ?? "";
      disk.corrupt(path, 8192 + Number(answer.offsetsBytes[1]) + 7);
      const [first, second, third] = answer.offsetsBytes as [bigint, bigint, bigint];
      // The block between them is read along, and nobody asked for it.
      const around = [first, third].map((offset) => ({ offset, length: 100 }));
      assert.equal(reasonOf(await readPlaces(cluster, "en-1", id, around)), "ok");
      assert.equal(reasonOf(await readPlaces(cluster, "en-1", id, [...around, { offset: second, length: 1 }])), expected);
    });
  });
}
