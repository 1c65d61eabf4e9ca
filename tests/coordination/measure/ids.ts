/** Twelve processes take unique numbers, once quiet, and once while processes and an extent node are killed with SIGKILL. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { BlobOptimisticSyncStore, type OptimisticSyncStore, UniqueIdGenerator } from "@stamp/coordination";
import { container, machineMs } from "./clock.ts";

interface Batch {
  readonly ids: readonly number[];
  readonly writes: number;
  readonly refused: number;
}

const batch = 500;

if (process.env.COUNTER !== undefined) await taker(process.env.COUNTER, Number(process.env.IDS), Number(process.env.RANGE));

async function taker(counter: string, count: number, rangeSize: number): Promise<void> {
  const store = new BlobOptimisticSyncStore(container("uniqueids"), counter);
  let [writes, refused] = [0, 0];
  const counted: OptimisticSyncStore = {
    name: store.name,
    getData: (signal) => store.getData(signal),
    tryOptimisticWrite: async (...args) => {
      writes++;
      const done = await store.tryOptimisticWrite(...args);
      if (!done) refused++;
      return done;
    },
  };
  const generator = new UniqueIdGenerator(counted, { rangeSize });
  for (let sent = 0; sent < count; sent += batch) {
    const ids: number[] = [];
    while (ids.length < Math.min(batch, count - sent)) ids.push(Number(await generator.nextId()));
    await new Promise((resolve) => process.send?.({ ids, writes, refused } satisfies Batch, undefined, undefined, resolve));
    [writes, refused] = [0, 0];
  }
  process.exit(0);
}

/** Returns what the numbers say. `disturb` is called once, when a fifth of the numbers is there; `killEveryMs`: 0 for never. */
export async function ids(each: number, rangeSize: number, killEveryMs: number, disturb: () => Promise<void>, processes = 12) {
  const counter = `ids-${process.pid}-${Date.now()}`;
  const seen = new Set<number>();
  const running = new Set<ChildProcess>();
  const result = { numbers: 0, twice: 0, backwards: 0, writes: 0, refused: 0, killed: 0, seconds: 0 };
  let killedMs = Number.NEGATIVE_INFINITY;
  const take = async (): Promise<void> => {
    for (let left = each; left > 0; ) {
      let last = -1;
      const env = { ...process.env, COUNTER: counter, IDS: String(left), RANGE: String(rangeSize) };
      const child = fork(import.meta.filename, [], { env });
      running.add(child);
      child.on("message", (got: Batch) => {
        result.writes += got.writes;
        result.refused += got.refused;
        left -= got.ids.length;
        for (const id of got.ids) {
          if (seen.has(id)) result.twice++;
          seen.add(id);
          if (id <= last) result.backwards++;
          last = id;
        }
        // Only a process that has given numbers: on a busy machine others would be killed before they do anything, for ever.
        if (killEveryMs === 0 || machineMs() - killedMs < killEveryMs) return;
        killedMs = machineMs();
        child.kill("SIGKILL");
      });
      const [code, signal] = await once(child, "exit");
      running.delete(child);
      if (signal !== null) result.killed++;
      else if (code !== 0) throw new Error(`a process that takes numbers ended with ${code}`);
    }
  };
  const fromMs = machineMs();
  const all = Promise.all(Array.from({ length: processes }, take));
  const disturbing = (async () => {
    while (seen.size < (each * processes) / 5) await new Promise((resolve) => setTimeout(resolve, 20));
    await disturb();
  })();
  try {
    await all;
    await disturbing;
  } finally {
    for (const child of running) child.kill("SIGKILL");
  }
  result.seconds = (machineMs() - fromMs) / 1_000;
  result.numbers = seen.size;
  const { data } = await new BlobOptimisticSyncStore(container("uniqueids"), counter).getData(new AbortController().signal);
  console.log(
    `| ${processes} × ${each}, ranges of ${rangeSize} | ${result.killed} | ${result.twice} | ${result.backwards} | ` +
      `${Number(data) / rangeSize} | ${result.refused} | ${result.seconds.toFixed(1)} | ${Math.round(result.numbers / result.seconds)} |`,
  );
  return result;
}
