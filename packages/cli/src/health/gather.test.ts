/** Gathers facts of a stamp in which nobody answers: every wait is bounded, and all of them end within the time of a status. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { refused } from "@stamp/base";
import { DataFolder, loadConfig, planCluster } from "@stamp/cluster";
import type { CallOptions, Transport } from "@stamp/ports";
import { gather } from "./gather.ts";

/** A status is there within 2 s: what is left of them is for the start of the command line and for its text. */
const waitsEndMs = 1_500;

function folder(t: TestContext): string {
  const dataDir = mkdtempSync(join(tmpdir(), "stamp-gather-"));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
}

test("gather, supervisor and processes hang: every call has a deadline, and no deadline ends later than the status is due", async (t) => {
  const config = loadConfig({ directory: "/", root: "/", environment: {}, flags: { dataDir: folder(t) } });
  const data = new DataFolder(config.dataDir);
  data.prepare();
  assert.equal(data.acquire(), undefined);
  t.after(() => data.release());
  let now = 400;
  const ends: number[] = [];
  const called = (timeoutMs: number | undefined): void => void ends.push(now + (timeoutMs ?? Number.POSITIVE_INFINITY));
  const silent = async (_request: object, { timeoutMs }: CallOptions) => {
    called(timeoutMs);
    return refused("deadlineExceeded", "timeout", "no answer");
  };
  const transport = { client: () => new Proxy({}, { get: () => silent }) } as unknown as Transport;
  const facts = await gather(config, transport, {
    view: true,
    nowMs: () => now,
    ask: async (_path, _request, timeoutMs) => {
      called(timeoutMs);
      // The supervisor is waited for alone for a while, then all others are asked.
      now += 200;
      throw new Error("no answer");
    },
  });
  const managers = config.streamManagers * 6 + config.partitionManagers * 2;
  assert.equal(
    ends.length,
    1 + 2 * (planCluster(config).processes.length + managers),
    "all were asked, and once more because all were silent",
  );
  assert.deepEqual([...new Set(ends)], [waitsEndMs, now + 3_000]);
  assert.equal(facts.supervisor, "silent");
  assert.ok(facts.processes.every(({ answer }) => answer === undefined));
});

test("gather, half of the running processes are silent: everybody is asked once more, also without a process id, and only who is silent again is told", async (t) => {
  const config = loadConfig({ directory: "/", root: "/", environment: {}, flags: { dataDir: folder(t) } });
  const data = new DataFolder(config.dataDir);
  data.prepare();
  assert.equal(data.acquire(), undefined);
  t.after(() => data.release());
  const { processes, ...plan } = planCluster(config);
  const runs = { state: "serving", ready: true, waitingFor: [], restarts: 0, lastExit: "" };
  const listed = processes.map(({ role, name, grpc, http }, at) => ({ role, name, grpc, http, pid: 100 + at, ...runs }));
  const told = { ...plan, running: true, ready: true, supervisorPid: 1, dataDir: config.dataDir, processes: listed };
  /** Asks of Status, by address. `late`: processes that answer the second time only. */
  const factsWith = async (late: number, dead: number, numbered = true) => {
    const seen = { ...told, processes: numbered ? listed : listed.map((each) => ({ ...each, pid: null, state: "not answering" })) };
    const asks = new Map<string, number>();
    const getStatus = (address: string) => async () => {
      const count = (asks.get(address) ?? 0) + 1;
      asks.set(address, count);
      const at = listed.findIndex(({ grpc }) => grpc === address);
      if (at < dead || (at < dead + late && count === 1)) return refused("deadlineExceeded", "timeout", "no answer");
      return { ok: true, value: { ...runs, release: "", uptimeMs: 1n, wallMs: 0n, wallSetMs: 0n, facts: {}, pid: 1, secretIds: [] } };
    };
    const silent = async () => refused("unavailable", "connectFailed", "nobody is there");
    const client = (address: string) => new Proxy({}, { get: (_, name) => (name === "getStatus" ? getStatus(address) : silent) });
    const transport = { client } as unknown as Transport;
    const facts = await gather(config, transport, { view: false, nowMs: () => 400, ask: async () => seen });
    const absent = facts.processes.filter(({ answer }) => answer === undefined).length;
    return { absent, asks: Math.max(...asks.values()) };
  };
  const half = Math.ceil(listed.length / 2);
  assert.deepEqual(await factsWith(half, 0), { absent: 0, asks: 2 });
  assert.deepEqual(await factsWith(half, 1), { absent: 1, asks: 2 });
  assert.deepEqual(await factsWith(0, 2), { absent: 2, asks: 1 });
  assert.deepEqual(await factsWith(half, 1, false), { absent: 1, asks: 2 }, "containers and other hosts, too");
});

test("gather, the supervisor answers late: what it knows of a process that is down is told all the same", async (t) => {
  const config = loadConfig({ directory: "/", root: "/", environment: {}, flags: { dataDir: folder(t) } });
  const data = new DataFolder(config.dataDir);
  data.prepare();
  assert.equal(data.acquire(), undefined);
  t.after(() => data.release());
  const silent = async () => refused("unavailable", "connectFailed", "nobody is there");
  const transport = { client: () => new Proxy({}, { get: () => silent }) } as unknown as Transport;
  const { processes, ...plan } = planCluster(config);
  const down = { pid: null, state: "down", ready: false, waitingFor: [], restarts: 2, lastExit: "signal SIGKILL" };
  const status = { ...plan, running: true, ready: false, supervisorPid: 1, dataDir: config.dataDir };
  const told = { ...status, processes: processes.map(({ role, name, grpc, http }) => ({ role, name, grpc, http, ...down })) };
  const late = new Promise<typeof told>((resolve) => setTimeout(resolve, 400, told));
  const facts = await gather(config, transport, { view: false, nowMs: () => 400, ask: () => late });
  assert.equal(facts.supervisor, "answers");
  assert.deepEqual([...new Set(facts.processes.map(({ state, lastExit }) => `${state}, ${lastExit}`))], ["down, signal SIGKILL"]);
});

test("health and status, every process takes the connection and never answers: they end by themselves and say that nothing is known", async (t) => {
  const held = new Set<Socket>();
  const mute = createServer((socket) => void held.add(socket.on("error", () => {})));
  await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of held) socket.destroy();
    mute.close();
  });
  const { port } = mute.address() as { readonly port: number };
  const names = ["lock-service-1", "extent-node-1", "stream-manager-1", "partition-manager-1", "partition-server-1", "front-end-1"];
  const env = {
    ...process.env,
    STAMP_COMPOSE: "docker compose -f compose.ha.yml -p two",
    STAMP_PROCESSES: names.map((name) => `${name}=127.0.0.1:${port}:${port}`).join(" "),
  };
  const dataDir = folder(t);
  const stamp = (word: string): Promise<{ readonly code: number | null; readonly out: string }> =>
    new Promise((resolve) => {
      const main = join(import.meta.dirname, "..", "main.ts");
      const child = execFile(process.execPath, [main, word, "--data", dataDir], { env }, (_error, out, err) =>
        resolve({ code: child.exitCode, out: out + err }),
      );
    });
  const [health, status] = await Promise.all([stamp("health"), stamp("status")]);
  assert.equal(health.code, 6, health.out);
  assert.match(health.out, /^NOT KNOWN: 6 of 6 processes did not answer in time/);
  assert.equal(health.out.match(/→/g)?.length, 1, health.out);
  assert.match(health.out, /docker compose -f compose\.ha\.yml -p two exec 127\.0\.0\.1 stamp health$/m);
  assert.equal(status.code, 4, status.out);
  assert.equal(
    status.out.split("\n").filter((line) => /^[a-z]+-[a-z]+-1 .* unknown: no answer/.test(line)).length,
    names.length,
    status.out,
  );
  assert.ok(held.size > 0);
});
