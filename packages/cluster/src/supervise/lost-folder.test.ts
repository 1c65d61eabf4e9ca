/** A supervisor whose data folder fails under it: it goes on, tells what it could not write, and leaves no process that nobody watches. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { DataFolder } from "../record/data-folder.ts";
import { StartError } from "../start-error.ts";
import { control } from "./control.ts";
import { isAlive, type ProcessIdentity } from "./process-identity.ts";
import { until, withBench } from "./testing/bench.ts";

const starts = (said: readonly string[], name: string): number => said.filter((line) => line === `start ${name}`).length;

test("supervisor, a note can't be written: it goes on, starts a process again, tells why, and writes the note when it can", () =>
  withBench(async ({ config, supervisor, said }) => {
    const one = supervisor();
    await one.start();
    await until("all seven started", () => said().length === 7);
    const run = join(config.dataDir, "run");
    // A folder in the place of the new file refuses it as a disk does that can only be read.
    mkdirSync(join(run, "processes.json.new"));
    const pid = one.process("extent-node-2")?.pid as number;
    process.kill(pid, "SIGKILL");
    await until("started again", () => starts(said(), "extent-node-2") === 2);
    assert.match(one.status().problems?.join() ?? "", /run\/processes\.json: .*is a folder, not a file \(EISDIR\)/);
    rmSync(join(run, "processes.json.new"), { recursive: true });
    await until("no problem is left", () => one.status().problems?.length === 0);
    const noted = JSON.parse(readFileSync(join(run, "processes.json"), "utf8")) as ProcessIdentity[];
    assert.ok(noted.some((each) => each.pid === one.process("extent-node-2")?.pid));
  }));

test("supervisor, the log of one process can't be opened: nothing is started, and the folder is free again", () =>
  withBench(async ({ config, supervisor, said }) => {
    mkdirSync(join(config.dataDir, "logs", "front-end-1.log"), { recursive: true });
    const one = supervisor();
    await assert.rejects(one.start(), (error) => error instanceof StartError && /front-end-1\.log is a folder/.test(error.message));
    assert.deepEqual(said(), []);
    assert.deepEqual(one.folder.running(), { supervisor: undefined, orphans: [] });
  }));

test("supervisor, its record and its socket are removed: both are there again, and no second supervisor gets the folder", () =>
  withBench(async ({ config, run, supervisor, said }) => {
    const running = await run();
    const { supervisor: one } = running;
    await until("all seven started", () => said().length === 7);
    rmSync(join(config.dataDir, "run"), { recursive: true });
    await until("the record is there again", () => one.folder.supervisor()?.pid === process.pid);
    await until("the socket is there again", () => existsSync(one.folder.control));
    assert.equal((await control(one.folder.control, { do: "status" })).processes.length, 7);
    assert.ok(existsSync(join(config.dataDir, "run", "processes.json")));
    await assert.rejects(supervisor().start(), StartError);
    // Without the data folder there is nothing to take, and nothing is made in its place.
    renameSync(config.dataDir, `${config.dataDir}-away`);
    await until("the status tells it", () => /run\/supervisor\.json/.test(one.status().problems?.join() ?? ""));
    assert.equal(existsSync(config.dataDir), false);
    renameSync(`${config.dataDir}-away`, config.dataDir);
    await running.stop();
  }));

test("supervisor, another one has taken the folder meanwhile: this one ends its processes, leaves the folder to the other, and says so", () =>
  withBench(async ({ config, run, said }) => {
    const { supervisor: one, stopped } = await run();
    await until("all seven started", () => said().length === 7);
    const ours = one.plan.processes.flatMap(({ name }) => one.process(name)?.identity ?? []);
    assert.equal(ours.length, 7);
    const other = spawn("sleep", ["60"], { stdio: "ignore" });
    const record = new DataFolder(config.dataDir);
    const path = join(config.dataDir, "run", "supervisor.json");
    const start = readFileSync(`/proc/${other.pid}/stat`, "utf8").split(") ").at(-1)?.split(" ")[19];
    writeFileSync(`${path}.other`, JSON.stringify({ pid: other.pid, start, control: "/nowhere", startedAt: "" }));
    renameSync(`${path}.other`, path);
    await stopped;
    assert.deepEqual(ours.filter(isAlive), []);
    assert.equal(record.supervisor()?.pid, other.pid, "its record stays");
    other.kill();
    await once(other, "exit");
  }));

test("control socket in a deep folder: it stands in the data folder, and is reached whatever TMPDIR says", () =>
  withBench(async ({ config, supervisor }) => {
    const deep = join(dirname(config.dataDir), "d".repeat(120));
    const one = supervisor({ ...config, dataDir: deep });
    const { ControlServer } = await import("./control.ts");
    await one.start();
    const server = new ControlServer(one, async () => {});
    await server.listen();
    try {
      const before = process.env.TMPDIR;
      process.env.TMPDIR = join(tmpdir(), "another");
      try {
        const folder = new DataFolder(deep);
        if (process.platform === "linux") assert.equal(folder.control, join(deep, "run", "control.sock"));
        assert.equal((await control(folder.control, { do: "status" })).running, true);
      } finally {
        if (before === undefined) delete process.env.TMPDIR;
        else process.env.TMPDIR = before;
      }
    } finally {
      await server.close();
    }
    assert.equal(existsSync(one.folder.control), false);
  }));

test("supervisor, the reader of its output goes: it goes on", async () => {
  const program = `
    import { superviseUntilStopped } from ${JSON.stringify(join(import.meta.dirname, "run-supervisor.ts"))};
    import { tmpdir } from "node:os";
    const folder = { control: tmpdir() + "/stamp-control-" + process.pid + ".sock" };
    await superviseUntilStopped({ folder, start: async () => {}, stop: async () => {} }, () => {});
    console.log("runs");
    process.stdin.once("data", () => {
      for (const output of [process.stdout, process.stderr]) output.write("nobody reads this\\n".repeat(10_000));
      setTimeout(() => process.exit(42), 200);
    });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "pipe" });
  const exited = once(child, "exit");
  await once(child.stdout, "data");
  child.stdout.destroy();
  child.stderr.destroy();
  child.stdin.write("x");
  assert.deepEqual(await exited, [42, null]);
});

test("supervisor, cluster.json is damaged or removed: it is written again as it was; a secret that is gone or cut short, too", () =>
  withBench(async ({ config, run, said }) => {
    const running = await run();
    await until("all seven started", () => said().length === 7);
    const [record, secret] = ["cluster.json", "cluster-secret"].map((name) => join(config.dataDir, name)) as [string, string];
    await until("both were looked at", () => existsSync(record) && existsSync(secret));
    await new Promise((resolve) => setTimeout(resolve, 500));
    for (const path of [record, secret]) {
      const before = readFileSync(path, "utf8");
      const isBack = (): boolean => existsSync(path) && readFileSync(path, "utf8") === before;
      writeFileSync(path, before.slice(0, 10));
      await until(`${path} is whole again`, isBack);
      rmSync(path);
      await until(`${path} is there again`, isBack);
    }
    // A secret that is one was put there by a rotation, or by a person.
    const other = `${"x".repeat(40)}\n`;
    writeFileSync(secret, other);
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal(readFileSync(secret, "utf8"), other);
    await running.stop();
  }));
