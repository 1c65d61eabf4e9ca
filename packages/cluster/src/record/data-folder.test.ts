import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { StartError } from "../start-error.ts";
import { LogFile } from "../supervise/log-file.ts";
import { identityOf, isAlive } from "../supervise/process-identity.ts";
import { DataFolder } from "./data-folder.ts";

async function withFolder(work: (folder: DataFolder) => Promise<void> | void): Promise<void> {
  const path = mkdtempSync(join(tmpdir(), "stamp-folder-"));
  try {
    const folder = new DataFolder(path);
    folder.prepare();
    await work(folder);
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

test("data folder, supervised: a second supervisor is told who has it, until it is released", () =>
  withFolder((folder) => {
    assert.equal(folder.acquire(), undefined);
    assert.equal(folder.acquire()?.pid, process.pid);
    folder.release();
    assert.equal(folder.acquire(), undefined);
  }));

test("data folder, supervisor was killed: the next one takes it over and ends what was left", () =>
  withFolder(async (folder) => {
    const script = `import { DataFolder } from ${JSON.stringify(new URL("./data-folder.ts", import.meta.url).href)};
      const folder = new DataFolder(${JSON.stringify(folder.path)});
      folder.acquire();
      console.log("has it");
      setInterval(() => {}, 1000);`;
    const other = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    const sleeper = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
    await once(other.stdout, "data");
    assert.equal(folder.acquire()?.pid, other.pid);
    other.kill("SIGKILL");
    await once(other, "exit");

    const left = identityOf(sleeper.pid ?? 0);
    folder.recordProcesses([left, { pid: process.pid, start: "another process that had this pid" }]);
    assert.equal(folder.acquire(), undefined);
    assert.equal(await folder.endLeftOvers(10_000), 1);
    assert.equal(isAlive(left), false);
  }));

test("data folder, supervisor was killed: what it left runs, is told by pid, and is stopped, not a later process of that pid", () =>
  withFolder(async (folder) => {
    const polite = spawn("sleep", ["60"], { stdio: "ignore" });
    const deaf = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); console.log(1); setInterval(() => {}, 1000)"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    await once(deaf.stdout, "data");
    const left = [identityOf(polite.pid ?? 0), identityOf(deaf.pid ?? 0)];
    folder.recordProcesses([...left, { pid: process.pid, start: "another process that had this pid" }]);
    assert.deepEqual(folder.running(), { supervisor: undefined, orphans: left });
    const gone = Promise.all([once(polite, "exit"), once(deaf, "exit")]);
    await folder.stopOrphans(300);
    await gone;
    assert.deepEqual(folder.running(), { supervisor: undefined, orphans: [] });
  }));

test("data folder, supervisor was killed and another start has taken it: who would stop what is left, or delete, leaves it alone", () =>
  withFolder(async (folder) => {
    const orphan = spawn("sleep", ["60"], { stdio: "ignore" });
    const starting = spawn("sleep", ["60"], { stdio: "ignore" });
    const left = [identityOf(orphan.pid ?? 0)];
    folder.recordProcesses(left);
    assert.deepEqual(folder.running().orphans, left, "a command looked, and then came the start");
    const record = { ...identityOf(starting.pid ?? 0), control: folder.control, startedAt: "" };
    writeFileSync(join(folder.path, "run/supervisor.json"), JSON.stringify(record));
    const refused = (error: unknown) => error instanceof StartError && error.message.includes(String(starting.pid));
    await assert.rejects(folder.stopOrphans(300), refused);
    await assert.rejects(
      folder.whileHeld(() => assert.fail("it was taken")),
      refused,
    );
    assert.equal(folder.supervisor()?.pid, starting.pid, "its record is there");
    assert.ok(isAlive(left[0] as (typeof left)[number]));
    starting.kill("SIGKILL");
    await once(starting, "exit");
    await assert.rejects(
      folder.whileHeld(() => assert.fail("an orphan runs")),
      (error) => error instanceof StartError && error.message.includes(`pid ${orphan.pid}`),
    );
    assert.deepEqual(folder.running().orphans, left, "the note of it stays");
    orphan.kill("SIGKILL");
    await once(orphan, "exit");
    assert.equal(await folder.whileHeld(() => folder.supervisor()?.pid), process.pid);
    assert.deepEqual(folder.running(), { supervisor: undefined, orphans: [] });
  }));

test("data folder, several start at one moment beside the record of a dead one: one has it, the others name that one", () =>
  withFolder(async (folder) => {
    writeFileSync(join(folder.path, "run/supervisor.json"), JSON.stringify({ pid: process.pid, start: "a dead one that had this pid" }));
    const script = `import { DataFolder } from ${JSON.stringify(new URL("./data-folder.ts", import.meta.url).href)};
      const folder = new DataFolder(${JSON.stringify(folder.path)});
      console.log("ready");
      process.stdin.once("data", () => {
        const other = folder.acquire();
        console.log(other === undefined ? "mine" : String(other.pid));
        setInterval(() => {}, 1000);
      });`;
    const all = Array.from({ length: 4 }, () =>
      spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "inherit"] }),
    );
    const says = async (child: (typeof all)[number]): Promise<string> => String((await once(child.stdout, "data"))[0]).trim();
    await Promise.all(all.map(says));
    const answers = all.map(says);
    for (const child of all) child.stdin.write("go");
    const said = await Promise.all(answers);
    for (const child of all) child.kill("SIGKILL");
    assert.equal(said.filter((what) => what === "mine").length, 1, said.join(", "));
    const winner = String(all[said.indexOf("mine")]?.pid);
    assert.deepEqual(
      said.filter((what) => what !== "mine"),
      [winner, winner, winner],
    );
  }));

test("data folder, deep path: where the system reaches no socket there, the control socket stands where its path is short enough", () => {
  const deep = new DataFolder(`/${"d".repeat(200)}`);
  assert.ok(process.platform === "linux" || Buffer.byteLength(deep.control) <= 100);
  assert.notEqual(deep.control, new DataFolder(`/${"e".repeat(200)}`).control);
});

test("data folder, it is a file, or below one: refused with its name and what to do", () => {
  const path = mkdtempSync(join(tmpdir(), "stamp-folder-"));
  try {
    writeFileSync(join(path, "file"), "");
    for (const wrong of ["file", "file/below"]) {
      assert.throws(
        () => new DataFolder(join(path, wrong)).prepare(),
        (error) => error instanceof StartError && error.message.includes(join(path, wrong)) && error.message.includes("--data DIR"),
      );
    }
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
});

test("data folder whose note on the cluster can't be read: told with its path, not taken for a folder where none runs", () =>
  withFolder((folder) => {
    folder.prepare();
    assert.equal(folder.supervisor(), undefined);
    const note = join(folder.path, "run", "supervisor.json");
    mkdirSync(note);
    assert.throws(
      () => folder.supervisor(),
      (error) => error instanceof StartError && error.message.includes(note) && /is a folder/.test(error.message),
    );
  }));

test("data folder of another version: refused; one whose note a power cut emptied is still a stamp's", () =>
  withFolder((folder) => {
    const later = join(folder.path, "later");
    mkdirSync(later);
    writeFileSync(join(later, "stamp.json"), '{"format":2,"release":"9.1.0"}');
    assert.throws(
      () => new DataFolder(later).prepare(),
      (error) => error instanceof StartError && /stamp\.json.*version 2.*release 9\.1\.0 wrote it/.test(error.message),
    );
    assert.deepEqual(readdirSync(later), ["stamp.json"], "nothing was made");
    folder.markInitialised();
    folder.prepare();
    writeFileSync(join(folder.path, "stamp.json"), "");
    folder.prepare();
    assert.equal(folder.isNew, false);
    writeFileSync(join(folder.path, "stamp.json"), '{"format":"x"}');
    assert.throws(
      () => folder.prepare(),
      (error) => error instanceof StartError && /has the format x/.test(error.message),
    );
  }));

test("data folder: what it makes is for its user alone, whatever the umask is, also where an older build has made it", () => {
  const before = process.umask(0);
  try {
    return withFolder((folder) => {
      const modeOf = (name: string): number => statSync(join(folder.path, name)).mode & 0o777;
      for (const name of ["run", "logs"]) {
        assert.equal(modeOf(name), 0o700, name);
        chmodSync(join(folder.path, name), 0o755);
      }
      folder.prepare();
      for (const name of ["run", "logs"]) assert.equal(modeOf(name), 0o700, name);
      folder.acquire();
      new LogFile(join(folder.logs, "a.log"), 10).write(Buffer.from("a line that is longer than the bound"));
      for (const name of ["run", "logs"])
        for (const file of readdirSync(join(folder.path, name))) assert.equal(modeOf(join(name, file)), 0o600, file);
    });
  } finally {
    process.umask(before);
  }
});
