/**
 * Targets of the load: our cluster, embedded mode, and Azurite as a black box from npm (installed on demand, never a
 * dependency).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { programFileOf, repositoryRoot } from "@stamp/cluster";
import { startOwn } from "@stamp/drills";

export type TargetName = "cluster" | "embedded" | "azurite";

export interface BenchTarget {
  readonly name: TargetName;
  readonly connectionString: string;
  /** Process ids of the target, by process name. */
  readonly pids: ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

const azuriteVersion = "3.37.0";
const root = process.env.STAMP_ROOT ?? resolve(import.meta.dirname, "../../..");
const developmentKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

export function startTarget(name: TargetName): Promise<BenchTarget> {
  if (name === "cluster") return startCluster();
  return name === "embedded" ? startEmbedded() : startAzurite();
}

async function startCluster(): Promise<BenchTarget> {
  const target = await startOwn({}, false);
  const { processes } = await target.status();
  const pids = new Map(processes.flatMap((each) => (each.pid === null ? [] : [[each.name, each.pid] as const])));
  return { name: "cluster", connectionString: target.connectionString, pids, stop: () => target.close() };
}

async function startEmbedded(): Promise<BenchTarget> {
  const child = spawn(process.execPath, [programFileOf(repositoryRoot, "embedded-host")], { stdio: ["pipe", "pipe", "inherit"] });
  const connectionString = (await firstLine(child)).trim();
  return { name: "embedded", connectionString, pids: pidOf("embedded", child), stop: () => end(child) };
}

async function startAzurite(): Promise<BenchTarget> {
  const folder = join(root, ".tools", `azurite-${azuriteVersion}`);
  if (!existsSync(join(folder, "node_modules", "azurite"))) await install(folder);
  const location = await mkdtemp(join(tmpdir(), "stamp-bench-azurite-"));
  const [blobPort, queuePort, tablePort] = [await freePort(), await freePort(), await freePort()];
  const program = join(folder, "node_modules", "azurite", "dist", "src", "azurite.js");
  const child = spawn(
    process.execPath,
    [
      program,
      ...["--blobHost", "127.0.0.1", "--blobPort", String(blobPort)],
      ...["--queueHost", "127.0.0.1", "--queuePort", String(queuePort)],
      ...["--tableHost", "127.0.0.1", "--tablePort", String(tablePort)],
      "--location",
      location,
      "--silent",
      "--skipApiVersionCheck",
      "--disableTelemetry",
    ],
    { stdio: "ignore" },
  );
  const endpoint = (port: number): string => `http://127.0.0.1:${port}/devstoreaccount1`;
  for (const port of [blobPort, queuePort, tablePort]) await answering(endpoint(port), child);
  return {
    name: "azurite",
    connectionString:
      `DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=${developmentKey};BlobEndpoint=${endpoint(blobPort)};` +
      `QueueEndpoint=${endpoint(queuePort)};TableEndpoint=${endpoint(tablePort)};`,
    pids: pidOf("azurite", child),
    stop: async () => {
      await end(child);
      await rm(location, { recursive: true, force: true });
    },
  };
}

const pidOf = (name: string, child: ChildProcess): ReadonlyMap<string, number> =>
  new Map(child.pid === undefined ? [] : [[name, child.pid]]);

/** Its telemetry asks for versions that some registries do not have yet: the ones before them do, telemetry is off anyway. */
const azuriteManifest = {
  private: true,
  dependencies: { azurite: azuriteVersion },
  overrides: {
    applicationinsights: "3.16.0",
    "@azure/monitor-opentelemetry": "1.20.0",
    "@azure/monitor-opentelemetry-exporter": "1.0.0-beta.45",
  },
};

function install(folder: string): Promise<void> {
  process.stderr.write(`installing azurite ${azuriteVersion} into .tools …\n`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify(azuriteManifest));
  return new Promise((done, fail) => {
    const args = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--workspaces=false"];
    const child = spawn("npm", args, { stdio: ["ignore", "ignore", "inherit"], cwd: folder });
    child.on("error", fail);
    child.on("exit", (code) => (code === 0 ? done() : fail(new Error(`azurite can't be installed (npm ended with ${code})`))));
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

async function answering(endpoint: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode} at its start`);
    if (
      await fetch(endpoint).then(
        () => true,
        () => false,
      )
    )
      return;
    await new Promise((passed) => setTimeout(passed, 100));
  }
  throw new Error("it does not answer");
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((done, fail) => {
    let text = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      if (text.includes("\n")) done(text.slice(0, text.indexOf("\n")));
    });
    child.once("exit", (code) => fail(new Error(`it ended with ${code} at its start`)));
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = new Promise((exited) => child.once("exit", exited));
  child.kill("SIGTERM");
  const killing = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await ended;
  clearTimeout(killing);
}
