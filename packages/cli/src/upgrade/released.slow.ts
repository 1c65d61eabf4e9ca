/**
 * An upgrade from the last release as it was published: a tarball of `stamp-storage`, which STAMP_RELEASED_TARBALL names. All processes of
 * the release → each of this one → each of the release → each of this one → finalize, under a client that checks every promise.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { featureLevel } from "@stamp/base";
import { loadConfig, ownTransport, planCluster, reservePorts, secretFilesOf } from "@stamp/cluster";
import { BlobClient, CheckingClient } from "@stamp/drills";
import { root } from "../context.ts";
import { ProcessesOfTwoReleases } from "./testing/processes-of-two-releases.ts";
import type { UpgradeState } from "./upgrade-state.ts";

const tarball = process.env.STAMP_RELEASED_TARBALL ?? "";
const skip = tarball === "" ? "STAMP_RELEASED_TARBALL names no tarball: none was released before 0.2.0 (RELEASING.md)" : false;
const run = promisify(execFile);

test("upgrade from the released tarball, way back, upgrade and finalize: nothing acknowledged is lost", {
  skip,
  timeout: 480_000,
}, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-released-"));
  await run("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", resolve(tarball)]);
  const released = join(folder, "node_modules/stamp-storage");
  const { version } = JSON.parse(readFileSync(join(released, "package.json"), "utf8")) as { readonly version: string };
  t.diagnostic(`release ${version}`);
  const dataDir = join(folder, "data");
  const ports = await reservePorts();
  const numbers = { lockServices: 1, extentNodes: 4, streamManagers: 2, partitionManagers: 1, partitionServers: 2 };
  const flags = { dataDir, ...numbers, journalSegmentBytes: 16 * 1024 * 1024, portBase: ports.portBase };
  const config = loadConfig({ directory: folder, root, environment: {}, flags });
  mkdirSync(join(dataDir, "logs"), { recursive: true });
  writeFileSync(secretFilesOf(config).current, `${randomBytes(32).toString("base64")}\n`, { mode: 0o600 });
  const { connectionString, processes } = planCluster(config);
  const transport = ownTransport(config);
  const running = new ProcessesOfTwoReleases(join(dataDir, "logs"), transport);
  const client = BlobClient.fromConnectionString(connectionString, { timeoutMs: 20_000 });
  const checking = new CheckingClient({ client, container: "kept", smallWriters: 2, largeWriters: 1, largePauseMs: 1_000, pauseMs: 50 });
  const upgrade = async (...args: readonly string[]): Promise<UpgradeState> => {
    const list = processes.map(({ name, grpc, http }) => `${name}=${grpc}:${http.split(":")[1]}`).join(" ");
    const env = { ...process.env, STAMP_PROCESSES: list, STAMP_CONNECTION_STRING: connectionString };
    const { stdout } = await run(process.execPath, [join(root, "stamp.mjs"), "upgrade", ...args, "--json", "--data", dataDir], { env });
    return JSON.parse(stdout) as UpgradeState;
  };
  const change = async (to: string): Promise<void> => {
    for (const planned of processes) {
      await running.stop(planned.name);
      running.start(planned, to);
      await running.ready([planned]);
    }
    await running.ready(processes);
    assert.deepEqual(checking.broken, []);
  };
  try {
    for (const planned of processes) running.start(planned, released, planned.role === "lock-service" ? { STAMP_INIT: "true" } : {});
    await running.ready(processes);
    await checking.start();
    await change(root);
    t.diagnostic("every process is of this release");
    await change(released);
    t.diagnostic("every process is of the published release again");
    await change(root);
    for (const endMs = performance.now() + 30_000; (await upgrade("status")).inTheWay.length > 0; ) assert.ok(performance.now() < endMs);
    await upgrade("finalize");
    assert.equal((await upgrade("status")).level, featureLevel);
    await checking.stop(60_000);
    const report = await checking.verify();
    assert.deepEqual(report.broken, []);
    assert.ok(report.small.acknowledged > 50 && report.large.acknowledged > 2, JSON.stringify(report));
    t.diagnostic(`${report.readBack} blobs read back, ${report.readsWhileRunning} read meanwhile`);
  } finally {
    await checking.stop(0);
    await running.stopAll();
    await transport.close();
    await ports.release();
    rmSync(folder, { recursive: true, force: true });
  }
});
