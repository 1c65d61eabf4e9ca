/** The life of a process, run as one: configuration errors, health door, signals, a role that does not stop, bugs. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { counter, gauge, type Metrics, release, rulesWithout } from "@stamp/base";
import type { HttpHandler, Role, World } from "@stamp/ports";
import { openIdentity } from "@stamp/ports";
import { z } from "zod";
import { nodeWorld } from "../world.ts";
import { runService, type ServiceDefinition } from "./run-service.ts";

const schema = z.object({
  name: z.string().min(1).default("test-1").describe("Name."),
  mode: z.string().default("").describe("What it does wrong."),
  listen: z.string().default(""),
  other: z.string().default(""),
});

/** Answers after the time that the path names, in ms. */
const slowly: HttpHandler = async ({ target }) => {
  await new Promise((resolve) => setTimeout(resolve, Number(/\d+/.exec(target)?.[0] ?? 0)));
  return { status: 200, headers: {}, body: Buffer.from("door") };
};

class TestRole implements Role {
  readonly #world: World;
  readonly #mode: string;
  readonly address = "here";
  readonly metrics: Metrics = {
    openExtents: gauge("test_extents", "Extents.", { state: "open" }),
    "storage.pointReads": counter("test_reads_total", "Reads."),
    "ranges.*.storage.pointReads": counter("test_range_reads_total", "Reads.", { range: "*" }),
  };
  readonly status = {
    ready: false,
    waitingFor: ["the lock service"],
    state: "starting",
    facts: {
      openExtents: 3,
      big: 5n,
      word: "x",
      storage: { pointReads: 8 },
      ranges: [1, 2].map((i) => ({ rangeId: `r${i}`, storage: { pointReads: i } })),
    },
  };
  #identity: { close(): Promise<void> } | undefined;

  constructor(world: World, mode: string) {
    this.#world = world;
    this.#mode = mode;
  }
  async start(): Promise<void> {
    this.#identity = await openIdentity(this.#world);
    if (this.#mode === "fails to start") throw new Error("on purpose");
    if (this.#mode === "warns") this.#world.logger.warn("only this");
    if (this.#mode === "fatal") this.#world.fatal("on purpose");
    if (this.#mode === "bug") setTimeout(() => Promise.reject(new Error("nobody waits for it")), 20);
    setInterval(() => {}, 1000);
  }
  async stop(): Promise<void> {
    await this.#identity?.close();
  }
}

interface Started {
  readonly process: ChildProcess;
  readonly output: () => string;
  readonly line: (pattern: RegExp) => Promise<RegExpMatchArray>;
}

const start = (t: TestContext, dataDir: string, ...flags: string[]): Promise<Started> =>
  startWith(t, [process.execPath, new URL(import.meta.url).pathname, "--data-dir", dataDir, ...flags]);

async function startWith(t: TestContext, [command = "", ...args]: readonly string[]): Promise<Started> {
  const process_ = spawn(command, args, { env: { ...process.env, TEST_OF_STAMP_PROCESS: "1", NODE_TEST_CONTEXT: undefined } });
  t.after(() => process_.kill("SIGKILL"));
  let output = "";
  process_.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  process_.stderr.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  const line = async (pattern: RegExp): Promise<RegExpMatchArray> => {
    for (let i = 0; i < 6_000; i++) {
      const found = output.match(pattern);
      if (found) return found;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    throw new Error(`${pattern} never came: ${output}`);
  };
  return { process: process_, output: () => output, line };
}

async function exitOf(started: Started): Promise<number | null> {
  if (started.process.exitCode !== null) return started.process.exitCode;
  const [code] = (await once(started.process, "exit")) as [number | null];
  return code;
}

if (process.env.TEST_OF_STAMP_PROCESS === "1") {
  const service: ServiceDefinition<typeof schema, TestRole> = {
    role: "test-role",
    schema,
    create: (world, config) => new TestRole(world, config.mode),
    doors: (_role, config) => [
      { name: "door", listen: config.listen, handler: slowly },
      { name: "other", listen: config.other, handler: slowly },
    ],
  };
  const rulesOff = process.argv.some((each) => each.endsWith("without a rule"));
  await runService(service, rulesOff ? (options) => nodeWorld({ ...options, rules: rulesWithout("fenceDurable") }) : nodeWorld);
} else {
  test("process: health door, HTTP door, metrics, and a clean stop; a second one on the same folder does not start", {
    timeout: 60_000,
  }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "stamp-process-"));
    t.after(() => rm(folder, { recursive: true }));
    const started = await start(t, folder, "--http", "127.0.0.1:0", "--listen=127.0.0.1:0");
    const [, http] = await started.line(/"http":"([^"]+)"/);
    const [, door] = await started.line(/"door":"door","listen":"([^"]+)"/);
    await started.line(/"msg":"started"/);
    const get = async (address: string | undefined, path: string): Promise<[number, string]> => {
      const response = await fetch(`http://${address}${path}`);
      return [response.status, await response.text()];
    };
    assert.equal((await get(http, "/live"))[0], 200);
    const [status, ready] = await get(http, "/ready");
    assert.equal(status, 503);
    const toldToAll = { role: "test-role", name: "test-1", release, ready: false, state: "starting", waitingFor: ["the lock service"] };
    assert.deepEqual(JSON.parse(ready), toldToAll, "no facts: they name accounts");
    const [, metrics] = await get(http, "/metrics");
    assert.match(metrics, /stamp_test_extents\{role="test-role",name="test-1",state="open"\} 3\n/);
    assert.match(metrics, /# TYPE stamp_fact_big untyped\nstamp_fact_big\{[^}]*\} 5\n/);
    assert.match(metrics, /# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes\{[^}]*\} \d{6,}\n/);
    assert.match(metrics, /nodejs_eventloop_lag_p99_seconds/);
    assert.doesNotMatch(metrics, /word/);
    assert.match(metrics, /# TYPE stamp_test_reads_total counter\nstamp_test_reads_total\{role="test-role",name="test-1"\} 8\n/);
    assert.match(metrics, /# TYPE stamp_test_range_reads_total counter\n([^#]*range="r\d"\} \d\n){2}/);
    assert.match(metrics, /stamp_test_range_reads_total\{role="test-role",name="test-1",range="r2"\} 2\n/);
    assert.deepEqual(await get(door, "/"), [200, "door"]);

    const second = await start(t, folder);
    assert.equal(await exitOf(second), 69);
    assert.match(second.output(), /in use/);

    started.process.kill("SIGTERM");
    assert.equal(await exitOf(started), 0, started.output());
    assert.match(started.output(), /"msg":"stopped"/);
    const third = await start(t, folder, "--log-level", "warn", "--mode", "warns");
    await third.line(/only this/);
    third.process.kill("SIGINT");
    assert.equal(await exitOf(third), 0);
    assert.equal(third.output().trim().split("\n").length, 1, "nothing below the log level is written");
  });

  test("process: exit codes tell wrong configuration, failed start, bug and fatal apart", { timeout: 60_000 }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "stamp-process-"));
    t.after(() => rm(folder, { recursive: true }));
    const wrong = await start(t, folder, "--log-level", "loud");
    assert.equal(await exitOf(wrong), 64);
    assert.match(wrong.output(), /logLevel \(environment STAMP_LOG_LEVEL, flag --log-level\)/);
    const help = await start(t, folder, "--help");
    assert.equal(await exitOf(help), 0);
    assert.match(help.output(), /--mode <string> +STAMP_MODE/);
    const open = await start(t, folder, "--listen", "0.0.0.0:0");
    assert.equal(await exitOf(open), 64);
    assert.match(open.output(), /others can connect to 0\.0\.0\.0:0, and there is no secret .*\n.*export STAMP_CLUSTER_SECRET_FILE=/);
    const health = await start(t, folder, "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0");
    assert.equal(await exitOf(health), 64, "the health door is an internal port, too");
    const secret = "s".repeat(40);
    for (const flags of [[`--cluster-secret=${secret}`], ["--cluster-secret-previous", secret]]) {
      const told = await start(t, folder, ...flags);
      assert.equal(await exitOf(told), 64);
      assert.match(told.output(), /not given by a flag/);
    }
    const closed = await start(t, folder, "--listen", "0.0.0.0:0", "--cluster-secret-file", `${folder}/secret`, "--cluster-secret-make");
    await closed.line(/"msg":"started"/);
    closed.process.kill("SIGKILL");
    await exitOf(closed);
    process.env.STAMP_MOED = "mistyped";
    t.after(() => delete process.env.STAMP_MOED);
    for (const [mode, code, words] of [
      ["fails to start", 69, /could not start.*on purpose|on purpose.*could not start/],
      ["without a rule", 69, /could not start.*safety rules are switched off|safety rules are switched off.*could not start/],
      ["bug", 70, /nobody waits for it/],
      ["fatal", 71, /on purpose/],
    ] as const) {
      const started = await start(t, folder, "--mode", mode);
      assert.equal(await exitOf(started), code, started.output());
      assert.match(started.output(), words);
      assert.match(started.output(), /"unknown":\[\{"name":"STAMP_MOED","nearest":"STAMP_MODE"\}\]/);
    }
  });

  test("process, asked to stop: /ready turns 503 while the doors serve on, then all doors drain at once, and what takes too long is cut", {
    timeout: 60_000,
  }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "stamp-process-"));
    t.after(() => rm(folder, { recursive: true }));
    const flags = ["--http=127.0.0.1:0", "--listen=127.0.0.1:0", "--other=127.0.0.1:0", "--stop-not-ready-ms=1500", "--stop-drain-ms=2500"];
    const started = await start(t, folder, ...flags);
    const [, http] = await started.line(/"http":"([^"]+)"/);
    const [, door] = await started.line(/"door":"door","listen":"([^"]+)"/);
    const [, other] = await started.line(/"door":"other","listen":"([^"]+)"/);
    await started.line(/"msg":"started"/);
    const get = (address: string | undefined, path: string): Promise<string> =>
      fetch(`http://${address}${path}`).then(
        async (answer) => `${answer.status} ${await answer.text()}`,
        () => "cut",
      );
    const [ends, tooLong, alsoTooLong] = [get(door, "/3000"), get(door, "/20000"), get(other, "/20000")];
    await new Promise((resolve) => setTimeout(resolve, 300));
    started.process.kill("SIGTERM");
    await started.line(/"msg":"stopping"/);
    const ready = await get(http, "/ready");
    assert.match(ready, /^503 .*"state":"stopping"/);
    assert.deepEqual([await get(door, "/0"), await get(other, "/0")], ["200 door", "200 door"], "until load balancers have noticed");
    assert.deepEqual([await ends, await tooLong, await alsoTooLong], ["200 door", "cut", "cut"]);
    assert.equal(await exitOf(started), 0);
    for (const name of ["door", "other"])
      assert.match(started.output(), new RegExp(`"door":"${name}","requests":1,.*"requests were cut because the process stops"`));
    const at = [...started.output().matchAll(/"time":"([^"]+)"[^\n]*requests were cut/g)].map(([, time = ""]) => Date.parse(time));
    assert.ok(
      at.length === 2 && Math.abs((at[0] ?? 0) - (at[1] ?? 0)) < 1_000,
      "both doors drain in the same time, not one after the other",
    );
  });

  test("process: it may open 256 files, and one client has 400 connections: the health door and another client are answered", {
    timeout: 60_000,
    skip: process.platform === "linux" ? false : "its limits are in /proc",
  }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "stamp-process-"));
    t.after(() => rm(folder, { recursive: true }));
    const doors = ["--http=127.0.0.1:0", "--listen=127.0.0.1:0", "--other=127.0.0.1:0"];
    const program = [process.execPath, new URL(import.meta.url).pathname, "--data-dir", folder, ...doors];
    const started = await startWith(t, ["sh", "-c", 'ulimit -n 256; exec "$0" "$@"', ...program]);
    const [, http] = await started.line(/"http":"([^"]+)"/);
    const [, door = ""] = await started.line(/"door":"door","listen":"([^"]+)"/);
    await started.line(/"openFilesMax":256,"connectionsOfDoor":48,.*raise ulimit -n/);
    await started.line(/"msg":"started"/);
    const port = Number(door.split(":")[1]);
    const open = Array.from({ length: 400 }, () => {
      const socket = connect({ host: "127.0.0.1", port, localAddress: "127.0.0.2" });
      socket.on("error", () => {});
      // The head of a request that does not end.
      socket.write("GET / HTTP/1.1\r\nHost: x\r\n");
      return socket;
    });
    t.after(() => {
      for (const socket of open) socket.destroy();
    });
    await Promise.all(open.map((socket) => (socket.pending ? once(socket, "connect").catch(() => {}) : undefined)));
    for (let round = 0; round < 3; round++) {
      assert.equal((await fetch(`http://${http}/live`)).status, 200);
      assert.equal((await fetch(`http://${door}/0`)).status, 200);
    }
    assert.ok(open.filter(({ closed }) => !closed).length <= 48);
  });
}
