/**
 * Failure seen → new extent ready, measured at the owner of the stream: from the first append that fails until the next extent takes
 * appends. What fails, in turn: the connection to the primary is cut (the owner sees it), or a process that holds a replica of the open
 * extent is killed (SIGKILL), primary and secondaries in turn. A killed process has to be back before the next event, so most events are cuts:
 * (`--kill-every 1`: kills only.)
 * The steps inside the stream manager come from its log.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { unwrap } from "@stamp/base";
import type { ExtentChange } from "@stamp/stream-client";
import { type Bench, distribution, forever, numbers, pause, processAt, until, withCluster } from "./bench.ts";

const name = "/bench/seal";
const kinds = ["connection cut", "primary killed", "secondary killed"] as const;
type Kind = (typeof kinds)[number];
const managers = ["stream-manager-1", "stream-manager-2"] as const;
/** Lines of the managers' logs about an extent that took longer are printed. */
const slowMs = 1_000;

export async function seal(args: string[]): Promise<void> {
  const {
    events,
    "kill-every": killEvery,
    "append-bytes": appendBytes,
    "extent-nodes": extentNodes,
  } = numbers(args, "seal", { events: 200, "kill-every": 8, "append-bytes": 1_000, "extent-nodes": 5 });
  const seen: { readonly kind: Kind; readonly change: ExtentChange }[] = [];
  /** For scale: what one replicated, durable append takes on this machine now. */
  const appendsMs: number[] = [];
  let acknowledged = 0;
  await withCluster({ extentNodes }, async (bench) => {
    const { dataDir } = await bench.target.status();
    const changes: ExtentChange[] = [];
    const streams = bench.client({ onExtentChange: (change) => changes.push(change) });
    const stream = await bench.open(streams, name);
    unwrap(await stream.append([new Uint8Array(appendBytes)], forever));
    let running = true;
    const appender = async (): Promise<void> => {
      while (running) {
        const startMs = performance.now();
        unwrap(await stream.append([new Uint8Array(appendBytes)], forever));
        acknowledged += 1;
        if (acknowledged % 10 === 0) appendsMs.push(performance.now() - startMs);
        await pause(1);
      }
    };
    const appenders = Promise.all(Array.from({ length: 4 }, appender));
    const report = (): void => {
      console.log(`failure seen to new extent ready, ${seen.length} events, ${acknowledged} appends acknowledged meanwhile`);
      console.log(`  all                 ${distribution(seen.map(({ change }) => change.tookMs))}`);
      for (const kind of kinds) {
        const ofKind = seen.filter((each) => each.kind === kind).map(({ change }) => change.tookMs);
        console.log(`  ${kind.padEnd(18)}  ${distribution(ofKind)}`);
      }
      console.log(`  one append meanwhile  ${distribution(appendsMs)}`);
      printSteps(dataDir, new Set(seen.map(({ change }) => change.fromExtentId)));
    };
    try {
      for (let event = 0; event < events; event++) {
        const kind: Kind = event % killEvery !== killEvery - 1 ? "connection cut" : event % 3 === 0 ? "primary killed" : "secondary killed";
        const change = await strike(bench, streams, kind, stream.extents.at(-1)?.extentId ?? 0, changes);
        if (change.why === "failed") seen.push({ kind, change });
        if (change.tookMs > slowMs) printSlow(dataDir, kind, change);
        if (event % 20 === 19) console.error(`${event + 1} events, ${acknowledged} appends acknowledged`);
      }
      running = false;
      await appenders;
    } finally {
      running = false;
      report();
    }
  });
}

/** One failure; resolves with the change of extents that it caused, when everything is up again. */
async function strike(
  bench: Bench,
  streams: ReturnType<Bench["client"]>,
  kind: Kind,
  extentId: number,
  changes: readonly ExtentChange[],
): Promise<ExtentChange> {
  const { target } = bench;
  const addresses = unwrap(await streams.locate([extentId], { timeoutMs: 5_000 }))[0]?.addresses ?? [];
  const before = changes.length;
  const victim = (kind === "secondary killed" ? addresses.at(-1) : addresses[0]) ?? "";
  if (kind !== "connection cut") await target.ask({ do: "signal", name: await processAt(target, victim), signal: "SIGKILL" });
  await until("the next extent", 20_000, async () => {
    // Between two appends nobody notices.
    if (kind === "connection cut" && changes.length === before) bench.disconnect(victim);
    await pause(20);
    return changes.length > before;
  });
  if (kind !== "connection cut") {
    await until("every node is back", 60_000, async () => {
      const { processes } = await target.status();
      return processes.every((each) => each.ready) && (await target.inspector.nodes()).every((node) => node.up);
    });
  }
  // A node that failed is not chosen again at once, and the successor is allocated ahead when something was written.
  await pause(500);
  return changes[before] as ExtentChange;
}

const managersLog = (dataDir: string): string[] =>
  managers.flatMap((manager) => readFileSync(join(dataDir, "logs", `${manager}.log`), "utf8").split("\n"));

function printSlow(dataDir: string, kind: Kind, { fromExtentId, toExtentId, tookMs }: ExtentChange): void {
  console.error(`slow: ${kind}, ${tookMs.toFixed(0)} ms`);
  const about = new RegExp(`"(extent|successor)":(${fromExtentId}|${toExtentId})\\b`);
  for (const text of managersLog(dataDir)) if (about.test(text)) console.error(`  ${text}`);
}

interface Line {
  readonly msg: string;
  readonly extent: number;
  readonly ahead: boolean;
  readonly ms: Readonly<Record<string, number>>;
}

/** Since the call came in at the stream manager, in the order of the medians. */
function printSteps(dataDir: string, extents: ReadonlySet<number>): void {
  const steps = new Map<string, number[]>();
  let [lines, ahead] = [0, 0];
  for (const text of managersLog(dataDir)) {
    if (!text.includes('"extent succeeded"')) continue;
    const line = JSON.parse(text) as Line;
    if (!extents.has(line.extent)) continue;
    lines += 1;
    if (line.ahead) ahead += 1;
    for (const [step, ms] of Object.entries(line.ms)) {
      const key = `${step}${line.ahead ? "" : ", nothing ahead"}`;
      steps.set(key, [...(steps.get(key) ?? []), ms]);
    }
  }
  const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
  console.log(`  in the stream manager, since it was asked (${ahead} of ${lines} successors were allocated ahead):`);
  for (const [step, values] of [...steps].sort((a, b) => median(a[1]) - median(b[1])))
    console.log(`    ${step.padEnd(34)} ${distribution(values)}`);
}
