/** The real clock, digest, disk and stores against the suites of their ports, and what only the real ones can do wrong. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FailureError, utf8 } from "@stamp/base";
import { clockConformance, digestConformance, diskConformance, keyValueConformance } from "@stamp/ports";
import { NodeClock } from "./clock.ts";
import { NodeDigest } from "./digest.ts";
import { NodeDisk } from "./disk/disk.ts";
import { NodeKeyValueStores } from "./disk/key-value.ts";
import { NodeRandom } from "./random.ts";

const register = (name: string, run: () => Promise<void>): void => void test(name, run);
const temporaryFolder = (): Promise<string> => mkdtemp(join(tmpdir(), "stamp-ports-"));

clockConformance(register, () => new NodeClock());
digestConformance(register, () => new NodeDigest());

diskConformance(register, async () => {
  const root = await temporaryFolder();
  return {
    disk: new NodeDisk(root),
    reopen: async () => new NodeDisk(root),
    dispose: () => rm(root, { recursive: true }),
  };
});

keyValueConformance(register, async () => {
  const root = await temporaryFolder();
  return {
    stores: new NodeKeyValueStores(root),
    reopen: async () => new NodeKeyValueStores(root),
    dispose: () => rm(root, { recursive: true }),
  };
});

test("random: words and bytes differ from call to call and stay in their range", () => {
  const random = new NodeRandom();
  const words = new Set<number>();
  for (let i = 0; i < 1000; i++) {
    const word = random.uint32();
    assert.ok(Number.isInteger(word) && word >= 0 && word < 2 ** 32);
    words.add(word);
    const float = random.float();
    assert.ok(float >= 0 && float < 1);
  }
  assert.ok(words.size > 990);
  assert.notDeepEqual(random.bytes(16), random.bytes(16));
});

test("disk: a path that leaves the root is refused", async () => {
  const root = await temporaryFolder();
  try {
    await assert.rejects(new NodeDisk(root).open("../x", { create: true }), /not a relative path/);
    await assert.rejects(new NodeDisk(root).open("/etc/x", { create: true }), /not a relative path/);
  } finally {
    await rm(root, { recursive: true });
  }
});

test("disk: an allocated file has its blocks", async () => {
  const root = await temporaryFolder();
  try {
    const file = await new NodeDisk(root).open("segment", { create: true });
    await file.allocate(3_000_000);
    await file.sync();
    const { stat } = await import("node:fs/promises");
    const { blocks, size } = await stat(join(root, "segment"));
    assert.equal(size, 3_000_000);
    assert.ok(blocks * 512 >= 3_000_000, `${blocks} blocks`);
    await file.close();
  } finally {
    await rm(root, { recursive: true });
  }
});

test("key-value: a store whose tables or manifest are damaged opens as corrupt, and destroy makes room for a new one", async () => {
  for (const damage of ["manifest gone", "current is noise", "manifest cut"]) {
    const root = await temporaryFolder();
    try {
      const stores = new NodeKeyValueStores(root);
      const opened = await stores.open("main");
      assert.equal(opened.kind, "opened");
      if (opened.kind !== "opened") return;
      await opened.store.batch([{ kind: "put", key: utf8("a"), value: utf8("1") }], { sync: true });
      await opened.store.close();
      const manifest = (await readdir(join(root, "main"))).find((name) => name.startsWith("MANIFEST")) as string;
      if (damage === "manifest gone") await rm(join(root, "main", manifest));
      if (damage === "current is noise") await writeFile(join(root, "main", "CURRENT"), "noise without an end of line");
      if (damage === "manifest cut") await truncate(join(root, "main", manifest), 3);
      assert.equal((await stores.open("main")).kind, "corrupt", damage);
      await stores.destroy("main");
      const again = await stores.open("main");
      assert.equal(again.kind, "opened");
      if (again.kind === "opened") await again.store.close();
    } finally {
      await rm(root, { recursive: true });
    }
  }
});

/** In the middle: records follow. */
async function flipInLog(folder: string): Promise<{ readonly log: string; readonly bytes: Buffer }> {
  const log = join(folder, (await readdir(folder)).find((name) => name.endsWith(".log")) as string);
  const bytes = await readFile(log);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
  await writeFile(log, bytes);
  return { log, bytes };
}

test("key-value: a record of the log that is damaged before another one is corrupt, and the files stay as they are", async () => {
  const root = await temporaryFolder();
  try {
    const stores = new NodeKeyValueStores(root);
    const opened = await stores.open("main");
    assert.equal(opened.kind, "opened");
    if (opened.kind !== "opened") return;
    for (let i = 0; i < 20; i++) await opened.store.batch([{ kind: "put", key: utf8(`key ${i}`), value: utf8(`${i}`) }], { sync: true });
    await opened.store.close();
    const names = await readdir(join(root, "main"));
    const { log, bytes } = await flipInLog(join(root, "main"));
    const again = await stores.open("main");
    assert.ok(again.kind === "corrupt" && /\.log: what is at byte \d+ can't be read, and a record follows at \d+/.test(again.message));
    assert.deepEqual(await readdir(join(root, "main")), names);
    assert.deepEqual(await readFile(log), bytes);
  } finally {
    await rm(root, { recursive: true });
  }
});

test("key-value: a store that another process has open is a failure that says so, not corrupt", async () => {
  const root = await temporaryFolder();
  const holder = join(root, "holder.mjs");
  const module = new URL("./disk/key-value.ts", import.meta.url).href;
  await writeFile(
    holder,
    `import { NodeKeyValueStores } from ${JSON.stringify(module)};
    const opened = await new NodeKeyValueStores(${JSON.stringify(root)}).open("main");
    for (let i = 0; i < 20; i++) await opened.store.batch([{ kind: "put", key: new Uint8Array([i]), value: new Uint8Array(50) }], { sync: true });
    process.send("open"); setInterval(() => {}, 1000);`,
  );
  const child = fork(holder, { stdio: "inherit" });
  try {
    await once(child, "message");
    // Apparent damage may be what the store's holder is writing.
    await flipInLog(join(root, "main"));
    await assert.rejects(
      new NodeKeyValueStores(root).open("main"),
      (error: unknown) => error instanceof FailureError && error.failure.reason === "conflict" && /in use/.test(error.message),
    );
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  assert.equal((await new NodeKeyValueStores(root).open("main")).kind, "corrupt", "after its holder died");
  await flipInLog(join(root, "main"));
  const opened = await new NodeKeyValueStores(root).open("main");
  assert.equal(opened.kind, "opened", "after its holder died");
  if (opened.kind === "opened") await opened.store.close();
  await rm(root, { recursive: true });
});
