/**
 * Order numbers from many processes without a lock (article "Synchronizing multiple nodes").
 *
 *   node examples/order-numbers.ts [--processes 12] [--ids 10000] [--range 1000]
 *
 * Each process takes its numbers from ranges that it reserves. The parent checks that no number was given twice and that the numbers of
 * each process rise. A process that is killed meanwhile (try it) is started again; the rest of its range is lost, which harms nobody.
 */
import { fork } from "node:child_process";
import { BlobOptimisticSyncStore, UniqueIdGenerator } from "@stamp/coordination";
import { container, option } from "./account.ts";

const processes = option("--processes", 12);
const ids = option("--ids", 10_000);
const rangeSize = option("--range", 1_000);
const counter = process.env.COUNTER ?? `order-number-${Date.now()}.dat`;
/** Numbers in one message to the parent. */
const batch = 500;

if (process.send !== undefined) await child();
else await parent();

async function child(): Promise<void> {
  const generator = new UniqueIdGenerator(new BlobOptimisticSyncStore(container("uniqueids"), counter), { rangeSize });
  for (let sent = 0; sent < ids; sent += batch) {
    const numbers: string[] = [];
    while (numbers.length < Math.min(batch, ids - sent)) numbers.push(String(await generator.nextId()));
    await new Promise((resolve) => process.send?.(numbers, undefined, undefined, resolve));
  }
  process.disconnect?.();
}

async function parent(): Promise<void> {
  const seen = new Set<string>();
  let twice = 0;
  let backwards = 0;
  let killed = 0;
  const run = (index: number): Promise<void> =>
    new Promise((resolve) => {
      let last = -1n;
      const one = fork(import.meta.filename, process.argv.slice(2), { env: { ...process.env, COUNTER: counter } });
      one.on("message", (numbers: string[]) => {
        for (const number of numbers) {
          if (seen.has(number)) twice++;
          seen.add(number);
          if (BigInt(number) <= last) backwards++;
          last = BigInt(number);
        }
      });
      one.on("exit", (code) => {
        if (code === 0) return resolve();
        killed++;
        console.log(`process ${index} ended with ${code ?? "a signal"}: started again`);
        void run(index).then(resolve);
      });
    });
  const startMs = performance.now();
  await Promise.all(Array.from({ length: processes }, (_, index) => run(index)));
  const seconds = (performance.now() - startMs) / 1000;
  const { data } = await new BlobOptimisticSyncStore(container("uniqueids"), counter).getData(new AbortController().signal);
  const writes = Math.round(Number(data) / rangeSize);
  console.log(
    `${seen.size} numbers from ${processes} processes in ${seconds.toFixed(1)} s (${Math.round(seen.size / seconds)} a second, ` +
      `start of the processes included); ${writes} ranges reserved; given twice: ${twice}; backwards: ${backwards}; killed: ${killed}`,
  );
  process.exitCode = twice === 0 && backwards === 0 && seen.size >= processes * ids ? 0 : 1;
}
