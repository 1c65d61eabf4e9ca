/**
 * A real Prometheus with the shipped rules, and the configuration that `stamp config prometheus` prints, beside a real cluster: it reaches
 * every process, no alert stays while all is well, and it says so when an extent node and the lock service go down.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { test } from "node:test";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { root, run } from "../tools/commands.ts";
import { findProgram } from "../tools/prometheus.ts";

const program = await findProgram("prometheus");
const node = "extent-node-2";
/** Two scrapes and two evaluations, and the 30 s that the alert of the lock service has to last; on a busy machine more. */
const noticedWithinMs = 120_000;

interface Alert {
  readonly labels: { readonly alertname: string; readonly name?: string; readonly severity: string };
  readonly state: "pending" | "firing";
  readonly annotations: Readonly<Record<string, string>>;
}

interface Rule {
  readonly name: string;
  readonly health: "ok" | "err" | "unknown";
}

interface Scraped {
  readonly labels: { readonly name: string; readonly role: string };
  readonly health: "up" | "down" | "unknown";
  readonly lastError: string;
}

/** Returns the address that Prometheus says it listens on. Prints its warnings and errors. */
async function addressOf(log: Readable): Promise<string> {
  const lines = createInterface({ input: log });
  const told = new Promise<string>((resolve, reject) => {
    lines.on("line", (line) => {
      const found = /msg="Listening on" address=(\S+)/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
      if (!/level=(debug|info)/.test(line)) console.log(line);
    });
    lines.on("close", () => reject(new Error("Prometheus ended before it listened")));
  });
  return await told;
}

/** Starts Prometheus in a folder with the configuration of the cluster on `dataDir`. */
async function start(path: string, folder: string, dataDir: string): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const { code, output } = await run(process.execPath, ["stamp.mjs", "config", "prometheus", "--data", dataDir]);
  assert.equal(code, 0, output);
  writeFileSync(join(folder, "prometheus.yml"), output);
  copyFileSync(join(root, "docs/guides/stamp-alerts.yml"), join(folder, "stamp-alerts.yml"));
  const flags = [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, "--web.listen-address=127.0.0.1:0"];
  const child = spawn(path, flags, { stdio: ["ignore", "inherit", "pipe"] });
  return { child, url: `http://${await addressOf(child.stderr)}/api/v1` };
}

/** Asks until the answer is as wanted, and returns it. */
async function until<T>(what: string, ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  const untilMs = performance.now() + noticedWithinMs;
  let last: T | undefined;
  while (performance.now() < untilMs) {
    // It starts.
    last = await ask().catch(() => undefined);
    if (last !== undefined && wanted(last)) return last;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`${what}: not within ${noticedWithinMs / 1_000} s\n${JSON.stringify(last, null, 1)}`);
}

async function data<T>(url: string): Promise<T> {
  const answer = await fetch(url);
  return ((await answer.json()) as { readonly data: T }).data;
}

const evaluated = ({ groups }: { readonly groups: readonly { readonly rules: readonly Rule[] }[] }): boolean => {
  const rules = groups.flatMap((group) => group.rules);
  return rules.length > 0 && rules.every(({ health }) => health === "ok");
};
const textOf = ({ labels: { alertname, name }, state }: Alert): string => `${alertname}${name === undefined ? "" : ` ${name}`}: ${state}`;

async function watched(target: DrillTarget, url: string): Promise<void> {
  const scraped = async () => (await data<{ activeTargets: Scraped[] }>(`${url}/targets?state=active`)).activeTargets;
  const alerts = async () => (await data<{ alerts: Alert[] }>(`${url}/alerts`)).alerts;
  const processes = (await target.status()).processes.map(({ name }) => name).sort();
  const up = await until("every process is reached", scraped, (all) => all.length > 0 && all.every(({ health }) => health === "up"));
  assert.deepEqual(up.map(({ labels }) => labels.name).sort(), processes);
  await until(
    "every process has told its metrics",
    () => data<{ result: unknown[] }>(`${url}/query?query=stamp_ready`),
    ({ result }) => result.length === processes.length,
  );
  await until("all rules were evaluated", () => data<{ groups: { rules: Rule[] }[] }>(`${url}/rules?type=alert`), evaluated);
  // A busy machine may start slowly: an alert may fire and end. That the start of Prometheus itself is none is for promtool to show.
  await until("no alert fires while all is well", alerts, (all) => all.every(({ state }) => state !== "firing"));

  await target.ask({ do: "hold", name: node });
  const lockServices = processes.filter((name) => name.startsWith("lock-service"));
  for (const name of lockServices) await target.ask({ do: "hold", name });
  const has = (alert: Alert, name: string, of?: string): boolean => alert.labels.alertname === name && alert.labels.name === of;
  const told = await until("the alerts", alerts, (all) => {
    const away = all.find((alert) => has(alert, "StampLockServiceAway"));
    return away?.state === "firing" && all.some((alert) => has(alert, "StampProcessDown", node));
  });
  console.log(told.map(textOf).join("\n"));
  const away = told.find((alert) => has(alert, "StampLockServiceAway"));
  assert.equal(away?.labels.severity, "critical");
  assert.match(away?.annotations.action ?? "", /\.\/stamp health/);
  const down = await until("the node is not reached", scraped, (all) =>
    all.some(({ labels, health }) => labels.name === node && health === "down"),
  );
  assert.match(down.find(({ labels }) => labels.name === node)?.lastError ?? "", /connection refused/);

  for (const name of lockServices) await target.ask({ do: "start", name });
  await target.ask({ do: "start", name: node });
  await until("no alert fires any more", alerts, (all) => !all.some((alert) => has(alert, "StampLockServiceAway")));
}

test("Prometheus with the shipped rules: every process is a target; a node and the lock services that go down are alerts", {
  skip: "missing" in program ? program.missing : false,
  timeout: 300_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-prometheus-"));
  const target = await startOwn({}, false);
  let child: ChildProcess | undefined;
  try {
    const started = await start("path" in program ? program.path : "", folder, (await target.status()).dataDir);
    child = started.child;
    await watched(target, started.url);
  } finally {
    if (child !== undefined && child.exitCode === null) {
      const ended = new Promise((resolve) => child?.once("close", resolve));
      child.kill("SIGTERM");
      await ended;
    }
    await target.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
