/**
 * Bytes of a real node's extent table are flipped, cut off or zeroed, one damage at a time, and each time the node's disk is recovered: every
 * replica is known as it was, from the table or rebuilt. STAMP_EVERY_BYTE=1 takes every byte of every file instead of some.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { allRules, type RuleName, rulesWithout, unwrap } from "@stamp/base";
import { silentLogger, type World } from "@stamp/ports";
import { nodeWorld } from "@stamp/ports-node";
import { Simulation } from "@stamp/virtual-time";
import { ExtentNode } from "@stamp/wire";
import { extentNodeSchema } from "../config.ts";
import { ExtentNodeRole } from "../extent-node.ts";
import { recover } from "../recovery/recovery.ts";
import { loopback, serveLock, stampId, timeoutMs, untilReady } from "../testing/real-harness.ts";
import { DiskQueue } from "./disk-queue.ts";
import { ExtentFiles } from "./extent-files.ts";
import { JournalBegun, readIdentity } from "./node-disk.ts";
import { ExtentTable } from "./table.ts";

interface Damage {
  readonly file: string;
  readonly how: "flip" | "cut" | "zero";
  readonly at: number;
}

/** Each damage is done to a copy, and none has to survive. */
const inMemory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const every = process.env.STAMP_EVERY_BYTE === "1";

/** Sealed, deleted and open extents, most of their records in journal segments that were released; started twice. */
async function makeNode(folder: string): Promise<void> {
  const tester = nodeWorld({ dataDir: join(folder, "tester"), name: "tester", logger: silentLogger });
  const lock = await serveLock(tester);
  for (let start = 0; start < 2; start++) {
    const world = nodeWorld({ dataDir: join(folder, "en-1"), name: "en-1", logger: silentLogger });
    const settings = { name: "en-1", listen: loopback, lockService: lock.address, reserveBytes: 0, highWaterPercent: 100 };
    const sizes = { journalSegmentBytes: 1 << 20, journalSegmentsMax: 2, appendBytesMax: 700_000, inPlaceBehindBytes: 1 << 30 };
    const role = new ExtentNodeRole(world, extentNodeSchema.parse({ ...settings, ...sizes, appendTimeoutMs: timeoutMs }));
    await role.start();
    await untilReady(role);
    const node = tester.transport.client(role.address, ExtentNode);
    const diskId = String(role.status.facts.diskId);
    const replicas = [{ nodeId: "en-1", address: role.address, diskId }];
    const create = async (id: number): Promise<void> => {
      const asked = { smTerm: 1n, extentId: BigInt(id), ownerEpoch: 1n, version: 1n, replicas, stampId };
      unwrap(await node.createExtent(asked, { timeoutMs }));
    };
    const append = async (id: number, size: number, expected = 0n): Promise<bigint> => {
      const payload = [new Uint8Array(size).fill(id)];
      const asked = { extentId: BigInt(id), ownerEpoch: 1n, expectedOffsetBytes: expected, payload };
      return unwrap(await node.append(asked, { timeoutMs })).endBytes;
    };
    for (let i = 0; i < 3; i++) {
      const id = 1 + start * 10 + i * 3;
      for (const each of [id, id + 1, id + 2]) await create(each);
      const sealedLengthBytes = await append(id, 500_000, await append(id, 5_000));
      unwrap(await node.sealExtent({ smTerm: 1n, extentId: BigInt(id), sealedLengthBytes, version: 2n, diskId }, { timeoutMs }));
      await append(id + 1, 400_000, await append(id + 1, 10_000));
      await append(id + 2, 3_000);
      const fence = { smTerm: 1n, extentId: BigInt(id + 2), version: 1n, diskId };
      unwrap(await node.fenceExtent(fence, { timeoutMs }));
      unwrap(await node.deleteExtent({ smTerm: 1n, extentId: BigInt(id + 2), version: 2n }, { timeoutMs }));
    }
    await role.stop();
    await world.transport.close();
  }
  await lock.close(0);
  await tester.transport.close();
}

interface Known {
  readonly replicas: readonly string[];
  readonly rebuilt: boolean;
}

/** Returns what the node knows after a start on this disk. */
async function recovered(folder: string, rulesOff: readonly RuleName[]): Promise<Known> {
  const rules = rulesOff.length === 0 ? allRules : rulesWithout(...rulesOff);
  const world: World = nodeWorld({ dataDir: folder, name: "en-1", logger: silentLogger, rules });
  const identity = unwrap(await readIdentity(world, "en-1"));
  assert.ok(identity !== undefined);
  const { table, complete } = await ExtentTable.open(world, identity.diskId);
  const begun = await JournalBegun.open(world);
  const files = new ExtentFiles(world, new DiskQueue(world), 64, identity);
  try {
    const parts = { world, journalDisk: world.disk, files, table, tableComplete: complete, identity, begun: begun.generation };
    const { replicas, rebuilt } = unwrap(await recover({ ...parts, acceptJournalLoss: false }));
    const told = [...replicas.values()].map(({ meta }) => {
      const { appliedLsn: _, committedBytes: __, ...rest } = meta;
      return JSON.stringify(rest);
    });
    return { replicas: told.sort(), rebuilt };
  } finally {
    await begun.close();
    await files.closeAll();
    await table.close();
    await world.transport.close();
  }
}

function hurt(folder: string, { file, how, at }: Damage): void {
  const path = join(folder, file);
  const bytes = readFileSync(path);
  if (how === "flip") bytes[at] = (bytes[at] as number) ^ (1 << (at % 8));
  if (how === "zero") bytes.fill(0, at, Math.min(bytes.length, at + 512));
  writeFileSync(path, how === "cut" ? bytes.subarray(0, at) : bytes);
}

async function after(good: string, damage: Damage | undefined, rulesOff: readonly RuleName[] = []): Promise<Known> {
  const folder = mkdtempSync(join(inMemory, "stamp-table-"));
  try {
    cpSync(good, folder, { recursive: true });
    if (damage !== undefined) hurt(folder, damage);
    return await recovered(folder, rulesOff);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function damagesOf(folder: string): Damage[] {
  const files = readdirSync(join(folder, "stores/extents")).map((name) => `stores/extents/${name}`);
  return [...files, "files/extents-mark"].flatMap((file) => {
    const size = statSync(join(folder, file)).size;
    const step = every ? 1 : Math.max(1, Math.floor(size / (file.endsWith(".log") ? 6 : 2)));
    const found: Damage[] = [];
    for (let at = 0; at < size; at += step) for (const how of ["flip", "cut", "zero"] as const) found.push({ file, how, at });
    if (size > 0) found.push({ file, how: "flip", at: size - 1 }, { file, how: "cut", at: size - 1 });
    return found;
  });
}

test("extent table: whatever byte of its store or mark is damaged, each replica is known as before, or the table is rebuilt", async (t) => {
  const folder = mkdtempSync(join(inMemory, "stamp-table-good-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  await makeNode(folder);
  const good = join(folder, "en-1");
  const whole = await after(good, undefined);
  assert.equal(whole.rebuilt, false);
  assert.equal(whole.replicas.length, 12);
  const damages = damagesOf(good);
  let rebuilt = 0;
  for (const damage of damages) {
    const known = await after(good, damage);
    assert.deepEqual(known.replicas, whole.replicas, JSON.stringify(damage));
    if (known.rebuilt) rebuilt += 1;
  }
  t.diagnostic(`${damages.length} damages, ${rebuilt} rebuilt`);
  assert.ok(rebuilt > 0 && rebuilt < damages.length);
  // Without the rule, an older table passes for the newest one.
  let wrong = 0;
  for (const damage of damages.filter(({ file, how }) => file.endsWith(".log") && how === "cut")) {
    const known = await after(good, damage, ["tableNotBehind"]);
    if (!known.rebuilt && known.replicas.join() !== whole.replicas.join()) wrong += 1;
  }
  assert.ok(wrong > 0, "without tableNotBehind nothing is wrong");
});

test("extent table: a table that lacks one sync is rebuilt, and counts on from its mark", async () => {
  const sim = new Simulation({ seed: 1 });
  await sim.run(async () => {
    const world = sim.world("p");
    const open = async (): Promise<string | undefined> => {
      const { complete, table, why } = await ExtentTable.open(world, "disk");
      for (let i = 0; i < 2; i++) await table.markComplete();
      await table.close();
      return complete ? undefined : why;
    };
    assert.match((await open()) ?? "complete", /it is absent/);
    assert.equal(await open(), undefined);
    sim.keyValue("p").forgetEnd("extents", 1);
    assert.equal(await open(), "its last sync is 3, but sync 4 was done: it has lost its end");
    assert.equal(await open(), undefined);
    sim.keyValue("p").forgetEnd("extents", 1);
    assert.match((await open()) ?? "complete", /its last sync is 7, but sync 8 was done/);
  });
});
