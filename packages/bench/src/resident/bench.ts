/** `stamp bench resident`: memory of each process of a cluster of the default shape while mixed load runs, as a table and a chart. */
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot as root } from "@stamp/cluster";
import { startTarget } from "../targets.ts";
import { chartOf } from "./chart.ts";
import { type Memory, memoryOfAll, type Row, rowsOf, type Sample } from "./memory.ts";
import { type MixedResult, mixedLoad, shares } from "./mixed.ts";

const usage = `pnpm bench resident [--seconds 600] [--clients 64] [--large 1500] [--rest 30] [--write]
Memory of each process while clients mix operations of blobs, tables and queues. --large: blobs of 4 MiB that are put in that time, evenly;
each takes 12 MiB of disk. --rest: seconds without load before and after it. --write: writes docs/measurements/memory.md and its chart`;

const samplesMax = 120;
const page = join(root, "docs", "measurements", "memory.md");

export interface ResidentOptions {
  readonly seconds: number;
  readonly clients: number;
  readonly large: number;
  readonly restMs: number;
}

export async function resident(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: "string", default: "600" },
      clients: { type: "string", default: "64" },
      large: { type: "string", default: "1500" },
      rest: { type: "string", default: "30" },
      write: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const [seconds, clients, large, rest] = [values.seconds, values.clients, values.large, values.rest].map(Number);
  if (values.help || !seconds || !clients || !large || rest === undefined || !(rest >= 0)) {
    console.log(usage);
    process.exit(values.help ? 0 : 2);
  }
  const options: ResidentOptions = { seconds, clients, large, restMs: rest * 1_000 };
  const text = await measured(options);
  console.log(text.page);
  if (!values.write) return;
  writeFileSync(page, text.page);
  writeFileSync(page.replace(/\.md$/, ".svg"), text.chart);
}

async function measured(options: ResidentOptions): Promise<{ readonly page: string; readonly chart: string }> {
  const { seconds, clients, large, restMs } = options;
  const target = await startTarget("cluster");
  const samples: Sample[] = [];
  try {
    await pause(restMs);
    const idle = memoryOfAll(target.pids);
    const over = new AbortController();
    let sampling: Promise<void> | undefined;
    const sample = async (): Promise<void> => {
      const startMs = performance.now();
      for (let i = 1; i <= samplesMax; i++) {
        await pause(startMs + (i * seconds * 1_000) / samplesMax - performance.now());
        samples.push({ atS: (performance.now() - startMs) / 1_000, of: memoryOfAll(target.pids) });
      }
      over.abort();
    };
    const begun = (): AbortSignal => {
      sampling = sample();
      return over.signal;
    };
    const space = { shared: "resident", own: String(process.pid) };
    const result = await mixedLoad(target.connectionString, space, { clients, largeEveryMs: (seconds * 1_000) / large, begun });
    await sampling;
    await pause(restMs);
    const rows = rowsOf(idle, samples, memoryOfAll(target.pids));
    if (rows.length < target.pids.size) throw new Error("a process ended while its memory was measured");
    return { page: pageOf(options, rows, result), chart: chartOf(samples) };
  } finally {
    await target.stop();
  }
}

const pause = (ms: number): Promise<void> => new Promise((passed) => setTimeout(passed, Math.max(0, ms)));

function pageOf({ seconds, clients, large, restMs }: ResidentOptions, rows: readonly Row[], result: MixedResult): string {
  const { operations, failed, firstFailure } = result;
  const sum = (of: (row: Row) => number): string => rows.reduce((total, row) => total + of(row), 0).toFixed(0);
  const both = ({ rss, pss }: Memory): string => `${rss.toFixed(0)} (${pss.toFixed(0)})`;
  const day = new Date().toISOString().slice(0, 10);
  const mixed = shares.map(([name, count]) => `- ${count} × ${name}`).join("\n");
  return `# Memory of each process under mixed load

    ./stamp bench resident --seconds ${seconds} --clients ${clients} --large ${large} --rest ${restMs / 1_000} --write

${day}, default cluster, ${clients} clients for ${seconds} s: ${operations} operations (${(operations / seconds).toFixed(0)}/s), ${failed} failed${failed > 0 ? `, the first: ${firstFailure}` : ""}.
Load average of the machine at the end: ${loadavg()[0]?.toFixed(0)}. Of forty operations:

${mixed}

Besides, ${large} blobs of 4 MiB at an even pace. Memory in MiB: resident, in brackets proportional (a page that several
processes share counts in parts). Growth: mean of the last third of the time as a multiple of the third before.

![Resident memory over time, a line for each process](memory.svg)

| process | at rest, before | after ¼ | ½ | ¾ | at the end | peak | growth | at rest, after |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
${rows.map((row) => `| ${row.name} | ${both(row.idle)} | ${row.quarters.map((mib) => mib.toFixed(0)).join(" | ")} | ${row.peak.toFixed(0)} | ${row.growth.toFixed(2)} | ${both(row.after)} |`).join("\n")}
| all | ${sum(({ idle }) => idle.rss)} (${sum(({ idle }) => idle.pss)}) | ${[0, 1, 2, 3].map((i) => sum(({ quarters }) => quarters[i] ?? 0)).join(" | ")} | ${sum(({ peak }) => peak)} | | ${sum(({ after }) => after.rss)} (${sum(({ after }) => after.pss)}) |

What bounds it, by default: a partition server's \`memoryTablesBytesMax\` (256 MiB), \`rowCacheBytesMax\` (an eighth of
memory, 64 MiB to 8 GiB) and \`indexCacheBytesMax\` (192 MiB); a front-end's \`uploadBytesMax\` (32 MiB),
\`documentBytesMax\` (32 MiB) and \`downloadBytesMax\` (256 MiB); an extent node's \`journalQueueBytesMax\` and
\`pendingBytesMax\` (64 MiB each); besides, the heap of V8 and what malloc keeps.
`;
}
