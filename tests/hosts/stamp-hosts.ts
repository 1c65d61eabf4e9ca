/**
 * A stamp on three hosts of a `HostNetwork`, made with the commands of `docs/guides/deploy.md`: on each host one `stamp up`, and by choice an etcd.
 *
 *   a, b   lock service, extent node, partition server, front-end, stream manager, partition manager
 *   c      lock service, extent node, partition server, front-end
 *   d, e   empty until `addHost`; then as c, without an etcd
 */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { NodeClock, NodeForeignCalls } from "@stamp/ports-node";
import { etcd } from "@stamp/wire";
import { root } from "../tools/commands.ts";
import { HostNetwork } from "./network.ts";

const run = promisify(execFile);
const account = { name: "shop", keys: [randomBytes(32).toString("base64")] };
const cli = "packages/cli/src/main.ts";
const portBase = 10_000;
/** Port of `/ready` of front-end-1; those of the others follow (docs/guides/deploy.md). */
const frontEndHealthPort = 12_030;

export const hosts = ["a", "b", "c"] as const;
export const spares = ["d", "e"] as const;
const all = [...hosts, ...spares] as const;
export type Host = (typeof all)[number];

export interface StampStatus {
  readonly ready: boolean;
  readonly health: { readonly sentence: string };
  readonly processes: readonly { readonly name: string; readonly host?: string; readonly state: string; readonly ready: boolean }[];
  readonly extents: readonly {
    readonly stream: string;
    readonly state: number;
    readonly references: number;
    readonly nodeIds: readonly string[];
  }[];
  readonly ranges: readonly { readonly table: string; readonly server: string }[];
}

export interface StampHostsOptions {
  /** The metadata are in an etcd of three members, or replicated by the lock services. */
  readonly metadata?: "etcd" | "replicated";
  /** Further environment of all processes of a host. */
  readonly environments?: Partial<Record<Host, Readonly<Record<string, string>>>>;
  /** With TLS between the processes, and keys sealed at rest. */
  readonly secured?: boolean;
  /** Folder of a release that all hosts begin with. */
  readonly programs?: string;
}

export class StampHosts {
  readonly network: HostNetwork;
  readonly folder: string;
  /** Program of etcd; undefined: the lock services replicate the metadata. */
  readonly #etcd: string | undefined;
  readonly #masterKey = randomBytes(32).toString("base64");
  readonly #secret = randomBytes(32).toString("base64");
  /** Mutual TLS between all processes, and a master key that seals secrets of accounts. */
  readonly #secured: boolean;
  readonly #calls = new NodeForeignCalls(new NodeClock());
  /**
   * etcd of three hosts would share one disk here, with all that runs on this machine: syncs took 1.6 s and elections followed. In memory each
   * has a disk of its own, as fast as one that etcd asks for.
   */
  readonly #etcdFolder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "stamp-hosts-etcd-"));
  readonly #etcds = new Map<Host, ChildProcess>();
  /** Folder of the programs of each host that does not run those of this repository. */
  readonly #programs = new Map<Host, string>();
  readonly #environments = new Map<Host, Readonly<Record<string, string>>>();

  private constructor(network: HostNetwork, etcdProgram: string | undefined, secured: boolean) {
    this.network = network;
    this.#secured = secured;
    this.#etcd = etcdProgram;
    this.folder = mkdtempSync(join(tmpdir(), "stamp-hosts-"));
  }

  static async start(etcdProgram: string | undefined, options: Omit<StampHostsOptions, "metadata"> = {}): Promise<StampHosts> {
    const { environments = {}, secured = false, programs = root } = options;
    const stamp = new StampHosts(await HostNetwork.create(all), etcdProgram, secured);
    for (const host of hosts) {
      stamp.#environments.set(host, environments[host] ?? {});
      stamp.#programs.set(host, programs);
    }
    try {
      await stamp.#start();
      return stamp;
    } catch (error) {
      for (const host of hosts) console.log(stamp.logs(host));
      await stamp.close(StampHosts.folderForLogs());
      throw error;
    }
  }

  connectionString(host: Host): string {
    const at = (port: number): string => `http://${this.network.address(host)}:${port}/${account.name}`;
    return (
      `DefaultEndpointsProtocol=http;AccountName=${account.name};AccountKey=${account.keys[0]};` +
      `BlobEndpoint=${at(portBase)};QueueEndpoint=${at(portBase + 1)};TableEndpoint=${at(portBase + 2)};`
    );
  }

  /** Runs a command of stamp on a host, and returns what it printed. Throws if it fails, unless its exit code is one of `codes`. */
  async stamp(host: Host, args: readonly string[], codes: readonly number[] = []): Promise<string> {
    const [program, all] = this.network.on(host, [process.execPath, this.#cli(host), ...args, "--data-dir", this.#dataDir(host)]);
    // Else a command of another release starts the programs of this one: `./stamp ci` sets it.
    const env = { ...process.env, STAMP_ROOT: this.#programs.get(host) ?? root, ...this.#environments.get(host) };
    return run(program, all, { cwd: this.folder, env, timeout: 180_000, maxBuffer: 1 << 24 }).then(
      ({ stdout }) => stdout,
      (error: { readonly code?: number; readonly stdout?: string; readonly stderr?: string }) => {
        if (codes.includes(error.code ?? -1)) return error.stdout ?? "";
        throw new Error(`stamp ${args.join(" ")} on ${host} ended with ${error.code}: ${error.stdout}${error.stderr}`);
      },
    );
  }

  async status(host: Host): Promise<StampStatus> {
    return JSON.parse(await this.stamp(host, ["status", "--json"], [4])) as StampStatus;
  }

  /** Waits until every process of every host is ready. */
  async untilReady(withinMs = 60_000): Promise<void> {
    for (const endMs = performance.now() + withinMs; ; await sleep(300)) {
      const status = await this.status("a");
      if (status.ready) return;
      if (performance.now() < endMs) continue;
      const late = status.processes.filter(({ ready }) => !ready).map(({ name, state }) => `${name} is ${state}`);
      throw new Error(`not ready within ${withinMs} ms: ${late.join("; ")}`);
    }
  }

  /** Starts a host again as its operator would. */
  async restart(host: Host): Promise<void> {
    this.startEtcd(host);
    await this.stamp(host, ["up", "-d", "--ready-timeout-s", "60"]);
  }

  /** Stops a host, puts the programs of a release in place, and starts it again as its operator would. etcd runs on. */
  async change(host: Host, programs: string): Promise<void> {
    await this.stamp(host, ["down"]);
    this.#programs.set(host, programs);
    await this.stamp(host, ["up", "-d", "--ready-timeout-s", "90"]);
  }

  /** Adds a spare host as an operator would: topology, secret, `up`. */
  async addHost(spare: (typeof spares)[number]): Promise<void> {
    const path = join(this.folder, "stamp.topology.json");
    const topology = JSON.parse(readFileSync(path, "utf8")) as { hosts: Record<string, object> };
    topology.hosts[spare] = this.#part(spare, all.indexOf(spare) + 1, false);
    writeFileSync(path, JSON.stringify(topology));
    this.#makeFolder(spare);
    if (this.#secured) {
      const up = ["up", "-d", "--host", spare];
      await assert.rejects(
        this.stamp(spare, up),
        /tls: .*there is no folder.*certs cluster folders .*copy certs\/[de] to .*[de]\/cluster-certs/s,
      );
      await this.#copyCertificates([spare]);
      await assert.rejects(this.stamp(spare, up), /master key of the stamp is not on this host.*copy it from/s);
      this.#copyMasterKey(spare);
    }
    await this.stamp(spare, ["up", "-d", "--host", spare, "--ready-timeout-s", "60"]);
  }

  startEtcd(host: Host): void {
    if (this.#etcd === undefined) return;
    const url = (port: number): string => `http://${this.network.address(host)}:${port}`;
    const args = [
      ["--name", host, "--data-dir", join(this.#etcdFolder, host), "--initial-cluster-token", this.folder],
      ["--listen-client-urls", url(2379), "--advertise-client-urls", url(2379)],
      ["--listen-peer-urls", url(2380), "--initial-advertise-peer-urls", url(2380)],
      ["--initial-cluster", hosts.map((each) => `${each}=http://${this.network.address(each)}:2380`).join(",")],
    ].flat();
    const [program, all] = this.network.on(host, [this.#etcd, ...args]);
    const child = spawn(program, all, { stdio: ["ignore", "pipe", "pipe"], env: { PATH: process.env.PATH } });
    for (const output of [child.stdout, child.stderr])
      output?.on("data", (text: Buffer) => appendFileSync(join(this.folder, `etcd-${host}.log`), text));
    this.#etcds.set(host, child);
  }

  async killEtcd(host: Host): Promise<void> {
    const child = this.#etcds.get(host);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  /** Host of the etcd member that leads. */
  async etcdLeader(withinMs = 20_000): Promise<Host> {
    for (const endMs = performance.now() + withinMs; performance.now() < endMs; await sleep(100)) {
      for (const host of hosts) {
        const address = `${this.network.address(host)}:2379`;
        const status = await this.#calls.client({ address }, etcd.Maintenance).status({}, { timeoutMs: 500 });
        if (status.ok && status.value.leader !== 0n && status.value.leader === status.value.header?.memberId) return host;
      }
    }
    throw new Error("no etcd member leads");
  }

  /** Host of the process that leads or is active in a role. */
  async hostOf(role: "lock-service" | "stream-manager" | "partition-manager"): Promise<Host> {
    const state = role === "lock-service" ? "serving" : "leader";
    for (let i = 0; i < 60; i++, await sleep(250)) {
      const { processes } = await this.status("a");
      const leading = processes.find((each) => each.name.startsWith(`${role}-`) && each.state === state);
      if (leading?.host !== undefined) return leading.host as Host;
    }
    throw new Error(`no ${role} leads`);
  }

  /** Host of the partition server that serves the blobs of the clients. */
  async servingHost(): Promise<Host> {
    for (let i = 0; i < 60; i++, await sleep(250)) {
      const { ranges, processes } = await this.status("a");
      const server = ranges.find(({ table }) => table === "Blob")?.server;
      const host = processes.find(({ name }) => name === server)?.host;
      if (host !== undefined) return host as Host;
    }
    throw new Error("nobody serves blobs");
  }

  /** Answer of `/ready` of a host's front-end, as a load balancer sees it: 200, or 503 and why. */
  async frontEndReady(host: Host): Promise<{ readonly status: number; readonly text: string }> {
    const url = `http://${this.network.address(host)}:${frontEndHealthPort + all.indexOf(host)}/ready`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(3_000) });
    return { status: answer.status, text: await answer.text() };
  }

  async kill(host: Host): Promise<void> {
    await this.network.kill(host);
  }

  logs(host: Host): string {
    const read = (path: string): string => {
      try {
        return readFileSync(join(this.folder, path), "utf8").slice(-2_000);
      } catch {
        return "";
      }
    };
    return `--- ${host}\n${read(`${host}/logs/supervisor.log`)}\n${read(`etcd-${host}.log`)}`;
  }

  /** Lines of all logs that contain a text. */
  linesWith(text: string): string[] {
    return hosts.flatMap((host) => {
      const logs = join(this.#dataDir(host), "logs");
      return readdirSync(logs).flatMap((name) =>
        readFileSync(join(logs, name), "utf8")
          .split("\n")
          .filter((line) => line.includes(text))
          .map((line) => `${name}: ${line}`),
      );
    });
  }

  /** True if a process answers HTTP/2 without TLS. `port`: of its gRPC (docs/guides/deploy.md). */
  answersPlainly(host: Host, port: number): Promise<boolean> {
    const socket = connect({ host: this.network.address(host), port, timeout: 5_000 });
    // The start of HTTP/2, and empty SETTINGS; the server's own SETTINGS begin with a zero, an alert of TLS with 0x15.
    socket.write(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0`);
    return new Promise((resolve) => {
      const answer = (plain: boolean): void => {
        socket.destroy();
        resolve(plain);
      };
      socket.once("data", (bytes: Buffer) => answer(bytes[0] === 0));
      for (const event of ["error", "timeout", "close"]) socket.once(event, () => answer(false));
    });
  }

  /** Files of extent nodes that hold the account's key as it is. */
  filesWithKey(): string[] {
    const [text, bytes] = [Buffer.from(account.keys[0] as string), Buffer.from(account.keys[0] as string, "base64")];
    return hosts.flatMap((host) =>
      readdirSync(this.#dataDir(host), { recursive: true, encoding: "utf8" })
        .filter((path) => path.startsWith("extent-node-"))
        .map((path) => join(this.#dataDir(host), path))
        .filter((path) => {
          const content = contentIfThere(path);
          return content !== undefined && [text, bytes].some((each) => content.includes(each));
        }),
    );
  }

  /** New folder for the logs of a test that failed. */
  static folderForLogs(): string {
    return mkdtempSync(join(tmpdir(), "stamp-hosts-logs-"));
  }

  /** `logsTo`: folder that the logs of all hosts are copied to; undefined to keep none. */
  async close(logsTo?: string): Promise<void> {
    await this.network.close();
    await this.#calls.close();
    if (logsTo !== undefined) this.#keepLogs(logsTo);
    for (const folder of [this.folder, this.#etcdFolder]) rmSync(folder, { recursive: true, force: true });
  }

  /** Copies to `<folder>/<host>/` and `<folder>/etcd-<host>.log`. */
  #keepLogs(folder: string): void {
    for (const host of all) {
      const logs = join(this.#dataDir(host), "logs");
      if (existsSync(logs)) cpSync(logs, join(folder, host), { recursive: true });
      const etcdLog = join(this.folder, `etcd-${host}.log`);
      if (existsSync(etcdLog)) cpSync(etcdLog, join(folder, `etcd-${host}.log`));
    }
    console.log(`logs of all hosts: ${folder}`);
  }

  async #start(): Promise<void> {
    writeFileSync(join(this.folder, "stamp.topology.json"), JSON.stringify(this.#topology()));
    for (const host of hosts) {
      this.#makeFolder(host);
      if (this.#secured) this.#copyMasterKey(host);
      this.startEtcd(host);
    }
    if (this.#secured) {
      await this.stamp("a", ["certs", "cluster", "init", "--host", "a", "--stamp", "hosts"]);
      await this.#copyCertificates(["b", "c"]);
    }
    if (this.#etcd !== undefined) await this.etcdLeader();
    const up = (host: Host, ...more: readonly string[]): Promise<string> =>
      this.stamp(host, ["up", "-d", "--host", host, "--ready-timeout-s", "150", ...more]);
    await Promise.all([up("a", "--init"), up("b"), up("c")]);
    await this.untilReady();
  }

  #cli(host: Host): string {
    return join(this.#programs.get(host) ?? root, cli);
  }

  #makeFolder(host: Host): void {
    mkdirSync(this.#dataDir(host));
    writeFileSync(join(this.#dataDir(host), "cluster-secret"), this.#secret, { mode: 0o600 });
  }

  #copyMasterKey(host: Host): void {
    writeFileSync(join(this.#dataDir(host), "master-key"), this.#masterKey, { mode: 0o600 });
  }

  /** Gives hosts their folders of certificates, as the guide does with scp. */
  async #copyCertificates(to: readonly Host[]): Promise<void> {
    const folder = join(this.folder, "folders");
    await this.stamp("a", ["certs", "cluster", "folders", "--host", "a", "--dir", folder]);
    for (const host of to) cpSync(join(folder, host), join(this.#dataDir(host), "cluster-certs"), { recursive: true });
  }

  #part(host: Host, number: number, managers: boolean): object {
    const roles = ["lock-service", "extent-node", "partition-server", "front-end"];
    if (managers) roles.push("stream-manager", "partition-manager");
    return { address: this.network.address(host), processes: roles.map((role) => `${role}-${number}`) };
  }

  #topology(): object {
    const etcdEndpoints = hosts.map((host) => `${this.network.address(host)}:2379`).join(",");
    return {
      hosts: { a: this.#part("a", 1, true), b: this.#part("b", 2, true), c: this.#part("c", 3, false) },
      config: {
        accounts: [account],
        ...(this.#etcd === undefined ? {} : { roles: { "lock-service": { metadataStore: "etcd", etcdEndpoints } } }),
        ...(this.#secured ? { tls: "cluster", keysAtRest: "sealed" } : {}),
      },
    };
  }

  #dataDir(host: Host): string {
    return join(this.folder, host);
  }
}

/** Undefined for a folder, and for a file that a process has deleted or renamed meanwhile. */
function contentIfThere(path: string): Buffer | undefined {
  try {
    return statSync(path).isFile() ? readFileSync(path) : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
