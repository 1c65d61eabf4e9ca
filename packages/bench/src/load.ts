/**
 * The load generator: a process of its own, so that its work is not counted with a server's. It says "begin" and "end" on standard error
 * around what it measures, and its result as JSON on standard output.
 */
import { BlobClient, type BlobResult, contentOf } from "@stamp/cli";
import type { LoadRequest, LoadResult } from "./cases.ts";

const request = JSON.parse(process.argv.at(-1) ?? "{}") as LoadRequest;
const client = BlobClient.fromConnectionString(request.connectionString, { connectionsMax: request.concurrency, timeoutMs: 60_000 });
const body = contentOf("bench", request.bytes);
/** Blobs that are read, and overwritten in turn by nobody. */
const readable = request.bytes > 1_000_000 ? 32 : 500;
const expected = request.operation === "put" ? 201 : 200;

const succeeded = (result: BlobResult): boolean =>
  result.kind === "answer" && result.status === expected && (request.operation === "put" || result.body.length === request.bytes);

async function prepare(): Promise<void> {
  const made = await client.createContainer(request.container);
  if (made.kind !== "answer" || (made.status !== 201 && made.status !== 409)) throw new Error(`no container: ${JSON.stringify(made)}`);
  if (request.operation === "put") return;
  let next = 0;
  const writer = async (): Promise<void> => {
    while (next < readable) {
      const number = next++;
      const name = `read-${request.bytes}-${number}`;
      const held = await client.call("HEAD", `/${request.container}/${name}`, {});
      if (held.kind === "answer" && held.status === 200) continue;
      const put = await client.put(request.container, name, body);
      if (put.kind !== "answer" || put.status !== 201)
        throw new Error(`can't write what is to be read: ${JSON.stringify(put).slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, writer));
}

let measuring = false;
let running = true;
let failed = 0;
let firstFailure = "";
let number = 0;
let finished = 0;
const latencies: number[] = [];

async function worker(): Promise<void> {
  while (running) {
    const at = number++;
    const startMs = performance.now();
    const result =
      request.operation === "put"
        ? await client.put(request.container, `put-${process.pid}-${at}`, body)
        : await client.get(request.container, `read-${request.bytes}-${(at * 7_919) % readable}`);
    finished++;
    if (!measuring) continue;
    if (succeeded(result)) latencies.push(performance.now() - startMs);
    else {
      failed++;
      if (firstFailure === "")
        firstFailure = result.kind === "answer" ? `${result.status} ${result.body.toString("utf8").slice(0, 200)}` : result.why;
    }
  }
}

const pause = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;

/** Until the time is up and every worker had some operations, but not for ever: slow ones would else be judged by a few that fit in. */
async function lasting(seconds: number, operationsMin: number, done: () => number): Promise<void> {
  const startMs = performance.now();
  const elapsed = (): number => (performance.now() - startMs) / 1_000;
  while (elapsed() < seconds || (done() < operationsMin && elapsed() < seconds * 8)) await pause(0.02);
}

await prepare();
const workers = Array.from({ length: request.concurrency }, worker);
await lasting(request.warmUpSeconds, request.concurrency, () => finished);
measuring = true;
process.stderr.write("begin\n");
const cpuBefore = process.cpuUsage();
const startMs = performance.now();
await lasting(request.seconds, request.concurrency * 2, () => latencies.length + failed);
measuring = false;
const seconds = (performance.now() - startMs) / 1_000;
const cpu = process.cpuUsage(cpuBefore);
process.stderr.write("end\n");
running = false;
await Promise.all(workers);
client.close();
const sorted = latencies.toSorted((a, b) => a - b);
const result: LoadResult = {
  operations: sorted.length,
  seconds,
  failed,
  p50Ms: percentile(sorted, 0.5),
  p99Ms: percentile(sorted, 0.99),
  cpuMs: (cpu.user + cpu.system) / 1_000,
  firstFailure,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
process.exit(0);
