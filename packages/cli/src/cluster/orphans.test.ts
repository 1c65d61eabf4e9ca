/** A data folder whose supervisor was killed while its processes run on: no command takes it for that of a stopped cluster. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { clusterRecordPath, DataFolder, identityOf, writeClusterRecord } from "@stamp/cluster";

const stamp = (...args: readonly string[]): Promise<{ readonly code: number; readonly said: string }> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [join(import.meta.dirname, "../main.ts"), ...args], (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, said: stdout + stderr }),
    );
  });

test("supervisor killed, a process of it runs: reset, status, restore and fsck --rebuild refuse, down stops it", async (t) => {
  const path = mkdtempSync(join(tmpdir(), "stamp-orphans-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  const folder = new DataFolder(path);
  folder.prepare();
  folder.markInitialised();
  writeClusterRecord(path, { config: { extentNodes: 4 }, retired: [] });
  mkdirSync(join(path, "extent-node-1"));
  const kept = join(path, "extent-node-1", "data");
  writeFileSync(kept, "acknowledged");
  const orphan = spawn("sleep", ["120"], { stdio: "ignore" });
  t.after(() => orphan.kill("SIGKILL"));
  folder.recordProcesses([identityOf(orphan.pid ?? 0)]);
  writeFileSync(join(path, "run/supervisor.json"), JSON.stringify({ pid: process.pid, start: "a dead one that had this pid" }));
  for (const command of [["reset", "--yes"], ["status"], ["fsck", "--rebuild"], ["metadata", "restore", kept, "--replace"]]) {
    const { code, said } = await stamp(...command, "--data", path);
    assert.notEqual(code, 0, `${command.join(" ")}: ${said}`);
    assert.ok(command[0] === "fsck" || said.includes(`pid ${orphan.pid}`), `${command.join(" ")}: ${said}`);
    assert.ok(existsSync(kept) && orphan.exitCode === null && orphan.signalCode === null, command.join(" "));
  }
  const gone = once(orphan, "exit");
  const down = await stamp("down", "--data", path);
  assert.ok(down.code === 0 && down.said.includes(`pid ${orphan.pid}`), down.said);
  await gone;
  assert.equal((await stamp("reset", "--yes", "--data", path)).code, 0);
  assert.ok(!existsSync(kept) && !existsSync(clusterRecordPath(path)));
});

test("supervisor runs and can't write its record again: commands tell it and go on without the record", async (t) => {
  const path = mkdtempSync(join(tmpdir(), "stamp-no-record-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  const folder = new DataFolder(path);
  folder.prepare();
  mkdirSync(clusterRecordPath(path));
  const refused = await stamp("config", "show", "--data", path);
  assert.deepEqual([refused.code, refused.said], [1, `stamp: ${path}/cluster.json is a folder, not a file (EISDIR)\n`]);
  writeFileSync(join(path, "run/supervisor.json"), JSON.stringify(identityOf(process.pid)));
  const { code, said } = await stamp("config", "show", "--data", path);
  assert.equal(code, 0, said);
  assert.equal(said.match(/is a folder, not a file.*\n.*goes on without it/g)?.length, 1, said);
  assert.match(said, /^dataDir +\/tmp/m);
});
