/**
 * A real etcd of one or several members for a test, on loopback. The program is `STAMP_ETCD`, or `etcd` of the PATH, or comes from Debian's
 * package `etcd-server`, which is downloaded once and unpacked into a folder of its own (nothing is installed).
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { FailureError, refused } from "@stamp/base";
import { type ReservedPorts, reservePorts } from "@stamp/cluster";
import { NodeClock, NodeForeignCalls } from "@stamp/ports-node";
import { etcd } from "@stamp/wire";

const run = promisify(execFile);

export type Found = { readonly program: string } | { readonly skip: string };

/** Where etcd is; the reason for a skip if it is nowhere. */
export async function findEtcd(): Promise<Found> {
  const named = process.env.STAMP_ETCD;
  if (named !== undefined) return existsSync(named) ? { program: named } : { skip: `STAMP_ETCD names ${named}, which is not there` };
  const inPath = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "etcd"));
  const installed = inPath.find((path) => existsSync(path));
  if (installed !== undefined) return { program: installed };
  return unpacked(["etcd-server"], "usr/bin/etcd");
}

/** Command line of strace, which delays the syncs of a member; the reason for a skip if it can't be used here. */
export async function findStrace(): Promise<FoundStrace> {
  if (await traces(["strace"])) return { command: ["strace"] };
  const found = await unpacked(["strace", "libunwind8", "liblzma5"], "usr/bin/strace");
  if ("skip" in found) return found;
  const libraries = join(found.program, "..", "..", "lib");
  const paths = readdirSync(libraries).map((name) => join(libraries, name));
  const command = ["env", `LD_LIBRARY_PATH=${paths.join(":")}`, found.program];
  return (await traces(command)) ? { command } : { skip: "strace may not trace here" };
}

async function traces(strace: readonly string[]): Promise<boolean> {
  const [program, ...args] = [...slowed(strace, 1), "true"];
  return run(program as string, args, { timeout: 10_000 }).then(
    () => true,
    () => false,
  );
}

export type FoundStrace = { readonly command: readonly string[] } | { readonly skip: string };

/** Command line before a program whose syncs take so much longer. With -D a signal to the process that is started reaches the program. */
const slowed = (strace: readonly string[], syncDelayMs: number): string[] => [
  ...[...strace, "-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"],
  ...["-e", "trace=fsync,fdatasync", "-e", `inject=fsync,fdatasync:delay_enter=${syncDelayMs * 1_000}`],
];

/** A program of Debian packages, which are downloaded once and unpacked into a folder of their own (nothing is installed). */
async function unpacked(packages: readonly string[], path: string): Promise<Found> {
  const [name] = packages;
  const cache = join(tmpdir(), `stamp-${name}-${process.getuid?.() ?? 0}`);
  const program = join(cache, path);
  if (existsSync(program)) return { program };
  try {
    mkdirSync(cache, { recursive: true, mode: 0o700 });
    const work = mkdtempSync(join(cache, "package-"));
    await run("apt-get", ["download", ...packages], { cwd: work, timeout: 120_000 });
    await run("sh", ["-c", "for each in *.deb; do dpkg -x $each x; done"], { cwd: work });
    // Another test may have been faster.
    if (!existsSync(program)) renameSync(join(work, "x", "usr"), join(cache, "usr"));
    rmSync(work, { recursive: true, force: true });
    return existsSync(program) ? { program } : { skip: `the package ${name} holds no ${path}` };
  } catch (error) {
    return { skip: `no ${name} here: install Debian's package (apt-get download said: ${String(error).slice(0, 200)})` };
  }
}

export interface MemberOptions {
  /** Environment and flags besides the usual ones. */
  readonly flags?: readonly string[];
  /** Parent folder of the data; default: a temporary one. */
  readonly folder?: string;
  readonly scheme?: "http" | "https";
}

interface Member {
  readonly name: string;
  readonly client: string;
  readonly peer: string;
  process: ChildProcess | undefined;
}

export class EtcdServers {
  readonly #program: string;
  readonly #folder: string;
  readonly #options: MemberOptions;
  readonly #ports: ReservedPorts;
  readonly #members: readonly Member[];
  readonly #calls = new NodeForeignCalls(new NodeClock());
  #log = "";

  constructor(program: string, folder: string, members: readonly Member[], options: MemberOptions, ports: ReservedPorts) {
    this.#program = program;
    this.#folder = folder;
    this.#members = members;
    this.#options = options;
    this.#ports = ports;
  }

  static async start(program: string, count: number, options: MemberOptions = {}): Promise<EtcdServers> {
    const folder = mkdtempSync(join(options.folder ?? tmpdir(), "stamp-etcd-"));
    // etcd takes no port 0, and a member that is killed comes back to its port.
    const ports = await reservePorts();
    const members = Array.from({ length: count }, (_, i) => ({
      name: `m${i + 1}`,
      client: `127.0.0.1:${ports.portBase + 2 * i}`,
      peer: `127.0.0.1:${ports.portBase + 2 * i + 1}`,
      process: undefined,
    }));
    const servers = new EtcdServers(program, folder, members, options, ports);
    for (const { name } of members) servers.startMember(name);
    if (options.scheme !== "https") await servers.led();
    return servers;
  }

  get endpoints(): string[] {
    return this.#members.map(({ client }) => client);
  }

  get names(): string[] {
    return this.#members.map(({ name }) => name);
  }

  /** What the members wrote, for a test that fails. */
  get log(): string {
    return this.#log;
  }

  /** `syncDelayMs`: how much longer each sync of its disk takes, by `strace` (findStrace). */
  startMember(name: string, slow?: { readonly strace: readonly string[]; readonly syncDelayMs: number }): void {
    const member = this.#member(name);
    const { scheme = "http", flags = [] } = this.#options;
    const cluster = this.#members.map((each) => `${each.name}=http://${each.peer}`).join(",");
    const usual = [
      ["--name", name],
      ["--data-dir", join(this.#folder, name)],
      ["--listen-client-urls", `${scheme}://${member.client}`],
      ["--advertise-client-urls", `${scheme}://${member.client}`],
      ["--listen-peer-urls", `http://${member.peer}`],
      ["--initial-advertise-peer-urls", `http://${member.peer}`],
      ["--initial-cluster", cluster],
      ["--initial-cluster-token", this.#folder],
      ["--heartbeat-interval", "100"],
      ["--election-timeout", "1000"],
    ].flat();
    const command = [...(slow === undefined ? [] : slowed(slow.strace, slow.syncDelayMs)), this.#program, ...usual, ...flags];
    const child = spawn(command[0] as string, command.slice(1), { stdio: ["ignore", "pipe", "pipe"], env: { PATH: process.env.PATH } });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (text: Buffer) => {
        this.#log = (this.#log + text.toString()).slice(-20_000);
      });
    }
    member.process = child;
  }

  /** As a power cut of its machine. */
  async kill(name: string): Promise<void> {
    const member = this.#member(name);
    const child = member.process;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
    member.process = undefined;
  }

  signal(name: string, signal: "SIGSTOP" | "SIGCONT"): void {
    this.#member(name).process?.kill(signal);
  }

  /** Name of the leading member, once one leads. */
  async led(withinMs = 20_000): Promise<string> {
    const endMs = performance.now() + withinMs;
    let why = "nobody was asked";
    while (performance.now() < endMs) {
      for (const { name, client, process: child } of this.#members) {
        if (child === undefined) continue;
        const status = await this.#calls.client({ address: client }, etcd.Maintenance).status({}, { timeoutMs: 500 });
        if (status.ok && status.value.leader !== 0n && status.value.leader === status.value.header?.memberId) return name;
        if (!status.ok) why = status.failure.message;
      }
      await sleep(50);
    }
    throw new Error(`no etcd member leads after ${withinMs} ms: ${why}\n${this.#log}`);
  }

  async stop(): Promise<void> {
    for (const { name } of this.#members) await this.kill(name);
    await this.#calls.close();
    await this.#ports.release();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #member(name: string): Member {
    const member = this.#members.find((each) => each.name === name);
    if (member === undefined) throw new FailureError(refused("notFound", "badRequest", `no member ${name}`).failure);
    return member;
  }
}
