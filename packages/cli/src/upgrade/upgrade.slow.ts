/**
 * An upgrade of a stamp process by process, the way back, and its end, under a client that checks every promise:
 *
 *   all of the release before → each of this release → each of the release before → each of this release → finalize → the release before refuses
 */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { featureLevel, unwrap } from "@stamp/base";
import {
  loadConfig,
  ownTransport,
  type PlannedProcess,
  planCluster,
  reservePorts,
  roles,
  runSupervisor,
  Supervisor,
  secretFilesOf,
} from "@stamp/cluster";
import { BlobClient, CheckingClient } from "@stamp/drills";
import { decodeFormatMarker, formatMarkerFile } from "@stamp/ports";
import { NodeDigest } from "@stamp/ports-node";
import { FeatureLevels } from "@stamp/wire";
import { root } from "../context.ts";
import { whyNoReleaseBefore, writeReleaseBefore } from "./release-before.ts";
import { ProcessesOfTwoReleases } from "./testing/processes-of-two-releases.ts";
import type { UpgradeState } from "./upgrade-state.ts";

const couldNotStart = 69;
const folder = mkdtempSync(join(tmpdir(), "stamp-upgrade-"));
const oldRoot = join(folder, "before");
const dataDir = join(folder, "data");
const flags = {
  // The release before begins a stamp with one lock service.
  ...{ dataDir, lockServices: 1, extentNodes: 4, streamManagers: 2, partitionManagers: 1, partitionServers: 2 },
  ...{ journalSegmentBytes: 16 * 1024 * 1024, portBase: (await reservePorts()).portBase },
};
const config = loadConfig({ directory: folder, root, environment: {}, flags });
mkdirSync(join(dataDir, "logs"), { recursive: true });
writeFileSync(secretFilesOf(config).current, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
const { connectionString, processes } = planCluster(config);
const transport = ownTransport(config);
const running = new ProcessesOfTwoReleases(join(dataDir, "logs"), transport);
const client = BlobClient.fromConnectionString(connectionString, { timeoutMs: 20_000 });
const checking = new CheckingClient({ client, container: "kept", smallWriters: 2, largeWriters: 1, largePauseMs: 1_000, pauseMs: 50 });

const missing = whyNoReleaseBefore(root);
before(() => {
  if (missing === undefined) writeReleaseBefore(root, oldRoot);
});

after(async () => {
  await checking.stop(0);
  await running.stopAll();
  await transport.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Said {
  readonly code: number;
  readonly out: string;
  readonly text: string;
}

/** The command line finds the processes as it does in containers: no supervisor has started them. */
function stamp(...args: readonly string[]): Promise<Said> {
  const list = processes.map(({ name, grpc, http }) => `${name}=${grpc}:${http.split(":")[1]}`).join(" ");
  const env = { ...process.env, STAMP_PROCESSES: list, STAMP_CONNECTION_STRING: connectionString };
  return new Promise((done) => {
    const child = execFile(process.execPath, [join(root, "stamp.mjs"), ...args, "--data", dataDir], { env }, (_error, out, err) =>
      done({ code: child.exitCode ?? -1, out, text: out + err }),
    );
  });
}

async function upgradeStatus(): Promise<UpgradeState> {
  const { code, out, text } = await stamp("upgrade", "status", "--json");
  assert.equal(code, 0, text);
  return JSON.parse(out) as UpgradeState;
}

/** Stops and starts each process with the other release, those of a role one after another; the next only when the one before serves. */
async function change(to: string, some: readonly PlannedProcess[] = processes): Promise<void> {
  for (const planned of some) {
    await running.stop(planned.name);
    running.start(planned, to);
    await running.ready([planned]);
  }
  await running.ready(processes);
}

const markedLevel = (name: string): number | undefined => {
  const digest = new NodeDigest();
  const marker = decodeFormatMarker(readFileSync(join(dataDir, name, "files", formatMarkerFile)), (bytes) => digest.crc32c(bytes));
  return marker?.["feature-level"]?.version;
};

function nothingBroken(): void {
  assert.deepEqual(checking.broken, []);
}

test("upgrade process by process, way back, upgrade and finalize: nothing acknowledged is lost, and the release before then refuses", async (t) => {
  if (missing !== undefined) return t.skip(missing);
  for (const planned of processes) running.start(planned, oldRoot, planned.role === "lock-service" ? { STAMP_INIT: "true" } : {});
  await running.ready(processes);
  await checking.start();

  const [first, ...others] = processes;
  assert.ok(first?.role === "lock-service");
  await change(root, [first]);
  const begun = await upgradeStatus();
  assert.deepEqual([begun.level, begun.possible], [0, 0]);
  assert.ok(begun.inTheWay.some(({ process, why }) => process === "front-end-1" && /before feature levels/.test(why)));
  const tooEarly = await stamp("upgrade", "finalize", "--timeout", "1");
  assert.equal(tooEarly.code, 1);
  assert.match(tooEarly.text, /stays 0[\s\S]*extent-node-1: it is of a release before feature levels[\s\S]*Nothing was changed/);
  await change(root, others);
  nothingBroken();
  const possible = await untilPossible();
  assert.deepEqual([possible.level, possible.target, possible.possible], [0, featureLevel, featureLevel]);
  t.diagnostic("every process is of this release; the level is 0, and the next one is possible");

  await change(oldRoot);
  nothingBroken();
  t.diagnostic("every process is of the release before again");

  await change(root);
  nothingBroken();
  for (const { name } of processes) assert.equal(markedLevel(name), undefined, `${name}: nothing closes the way back before finalize`);
  await untilPossible();
  const done = await stamp("upgrade", "finalize", "--json");
  assert.equal(done.code, 0, done.text);
  assert.deepEqual(JSON.parse(done.out), { level: featureLevel, before: 0 });
  for (const { name } of processes) assert.equal(markedLevel(name), featureLevel, name);
  t.diagnostic("finalized, and every process has heard it");

  await checking.stop(60_000);
  const report = await checking.verify();
  assert.deepEqual(report.broken, []);
  assert.ok(report.small.acknowledged > 100 && report.large.acknowledged > 5 && report.counter.acknowledged > 100, JSON.stringify(report));
  t.diagnostic(`${report.readBack} blobs read back, ${report.readsWhileRunning} read meanwhile`);

  for (const role of roles) {
    const planned = processes.find((each) => each.role === role) as PlannedProcess;
    await running.stop(planned.name);
    const { code, log } = await running.startAndEnd(planned, oldRoot);
    assert.equal(code, couldNotStart, `${planned.name}: ${log}`);
    assert.match(
      log,
      /(names the format .*feature-level|version \d+ of the format).*wrote it.*Nothing was changed\. Start the release that wrote it, or a later one/,
      planned.name,
    );
    running.start(planned, root);
    await running.ready([planned]);
  }
  await running.ready(processes);
  assert.equal((await client.get("kept", "small-0-0")).kind, "answer");
});

/** A leader counts extent nodes only when they have announced themselves to it, which takes seconds. */
async function untilPossible(): Promise<UpgradeState> {
  for (const endMs = performance.now() + 30_000; ; ) {
    const state = await upgradeStatus();
    if (state.inTheWay.length === 0) return state;
    assert.ok(performance.now() < endMs, JSON.stringify(state.inTheWay));
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

test("a stamp on one machine, upgraded by a stop and a start: its supervisor finalizes by itself", async (t) => {
  if (missing !== undefined) return t.skip(missing);
  const alone = {
    lockServices: 1,
    extentNodes: 3,
    streamManagers: 1,
    partitionManagers: 1,
    partitionServers: 1,
    journalSegmentBytes: 16 * 1024 * 1024,
  };
  const own = { ...alone, dataDir: join(folder, "alone"), portBase: (await reservePorts()).portBase };
  const config = loadConfig({ directory: folder, root, environment: {}, flags: own });
  const oldTransport = ownTransport(config);
  const older = new Supervisor({ config, root: oldRoot, transport: oldTransport });
  try {
    await older.start();
    await until(() => older.ready);
  } finally {
    await older.stop();
    await oldTransport.close();
  }
  const transport = ownTransport(config);
  const { supervisor, stop, stopped } = await runSupervisor({ config, root, transport });
  try {
    await until(() => supervisor.ready);
    const manager = supervisor.status().processes.find(({ role }) => role === "stream-manager")?.grpc ?? "";
    const levelOf = () => transport.client(manager, FeatureLevels).getFeatureLevel({}, { timeoutMs: 5_000 });
    await until(async () => {
      const answer = await levelOf();
      return answer.ok && answer.value.level === featureLevel;
    });
    const { recordedBy, inTheWay } = unwrap(await levelOf());
    assert.ok(recordedBy !== "" && inTheWay.length === 0);
  } finally {
    await stop();
    await stopped;
    await transport.close();
  }
});

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const endMs = performance.now() + 90_000; !(await holds()); ) {
    assert.ok(performance.now() < endMs, "not within 90 s");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
