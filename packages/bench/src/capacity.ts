/**
 * `pnpm bench capacity`: numbers to plan a stamp with, of a cluster of the default shape: memory of each role idle and at its peak, and bytes on
 * the disks of all extent nodes for each byte that clients stored, as large blobs and as small ones.
 */
import { type Dirent, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { BlobClient, type BlobResult, contentOf, startOwn } from "@stamp/drills";
import { allAtOnce, kib, mib } from "./scenarios/scenario.ts";

const usage = `pnpm bench capacity [--large 128] [--small 20000] [--idle-s 30]
Memory of each role, idle and at its peak while blobs of 4 MiB (--large of them) and of 1 KiB (--small) are put; bytes on disk for each.`;

const largeBytes = 4 * mib;
const [largeClients, smallClients] = [8, 32];

/** Returns the allocated bytes of the files of a folder. */
function sizeOf(folder: string): number {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return 0;
  }
  return entries.reduce((sum, entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sum + sizeOf(path);
    return sum + (statSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * 512;
  }, 0);
}

/** Returns the resident memory of a process in MiB: now, or at its peak. */
function memoryOf(pid: number, what: "VmRSS" | "VmHWM"): number {
  const found = new RegExp(`^${what}:\\s+(\\d+) kB$`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Math.round(Number(found?.[1] ?? "0") / 1024);
}

function must(result: BlobResult): void {
  if (result.kind !== "answer" || result.status !== 201) throw new Error(`a write was not acknowledged: ${JSON.stringify(result)}`);
}

export async function capacity(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      large: { type: "string", default: "128" },
      small: { type: "string", default: "20000" },
      "idle-s": { type: "string", default: "30" },
      help: { type: "boolean", default: false },
    },
  });
  const [large, small, idleMs] = [Number(values.large), Number(values.small), Number(values["idle-s"]) * 1_000];
  if (values.help || !(large > 0) || !(small > 0) || !(idleMs >= 0)) {
    console.log(usage);
    process.exit(values.help ? 0 : 2);
  }
  const target = await startOwn({}, false);
  try {
    const { dataDir, processes } = await target.status();
    const memory = (what: "VmRSS" | "VmHWM"): Map<string, number> => {
      const most = new Map<string, number>();
      for (const { role, pid } of processes) if (pid !== null) most.set(role, Math.max(most.get(role) ?? 0, memoryOf(pid, what)));
      return most;
    };
    const nodes = processes.filter(({ role }) => role === "extent-node").map(({ name }) => join(dataDir, name));
    const extentFiles = (): number => nodes.reduce((sum, node) => sum + sizeOf(join(node, "files", "extents")), 0);
    await new Promise((resolve) => setTimeout(resolve, idleMs));
    const idle = memory("VmRSS");
    const client = BlobClient.fromConnectionString(target.connectionString, { connectionsMax: smallClients, timeoutMs: 120_000 });
    must(await client.createContainer("capacity"));
    const stored = async (count: number, clients: number, bytes: number): Promise<string> => {
      const before = extentFiles();
      const body = contentOf("capacity", bytes);
      await allAtOnce(count, clients, async (number) => must(await client.put("capacity", `blob-${bytes}-${number}`, body)));
      return `${((extentFiles() - before) / (count * bytes)).toFixed(2)} bytes of extent files for each byte of ${count} blobs of ${bytes / kib} KiB`;
    };
    const [ofLarge, ofSmall] = [await stored(large, largeClients, largeBytes), await stored(small, smallClients, kib)];
    const peak = memory("VmHWM");
    for (const [role, mebibytes] of idle) console.log(`${role.padEnd(18)} idle ${mebibytes} MiB, peak ${peak.get(role)} MiB`);
    for (const line of [ofLarge, ofSmall]) console.log(line);
    const besides = nodes.map((node) => Math.round((sizeOf(node) - sizeOf(join(node, "files", "extents"))) / mib));
    console.log(`journal and tables of an extent node: ${besides.join(", ")} MiB`);
    console.log(`metadata store: ${Math.round(sizeOf(join(dataDir, "lock-service-1")) / kib)} KiB`);
  } finally {
    await target.close();
  }
}
