import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { takenPorts } from "./ports-in-use.ts";

test("ports, one is taken: it is named with whom wants it and, on Linux, who has it", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    const taken = await takenPorts("127.0.0.1", new Map([[port, "blob"]]));
    assert.equal(taken.length, 1);
    assert.deepEqual({ port: taken[0]?.port, wantedFor: taken[0]?.wantedFor }, { port, wantedFor: "blob" });
    if (process.platform === "linux") assert.match(taken[0]?.holder ?? "", new RegExp(`^pid ${process.pid} \\(.*node`));
  } finally {
    server.close();
    await once(server, "close");
  }
  assert.deepEqual(await takenPorts("127.0.0.1", new Map([[port, "blob"]])), []);
});

test("ports, one is freed a little later: it is waited for", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const wanted = new Map([[port, "blob"]]);
  assert.equal((await takenPorts("127.0.0.1", wanted, 100)).length, 1);
  setTimeout(() => server.close(), 200);
  assert.deepEqual(await takenPorts("127.0.0.1", wanted, 10_000), []);
});

test("ports, one is taken by a program below a long path: its name is told", { skip: process.platform !== "linux" }, async (t) => {
  const root = mkdtempSync(join(tmpdir(), "stamp-ports-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const folder = join(root, "a-folder-with-a-long-name".repeat(5), "extent-node/src");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "main.ts");
  writeFileSync(path, `require("net").createServer().listen(0, "127.0.0.1", function () { console.log(this.address().port); });`);
  const child = spawn(process.execPath, ["--max-semi-space-size=4", path], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => child.kill("SIGKILL"));
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number(line.toString());
  const [taken] = await takenPorts("127.0.0.1", new Map([[port, "blob"]]));
  assert.match(taken?.holder ?? "", /^pid \d+ \(.*\/extent-node\/src\/main\.ts\)$/);
});
