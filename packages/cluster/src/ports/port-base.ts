/**
 * Reserves ports for a cluster of a drill or a test. A port that is free at one moment can belong to another process at the next one: while
 * a process of the cluster is down, its port is free. So two clusters of two programs must not choose the same base.
 *
 *  - A base is reserved by listening on its port `base + 99`, which no process of a cluster uses, until it is released or this process ends.
 *  - Every base is below 32,768: from there on, systems give ports to outgoing connections, which take any free one at any moment.
 *  - All ports of a reserved base were free when it was reserved.
 */
import { createServer, type Server } from "node:net";
import { takenPorts } from "./ports-in-use.ts";

const first = 12_000;
const bases = 65;
/** Ports of a base: see plan-cluster.ts. */
export const portsOfBase = 300;
const guardPort = 99;
const host = "127.0.0.1";

export interface ReservedPorts {
  readonly portBase: number;
  release(): Promise<void>;
}

/** Returns the first of `count` bases in a row whose ports are free, for this process alone. Throws if there is none. */
export async function reservePorts(count = 1): Promise<ReservedPorts> {
  const choices = bases - count + 1;
  const begin = Math.floor(Math.random() * choices);
  for (let at = 0; at < choices; at++) {
    const portBase = first + ((begin + at) % choices) * portsOfBase;
    const release = await reserved(Array.from({ length: count }, (_, i) => portBase + i * portsOfBase));
    if (release !== undefined) return { portBase, release };
  }
  throw new Error(`no ${count * portsOfBase} ports in a row are free from ${first} to ${first + bases * portsOfBase - 1}`);
}

/** Returns how to release the bases; undefined if one of them is not free. */
async function reserved(wanted: readonly number[]): Promise<(() => Promise<void>) | undefined> {
  const guards: Server[] = [];
  const release = async (): Promise<void> => {
    await Promise.all(guards.map((guard) => new Promise((resolve) => guard.close(resolve))));
  };
  for (const base of wanted) {
    const guard = await listening(base + guardPort);
    if (guard !== undefined) guards.push(guard);
    const others = Array.from({ length: portsOfBase }, (_, offset) => base + offset).filter((port) => port !== base + guardPort);
    const free = guard !== undefined && (await takenPorts(host, new Map(others.map((port) => [port, "a cluster"])))).length === 0;
    if (free) continue;
    await release();
    return undefined;
  }
  return release;
}

/** Returns a server on the port, which does not keep this process alive, or undefined if another process has the port. */
function listening(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", () => resolve(undefined));
    server.listen({ host, port, exclusive: true }, () => resolve(server.unref()));
  });
}
