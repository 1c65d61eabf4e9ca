import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { Cluster, names, pattern, reasonOf } from "../testing/harness.ts";

/** A sealed extent of blocks of this size, all in extent files. */
async function sealed(cluster: Cluster, blocks: number, bytes: number): Promise<{ id: number; end: number; places: bigint[] }> {
  const id = await cluster.create();
  const places: bigint[] = [];
  let end = 0;
  for (let i = 0; i < blocks; i++) {
    const answer = unwrap(await cluster.append("en-1", id, end, [pattern(bytes, i)]));
    end = Number(answer.endBytes);
    places.push(answer.offsetsBytes[0] as bigint);
  }
  for (const name of names) unwrap(await cluster.seal(name, id, end));
  await cluster.sim.sleep(2_000);
  return { id, end, places };
}

const readWithin = (cluster: Cluster, name: string, id: number, place: bigint, bytes: number, timeoutMs: number) =>
  cluster.node(name).read({ extentId: BigInt(id), offsetBytes: place, lengthBytes: bytes }, { timeoutMs });

test("reads: on a slow disk a read that would miss its deadline is refused at once, so that another replica can be asked", async () => {
  for (const off of [[], ["lateReadsRefused"]] as const) {
    const cluster = new Cluster(41, { off: [...off] });
    await cluster.run(async () => {
      await cluster.allReady();
      const { id, places } = await sealed(cluster, 8, 10_000);
      cluster.sim.disk("en-2").slowFactor = 1_500;
      const place = places[0] as bigint;
      // The first ones show how slow it is.
      for (let i = 0; i < 12; i++) unwrap(await readWithin(cluster, "en-2", id, places[i % 8] as bigint, 10_000, 5_000));
      const startMs = cluster.sim.nowMs;
      const asked = Array.from({ length: 30 }, async () => {
        const outcome = await readWithin(cluster, "en-2", id, place, 10_000, 600);
        return { reason: reasonOf(outcome), tookMs: cluster.sim.nowMs - startMs };
      });
      const answers = await Promise.all(asked);
      const refused = answers.filter((each) => each.reason === "overloaded" && each.tookMs < 100);
      const silent = answers.filter((each) => each.reason === "timeout");
      if (off.length === 0) {
        assert.ok(refused.length >= 15, JSON.stringify(answers));
        assert.ok(answers.some((each) => each.reason === "ok"));
        assert.ok(silent.length <= 5, JSON.stringify(answers));
      } else assert.equal(refused.length, 0);
      cluster.sim.disk("en-2").slowFactor = 1;
      await cluster.sim.sleep(10_000);
      unwrap(await readWithin(cluster, "en-2", id, place, 10_000, 600));
    });
  }
});

test("reads: what its caller cancelled while it waited for a slow disk is never read", async () => {
  const cluster = new Cluster(44, { config: { scrubBytesPerSecond: 0 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const { id, places } = await sealed(cluster, 4, 10_000);
    cluster.sim.disk("en-2").slowFactor = 1_500;
    const stop = new AbortController();
    const request = { extentId: BigInt(id), offsetBytes: places[0] as bigint, lengthBytes: 10_000 };
    const reads = Array.from({ length: 40 }, () => cluster.node("en-2").read(request, { timeoutMs: 20_000, signal: stop.signal }));
    await cluster.sim.sleep(20);
    stop.abort();
    assert.ok((await Promise.all(reads)).every((each) => reasonOf(each) === "cancelled"));
    await cluster.sim.until(() => Number((cluster.facts("en-2").disk as { queued: number }).queued) === 0, 20_000, "the queue is empty");
    assert.ok(Number((cluster.facts("en-2").disk as { cancelled: number }).cancelled) >= 20);
  });
});

test("disk: with a slow disk appends, reads, repair and scrub all come to their turn", async () => {
  const cluster = new Cluster(42, { config: { scrubBytesPerSecond: 1 << 30, scrubPauseMs: 500 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const { id, end, places } = await sealed(cluster, 20, 20_000);
    const fresh = await cluster.create();
    cluster.sim.disk("en-1").slowFactor = 300;
    const passes = Number((cluster.facts("en-1").scrub as { pass: number }).pass);
    const done = { reads: 0, appends: 0, copies: 0 };
    let stop = false;
    const reader = async (): Promise<void> => {
      for (let i = 0; !stop; i++) if ((await readWithin(cluster, "en-1", id, places[i % 20] as bigint, 20_000, 5_000)).ok) done.reads += 1;
    };
    const appender = async (): Promise<void> => {
      let at = 0;
      while (!stop) {
        const outcome = await cluster.append("en-1", fresh, at, [pattern(5_000, 1)]);
        if (!outcome.ok) return;
        at = Number(outcome.value.endBytes);
        done.appends += 1;
      }
    };
    const copier = async (): Promise<void> => {
      while (!stop) {
        const request = { extentId: BigInt(id), offsetBytes: 0n, lengthBytes: Math.min(end, 1 << 20) };
        if ((await cluster.node("en-1").readRaw(request, { timeoutMs: 20_000 })).ok) done.copies += 1;
      }
    };
    const work = [...Array.from({ length: 12 }, reader), appender(), copier()];
    await cluster.sim.sleep(25_000);
    stop = true;
    cluster.sim.disk("en-1").slowFactor = 1;
    await Promise.all(work);
    assert.ok(done.reads > 50 && done.appends >= 2 && done.copies > 5, JSON.stringify(done));
    assert.ok(Number((cluster.facts("en-1").scrub as { pass: number }).pass) > passes, "the scrub went on");
  });
});

test("reads: a part of a large block is verified by the chunks of 64 KiB that it touches, and by no others", async () => {
  const cluster = new Cluster(43, { config: { journalSegmentBytes: 8 << 20, scrubBytesPerSecond: 0 } });
  await cluster.run(async () => {
    await cluster.allReady();
    const { id, places } = await sealed(cluster, 1, 4 * 65_536 + 100);
    const whole = pattern(4 * 65_536 + 100, 0);
    const place = places[0] as bigint;
    const path = cluster.sim
      .disk("en-3")
      .paths()
      .find((each) => each.endsWith(".extent")) as string;
    // One bit of the third chunk.
    cluster.sim.disk("en-3").corrupt(path, 8192 + Number(place) + 2 * 65_536 + 77);
    const part = (from: number, length: number) => readWithin(cluster, "en-3", id, place + BigInt(from), length, 1_000);
    for (const [from, to] of [
      [0, 10],
      [65_530, 2 * 65_536],
      [3 * 65_536, 4 * 65_536 + 100],
      [4 * 65_536 + 99, 4 * 65_536 + 100],
    ] as const) {
      assert.deepEqual(unwrap(await part(from, to - from)).payload, whole.subarray(from, to));
    }
    assert.equal(reasonOf(await part(2 * 65_536 - 1, 2)), "damaged");
    assert.equal(reasonOf(await part(0, 10)), "damaged", "from now on nothing of it");
  });
});

test("repair: a large copy rests while clients use the node, and takes about twice as long as on an idle one", async () => {
  // How long a rest is depends on what the appends take, so single runs differ by a half.
  const ms = { idle: 0, busy: 0 };
  for (const seed of [41, 42, 43]) await copiesBesideAppends(seed, ms);
  const { idle, busy } = ms;
  assert.ok(busy > 1.4 * idle && busy < 4 * idle, `${idle} ms idle, ${busy} ms beside appends`);
});

/** Adds the time of a copy on an idle node, and of one beside appends. */
async function copiesBesideAppends(seed: number, ms: { idle: number; busy: number }): Promise<void> {
  const cluster = new Cluster(seed, { nodes: [...names, "en-4"], config: { journalSegmentBytes: 8 << 20, scrubBytesPerSecond: 0 } });
  await cluster.run(async () => {
    await cluster.allReady();
    cluster.sim.disk("en-4").slowFactor = 20;
    const copyMs = async (id: number, lengthBytes: number): Promise<number> => {
      const startMs = cluster.sim.nowMs;
      const request = {
        smTerm: 1n,
        extentId: BigInt(id),
        sealedLengthBytes: BigInt(lengthBytes),
        version: 3n,
        ownerEpoch: 1n,
        stampId: String(cluster.facts("en-4").stampId),
        diskId: String(cluster.facts("en-4").diskId),
        sources: ["en-1"],
      };
      unwrap(await cluster.node("en-4").copyExtent(request, { timeoutMs: 60_000 }));
      return cluster.sim.nowMs - startMs;
    };
    const large = async (): Promise<{ id: number; end: number }> => {
      const id = await cluster.create();
      let end = 0;
      for (let i = 0; i < 26; i++) end = Number(unwrap(await cluster.append("en-1", id, end, [pattern(800_000, i)])).endBytes);
      for (const name of names) unwrap(await cluster.seal(name, id, end));
      return { id, end };
    };
    const [one, other] = [await large(), await large()];
    const idleMs = await copyMs(one.id, one.end);
    const busy = await cluster.create(["en-4", "en-2", "en-3"]);
    let stop = false;
    const client = (async () => {
      for (let end = 0; !stop; ) {
        end = Number(unwrap(await cluster.append("en-4", busy, end, [pattern(100, 1)])).endBytes);
        // Shorter than a step of the copy, so that each step has an append beside it.
        await cluster.sim.sleep(5);
      }
    })();
    const busyMs = await copyMs(other.id, other.end);
    stop = true;
    await client;
    ms.idle += idleMs;
    ms.busy += busyMs;
  });
}
