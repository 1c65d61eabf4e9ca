/** The files of a debug bundle: what a person needs who helps with a stamp, from a stamp that runs or not. Every part may fail; then it says why. */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync, statfsSync, statSync } from "node:fs";
import { arch, availableParallelism, freemem, loadavg, platform, release as system, totalmem, uptime } from "node:os";
import { join } from "node:path";
import { release } from "@stamp/base";
import { type ClusterConfig, clusterRecordPath, composeCluster, ownTransport, secretFilesOf } from "@stamp/cluster";
import { inWords } from "@stamp/ports-node";
import { healthOf } from "../health/findings.ts";
import { gather } from "../health/gather.ts";
import { healthText } from "../health/health-text.ts";
import { toJson } from "../print.ts";
import { isSecretName, Redactor } from "./redact.ts";

export interface BundleFile {
  readonly name: string;
  readonly text: string;
}

const metricsBytesMax = 2 * 1024 * 1024;
const metricsTimeoutMs = 2_000;
const secretFileBytesMax = 64 * 1024;
const listedMax = 2_000;
/** Variables of the environment that are told: of the stamp, of Node, and those by which they find others. */
const toldVariables = /^(STAMP_|AZURITE_|AZURE_|NODE_|MALLOC_|UV_|HTTPS?_PROXY$|NO_PROXY$|LANG$|TZ$|PATH$)/i;

/** `bytesMax`: bound of the logs in bytes. */
export async function bundleFiles(
  config: ClusterConfig,
  environment: Readonly<Record<string, string | undefined>>,
  bytesMax: number,
): Promise<readonly BundleFile[]> {
  const redactor = new Redactor(secretsOf(config, environment));
  const files: BundleFile[] = [];
  const add = async (name: string, make: () => string | Promise<string>): Promise<void> => {
    let text: string;
    try {
      text = await make();
    } catch (error) {
      text = `not there: ${inWords(error)}\n`;
    }
    files.push({ name, text: redactor.text(text) });
  };
  await add("README.txt", () => readme);
  await add("machine.json", () => toJson(machineFacts(config.dataDir)));
  await add("configuration.json", () => toJson(redactor.value(config)));
  await add("record.json", () => toJson(redactor.value(JSON.parse(readFileSync(clusterRecordPath(config.dataDir), "utf8")))));
  await add("environment.json", () => toJson(redactor.value(told(environment))));
  await add("folder.txt", () => listed(config.dataDir).join("\n"));
  await addStatus(config, redactor, add);
  addLogs(join(config.dataDir, "logs"), redactor, bytesMax, files);
  return files;
}

type Add = (name: string, make: () => string | Promise<string>) => Promise<void>;

async function addStatus(config: ClusterConfig, redactor: Redactor, add: Add): Promise<void> {
  const transport = ownTransport(config);
  try {
    const facts = await gather(config, transport, { view: true });
    await add("health.txt", () => healthText(healthOf(facts)));
    await add("status.json", () => toJson(redactor.value(facts)));
    for (const { name, http } of facts.processes) await add(`figures/${name}.prom`, () => metricsOf(http));
  } catch (error) {
    await add("health.txt", () => `${inWords(error)}\n`);
  } finally {
    await transport.close();
  }
}

async function metricsOf(http: string): Promise<string> {
  const answer = await fetch(`http://${http}/metrics`, { signal: AbortSignal.timeout(metricsTimeoutMs) });
  const text = await answer.text();
  return text.length > metricsBytesMax ? `${text.slice(0, metricsBytesMax)}\n(cut)\n` : text;
}

/** Adds the end of each log. What a short one leaves, longer ones take; the newest file of a process comes first. */
function addLogs(folder: string, redactor: Redactor, bytesMax: number, files: BundleFile[]): void {
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => /\.log(\.1)?$/.test(name));
  } catch (error) {
    const where = composeCluster() === undefined ? "" : " Logs of containers: docker compose logs > logs.txt, which may hold secrets.";
    files.push({ name: "logs/none.txt", text: `${redactor.text(inWords(error, folder))}.${where}\n` });
    return;
  }
  const sized = names.flatMap((name) => {
    const size = statSync(join(folder, name), { throwIfNoEntry: false })?.size;
    return size === undefined ? [] : [{ name, size }];
  });
  sized.sort((one, other) => one.size - other.size);
  let left = bytesMax;
  for (const [index, { name }] of sized.entries()) {
    const share = Math.floor(left / (sized.length - index));
    const text = tailOf(join(folder, name), share);
    left -= Buffer.byteLength(text);
    files.push({ name: `logs/${name}`, text: redactor.text(text) });
  }
}

/** Returns whole lines from the end of a file. The supervisor may rotate it meanwhile. */
function tailOf(path: string, bytesMax: number): string {
  try {
    const file = openSync(path, "r");
    try {
      const { size } = fstatSync(file);
      const from = Math.max(0, size - bytesMax);
      const bytes = Buffer.alloc(size - from);
      const read = readSync(file, bytes, 0, bytes.length, from);
      const text = bytes.subarray(0, read).toString("utf8");
      return from === 0 ? text : text.slice(text.indexOf("\n") + 1);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return `${inWords(error, path)}\n`;
  }
}

function machineFacts(dataDir: string): object {
  const { version, versions, execArgv } = process;
  const memory = { totalBytes: totalmem(), freeBytes: freemem() };
  const disk = (): object => {
    try {
      const { bsize, blocks, bavail, type } = statfsSync(dataDir);
      return { bytes: bsize * blocks, freeBytes: bsize * bavail, type };
    } catch (error) {
      return { unknown: inWords(error) };
    }
  };
  return {
    at: new Date().toISOString(),
    release,
    node: { version, v8: versions.v8, openssl: versions.openssl, uv: versions.uv, execArgv },
    system: { platform: platform(), arch: arch(), release: system(), uptimeSeconds: Math.round(uptime()) },
    processors: availableParallelism(),
    load: loadavg(),
    memory,
    disk: disk(),
    inContainers: composeCluster() !== undefined,
  };
}

const told = (environment: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) => (toldVariables.test(name) && value !== undefined ? [[name, value]] : [])),
  );

/** Returns names and sizes of the data folder's entries and those one level below. */
function listed(folder: string): string[] {
  const lines: string[] = [];
  const list = (below: string, isTop: boolean): void => {
    for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
      if (lines.length >= listedMax) return;
      const path = join(below, entry.name);
      const size = statSync(join(folder, path), { throwIfNoEntry: false })?.size ?? 0;
      lines.push(`${entry.isDirectory() ? "folder" : String(size).padStart(14)}  ${path}`);
      if (entry.isDirectory() && isTop) list(path, false);
    }
  };
  list("", true);
  return lines;
}

/** Yields every secret of the configuration, the environment and the data folder. */
function* secretsOf(config: ClusterConfig, environment: Readonly<Record<string, string | undefined>>): Generator<string> {
  for (const { keys } of config.accounts) yield* keys;
  for (const settings of Object.values(config.roles))
    for (const [key, value] of Object.entries(settings ?? {})) if (isSecretName(key) && !/file$/i.test(key)) yield String(value);
  for (const [name, value] of Object.entries(environment))
    if (value !== undefined) {
      if (isSecretName(name)) yield* [value, ...value.split(/[;:,]/)];
      // The password of a proxy may hold what a URL has to encode: no pattern of a URL finds its end.
      if (/_proxy$/i.test(name)) yield* /:\/\/[^:]*:(.*)@/.exec(value)?.slice(1) ?? [];
    }
  const { current, previous } = secretFilesOf(config);
  const named = [
    "cluster-secret",
    "cluster-secret.next",
    "cluster-secret.previous",
    "master-key",
    "master-key.next",
    "master-key.previous",
  ];
  const roles = Object.values(config.roles).flatMap((settings) => settings?.masterKeyFile ?? []);
  for (const path of [current, previous, config.tlsKey, ...roles.map(String), ...named.map((name) => join(config.dataDir, name))])
    if (path !== undefined) yield* secretLines(path);
}

/** Returns the lines of a file with a secret; none if it is unreadable, because then no text here holds it. */
function secretLines(path: string): string[] {
  try {
    const text = readFileSync(path, "utf8").slice(0, secretFileBytesMax);
    return [text, ...text.split("\n")];
  } catch {
    return [];
  }
}

const readme = `This is a debug bundle of a stamp (stamp debug bundle).

  machine.json        release, Node, system, memory, disk
  health.txt          what stamp health says
  status.json         facts of every process, streams, extents, ranges
  configuration.json  as it holds for the next start
  record.json         what the data folder remembers of the last start
  environment.json    variables of the stamp and of Node
  folder.txt          names and sizes in the data folder
  figures/            metrics of each process, as Prometheus reads them
  logs/               the end of each process's log

Secrets are removed: keys, signatures, tokens, passwords, private keys, and what looks like one of them. Names of accounts,
containers, blobs and hosts are not: look through it before you give it away.
`;
