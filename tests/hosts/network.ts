/**
 * Hosts on one machine: a network namespace for each, joined by a bridge in a namespace of its own, which the test reaches, too.
 *
 *   test (root namespace) 10.x.y.254 ──┐
 *   host a                10.x.y.1   ──┤ bridge
 *   host b                10.x.y.2   ──┘
 *
 * Needs root, `ip` and `iptables`. Delay and loss come from netem; where the kernel has none, from `slow-link.py`, which holds each packet of a
 * netfilter queue.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Why there can be no namespaces here; undefined if there can. */
export async function whyNoNamespaces(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return "network namespaces need root";
  const probe = `probe-${process.pid}`;
  try {
    await run("ip", ["netns", "add", probe]);
    await run("ip", ["netns", "exec", probe, "iptables", "-A", "INPUT", "-s", "10.0.0.1", "-j", "DROP"]);
    return undefined;
  } catch (error) {
    return `no network namespaces here: ${String((error as { stderr?: string }).stderr ?? error).trim()}`;
  } finally {
    await run("ip", ["netns", "del", probe]).catch(() => {});
  }
}

export type OneWay = "hears nobody" | "is heard by nobody";

export class HostNetwork {
  readonly #id = `s${process.pid.toString(36)}`;
  readonly #prefix: string;
  readonly #names: readonly string[];
  readonly #slow = new Map<string, ChildProcess>();

  private constructor(names: readonly string[], prefix: string) {
    this.#names = names;
    this.#prefix = prefix;
  }

  static async create(names: readonly string[]): Promise<HostNetwork> {
    const network = new HostNetwork(names, await freePrefix());
    try {
      await network.#make();
    } catch (error) {
      await network.close();
      throw error;
    }
    return network;
  }

  namespace(host: string): string {
    return `${this.#id}-${host}`;
  }

  address(host: string): string {
    return `${this.#prefix}.${this.#names.indexOf(host) + 1}`;
  }

  /** Command line that runs a program on a host. */
  on(host: string, command: readonly string[]): [string, string[]] {
    return ["ip", ["netns", "exec", this.namespace(host), ...command]];
  }

  /** Kills every process of a host at once, as a power cut does. */
  async kill(host: string): Promise<void> {
    for (let i = 0; i < 50; i++) {
      const { stdout } = await run("ip", ["netns", "pids", this.namespace(host)]);
      const pids = stdout.split("\n").filter((line) => line !== "");
      if (pids.length === 0) return;
      for (const pid of pids) {
        try {
          process.kill(Number(pid), "SIGKILL");
        } catch {
          // It has ended meanwhile.
        }
      }
      await sleep(50);
    }
    throw new Error(`processes of host ${host} do not end`);
  }

  /** Drops every packet between this host and the other ones. Clients reach it still. */
  async cut(host: string): Promise<void> {
    await this.cutOneWay(host, "hears nobody");
    await this.cutOneWay(host, "is heard by nobody");
  }

  async cutOneWay(host: string, way: OneWay): Promise<void> {
    const [chain, side] = way === "hears nobody" ? ["INPUT", "-s"] : ["OUTPUT", "-d"];
    for (const other of this.#names.filter((each) => each !== host))
      await this.#exec(host, "iptables", "-A", chain as string, side as string, this.address(other), "-j", "DROP");
  }

  /** Delays every packet that the host sends by 100 ms, and loses two of a hundred. Returns what does it. */
  async slow(host: string): Promise<"netem" | "slow-link.py"> {
    try {
      await this.#exec(host, "tc", "qdisc", "add", "dev", "eth0", "root", "netem", "delay", "100ms", "loss", "2%");
      return "netem";
    } catch {
      const [program, args] = this.on(host, ["python3", join(import.meta.dirname, "slow-link.py"), "100", "0.02"]);
      const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
      await new Promise<void>((resolve, reject) => {
        child.stdout?.once("data", () => resolve());
        child.once("error", reject);
        child.once("exit", (code) => reject(new Error(`slow-link.py ended with ${code}`)));
      });
      this.#slow.set(host, child);
      await this.#exec(host, "iptables", "-A", "OUTPUT", "-o", "eth0", "-j", "NFQUEUE", "--queue-num", "1");
      return "slow-link.py";
    }
  }

  async heal(host: string): Promise<void> {
    await this.#exec(host, "iptables", "-F");
    this.#slow.get(host)?.kill("SIGKILL");
    if (this.#slow.delete(host)) return;
    await this.#exec(host, "tc", "qdisc", "del", "dev", "eth0", "root").catch(() => {});
  }

  async close(): Promise<void> {
    for (const host of this.#names) {
      this.#slow.get(host)?.kill("SIGKILL");
      await this.kill(host).catch(() => {});
    }
    for (const name of [...this.#names, "net"]) await run("ip", ["netns", "del", this.namespace(name)]).catch(() => {});
    await run("ip", ["link", "del", `${this.#id}r`]).catch(() => {});
  }

  async #make(): Promise<void> {
    const net = this.namespace("net");
    await run("ip", ["netns", "add", net]);
    await run("ip", ["-n", net, "link", "add", "bridge", "type", "bridge"]);
    await run("ip", ["-n", net, "link", "set", "bridge", "up"]);
    for (const host of this.#names) {
      const namespace = this.namespace(host);
      await run("ip", ["netns", "add", namespace]);
      await this.#join(["link", "add", "eth0", "netns", namespace], `to-${host}`);
      await run("ip", ["-n", namespace, "addr", "add", `${this.address(host)}/24`, "dev", "eth0"]);
      for (const each of ["eth0", "lo"]) await run("ip", ["-n", namespace, "link", "set", each, "up"]);
    }
    await this.#join(["link", "add", `${this.#id}r`], "to-test");
    await run("ip", ["addr", "add", `${this.#prefix}.254/24`, "dev", `${this.#id}r`]);
    await run("ip", ["link", "set", `${this.#id}r`, "up"]);
  }

  async #join(own: readonly string[], port: string): Promise<void> {
    const net = this.namespace("net");
    await run("ip", [...own, "type", "veth", "peer", "name", port, "netns", net]);
    await run("ip", ["-n", net, "link", "set", port, "master", "bridge"]);
    await run("ip", ["-n", net, "link", "set", port, "up"]);
  }

  async #exec(host: string, ...command: readonly string[]): Promise<void> {
    await run(...this.on(host, command));
  }
}

/** Three numbers of an IPv4 network that no route of this machine has. */
async function freePrefix(): Promise<string> {
  const { stdout } = await run("ip", ["-4", "route"]);
  for (;;) {
    const prefix = `10.${randomInt(200, 255)}.${randomInt(1, 255)}`;
    if (!stdout.includes(`${prefix}.`)) return prefix;
  }
}
