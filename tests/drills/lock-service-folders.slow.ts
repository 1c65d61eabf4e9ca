/**
 * A stamp as `stamp up` makes it loses the folder of a lock service, or gets an older one: every acknowledged blob is there, nobody types a
 * command, and `stamp health` says what happens meanwhile and nothing afterwards. It loses all of them, and an older copy is restored: every blob is
 * there, also in extents that began after the copy.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import { type DrillTarget, startOwn, untilReady } from "@stamp/drills";
import { Status } from "@stamp/wire";

const main = join(import.meta.dirname, "../../packages/cli/src/main.ts");
const folder = mkdtempSync(join(tmpdir(), "stamp-lock-service-folders-"));
const dataDir = join(folder, "data");
const older = join(folder, "older");
const storeOf = (name: string): string => join(dataDir, name);
/** No number of lock services: it is the default that is tried. */
const flags = { dataDir, extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 1 };
let stamp: DrillTarget | undefined;

after(async () => {
  await stamp?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function begin(): Promise<{ readonly target: DrillTarget; readonly container: ContainerClient }> {
  const target = await startOwn(flags, true);
  stamp = target;
  await untilReady(target);
  return { target, container: BlobServiceClient.fromConnectionString(target.connectionString).getContainerClient("con") };
}

async function end(): Promise<void> {
  await stamp?.close();
  stamp = undefined;
}

interface Finding {
  readonly code: string;
  readonly subject: string;
}

/** Returns the JSON that a command of `stamp` prints. */
function told<T>(command: string): Promise<T> {
  return new Promise((resolve) => {
    execFile(process.execPath, [main, command, "--json", "--data", dataDir], { maxBuffer: 1 << 24 }, (_error, out) =>
      resolve(JSON.parse(out)),
    );
  });
}

const health = async (): Promise<readonly Finding[]> => (await told<{ readonly findings: readonly Finding[] }>("health")).findings;
const problems = async (): Promise<readonly unknown[]> => (await told<{ readonly problems: readonly unknown[] }>("fsck")).problems;

/** Asks until the findings about lock services are as wanted. */
async function untilHealth(what: string, wanted: (about: readonly Finding[]) => boolean): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const about = (await health()).filter(({ subject }) => subject.startsWith("lock-service"));
    if (wanted(about)) return;
    await setTimeout(300);
  }
  assert.fail(`${what}: ${JSON.stringify(await health())}`);
}

let written = 0;

async function put(container: ContainerClient, count: number): Promise<void> {
  for (const end = written + count; written < end; written++)
    await container.getBlockBlobClient(`b${written}`).uploadData(Buffer.alloc(200_000, written));
}

async function assertAllThere(container: ContainerClient): Promise<void> {
  for (let i = 0; i < written; i++) {
    const body = await container.getBlockBlobClient(`b${i}`).downloadToBuffer();
    assert.ok(body.equals(Buffer.alloc(200_000, i)), `b${i}`);
  }
}

/** Name of the lock service that leads. */
async function leaderOf(target: DrillTarget): Promise<string> {
  for (let tries = 0; tries < 200; tries++) {
    for (const { name, grpc } of (await target.status()).processes.filter(({ role }) => role === "lock-service")) {
      const answer = await target.transport.client(grpc, Status).getStatus({}, { timeoutMs: 2_000 });
      const facts = answer.ok ? (answer.value.facts as { readonly consensus?: { readonly role?: string } } | undefined) : undefined;
      if (facts?.consensus?.role === "leader") return name;
    }
    await setTimeout(100);
  }
  return assert.fail("no lock service leads");
}

test("a stamp by default has three lock services: the leader's folder is lost under a running stamp, and comes back by itself", {
  timeout: 300_000,
}, async () => {
  const { target, container } = await begin();
  assert.equal((await target.status()).processes.filter(({ role }) => role === "lock-service").length, 3);
  await container.create();
  await put(container, 10);
  const victim = await leaderOf(target);
  await target.ask({ do: "hold", name: victim });
  rmSync(storeOf(victim), { recursive: true });
  await put(container, 10);
  await untilHealth(`${victim} is told`, (about) => about.some(({ code, subject }) => subject === victim && code === "process-down"));
  await target.ask({ do: "start", name: victim });
  await untilReady(target);
  await untilHealth("nothing is told any more", (about) => about.length === 0);
  await put(container, 5);
  await assertAllThere(container);
  assert.deepEqual(await problems(), []);
});

test("a stamp that was stopped gets an older folder of a lock service, and then none: nothing that was acknowledged is lost", {
  timeout: 300_000,
}, async () => {
  await end();
  cpSync(storeOf("lock-service-1"), older, { recursive: true });
  const before = await begin();
  await put(before.container, 30);
  await end();
  assert.deepEqual(await problems(), [], "of a stopped stamp");
  for (const state of ["older", "none"]) {
    rmSync(storeOf("lock-service-1"), { recursive: true });
    if (state === "older") cpSync(older, storeOf("lock-service-1"), { recursive: true });
    assert.deepEqual(await problems(), [], `${state}, stopped: the newest of three stores counts`);
    const { target, container } = await begin();
    await untilReady(target);
    await assertAllThere(container);
    await put(container, 5);
    await untilHealth(`${state}: nothing is told`, (about) => about.length === 0);
    assert.deepEqual(await problems(), [], state);
    await end();
  }
});

/** Runs a command of `stamp` that must succeed. Returns what it prints. */
function run(...words: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [main, ...words, "--data", dataDir], (error, out) => (error === null ? resolve(out) : reject(error)));
  });
}

/** Newest copy of the metadata on the nodes. */
function newestCopy(): string | undefined {
  const copies = globSync(join(dataDir, "extent-node-*/files/metadata-copies/*.snapshot"));
  return copies.toSorted((a, b) => Number.parseInt(basename(a), 10) - Number.parseInt(basename(b), 10)).at(-1);
}

test("a stamp loses all lock services, and an older copy is put back: blobs in extents that began after it are read", {
  timeout: 600_000,
}, async () => {
  const { target, container } = await begin();
  await put(container, 5);
  for (let tries = 0; newestCopy() === undefined && tries < 600; tries++) await setTimeout(200);
  const copy = join(folder, "copy.snapshot");
  cpSync(newestCopy() ?? "", copy);
  // Each node that goes and comes makes every stream go on in extents that the copy does not know.
  for (const node of ["extent-node-1", "extent-node-2", "extent-node-3"]) {
    await target.ask({ do: "hold", name: node });
    await put(container, 10);
    await target.ask({ do: "start", name: node });
    await untilReady(target);
    await put(container, 10);
  }
  await end();
  for (const name of ["lock-service-1", "lock-service-2", "lock-service-3"]) rmSync(storeOf(name), { recursive: true });
  const listed = JSON.parse(await run("metadata", "restore", copy, "--list", "--json")) as { comesBack: unknown[]; lost: unknown[] };
  assert.ok(listed.comesBack.length > 0);
  assert.deepEqual(listed.lost, []);
  await run("metadata", "restore", copy);
  const restored = await begin();
  await assertAllThere(restored.container);
  await put(restored.container, 5);
  await assertAllThere(restored.container);
  const codes = (await health()).map(({ code }) => code);
  for (const code of ["metadata-older", "restore-lost", "range-lossy"]) assert.ok(!codes.includes(code), codes.join(", "));
  // Extents that were made ahead and never opened: nothing says that they were not.
  const kinds = new Set((await problems()).map((problem) => (problem as { readonly kind: string }).kind));
  assert.deepEqual([...kinds], ["unknownExtent"]);
});
