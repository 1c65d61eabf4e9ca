/** A restore over folders of three real lock services: from a copy or a survivor, and interrupted before each of its steps. */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { concatBytes, fromUtf8, unwrap, utf8 } from "@stamp/base";
import { LockServiceRole, lockServiceSchema, metadataOffline } from "@stamp/lock-service";
import { LeaseKeeper, MetadataClient } from "@stamp/metadata-store";
import { silentLogger } from "@stamp/ports";
import { nodeWorld } from "@stamp/ports-node";
import { type RestorePlan, restoreStore } from "./restore-store.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-restore-store-"));
const names = ["lock-service-1", "lock-service-2", "lock-service-3"] as const;
/** Folders as they are after a clean stop; a copy of the metadata from before key `late`. */
const kept = join(folder, "kept");
const copy = join(folder, "copy.snapshot");
let addresses: readonly string[] = [];
let work = "";
let count = 0;
/** Stop what a failed test left running. */
const stops = new Set<() => Promise<void>>();

interface Running {
  readonly metadata: MetadataClient;
  write(key: string): Promise<void>;
  stop(): Promise<void>;
}

async function freePort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

const settings = (name: string, at: string, init: boolean) =>
  lockServiceSchema.parse({
    ...{ name, init, metadataStore: "replicated", consensusTickMs: 20, dataDir: join(at, name) },
    listen: addresses[names.indexOf(name as (typeof names)[number])],
    members: names.map((each, i) => `${each}=${addresses[i]}`).join(","),
  });

async function run(at: string, init = false): Promise<Running> {
  const worlds = names.map((name) => nodeWorld({ dataDir: join(at, name), name, logger: silentLogger }));
  const roles = names.map((name, i) => new LockServiceRole(worlds[i] as (typeof worlds)[number], settings(name, at, init)));
  for (const role of roles) await role.start();
  for (let tries = 0; !roles.some((role) => role.status.state === "serving"); tries++) {
    assert.ok(tries < 600, `none serves: ${roles.map((role) => `${role.status.state}: ${role.status.waitingFor.join()}`).join("; ")}`);
    await setTimeout(20);
  }
  const client = nodeWorld({ dataDir: join(folder, "client"), name: "client", logger: silentLogger });
  const metadata = new MetadataClient(client, addresses.join(","));
  const identity = { id: "leader", incarnation: 1, instance: "start", stampId: undefined, bindStamp: async () => {} };
  const lease = { lockService: addresses.join(","), leaseName: "leader", holder: "leader", address: "leader", identity, onLost: () => {} };
  const keeper = new LeaseKeeper(client, lease);
  const fence = { leaseName: "leader", leaseEpoch: await keeper.acquire() };
  const stop = async (): Promise<void> => {
    if (!stops.delete(stop)) return;
    await keeper.release();
    for (const role of roles) await role.stop();
    for (const world of [...worlds, client]) await world.transport.close();
  };
  stops.add(stop);
  return {
    metadata,
    write: async (key) => void unwrap(await metadata.transact({ fence, conditions: [], writes: [{ key, value: utf8(key) }] }, 5_000)),
    stop,
  };
}

before(async () => {
  addresses = await Promise.all(names.map(freePort));
  const running = await run(kept, true);
  await running.write("early");
  const parts: Uint8Array[] = [];
  unwrap(await running.metadata.readSnapshot(async (bytes) => void parts.push(bytes), 5_000));
  writeFileSync(copy, concatBytes(parts));
  await running.write("late");
  await running.stop();
});

after(async () => {
  for (const stop of stops) await stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Makes the folders anew, without those of lost lock services. */
function folders(lost: readonly string[]): RestorePlan {
  work = join(folder, `work-${count++}`);
  for (const name of names) if (!lost.includes(name)) cpSync(join(kept, name), join(work, name), { recursive: true });
  const places = names.map((name) => ({ name, folder: join(work, name) }));
  return { places, first: names[0], members: 3, file: copy, replace: true };
}

/** Keys in the store that the first lock service will begin with, proven complete. */
async function restoredKeys(): Promise<string[]> {
  const world = nodeWorld({ dataDir: join(work, names[0]), name: names[0], logger: silentLogger });
  const { entries } = unwrap(await metadataOffline(world, "", true));
  return entries.map(({ key }) => key).filter((key) => ["early", "late"].includes(key));
}

test("restore, all lock services lost: from the copy; three begin with it, and nothing is aside", async () => {
  const done = await restoreStore(folders(names));
  assert.deepEqual([done.file, done.member, done.aside, done.wentOn], [copy, undefined, [], false]);
  const running = await run(work);
  const [early, late] = unwrap(await running.metadata.get(["early", "late"], 5_000));
  assert.deepEqual([fromUtf8(early?.value ?? utf8("")), late?.version], ["early", 0]);
  await running.write("after");
  await running.stop();
});

test("restore, one survivor that is newer than the copy: its store is restored and kept aside, also where no copy is named", async () => {
  for (const file of [copy, undefined]) {
    const done = await restoreStore({ ...folders(["lock-service-1", "lock-service-2"]), file });
    assert.equal(done.member, "lock-service-3");
    assert.deepEqual(done.aside, [
      join(work, "lock-service-3", readdirSync(join(work, "lock-service-3")).find((name) => name.startsWith("replaced-")) ?? ""),
    ]);
    assert.deepEqual(await restoredKeys(), ["early", "late"]);
  }
  const running = await run(work);
  await running.write("after");
  await running.stop();
});

test("restore, the folder of a lock service named as its source: one that was set aside or taken here from another host", async () => {
  const plan = folders(names);
  const elsewhere = join(work, "elsewhere");
  cpSync(join(kept, "lock-service-2"), elsewhere, { recursive: true });
  await restoreStore({ ...plan, file: elsewhere });
  assert.deepEqual(await restoredKeys(), ["early", "late"]);
  await assert.rejects(restoreStore({ ...plan, file: folder }), /is no folder of a lock service/);
});

test("restore, a majority still holds what is newer than the copy: refused, and nothing is touched", async () => {
  const plan = folders(["lock-service-1"]);
  await assert.rejects(restoreStore(plan), /nothing was changed: 2 of 3 lock services hold the metadata .* Start the stamp: they serve/);
  const running = await run(work);
  assert.notEqual(unwrap(await running.metadata.get(["late"], 5_000))[0]?.version, 0);
  await running.stop();
});

test("restore, a damaged survivor, or one of another stamp: it is set aside, and the copy is restored", async () => {
  const plan = folders(["lock-service-1", "lock-service-2"]);
  const store = join(work, "lock-service-3", "stores", "consensus-1");
  for (const name of readdirSync(store)) if (name.endsWith(".log") || name.endsWith(".ldb")) writeFileSync(join(store, name), "nothing");
  await restoreStore(plan);
  assert.deepEqual(await restoredKeys(), ["early"]);
});

test("restore without --replace: refused if anything is there; without a copy or a survivor: refused", async () => {
  await assert.rejects(restoreStore({ ...folders(["lock-service-1"]), replace: false }), /is there: give --replace/);
  await assert.rejects(restoreStore({ ...folders(names), file: undefined }), /no lock service here holds anything: name a copy/);
  await restoreStore({ ...folders(names), replace: false });
  assert.deepEqual(await restoredKeys(), ["early"]);
});

test("restore, at a host without the first lock service: a store older than the copy is set aside, a newer one is not", async () => {
  const { places, ...plan } = folders([]);
  const [, second] = places as [unknown, (typeof places)[number]];
  await assert.rejects(
    restoreStore({ ...plan, places: [second] }),
    /nothing was changed: lock-service-2 holds transaction \d+.*take .* to the lock service lock-service-1/,
  );
  rmSync(join(second.folder, "stores"), { recursive: true });
  mkdirSync(join(second.folder, "stores", "consensus-1"), { recursive: true });
  const done = await restoreStore({ ...plan, places: [second] });
  assert.deepEqual([done.restoredTo, done.aside.length], [undefined, 1]);
  assert.ok(!existsSync(join(second.folder, "stores", "consensus-1")));
});

test("restore, interrupted before each of its steps: nothing serves half of it, and the next one finishes it without a copy", async () => {
  for (let interruptedAt = 1; ; interruptedAt++) {
    const plan = folders(["lock-service-2"]);
    rmSync(join(work, "lock-service-3", "stores"), { recursive: true });
    let steps = 0;
    let at = "";
    const interrupt = (what: string): void => {
      at = what;
      if (++steps === interruptedAt) throw new Error(`interrupted before ${what}`);
    };
    const whole = await restoreStore(plan, undefined, interrupt).then(
      () => true,
      () => false,
    );
    if (whole) break;
    const begun = existsSync(join(work, "lock-service-1", "files", "metadata-restore"));
    assert.equal(begun, !["build", "note"].includes(at), at);
    if (begun) await assertRefused(join(work, "lock-service-1"));
    const done = await restoreStore(begun ? { ...plan, file: undefined } : plan);
    assert.deepEqual([done.wentOn, done.member], [begun, "lock-service-1"], at);
    assert.deepEqual(await restoredKeys(), ["early", "late"], at);
    const left = readdirSync(join(work, "lock-service-1")).filter((name) => !name.startsWith("replaced-"));
    assert.deepEqual(left.sort(), ["files", "stores"], at);
    assert.equal(done.aside.length, 1, at);
    assert.ok(interruptedAt < 30);
  }
});

/** A lock service of this folder serves nothing, and says why. */
async function assertRefused(dataDir: string): Promise<void> {
  const world = nodeWorld({ dataDir, name: names[0], logger: silentLogger });
  const role = new LockServiceRole(world, { ...settings(names[0], work, true), listen: "127.0.0.1:0", dataDir });
  await role.start();
  assert.match(`${role.status.state}: ${role.status.waitingFor.join()}`, /^damaged: .*a restore was begun and not finished/);
  await role.stop();
  await world.transport.close();
}
