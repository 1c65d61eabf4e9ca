/** The supervisor over processes that are a few lines each: what it does when they die, and how it ends. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { ok } from "@stamp/base";
import {
  addNextMasterKey,
  forgetPreviousMasterKey,
  type GrpcTransport,
  masterKeyFilesBeside,
  masterKeyState,
  useNextMasterKey,
} from "@stamp/ports-node";
import { type ClusterConfig, loadConfig } from "../config.ts";
import { readClusterRecord } from "../record/cluster-record.ts";
import { DataFolder } from "../record/data-folder.ts";
import { roles } from "../roles.ts";
import { StartError } from "../start-error.ts";
import { ControlServer, control } from "./control.ts";
import { isAlive } from "./process-identity.ts";
import type { RunningSupervisor } from "./run-supervisor.ts";
import { Supervisor } from "./supervisor.ts";
import { until, withBench } from "./testing/bench.ts";

const count = (lines: readonly string[], line: string): number => lines.filter((each) => each === line).length;

test("supervisor, a process dies unasked: it is started again; one that is held stays down until it is started", () =>
  withBench(async ({ supervisor, said }) => {
    const one = supervisor();
    await one.start();
    await until("all seven started", () => said().length === 7);
    assert.equal(count(said(), "start with init lock-service-1"), 1, "a new folder may be made a stamp");

    const node = one.process("extent-node-2");
    const first = node?.identity;
    assert.ok(node !== undefined && first !== undefined);
    process.kill(first.pid, "SIGKILL");
    await until("started again", () => count(said(), "start extent-node-2") === 2);
    assert.equal(isAlive(first), false);
    assert.deepEqual([node.restarts, node.lastExit], [1, "signal SIGKILL"]);

    await node.stop("kill");
    assert.equal(one.status().processes.find((each) => each.name === "extent-node-2")?.state, "down");
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(count(said(), "start extent-node-2"), 2);
    node.start();
    await until("started when asked", () => count(said(), "start extent-node-2") === 3);
  }));

test("supervisor, lines of processes are asked for: each comes whole, besides the log file", () =>
  withBench(async ({ config, supervisor }) => {
    const main = join(config.dataDir, "..", "services", "extent-node", "src", "main.ts");
    writeFileSync(
      main,
      `process.stdout.write("one li"); setTimeout(() => process.stdout.write("ne\\ntwo\\n"), 50); setInterval(() => {}, 1000);`,
    );
    const lines: string[] = [];
    const one = supervisor(config, { onLine: (line) => lines.push(line) });
    await one.start();
    await until("both lines of both nodes", () => count(lines, "one line") === 2 && count(lines, "two") === 2);
    assert.match(readFileSync(join(one.folder.logs, "extent-node-1.log"), "utf8"), /^one line\ntwo\n/m);
  }));

test("supervisor, a process says why it ends: the status tells it beside the exit code", () =>
  withBench(async ({ config, supervisor }) => {
    const main = join(config.dataDir, "..", "services", "extent-node", "src", "main.ts");
    writeFileSync(main, `console.log(JSON.stringify({ level: "error", reason: "the disk is full" })); process.exitCode = 71;`);
    const one = supervisor();
    await one.start();
    const end = (): string | undefined => one.status().processes.find((each) => each.name === "extent-node-1")?.lastExit;
    await until("the reason is told", () => end() === "exit code 71: the disk is full");
  }));

test("supervisor, stop: what serves goes first, the lock service last, nobody is left", () =>
  withBench(async ({ supervisor, said }) => {
    const one = supervisor();
    await one.start();
    await until("all started", () => said().length === 7);
    const identities = roles.flatMap((role) => one.process(`${role}-1`)?.identity ?? []);
    assert.equal(identities.length, roles.length);
    await one.stop();
    const stops = said()
      .filter((line) => line.startsWith("stop "))
      .map((line) => line.slice(5).replace(/-\d$/, ""));
    assert.deepEqual([...new Set(stops)], roles.toReversed());
    assert.equal(stops.length, 7);
    assert.ok(identities.every((each) => !isAlive(each)));
  }));

test("supervisor, the folder is taken, or a port is: refused with who has it", () =>
  withBench(async ({ config, supervisor, said }) => {
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(config.portBase + 103, "127.0.0.1", resolve));
    await assert.rejects(supervisor().start(), (error) => {
      assert.ok(error instanceof StartError);
      assert.match(error.message, new RegExp(`port ${config.portBase + 103} \\(gRPC of stream-manager-1\\) is taken by`));
      assert.match(error.message, /--port-base \d+/);
      return true;
    });
    await new Promise((resolve) => blocker.close(resolve));
    const one = supervisor();
    await one.start();
    await assert.rejects(supervisor().start(), (error) => error instanceof StartError && error.message.includes(`pid ${process.pid}`));
    await until("the first goes on", () => said().length === 7);
  }));

test("control: status, hold, start, signals, power loss; a wrong request is answered", () =>
  withBench(async ({ supervisor, said }) => {
    const one = supervisor();
    await one.start();
    await until("all started", () => said().length === 7);
    let asked = 0;
    const server = new ControlServer(one, async () => {
      asked++;
      await one.stop();
    });
    await server.listen();
    const path = one.folder.control;
    const state = (status: Awaited<ReturnType<typeof control>>, name: string) => status.processes.find((each) => each.name === name)?.state;
    assert.equal(state(await control(path, { do: "hold", name: "front-end-1" }), "front-end-1"), "down");
    assert.notEqual(state(await control(path, { do: "start", name: "front-end-1" }), "front-end-1"), "down");
    await assert.rejects(control(path, { do: "hold", name: "nobody" }), /there is no process nobody/);
    await assert.rejects(control(path, { do: "dance" } as never), /no such request/);
    const dark = await control(path, { do: "power-loss" });
    assert.ok(dark.processes.every((each) => each.pid === null));
    const before = said().length;
    await control(path, { do: "resume" });
    await until("all started again", () => said().length === before + 7);
    assert.equal((await control(path, { do: "stop" })).running, false);
    assert.equal(asked, 1);
    await server.close();
  }));

test("supervisor, a node is retired: it ends, is recorded before that, and no later start of the folder brings it back", () =>
  withBench(async ({ config, supervisor, said }) => {
    const one = supervisor();
    await one.start();
    await until("all started", () => said().length === 7);
    assert.deepEqual(readClusterRecord(config.dataDir)?.retired, []);
    const retired = one.process("extent-node-1")?.identity;
    await assert.rejects(one.retire("front-end-1"), /there is no extent node front-end-1/);
    await one.retire("extent-node-1");
    await one.retire("extent-node-1");
    assert.ok(retired !== undefined && !isAlive(retired));
    await one.powerLoss();
    one.resume();
    await until("the six others are started again", () => said().filter((line) => line.startsWith("start")).length === 13);
    assert.equal(one.process("extent-node-1"), undefined);
    await one.stop();
    const names = (of: Supervisor): string[] => of.plan.processes.filter(({ role }) => role === "extent-node").map(({ name }) => name);
    const from = { directory: "/", root: "/", environment: {} };
    const again = loadConfig({ ...from, flags: { dataDir: config.dataDir, minCopies: 1 } });
    assert.equal(again.portBase, config.portBase);
    assert.deepEqual(names(supervisor(again)), ["extent-node-2"]);
    const more = loadConfig({ ...from, flags: { dataDir: config.dataDir, minCopies: 1, extentNodes: 2 } });
    assert.deepEqual(names(supervisor(more)), ["extent-node-2", "extent-node-3"]);
  }));

test("supervisor, extent nodes of a stamp are in a folder that has lost the rest: no new stamp is made beside them", () =>
  withBench(async ({ config, supervisor, said }) => {
    mkdirSync(join(config.dataDir, "extent-node-2", "files"), { recursive: true });
    const one = supervisor();
    assert.ok(one.folder.mayBecomeStamp, "a disk that belongs to no stamp yet");
    writeFileSync(join(config.dataDir, "extent-node-2", "files", "node-identity"), "");
    await one.start();
    await until("all started", () => said().length === 7);
    assert.ok(said().includes("start lock-service-1"), said().join());
  }));

test("supervisor, a node is added: recorded, started, on ports that nobody has; a start without flags has it too", () =>
  withBench(async ({ config, supervisor, said }) => {
    const one = supervisor();
    await one.start();
    await until("all started", () => said().length === 7);
    const grpcOf = (of: Supervisor, name: string) => of.status().processes.find((each) => each.name === name)?.grpc;
    const before = one.status().processes;
    await assert.rejects(one.addNode("extent-node-4"), /extent-node-4 is not the next extent node, that is extent-node-3/);
    await assert.rejects(one.addNode("extent-node-2"), /extent-node-2 runs already/);
    await one.retire("extent-node-1");
    await assert.rejects(one.addNode("extent-node-1"), /was decommissioned; its name is not used again/);
    assert.equal(await one.addNode("extent-node-3"), "extent-node-3");
    const blocker = createServer();
    const free = config.portBase + 100 + 7;
    await new Promise<void>((resolve) => blocker.listen(free, "127.0.0.1", resolve));
    await assert.rejects(one.addNode(), new RegExp(`port ${free} \\(gRPC of extent-node-4\\) is taken`));
    await new Promise((resolve) => blocker.close(resolve));
    const [added, second] = await Promise.allSettled([one.addNode(), one.addNode()]);
    assert.deepEqual([added.status, second.status], ["fulfilled", "rejected"]);
    await until("the new ones started", () => said().includes("start extent-node-3") && said().includes("start extent-node-4"));
    assert.equal(grpcOf(one, "extent-node-3"), before.find(({ name }) => name === "extent-node-1")?.grpc, "the ports of the retired one");
    for (const { name, grpc } of before.filter(({ name }) => name !== "extent-node-1")) assert.equal(grpcOf(one, name), grpc, name);
    const running = one.status().processes.map(({ name, grpc }) => [name, grpc]);
    await one.stop();
    const again = supervisor(loadConfig({ directory: "/", root: "/", environment: {}, flags: { dataDir: config.dataDir } }));
    assert.deepEqual(
      again.plan.processes.map(({ name, grpc }) => [name, grpc]),
      running,
    );
  }));

test("supervisor, a node with a disk here that was not started is retired: recorded, as many as before run", () =>
  withBench(async ({ config, supervisor, said }) => {
    mkdirSync(join(config.dataDir, "extent-node-3", "files"), { recursive: true });
    const one = supervisor();
    await one.start();
    await until("all started", () => said().length === 7);
    await one.retire("extent-node-3");
    const record = readClusterRecord(config.dataDir);
    assert.deepEqual([record?.retired, record?.config.extentNodes], [["extent-node-3"], 2]);
    assert.equal(await one.addNode(), "extent-node-4");
  }));

test("supervisor, a node was retired after the plan of a second one was made: that one does not start", () =>
  withBench(async ({ supervisor, said }) => {
    const one = supervisor();
    await one.start();
    await until("all started", () => said().length === 7);
    const late = supervisor();
    await one.retire("extent-node-1");
    await one.stop();
    const before = said().length;
    await assert.rejects(late.start(), (error) => error instanceof StartError && /has changed in this moment/.test(error.message));
    assert.equal(said().length, before);
    assert.equal(one.folder.supervisor(), undefined, "the folder is free again");
  }));

test("supervisor, the master key is replaced while it runs: the record is sealed by the new key, and by the old one while that can't be read", () =>
  withBench(async ({ config, supervisor }) => {
    const accounts = [{ name: "own", keys: [Buffer.alloc(64, 1).toString("base64")] }];
    const running = supervisor({ ...config, accounts } as ClusterConfig);
    const files = masterKeyFilesBeside(join(config.dataDir, "master-key"));
    const sealedBy = (): string => {
      const { sealedAccounts } = JSON.parse(readFileSync(join(config.dataDir, "cluster.json"), "utf8")) as {
        sealedAccounts: { by: string };
      };
      return sealedAccounts.by;
    };
    await running.start();
    const before = masterKeyState(files).current;
    assert.equal(sealedBy(), before);
    addNextMasterKey(files);
    useNextMasterKey(files);
    const key = readFileSync(files.current);
    const { current } = masterKeyState(files);
    await until("sealed by the new key", () => sealedBy() === current);
    writeFileSync(files.current, "cut");
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal(sealedBy(), current);
    writeFileSync(files.current, key);
    forgetPreviousMasterKey(files);
    assert.deepEqual(readClusterRecord(config.dataDir)?.config.accounts, accounts, "the key before is not needed any more");
    await running.stop();
  }));

test("supervisor that could not start for a taken port: the folder remembers nothing of its flags", () =>
  withBench(async ({ config, supervisor }) => {
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(config.portBase + 103, "127.0.0.1", resolve));
    await assert.rejects(supervisor().start(), StartError);
    await new Promise((resolve) => blocker.close(resolve));
    assert.equal(readClusterRecord(config.dataDir), undefined);
  }));

test("supervisor that can't record its start: nothing is started, the folder is free again", () =>
  withBench(async ({ config, supervisor, said }) => {
    mkdirSync(join(config.dataDir, "cluster.json.new"), { recursive: true });
    const one = supervisor();
    await assert.rejects(one.start(), (error) => error instanceof StartError);
    assert.deepEqual(said(), []);
    assert.equal(one.folder.supervisor(), undefined);
  }));

test("run-supervisor, clusters one after another in one process: each lets go of the signals when it has stopped, whoever asked", () =>
  withBench(async ({ run, config }) => {
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
    const listeners = (): number[] => signals.map((signal) => process.listenerCount(signal));
    const before = listeners();
    const ways: readonly ((running: RunningSupervisor) => unknown)[] = [
      (running) => running.stop(),
      () => control(new DataFolder(config.dataDir).control, { do: "stop" }),
      () => process.emit("SIGHUP", "SIGHUP"),
    ];
    for (const stop of ways) {
      const running = await run();
      assert.deepEqual(
        listeners(),
        before.map((count) => count + 1),
      );
      await stop(running);
      await running.stopped;
      assert.deepEqual(listeners(), before);
    }
  }));

test("run-supervisor, a signal while its processes are being started: all that began are ended", () =>
  withBench(async ({ run, config }) => {
    const before = process.listenerCount("SIGINT");
    const starting = run();
    assert.equal(process.listenerCount("SIGINT"), before + 1, "whoever is interrupted before anyone listens leaves what it has started");
    process.emit("SIGINT", "SIGINT");
    const running = await starting;
    await running.stopped;
    assert.ok(running.supervisor.status().processes.every(({ pid }) => pid === null));
    assert.equal(new DataFolder(config.dataDir).supervisor(), undefined);
    assert.equal(process.listenerCount("SIGINT"), before);
  }));

/** Waits without a timer. */
async function untilTurn(what: string, condition: () => boolean): Promise<void> {
  for (let turn = 0; turn < 5_000_000; turn++) {
    if (condition()) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  assert.fail(`never: ${what}`);
}

test("supervisor, all are ready: each is asked within two seconds, in a round of the machine; when one ends all are asked at once", (t) =>
  withBench(async ({ config }) => {
    let asked = 0;
    const getStatus = async () => {
      asked += 1;
      return ok({ state: "serving", ready: true, waitingFor: [] });
    };
    const transport = { client: () => ({ getStatus }) } as unknown as GrpcTransport;
    const one = new Supervisor({ config, root: dirname(config.dataDir), transport });
    try {
      await one.start();
      await until("all are ready", () => one.ready);
      t.mock.timers.enable({ apis: ["setTimeout"] });
      // The last timer of the system's clock.
      const before = asked;
      await untilTurn("asked once more", () => asked > before);
      await untilTurn("ready", () => one.ready);
      asked = 0;
      t.mock.timers.tick(1_000);
      assert.equal(asked, 0);
      t.mock.timers.tick(1_000);
      assert.equal(asked, 7);
      asked = 0;
      process.kill(one.process("extent-node-2")?.identity?.pid ?? 0, "SIGKILL");
      await untilTurn("it has ended", () => !one.ready);
      t.mock.timers.tick(100);
      assert.ok(asked > 0, "now, and not two seconds after the last time");
    } finally {
      t.mock.timers.reset();
      await one.stop();
    }
  }));
