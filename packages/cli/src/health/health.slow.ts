/**
 * `stamp health` on a real cluster: kinds of findings are provoked one after the other, each is told with its cause while it lasts, and is
 * gone afterwards. Prints what a person saw and how long the command took.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { type ClusterStatus, type ControlRequest, control, DataFolder, type ReservedPorts, reservePorts } from "@stamp/cluster";

const root = join(import.meta.dirname, "../../../..");
const dataDir = mkdtempSync(join(tmpdir(), "stamp-health-"));
const foundWithinMs = 60_000;
/** Kinds that tell of a busy machine: of the last minute, so they last no longer than `foundWithinMs` and a little. */
const slowness = ["journal-slow", "metadata-slow", "requests-slow"];

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly tookMs: number;
}

function stamp(...args: readonly string[]): Promise<Ran> {
  const startMs = performance.now();
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [join(root, "stamp.mjs"), ...args], (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err, tookMs: performance.now() - startMs }),
    );
  });
}

const here = ["--data", dataDir] as const;

let reserved: ReservedPorts | undefined;

/** An option that is given twice is refused. */
const waiting = (flags: readonly string[]): readonly string[] => (flags.includes("--ready-timeout-s") ? [] : ["--ready-timeout-s", "120"]);

/** The first start on a folder chooses ports, which stay reserved; later ones remember them. */
async function up(...flags: readonly string[]): Promise<Ran> {
  if (!isFirst()) return await stamp("up", "-d", ...waiting(flags), ...here, ...flags);
  await reserved?.release();
  reserved = await reservePorts();
  // One lock service: what is found when nobody stands in for it. tests/drills/lock-service-folders.slow.ts has three.
  return await stamp("up", "-d", "--lock-services", "1", ...waiting(flags), ...here, "--port-base", String(reserved.portBase), ...flags);
}

const isFirst = (): boolean => new DataFolder(dataDir).isNew;
const ask = (request: ControlRequest): Promise<ClusterStatus> => control(new DataFolder(dataDir).control, request);
const hold = (name: string): Promise<ClusterStatus> => ask({ do: "hold", name });
const start = (name: string): Promise<ClusterStatus> => ask({ do: "start", name });
const signal = (name: string, which: "SIGKILL" | "SIGSTOP" | "SIGCONT"): Promise<ClusterStatus> =>
  ask({ do: "signal", name, signal: which });

interface Found {
  readonly code: string;
  readonly severity: string;
  readonly subject: string;
  readonly cause: string;
  readonly help: string;
}

interface Health extends Ran {
  readonly sentence: string;
  readonly state: string;
  readonly findings: readonly Found[];
}

async function health(): Promise<Health> {
  const ran = await stamp("health", "--json", ...here);
  const { sentence, state, findings } = JSON.parse(ran.out) as Pick<Health, "sentence" | "state" | "findings">;
  return { ...ran, sentence, state, findings };
}

/** Asks until every one of these kinds is found, with the exit code of the worst; prints what was said. */
async function findsAll(t: TestContext, codes: readonly string[], exitCode: number): Promise<readonly Found[]> {
  const endMs = performance.now() + foundWithinMs * 2;
  for (;;) {
    const now = await health();
    const missing = codes.filter((code) => !now.findings.some((each) => each.code === code));
    if (missing.length === 0) {
      t.diagnostic(`${(now.tookMs / 1_000).toFixed(2)} s, exit ${now.code}: ${now.sentence}`);
      const found = now.findings.filter(({ code }) => codes.includes(code));
      for (const each of found) t.diagnostic(`  ${each.severity} ${each.code}  ${each.subject}  ${each.cause}  → ${each.help}`);
      // Findings that end by themselves may stand beside them: about a machine that others use, too, or after the test before.
      if (now.code === exitCode || performance.now() > endMs) {
        assert.equal(now.code, exitCode, now.out);
        return found;
      }
    }
    if (missing.length > 0) assert.ok(performance.now() < endMs, `${missing.join(", ")} not found: ${now.out}`);
  }
}

/** Asks until none of these kinds is found any more. */
async function endsAll(codes: readonly string[]): Promise<void> {
  const endMs = performance.now() + foundWithinMs * 2;
  for (;;) {
    const { findings, out } = await health();
    if (!findings.some(({ code }) => codes.includes(code))) return;
    assert.ok(performance.now() < endMs, `still there: ${out}`);
  }
}

before(async () => {
  const { code, err, out } = await up("--roles", JSON.stringify({ "extent-node": { scrubPauseMs: 1_000, metadataCopyEveryMs: 2_000 } }));
  assert.equal(code, 0, out + err);
});

after(async () => {
  await stamp("down", ...here);
  rmSync(dataDir, { recursive: true, force: true });
});

test("healthy: one sentence, exit code 0, and status begins with it; the rules for alerts name metrics that processes tell", async () => {
  await endsAll(slowness);
  const now = await health();
  assert.deepEqual([now.code, now.state, now.findings], [0, "healthy", []], now.out);
  const status = await stamp("status", ...here);
  assert.ok(status.out.startsWith(`${now.sentence}\n`), status.out);
  const { processes, endpoints } = await ask({ do: "status" });
  // Times of requests are told from the first request on, findings of scrubs from the first scrub on.
  await (await fetch(endpoints.blob)).arrayBuffer();
  const named = readFileSync(join(root, "docs/guides/stamp-alerts.yml"), "utf8").match(/\bstamp_\w+/g) ?? [];
  // Without TLS there is nothing to tell of certificates (packages/ports-node/src/process/metrics.test.ts), with one store nothing of a log.
  const rules = named.filter((name) => !/^stamp_((cluster_)?certificate|lock_service_log)_/.test(name));
  const endMs = performance.now() + foundWithinMs;
  for (;;) {
    const pages = await Promise.all(processes.map(async ({ http }) => (await fetch(`http://${http}/metrics`)).text()));
    const unknown = rules.filter((name) => !pages.some((page) => page.includes(`\n${name}{`)));
    if (unknown.length === 0) break;
    assert.ok(performance.now() < endMs, `metrics that no process tells: ${unknown.join(", ")}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
});

test("files of the stamp are its user's alone; if they are opened to others, that is found", async (t) => {
  // The processes go on meanwhile: a file that is replaced may be gone before it is looked at.
  const openToOthers = (path: string): boolean => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    return found !== undefined && (found.mode & 0o077) !== 0 && !found.isSymbolicLink();
  };
  assert.deepEqual(everythingIn(dataDir).filter(openToOthers), []);
  for (const path of [dataDir, join(dataDir, "logs")]) chmodSync(path, 0o755);
  await findsAll(t, ["files-open"], 6);
  for (const path of [dataDir, join(dataDir, "logs")]) chmodSync(path, 0o700);
  await endsAll(["files-open"]);
});

const everythingIn = (folder: string): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? [path, ...everythingIn(path)] : [path];
  });

test("extent nodes: paused, ended, too few, drained", async (t) => {
  await signal("extent-node-2", "SIGSTOP");
  const [paused] = await findsAll(t, ["node-down"], 6);
  assert.match(paused?.cause ?? "", /did not answer in time/);
  const status = await stamp("status", ...here);
  assert.match(status.out, /^extent-node-2 .* unknown: no answer$/m, "what does not answer is not shown as serving");
  assert.equal(status.code, 4);
  await signal("extent-node-2", "SIGCONT");
  await hold("extent-node-1");
  const down = await findsAll(t, ["node-down", "no-spare-node", "replicas-awaited"], 6);
  assert.match(down.find(({ code }) => code === "node-down")?.cause ?? "", /it is down/);
  await hold("extent-node-2");
  await findsAll(t, ["nodes-below-copies"], 6);
  await hold("extent-node-3");
  await findsAll(t, ["nodes-below-minimum"], 7);
  for (const number of [1, 2, 3]) await start(`extent-node-${number}`);
  await endsAll(["node-down", "nodes-below-minimum", "nodes-below-copies", "replicas-awaited"]);
  await stamp("node", "drain", "extent-node-4", ...here);
  await findsAll(t, ["node-draining"], 0);
  await stamp("node", "undrain", "extent-node-4", ...here);
  await endsAll(["node-draining"]);
});

test("partition servers, front-ends and managers: paused, ended, without a standby, without a leader", async (t) => {
  const { processes } = await ask({ do: "status" });
  const standby = processes.find(({ role, state }) => role === "stream-manager" && state === "standby")?.name ?? "";
  const leader = processes.find(({ role, state }) => role === "stream-manager" && state === "leader")?.name ?? "";
  await signal("partition-server-1", "SIGSTOP");
  await signal("partition-server-2", "SIGSTOP");
  await findsAll(t, ["range-server-away", "process-silent", "role-absent"], 7);
  await signal("partition-server-1", "SIGCONT");
  await signal("partition-server-2", "SIGCONT");
  await hold("front-end-1");
  await findsAll(t, ["role-absent", "process-down"], 7);
  await start("front-end-1");
  await endsAll(["role-absent", "process-starting", "range-server-away"]);
  await hold(standby);
  await findsAll(t, ["no-standby"], 6);
  await hold(leader);
  await findsAll(t, ["no-stream-manager"], 7);
  assert.equal((await stamp("upgrade", "status", ...here)).code, 4, "a level that nobody told is not 0");
  await start(standby);
  await start(leader);
  await endsAll(["no-stream-manager", "no-standby", "role-absent", "range-server-away", "range-unassigned"]);
});

test("a process that ends again and again, and a process that can't start", async (t) => {
  for (let restarts = 0; restarts < 3; restarts++) {
    const before = (await ask({ do: "status" })).processes.find(({ name }) => name === "front-end-1")?.restarts ?? 0;
    await signal("front-end-1", "SIGKILL");
    for (;;) {
      const now = (await ask({ do: "status" })).processes.find(({ name }) => name === "front-end-1");
      if ((now?.restarts ?? 0) > before && now?.ready === true) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  await findsAll(t, ["process-restarts"], 6);
  const address = (await ask({ do: "status" })).processes.find(({ name }) => name === "extent-node-1")?.grpc ?? "";
  await hold("extent-node-1");
  // Whoever calls the node meanwhile is let go at once: the server could not be closed otherwise.
  const other = createServer((socket) => socket.destroy()).listen(Number(address.split(":")[1]), "127.0.0.1");
  t.after(() => other.close());
  await start("extent-node-1");
  const [cannot] = await findsAll(t, ["process-cannot-start"], 7);
  assert.match(cannot?.cause ?? "", /taken by another process/);
  await new Promise((resolve) => other.close(resolve));
  await endsAll(["process-cannot-start", "node-down"]);
});

test("lock service and supervisor: paused, killed", async (t) => {
  await signal("lock-service-1", "SIGSTOP");
  await findsAll(t, ["lock-service-away"], 7);
  await signal("lock-service-1", "SIGCONT");
  await endsAll(["lock-service-away", "process-not-ready", "range-unassigned", "range-loading"]);
  const { supervisorPid } = await ask({ do: "status" });
  assert.ok(supervisorPid !== null);
  process.kill(supervisorPid, "SIGSTOP");
  await findsAll(t, ["supervisor-silent"], 6);
  process.kill(supervisorPid, "SIGCONT");
  await endsAll(["supervisor-silent"]);
  process.kill(supervisorPid, "SIGKILL");
  const [gone] = await findsAll(t, ["supervisor-gone"], 7);
  assert.match(gone?.help ?? "", /\.\/stamp up -d --data/);
});

test("a start with other flags: a node left out, more copies than nodes, few domains, one server, no scrub, a certificate that ends", async (t) => {
  const made = await stamp("certs", "init", "--days", "12", ...here);
  assert.equal(made.code, 0, made.err);
  const roles = JSON.stringify({ "extent-node": { scrubBytesPerSecond: 0, metadataCopyEveryMs: 2_000 } });
  const tls = ["--tls-cert", join(dataDir, "certs/server.pem"), "--tls-key", join(dataDir, "certs/server-key.pem")];
  const shape = ["--extent-nodes", "3", "--copies", "5", "--partition-servers", "1", "--fault-domains", '["a","b"]'];
  const ran = await up(...shape, ...tls, "--roles", roles);
  assert.equal(ran.code, 9, ran.out + ran.err);
  assert.match(ran.out, /NOT STARTED: extent-node-4/);
  assert.doesNotMatch(ran.out, /^ready/m);
  assert.match(ran.err, /extent-node-4 is not started/);
  assert.match(ran.err, /copies is 5, but there are only 3 extent nodes: every extent gets 3 replicas/);
  const kinds = ["node-not-started", "copies-not-possible", "domains-too-few", "single-server", "scrub-off", "certificate-ends"];
  await findsAll(t, kinds, 6);

  const wrong = await stamp("node", "add", "extent-node-7", ...here);
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /extent-node-7 is not the next extent node, that is extent-node-4/);
  const added = await stamp("node", "add", "extent-node-4", ...here);
  assert.equal(added.code, 0, added.err);
  assert.match(added.out, /extent-node-4 is added and ready/);
  await endsAll(["node-not-started"]);
});

test("the disk of the lock service is lost: up, health and status name the newest copy and the command, which brings everything back", async (t) => {
  await stamp("down", ...here);
  rmSync(join(dataDir, "lock-service-1"), { recursive: true });
  const ran = await up();
  assert.equal(ran.code, 4, ran.out + ran.err);
  const told = /Put it back: (.*)$/m.exec(ran.err)?.[1] ?? "";
  const [empty] = await findsAll(t, ["store-empty"], 7);
  assert.match(empty?.cause ?? "", /the newest copy is at extent-node-\d+: .*\.snapshot, up to transaction \d+, taken /);
  assert.equal(empty?.help, `put the newest copy back: ${told}`);
  const status = await stamp("status", ...here);
  assert.ok(status.out.includes(`→ put the newest copy back: ${told}`), status.out);
  const logs = readdirSync(join(dataDir, "logs")).filter((name) => /^(lock-service|extent-node)/.test(name));
  assert.doesNotMatch(
    [ran.err, ran.out, status.out, ...logs.map((name) => readFileSync(join(dataDir, "logs", name), "utf8"))].join(),
    /--init/,
  );
  const command = told.replaceAll("./stamp ", `${process.execPath} ${join(root, "stamp.mjs")} `);
  const restored = await new Promise<Ran>((resolve) => {
    const child = execFile("sh", ["-c", command], { cwd: root }, (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, out, err, tookMs: 0 }),
    );
  });
  assert.equal(restored.code, 0, restored.out + restored.err);
  assert.match(restored.out, /^ready after/m);
  await endsAll(["store-empty", "process-not-ready", "range-unassigned", "range-loading"]);
});

test("disks that take nothing more", async (t) => {
  await stamp("down", ...here);
  const full = JSON.stringify({ "extent-node": { highWaterPercent: 1, highWaterFreeBytes: 1e15 } });
  await up("--roles", full, "--ready-timeout-s", "10");
  await findsAll(t, ["disks-full", "stream-manager-waits"], 7);
});
