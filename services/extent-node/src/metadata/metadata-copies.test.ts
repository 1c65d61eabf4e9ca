import assert from "node:assert/strict";
import { test } from "node:test";
import { verifySnapshot } from "@stamp/metadata-store";
import { Cluster } from "../testing/harness.ts";
import { copiesThatStay, type KeptCopy, whyNotKept } from "./copies-kept.ts";
import { metadataCopiesFolder } from "./metadata-copies.ts";

const nameOf = (version: number): string => `${String(version).padStart(16, "0")}.snapshot`;

interface CopyFacts {
  readonly version: number;
  readonly failure: string;
  readonly failures: number;
  readonly path: string;
}

test("metadata copies: every change is kept, what did not change is not written again; failures are told", async () => {
  const cluster = new Cluster(3);
  await cluster.run(async () => {
    const { disk, digest } = cluster.sim.world("en-1");
    const names = (): Promise<string[]> => disk.list(metadataCopiesFolder);
    const told = (): { readonly late: readonly string[]; readonly facts: CopyFacts } => {
      const { waitingFor = [], facts = {} } = cluster.sim.role("en-1")?.status ?? {};
      return { late: waitingFor, facts: facts.metadataCopy as CopyFacts };
    };
    await cluster.sim.sleep(200_000);
    assert.deepEqual(await names(), [], "the lock service does not answer");
    assert.match(told().late[0] ?? "", /a copy of the metadata, for \d+ s: not in this test/);
    assert.ok(told().facts.failures > 2);
    for (let version = 1; version <= 5; version++) {
      cluster.metadataVersion = version;
      cluster.metadataStore.takenAtMs += 100_000;
      await cluster.sim.sleep(100_000);
    }
    // The newest two, and the oldest of the last hour.
    assert.deepEqual(await names(), [1, 4, 5].map(nameOf));
    assert.deepEqual(told().late, []);
    const file = await disk.open(`${metadataCopiesFolder}/${nameOf(5)}`);
    const snapshot = await verifySnapshot(file, digest.crc32c);
    assert.ok(snapshot.ok && snapshot.value.version === 5 && snapshot.value.count === 1);
  });
});

test("metadata copies: a node stops at once while the lock service does not serve or still takes the snapshot", async () => {
  const cluster = new Cluster(3);
  await cluster.run(async () => {
    cluster.metadataRefusal = "throttled";
    await cluster.sim.sleep(100_000);
    const stoppedMs = cluster.sim.nowMs;
    await cluster.sim.role("en-1")?.stop();
    assert.ok(cluster.sim.nowMs - stoppedMs < 5_000, `${cluster.sim.nowMs - stoppedMs} ms of virtual time`);
    assert.deepEqual(await cluster.sim.world("en-1").disk.list(metadataCopiesFolder), []);
  });
});

test("metadata copies: a store that went back, or is another stamp's, displaces nothing and is told", async () => {
  const cluster = new Cluster(3);
  await cluster.run(async () => {
    const { disk } = cluster.sim.world("en-1");
    const facts = (): CopyFacts => cluster.sim.role("en-1")?.status.facts.metadataCopy as CopyFacts;
    cluster.metadataVersion = 500;
    await cluster.sim.sleep(100_000);
    const before = await disk.list(metadataCopiesFolder);
    assert.deepEqual(before, [nameOf(500)]);
    for (const [version, lineage, stampId] of [
      [7, "first", undefined],
      [8, "second", undefined],
      [900, "first", "another"],
    ] as const) {
      cluster.metadataVersion = version;
      cluster.metadataStore = { takenAtMs: 9, lineage, ...(stampId === undefined ? {} : { stampId }) };
      await cluster.sim.sleep(200_000);
      assert.deepEqual(await disk.list(metadataCopiesFolder), before);
      assert.match(facts().failure, stampId === undefined ? /a copy here is at 500: the store was put back/ : /is that of stamp another/);
    }
  });
});

test("metadata copies: a node that starts while the lock service has lost its store tells its newest copy, with the path", async () => {
  const cluster = new Cluster(3);
  await cluster.run(async () => {
    cluster.metadataVersion = 500;
    await cluster.sim.sleep(100_000);
    cluster.stamp = undefined;
    cluster.sim.crash("en-1", { unsynced: "lost", stayDown: true });
    cluster.sim.restart("en-1");
    await cluster.sim.sleep(30_000);
    const { ready, facts = {} } = cluster.sim.role("en-1")?.status ?? {};
    const { version, path } = facts.metadataCopy as CopyFacts;
    assert.deepEqual([ready, version], [false, 500]);
    assert.ok(path.endsWith(`/files/metadata-copies/${nameOf(500)}`), path);
  });
});

test("metadata copies: beside the newest two there is always one of the last two hours and, later, one of the last two days", () => {
  let kept: KeptCopy[] = [];
  const minutes = 60_000;
  for (let version = 1; version <= 6 * 24 * 60; version++) {
    kept.push({ name: String(version), version, takenAtMs: version * minutes, lineage: "a" });
    const stay = copiesThatStay(kept);
    kept = kept.filter(({ name }) => stay.has(name));
    const ages = kept.map((copy) => (version - copy.version) / 60);
    assert.ok(kept.length <= 6, `${kept.length} at ${version}`);
    assert.ok(ages.includes(0) && (version < 2 || ages.some((age) => age > 0 && age < 0.02)), "the newest two");
    if (version > 2 * 60 + 1)
      assert.ok(
        ages.some((age) => age >= 1 && age <= 2.1),
        `an hour: ${ages}`,
      );
    if (version > 2 * 24 * 60 + 1)
      assert.ok(
        ages.some((age) => age >= 24 && age <= 48.1),
        `a day: ${ages}`,
      );
  }
});

test("metadata copies: a restored store leaves the newest of those before it; a copy of format 1 belongs to what follows", () => {
  const copy = (version: number, lineage: string): KeptCopy => ({ name: String(version), version, takenAtMs: version, lineage });
  const kept = [copy(1, "a"), copy(2, "a"), copy(3, "a"), copy(1_000, "b"), copy(1_001, "b"), copy(2_000, "c")];
  assert.deepEqual([...copiesThatStay(kept)].sort(), ["1001", "2000", "3"]);
  assert.deepEqual([...copiesThatStay([copy(1, ""), copy(2, ""), copy(3, ""), copy(4, "a")])].sort(), ["1", "3", "4"]);
  const from = { stampId: "s", lineage: "b", version: 1_000 };
  assert.equal(whyNotKept(from, "s", [copy(3, "a")]), undefined);
  assert.match(whyNotKept({ ...from, version: 2 }, "s", [copy(3, "a")]) ?? "", /put back or lost something/);
});
