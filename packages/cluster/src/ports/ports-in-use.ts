/** Finds ports of a cluster that are taken, and by which process (Linux: from /proc; elsewhere only that they are). */
import { readdir, readFile, readlink } from "node:fs/promises";
import { createServer } from "node:net";
import { inWords } from "@stamp/ports-node";

const pauseMs = 50;

export interface TakenPort {
  readonly port: number;
  /** Part of the cluster that wants the port. */
  readonly wantedFor: string;
  /** `pid 123 (node server.js)`; undefined when it can't be found out. */
  readonly holder: string | undefined;
}

/** `waitMs`: longest wait for the ports. The kernel frees those of a killed process some time after its end. */
export async function takenPorts(host: string, wanted: ReadonlyMap<number, string>, waitMs = 0): Promise<TakenPort[]> {
  const endMs = performance.now() + waitMs;
  const busy: [number, string][] = [];
  for (const [port, wantedFor] of wanted) {
    while (!(await isFree(host, port))) {
      if (performance.now() < endMs) {
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
        continue;
      }
      busy.push([port, wantedFor]);
      break;
    }
  }
  if (busy.length === 0) return [];
  const holders = await holdersOf(busy.map(([port]) => port));
  return busy.map(([port, wantedFor]) => ({ port, wantedFor, holder: holders.get(port) }));
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(false);
      else reject(new Error(`can't open port ${port} at ${host}: ${inWords(error)}`));
    });
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

async function holdersOf(ports: readonly number[]): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  const portOfInode = await listeningSockets(new Set(ports));
  if (portOfInode.size === 0) return found;
  for (const pid of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(pid)) continue;
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => "");
      const port = portOfInode.get(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? "");
      if (port !== undefined && !found.has(port)) found.set(port, `pid ${pid} (${await commandOf(pid)})`);
    }
  }
  return found;
}

/** Returns the port by inode of the sockets that listen on one of the ports. */
async function listeningSockets(ports: ReadonlySet<number>): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  const listening = "0A";
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const text = await readFile(table, "utf8").catch(() => "");
    for (const line of text.split("\n").slice(1)) {
      const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
      const port = Number.parseInt(local.split(":")[1] ?? "", 16);
      if (state === listening && ports.has(port)) found.set(inode, port);
    }
  }
  return found;
}

async function commandOf(pid: string): Promise<string> {
  const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  const words = line
    .split("\0")
    .filter((word) => word !== "")
    .map(shortened)
    .join(" ");
  return words === "" ? "unknown command" : words.length > 120 ? `${words.slice(0, 117)}...` : words;
}

/** Longest path that is told whole, in characters. */
const pathMax = 40;

/** Returns the end of a long path, which names the program: `…/extent-node/src/main.ts`. */
function shortened(word: string): string {
  if (!word.startsWith("/") || word.length <= pathMax) return word;
  const parts = word.split("/");
  return `…/${parts.slice(parts.at(-1) === "main.ts" ? -3 : -2).join("/")}`;
}
