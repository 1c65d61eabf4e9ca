/**
 * One tenant of `stamp bench tenants`, a process of its own: inserts entities of 1 KiB, each in a transaction, over so many connections, with
 * a pause between two of one connection; after 503 it waits a second, as clients do. Its result as JSON on standard output.
 */
import { TableClient } from "../rows/table-client.ts";

export interface TenantRequest {
  readonly connectionString: string;
  readonly table: string;
  readonly connections: number;
  readonly pauseMs: number;
  readonly partitions: number;
  /** Not measured: connections are made, the cluster notices. */
  readonly settleMs: number;
  readonly measureMs: number;
}

export interface TenantResult {
  readonly done: number;
  readonly refused: number;
  readonly failed: number;
  readonly latenciesMs: readonly number[];
  readonly firstFailure: string;
}

const request = JSON.parse(process.argv.at(-1) ?? "{}") as TenantRequest;
const afterBusyMs = 1_000;
const client = new TableClient(request.connectionString);
const data = "x".repeat(960);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const startMs = performance.now();
const measuredFromMs = startMs + request.settleMs;
const endMs = measuredFromMs + request.measureMs;
const latenciesMs: number[] = [];
let [next, refused, failed, firstFailure] = [0, 0, 0, ""];

function note(tookMs: number, status: number, body: string): "done" | "busy" | "failed" {
  const inner = Number(/HTTP\/1\.1 (\d{3})/.exec(body)?.[1] ?? status);
  const outcome = status === 202 && inner === 204 ? "done" : status === 503 || inner === 503 ? "busy" : "failed";
  if (performance.now() < measuredFromMs) return outcome;
  if (outcome === "done") latenciesMs.push(tookMs);
  else if (outcome === "busy") refused++;
  else {
    failed++;
    if (firstFailure === "") firstFailure = `${status} ${body.slice(0, 300)}`;
  }
  return outcome;
}

async function worker(): Promise<void> {
  await pause(Math.random() * Math.min(request.settleMs, 1_000));
  while (performance.now() < endMs) {
    const number = next++;
    const row = { partitionKey: `p${String(number % request.partitions).padStart(4, "0")}`, rowKey: `${process.pid}-${number}`, data };
    const sentMs = performance.now();
    const outcome = await client.insert(request.table, [row]).then(
      ({ status, body }) => note(performance.now() - sentMs, status, body.toString("latin1", 0, 2_000)),
      (error: unknown) => note(0, 0, String(error)),
    );
    await pause(outcome === "done" ? request.pauseMs : afterBusyMs);
  }
}

const made = await client.createTable(request.table);
if (made.status !== 201 && made.status !== 204 && made.status !== 409) throw new Error(`no table: ${made.status} ${made.body}`);
await Promise.all(Array.from({ length: request.connections }, worker));
const result: TenantResult = { done: latenciesMs.length, refused, failed, latenciesMs, firstFailure };
process.stdout.write(JSON.stringify(result), () => process.exit(0));
