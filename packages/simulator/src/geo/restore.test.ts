/** The metadata store of one of two stamps is lost, and put back from its newest copy (docs/guides/metadata.md): what the copy of an account becomes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Rules, rulesWithout, unwrap } from "@stamp/base";
import { LocationServiceRole, locationServiceSchema } from "@stamp/location-service";
import { LockServiceRole, lockServiceSchema, metadataStoreName, restoreMetadata } from "@stamp/lock-service";
import { openSnapshot } from "@stamp/metadata-store";
import type { Clock } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { LocationService } from "@stamp/wire";
import { account, beginPair, OneStamp, until, untilShipped } from "./two-stamps.ts";

const folder = "metadata-copies";
const day = 86_400_000;
const rowCount = 60;
/** Extents that began after the copy of the metadata stay away, as those do that no replica proves: most tests here are about what is lost. */
const losing = rulesWithout("extentsComeBack");

async function newestCopy(sim: Simulation, at: OneStamp): Promise<string> {
  const copies = await sim.world(at.process("extent-node", 1)).disk.list(folder);
  return copies.toSorted().at(-1) ?? assert.fail("no copy of the metadata");
}

/** Stops the stamp, loses the store, puts its newest copy back, and starts the stamp again. `later`: by the clock of the restore. */
async function restore(sim: Simulation, at: OneStamp, laterMs: number): Promise<void> {
  const file = await newestCopy(sim, at);
  for (const name of at.processes) await sim.stop(name);
  const lockService = at.process("lock-service", 1);
  sim.keyValue(lockService).drop(metadataStoreName);
  const offline = sim.offline(lockService);
  const open = await sim.offline(at.process("extent-node", 1)).disk.open(`${folder}/${file}`);
  const snapshot = unwrap(await openSnapshot(open, (bytes, seed) => offline.digest.crc32c(bytes, seed)));
  const { clock } = offline;
  // The simulated clocks begin before 2026.
  const later: Clock = {
    monotonicMs: () => clock.monotonicMs(),
    suspendedMs: () => 0,
    after: (ms, call) => clock.after(ms, call),
    wallMs: () => clock.wallMs() + laterMs,
  };
  unwrap(await restoreMetadata({ ...offline, clock: later }, snapshot));
  for (const name of at.processes) sim.restart(name);
  await until(at, "the stamp is back", async () => at.ready);
}

const rowKey = (i: number): string => `k${i}`;
const textOf = (word: string, i: number): string => `${word} ${i} ${"x".repeat(1_500)}`;

async function write(at: OneStamp, word: string, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) await at.write(`p${i % 3}`, [{ rowKey: rowKey(i), text: textOf(word, i) }]);
}

const seen = async (at: OneStamp): Promise<readonly (string | undefined)[]> => {
  const rows: (string | undefined)[] = [];
  for (let i = 0; i < rowCount; i++) rows.push((await at.read({ partitionKey: `p${i % 3}`, rowKey: rowKey(i) }))?.replace(/x{9,}/, ""));
  return rows;
};

const present = (rows: readonly (string | undefined)[]): number => rows.filter((row) => row !== undefined).length;

/**
 * A pair whose copy has everything, of which the stamp that will be restored has written to extents that its newest metadata copy does not know:
 * a node dies, so each stream goes on in a new extent.
 */
async function inScene(
  seed: number,
  rules: Rules,
  node: (a: OneStamp, b: OneStamp) => string,
  work: (sim: Simulation, a: OneStamp, b: OneStamp) => Promise<void>,
): Promise<void> {
  const sim = new Simulation({ seed, rules });
  await sim.run(async () => {
    const { a, b } = await beginPair(sim, (one) => one.write("p0", [{ rowKey: "first", text: "first" }]));
    await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
    await write(a, "before", 0, 3);
    await untilShipped(a);
    await sim.sleep(65_000);
    sim.crash(node(a, b), { stayDown: false });
    await sim.sleep(300);
    await write(a, "lost", 3, 20);
    await untilShipped(a);
    assert.equal(present(await seen(b)), 20);
    await work(sim, a, b);
  });
}

test("restore: after the primary's metadata are put back the copy becomes what the primary has, and says no Last Sync Time before", async () => {
  await inScene(
    7,
    losing,
    (a) => a.process("extent-node", 2),
    async (sim, a, b) => {
      const timeBefore = (await b.lastSyncMs()) ?? 0;
      await restore(sim, a, 180 * day);
      assert.ok(present(await seen(a)) < 20, "the restore has lost nothing: the case shows nothing");
      await write(a, "after", 10, rowCount);
      let told = 0;
      await until(a, "a Last Sync Time", async () => {
        const [progress, copy] = [await a.progress(), await b.lastSyncMs()];
        // Whatever is said: nothing may be said of a copy that differs.
        if (copy !== undefined && copy > timeBefore) told++;
        if (told > 0) assert.deepEqual(await seen(b), await seen(a));
        return progress?.pendingCommits === 0n && told > 2;
      });
      await write(a, "last", 0, 3);
      await untilShipped(a);
      assert.deepEqual(await seen(b), await seen(a));
    },
  );
});

test("restore: after the secondary's metadata are put back its copy is seeded again, and says no Last Sync Time before", async () => {
  await inScene(
    3,
    losing,
    (_, b) => b.process("extent-node", 2),
    async (sim, a, b) => {
      await restore(sim, b, 180 * day);
      assert.ok(present(await seen(b)) < 20, "the restore has lost nothing: the case shows nothing");
      await until(a, "a Last Sync Time", async () => (await b.lastSyncMs()) !== undefined);
      assert.deepEqual(await seen(b), await seen(a));
      await write(a, "after", 10, rowCount);
      await untilShipped(a);
      assert.deepEqual(await seen(b), await seen(a));
    },
  );
});

test("restore: without the rule logsHaveLineages the copy differs, and nothing says so", async () => {
  // The other rule would find the higher sequences of the copy.
  const rules = rulesWithout("extentsComeBack", "logsHaveLineages", "copiesAreNotAhead");
  await inScene(
    7,
    rules,
    (a) => a.process("extent-node", 2),
    async (sim, a, b) => {
      await restore(sim, a, 180 * day);
      await write(a, "after", 10, rowCount);
      await untilShipped(a);
      assert.notDeepEqual(await seen(b), await seen(a));
    },
  );
  await inScene(
    8,
    rules,
    (_, b) => b.process("extent-node", 2),
    async (sim, a, b) => {
      await restore(sim, b, 180 * day);
      await until(a, "a Last Sync Time", async () => (await b.lastSyncMs()) !== undefined);
      assert.notDeepEqual(await seen(b), await seen(a));
    },
  );
});

test("restore: without the rule knownCheckpointsCount a range that the store forgot a checkpoint of is not loaded again", async () => {
  await inScene(
    3,
    rulesWithout("extentsComeBack", "knownCheckpointsCount"),
    (_, b) => b.process("extent-node", 2),
    async (sim, _, b) => {
      await assert.rejects(restore(sim, b, 180 * day), /the stamp is back/);
    },
  );
});

interface TakenBack {
  readonly sim: Simulation;
  readonly a: OneStamp;
  readonly b: OneStamp;
  /** Begins a copy at a stamp. */
  readonly copyAt: (at: OneStamp) => Promise<void>;
  /** Begins to give the copy up. */
  readonly giveUp: () => Promise<void>;
}

/** Fails the account over from the first to the second of two stamps, and puts the first one's metadata back from a copy of before. */
async function takenBack(rules: Rules, work: (scene: TakenBack) => Promise<void>): Promise<void> {
  const sim = new Simulation({ seed: 7, rules });
  await sim.run(async () => {
    const [a, b] = [new OneStamp(sim, "a", ":1"), new OneStamp(sim, "b", ":1")] as const;
    const [lock, service] = ["lock-service-21", "location-service-21"];
    sim.addProcess(lock, (world) => new LockServiceRole(world, lockServiceSchema.parse({ name: lock, listen: lock, init: true })));
    const times = { askEveryMs: 2_000, accountsEveryMs: 5_000, drainMaxMs: 20_000 };
    const config = locationServiceSchema.parse({ name: service, listen: service, lockService: lock, ...times });
    sim.addProcess(service, (world) => new LocationServiceRole(world, config, () => world.transport));
    while (!a.ready || !b.ready || sim.role(service)?.status.state !== "leader") await sim.sleep(200);
    const location = sim.world("operator").transport.client(service, LocationService);
    const options = { timeoutMs: 10_000 };
    unwrap(await a.accounts.create({ account }, options));
    await write(a, "before", 0, 3);
    for (const { name, lockService, door } of [a, b])
      unwrap(await location.addStamp({ name, location: name, lockService, doors: [door] }, options));
    const idleAt = (stamp: string) =>
      until(a, `primary at ${stamp}`, async () => {
        const held = await location.getAccount({ account }, options);
        return held.ok && held.value.kind === "" && held.value.stamp === stamp && held.value.seeded;
      });
    const copyAt = (at: OneStamp) =>
      until(a, "a copy is begun", async () => (await location.protectAccount({ account, stamp: at.name, location: "" }, options)).ok);
    const giveUp = async (): Promise<void> => void unwrap(await location.unprotectAccount({ account }, options));
    await copyAt(b);
    await idleAt("a");
    await sim.sleep(65_000);
    sim.crash(a.process("extent-node", 2), { stayDown: false });
    await sim.sleep(300);
    await write(a, "before", 3, 10);
    await until(a, "a failover begins", async () => (await location.failOverAccount({ account, stamp: "b" }, options)).ok);
    await idleAt("b");
    assert.notEqual(await a.role(), "primary");
    await restore(sim, a, 180 * day);
    await work({ sim, a, b, copyAt, giveUp });
  });
}

test("restore: a primary that was deposed after the copy of its metadata is deposed again, and can be made a copy anew", async () => {
  await takenBack(losing, async ({ a, b, giveUp, copyAt }) => {
    await until(a, "it is deposed again", async () => (await a.role()) === "unseeded");
    assert.equal(await b.role(), "primary");
    await write(b, "after", 5, rowCount);
    // Its log begins behind its copy: nobody can tell what only this stamp has, and a person gives that up.
    await until(a, "it says so", async () => a.shipping().some(({ failure }) => /geo unprotect/.test(failure)));
    await giveUp();
    await until(a, "it has no part in the account", async () => (await a.role()) === "removed");
    await copyAt(a);
    await until(a, "it is a copy again", async () => (await a.role()) === "secondary");
    await untilShipped(b);
    assert.deepEqual(await seen(a), await seen(b));
  });
});

test("restore: without the rule geoOlderRolesEnd two stamps go on as primaries of one account", async () => {
  await takenBack(rulesWithout("extentsComeBack", "geoOlderRolesEnd"), async ({ sim, a, b }) => {
    await sim.sleep(60_000);
    assert.deepEqual([await a.role(), await b.role()], ["primary", "primary"]);
  });
});

test("restore: extents that began after the newest copy come back, and rows that were written to them are read", async () => {
  await inScene(
    7,
    allRules,
    (a) => a.process("extent-node", 2),
    async (sim, a, b) => {
      await restore(sim, a, 180 * day);
      assert.equal(present(await seen(a)), 20);
      await write(a, "after", 10, rowCount);
      await untilShipped(a);
      assert.deepEqual(await seen(b), await seen(a));
    },
  );
});
