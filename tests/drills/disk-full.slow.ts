/**
 * Full disks on a real cluster, with real file systems (tmpfs: `no space left` comes from the kernel) and the real SDK: one extent node alone
 * full, all of them full, their journals' own disks full, and one file system for everything filled to its last byte by somebody else. Reads
 * go on, writes are refused with 503 while there is no room anywhere, no process ends, writes go again by themselves when there is room, and
 * what was acknowledged is there, also after a restart. Mounting needs root.
 */
import assert from "node:assert/strict";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { TableClient } from "@azure/data-tables";
import { BlobServiceClient, RestError } from "@azure/storage-blob";
import { QueueServiceClient } from "@azure/storage-queue";
import { utf8 } from "@stamp/base";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { DiskError, type KeyValue } from "@stamp/ports";
import { NodeKeyValueStores } from "@stamp/ports-node";
import { run } from "../tools/commands.ts";

const mebibyte = 1 << 20;
const nodes = [1, 2, 3, 4].map((number) => `extent-node-${number}`);
const blobBytes = 256 * 1024;
const healMs = 120_000;
const folder = mkdtempSync(join(tmpdir(), "stamp-full-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A file system of its own at this path; unmounted when the test is over. */
class FileSystem {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /** `inodes`: number of files and folders that it can hold; absent: as the kernel chooses. */
  static async mount(t: TestContext, path: string, mebibytes: number, inodes?: number): Promise<FileSystem> {
    mkdirSync(path, { recursive: true });
    const options = inodes === undefined ? `size=${mebibytes}m` : `size=${mebibytes}m,nr_inodes=${inodes}`;
    const { code, output } = await run("mount", ["-t", "tmpfs", "-o", options, "stamp-drill", path]);
    assert.equal(code, 0, `mounting needs root: ${output}`);
    t.after(() => run("umount", ["--lazy", path]));
    return new FileSystem(path);
  }

  get #ballast(): string {
    return join(this.#path, "ballast");
  }

  /** Somebody else takes all that is left, as fast as a disk. */
  async fill(): Promise<void> {
    const file = openSync(this.#ballast, "a");
    const chunk = Buffer.alloc(mebibyte);
    try {
      for (let bytes = chunk.length; bytes >= 1; ) {
        try {
          writeSync(file, chunk, 0, bytes);
          if (bytes === chunk.length) await pause(2);
        } catch (error) {
          assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
          bytes = bytes === 1 ? 0 : Math.max(1, Math.floor(bytes / 16));
        }
      }
    } finally {
      closeSync(file);
    }
  }

  /** Somebody else makes files until there is no inode left. */
  takeInodes(): void {
    mkdirSync(this.#files, { recursive: true });
    for (let i = 0; ; i++) {
      try {
        closeSync(openSync(join(this.#files, `${i}`), "w"));
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
        return;
      }
    }
  }

  get #files(): string {
    return join(this.#path, "others");
  }

  empty(): void {
    rmSync(this.#ballast, { force: true });
    rmSync(this.#files, { recursive: true, force: true });
  }
}

/** What the real SDK sees; it never repeats a request by itself. */
class Client {
  readonly #container;
  readonly #target: DrillTarget;
  /** Acknowledged. */
  readonly written: number[] = [];
  #next = 0;

  constructor(target: DrillTarget) {
    this.#target = target;
    const options = { retryOptions: { maxTries: 1, tryTimeoutInMs: 60_000 } };
    this.#container = BlobServiceClient.fromConnectionString(target.connectionString, options).getContainerClient("full");
  }

  async start(): Promise<void> {
    await this.#container.createIfNotExists();
    const { connectionString } = this.#target;
    await TableClient.fromConnectionString(connectionString, "full", { allowInsecureConnection: true }).createTable();
    await QueueServiceClient.fromConnectionString(connectionString).getQueueClient("full").createIfNotExists();
  }

  #content(number: number): Buffer {
    return Buffer.alloc(blobBytes, `blob ${number} `);
  }

  /** The status that refused it; undefined when it was acknowledged. */
  async write(): Promise<{ readonly status: number; readonly text: string } | undefined> {
    const number = this.#next++;
    try {
      await this.#container.getBlockBlobClient(`b${number}`).upload(this.#content(number), blobBytes);
      this.written.push(number);
      return undefined;
    } catch (error) {
      if (!(error instanceof RestError)) throw error;
      return { status: error.statusCode ?? 0, text: `${error.code}: ${error.message}` };
    }
  }

  async read(number: number): Promise<void> {
    const content = await this.#container.getBlobClient(`b${number}`).downloadToBuffer();
    assert.ok(content.equals(this.#content(number)), `blob ${number} differs`);
  }

  async readAll(): Promise<void> {
    for (const number of this.written) await this.read(number);
  }

  async untilWritten(what: string): Promise<void> {
    const untilMs = performance.now() + healMs;
    for (let refused = await this.write(); refused !== undefined; refused = await this.write()) {
      assert.ok(performance.now() < untilMs, `${what}: ${refused.status} ${refused.text}`);
      await pause(100);
    }
  }

  /** The nodes have looked at their disks by now: the first write of each kind is refused with 503, and all are again when there is room. */
  async firstRefused(): Promise<void> {
    for (const [kind, write] of Object.entries(this.#kinds())) {
      const sinceMs = performance.now();
      const status = await write().then(
        () => "written",
        (error: unknown) => `${(error as RestError).statusCode} ${(error as RestError).code ?? ""}`,
      );
      console.log(`the first ${kind} on full disks: ${status}, ${Math.round(performance.now() - sinceMs)} ms`);
      assert.match(status, /^503 /, kind);
    }
  }

  async eachKindWritten(): Promise<void> {
    // Each range asks for room by itself, so they go on one after the other.
    for (const kind of Object.keys(this.#kinds())) {
      const untilMs = performance.now() + healMs;
      for (let status: number | undefined = 0; status !== undefined; ) {
        status = await this.#kinds()
          [kind]?.()
          .then(
            () => undefined,
            (error: unknown) => (error as RestError).statusCode ?? 0,
          );
        assert.ok(status === undefined || (status === 503 && performance.now() < untilMs), `${kind}: ${status}`);
        if (status !== undefined) await pause(100);
      }
    }
  }

  #kinds(): Record<string, () => Promise<unknown>> {
    const options = { retryOptions: { maxTries: 1, tryTimeoutInMs: 60_000, maxRetries: 0 } };
    const { connectionString } = this.#target;
    const name = `n${this.#next++}`;
    const tables = { ...options, allowInsecureConnection: true };
    return {
      container: () => BlobServiceClient.fromConnectionString(connectionString, options).getContainerClient(name).createIfNotExists(),
      block: () => this.#container.getBlockBlobClient(name).stageBlock("AAAA", this.#content(1), blobBytes),
      blob: () => this.#container.getBlockBlobClient(name).upload(this.#content(1), blobBytes),
      "small blob": () => this.#container.getBlockBlobClient(`${name}s`).upload("x", 1),
      entity: () =>
        TableClient.fromConnectionString(connectionString, "full", tables).createEntity({ partitionKey: "p", rowKey: name, value: 1 }),
      message: () => QueueServiceClient.fromConnectionString(connectionString, options).getQueueClient("full").sendMessage(name),
    };
  }

  /** Until a write is refused; what it said. The one that was on its way when the disks filled may not be known to have happened. */
  async untilRefused(): Promise<string> {
    const untilMs = performance.now() + healMs;
    for (;;) {
      const refused = await this.write();
      if (refused !== undefined) {
        if (refused.status === 500 && /OperationTimedOut/.test(refused.text)) continue;
        assert.equal(refused.status, 503, refused.text);
        return refused.text;
      }
      assert.ok(performance.now() < untilMs, "nothing is refused although all disks are full");
    }
  }

  /** For so long every write is refused with 503, and everything that was acknowledged is read again and again. */
  async readsOnly(ms: number): Promise<void> {
    const untilMs = performance.now() + ms;
    let reads = 0;
    const refusals: string[] = [];
    const writer = async (): Promise<void> => {
      while (performance.now() < untilMs) {
        const refused = await this.write();
        assert.equal(refused?.status, 503, refused?.text ?? "written on full disks");
        refusals.push(refused.text);
        await pause(200);
      }
    };
    const reader = async (): Promise<void> => {
      while (performance.now() < untilMs) {
        await this.read(this.written[reads % this.written.length] as number);
        reads += 1;
      }
    };
    await Promise.all([writer(), reader(), reader()]).catch(async (error: unknown) => {
      // A log on a full disk says nothing.
      console.log(await whatIsServed(this.#target));
      throw error;
    });
    assert.ok(reads > 0);
    assert.ok(
      refusals.some((text) => /noPlacement|diskFull/.test(text)),
      `of ${refusals.length} refusals none names the reason: ${refusals[0]}`,
    );
  }
}

/** Processes, and ranges with their servers, as they are now; each question that is not answered says why. */
async function whatIsServed(target: DrillTarget): Promise<string> {
  const { processes } = await target.status();
  const lines = processes.map(
    ({ name, state, ready, waitingFor, restarts }) => `${name} ${state} ${ready} ${restarts} ${waitingFor.join(", ")}`,
  );
  const ranges = await target.inspector.ranges().then(
    (all) => all.map(({ rangeId, server, loaded }) => `${rangeId} ${server} ${loaded}`),
    (error: unknown) => [`no map: ${error}`],
  );
  const held = await target.inspector.held().then(
    (all) => [...all.keys()].map((rangeId) => `held: ${rangeId}`),
    (error: unknown) => [`not said what is held: ${error}`],
  );
  return [...lines, ...ranges, ...held].join("\n");
}

const pids = async (target: DrillTarget): Promise<string> =>
  (await target.status()).processes.map(({ name, pid, restarts, lastExit }) => `${name} ${pid} ${restarts} ${lastExit}`).join("\n");

const roles = { "extent-node": { reserveBytes: 24 * mebibyte, highWaterPercent: 80 } };
const config = (dataDir: string, more: object = {}): object => ({ dataDir, journalSegmentBytes: 16 * mebibyte, roles, ...more });

/** Closed when the test is over, if it is not before that; file systems are unmounted after it. */
async function started(t: TestContext, flags: object): Promise<DrillTarget> {
  const target = await startOwn(flags as Record<string, unknown>, true);
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= target.close();
    return closing;
  };
  t.after(close);
  return { ...target, close };
}

/** The cluster is stopped and started again: what lies on the disks is what was promised. */
async function restarted(t: TestContext, flags: object, before: Client, target: DrillTarget): Promise<void> {
  await target.close();
  const again = await started(t, flags);
  const client = new Client(again);
  client.written.push(...before.written);
  await client.readAll();
  const fsck = await run(process.execPath, [
    "packages/cli/src/main.ts",
    "fsck",
    "--deep",
    "--data-dir",
    (flags as { dataDir: string }).dataDir,
  ]);
  assert.equal(fsck.code, 0, fsck.output);
}

interface Begun {
  readonly client: Client;
  /** No process ended, and after a restart everything that was acknowledged is there. */
  end(): Promise<void>;
}

/** A cluster on this folder, and a client that has written so much. */
async function begun(t: TestContext, flags: object, written: number): Promise<Begun> {
  const target = await started(t, flags);
  const client = new Client(target);
  await client.start();
  for (let i = 0; i < written; i++) await client.untilWritten("at first");
  const before = await pids(target);
  const end = async (): Promise<void> => {
    await client.readAll();
    assert.equal(await pids(target), before, "no process ended");
    await restarted(t, flags, client, target);
  };
  return { client, end };
}

test("disk full: one extent node of four is nobody's trouble; with all full reads go on, and writes again when there is room", async (t) => {
  const dataDir = join(folder, "nodes");
  const disks: FileSystem[] = [];
  for (const name of nodes) disks.push(await FileSystem.mount(t, join(dataDir, name), 256));
  const { client, end } = await begun(t, config(dataDir), 40);

  await disks[0]?.fill();
  for (let i = 0; i < 80; i++) await client.untilWritten("with one node full");
  await client.readAll();
  for (const disk of disks.slice(1)) await disk.fill();
  console.log(`all nodes full: 503 ${await client.untilRefused()}`);
  await client.readsOnly(10_000);
  for (const disk of disks) disk.empty();
  await client.untilWritten("with room again");
  for (let i = 0; i < 40; i++) await client.untilWritten("with room again");
  await end();
});

for (const what of ["bytes", "inodes"] as const) {
  test(`disk full: without ${what} on any node the first write of each kind is refused with 503, and writes come back by themselves`, async (t) => {
    const dataDir = join(folder, what);
    const disks: FileSystem[] = [];
    for (const name of nodes) disks.push(await FileSystem.mount(t, join(dataDir, name), 256, what === "inodes" ? 4_000 : undefined));
    const { client, end } = await begun(t, config(dataDir), 10);
    await client.eachKindWritten();
    for (let round = 0; round < 2; round++) {
      for (const disk of disks) what === "inodes" ? disk.takeInodes() : await disk.fill();
      // Longer than from one look at a disk to the next, and to the report of it.
      await pause(5_000);
      await client.firstRefused();
      await client.readsOnly(3_000);
      for (const disk of disks) disk.empty();
      await client.untilWritten("with room again");
      await client.eachKindWritten();
    }
    await end();
  });
}

test("disk full: clients' own writes fill every node; when others give room, writes go on", async (t) => {
  const dataDir = join(folder, "filled");
  const disks: FileSystem[] = [];
  for (const name of nodes) disks.push(await FileSystem.mount(t, join(dataDir, name), 160));
  const { client, end } = await begun(t, config(dataDir), 0);
  console.log(`filled: 503 ${await client.untilRefused()}; ${client.written.length} blobs were written`);
  await client.readsOnly(5_000);
  for (const name of nodes) assert.equal((await run("mount", ["-o", "remount,size=320m", join(dataDir, name)])).code, 0);
  await client.untilWritten("with larger disks");
  await end();
});

test("disk full: a journal's own disk without room for more than one segment, and full otherwise, takes writes all the same", async (t) => {
  const dataDir = join(folder, "journals");
  const journalDir = join(folder, "journal-disks");
  const disks: FileSystem[] = [];
  for (const name of nodes) disks.push(await FileSystem.mount(t, join(journalDir, name), 40));
  const flags = config(dataDir, { roles: { ...roles, "extent-node": { ...roles["extent-node"], journalDir } } });
  const { client, end } = await begun(t, flags, 1);
  for (const disk of disks) await disk.fill();
  for (let i = 0; i < 300; i++) await client.untilWritten("with full journal disks");
  await end();
});

test("disk full: one file system for everything, filled to the last byte by somebody else", async (t) => {
  const dataDir = join(folder, "one");
  const disk = await FileSystem.mount(t, dataDir, 768);
  const { client, end } = await begun(t, config(dataDir), 100);
  await disk.fill();
  console.log(`one disk for everything: 503 ${await client.untilRefused()}`);
  // Longer than a lease.
  await client.readsOnly(15_000);
  disk.empty();
  await client.untilWritten("with room again");
  for (let i = 0; i < 40; i++) await client.untilWritten("with room again");
  await end();
});

test("disk full: a LevelDB store keeps what it took before, between and after, and can be read meanwhile", async (t) => {
  const path = join(folder, "level");
  const disk = await FileSystem.mount(t, path, 64);
  const opened = async (): Promise<KeyValue> => {
    const open = await new NodeKeyValueStores(path).open("store");
    assert.ok(open.kind === "opened");
    return open.store;
  };
  const put = (store: KeyValue, number: number, sync: boolean): Promise<void> =>
    store.batch([{ kind: "put", key: utf8(`key ${number}`), value: new Uint8Array(5_000).fill(number) }], { sync });
  const store = await opened();
  const kept: number[] = [];
  for (let i = 0; i < 50; i++) {
    await put(store, i, false);
    kept.push(i);
  }
  await disk.fill();
  let refused = 0;
  for (let i = 100; i < 130; i++) {
    await put(store, i, i % 2 === 0).then(
      () => kept.push(i),
      (error: unknown) => {
        assert.ok(error instanceof DiskError && error.kind === "full", String(error));
        refused += 1;
      },
    );
  }
  assert.ok(refused > 0);
  for (const number of kept) assert.equal((await store.get(utf8(`key ${number}`)))?.[0], number);
  disk.empty();
  let writing = true;
  const found: boolean[] = [];
  const reading = (async (): Promise<void> => {
    for (let i = 0; writing; i++) {
      const number = i % 50;
      // Not one after another: the store is opened anew while some of these begin.
      void store.get(utf8(`key ${number}`)).then(
        (value) => found.push(value?.[0] === number),
        () => found.push(false),
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  try {
    for (let i = 200; i < 250; i++) {
      await put(store, i, true);
      kept.push(i);
    }
  } finally {
    writing = false;
    await reading;
  }
  await store.close();
  assert.ok(found.length > 0 && !found.includes(false), `${found.filter((each) => !each).length} of ${found.length} reads failed`);
  const again = await opened();
  for (const number of kept) assert.equal((await again.get(utf8(`key ${number}`)))?.[4_999], number, `key ${number}`);
  await again.close();
});
