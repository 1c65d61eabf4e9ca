/**
 * `stamp bench rows`: one table, grown by transactions of 100 rows of 1 KiB from an empty cluster; at some sizes on the way the inserts that
 * led there and point reads over everything are measured, in turns with those of a table that stays small, with memory, disk, caches,
 * filters, rewriting and splits; in the end a restart.
 */
import { cp, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { present } from "@stamp/base";
import { type DrillTarget, startOwn, untilReady } from "@stamp/drills";
import { processUse } from "./machine.ts";
import { added, besideRows, countsNow, type Point, type PointInput, pointsTable, pointText, storageNow, type Work } from "./point.ts";
import { TableClient, type TableRow, transactionStatus } from "./table-client.ts";

const table = "rows";
const besideTable = "beside";
/** One table and then the other are read in so many turns. */
const turns = 5;
const rowsPerTransaction = 100;
const dataBytes = 960;
const checkpoints = [1_000, 100_000, 1_000_000, 10_000_000];
const sayEveryMs = 5_000;
/** Inserts are judged by the last ones before a point: so long, or all since the point before. */
const insertWindowMs = 15_000;
/** At rest: all processes of the cluster together took less than this part of one core in this time. */
const restingShare = 0.2;
const restingLookMs = 3_000;
/** A server fills its cache after a load or after merges where it has room: it only seems to be at rest before. */
const fillBeginsMs = 15_000;

const usage = `pnpm bench rows [--rows 1000000] [--connections 8] [--readers 16] [--read-seconds 8] [--rest-seconds 300] [--set key=value]… [--skip-restarts] [--keep]
pnpm bench rows --data DIR --rows N [--rounds 5] [--readers 16] [--read-seconds 8] [--rest-seconds 300] [--set key=value]…
Rows are read in turns with those of a table of ${besideRows} rows on the same cluster, which the machine serves as it serves the other.
--data: a folder that an earlier run with as many rows kept (it says which): only reads (and that small table, when it has none), so often,
at once and each time when the cluster has come to rest
--set: of the cluster's configuration, e.g. --set partitionServers=2
--rest-seconds: rows are read right behind the inserts, and again when the work that these left behind is done, or so much later; 0: not again`;

export async function rows(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rows: { type: "string", default: "1000000" },
      connections: { type: "string", default: "8" },
      readers: { type: "string", default: "16" },
      "read-seconds": { type: "string", default: "8" },
      "rest-seconds": { type: "string", default: "300" },
      set: { type: "string", multiple: true, default: [] },
      "skip-restarts": { type: "boolean", default: false },
      keep: { type: "boolean", default: false },
      data: { type: "string" },
      rounds: { type: "string", default: "5" },
      help: { type: "boolean", default: false },
    },
  });
  const [count, connections, readers, readSeconds, rounds] = [
    values.rows,
    values.connections,
    values.readers,
    values["read-seconds"],
    values.rounds,
  ].map(Number);
  const restMs = Number(values["rest-seconds"]) * 1_000;
  const isGood = !Number.isNaN(restMs) && count && count % rowsPerTransaction === 0 && connections && readers && readSeconds && rounds;
  if (values.help || !isGood) {
    console.log(usage);
    return;
  }
  const flags = Object.fromEntries(values.set.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]));
  const target = await startOwn({ ...flags, ...(values.data === undefined ? {} : { dataDir: values.data }) }, values.keep);
  const client = new TableClient(target.connectionString);
  try {
    const run = new Run(target, client);
    await run.prepare();
    if (values.data !== undefined) {
      run.isFilled(count);
      for (let round = 0; round < rounds; round++) {
        if (round > 0 && restMs > 0) await run.rest(restMs, fillBeginsMs);
        await run.measure(readers, readSeconds * 1_000);
      }
      console.log(`\n${pointsTable(run.points)}`);
      return;
    }
    const at = [...checkpoints.filter((one) => one < count), count];
    for (const point of at) {
      await run.fill(point, connections);
      await run.measure(readers, readSeconds * 1_000);
      if (restMs === 0) continue;
      await run.rest(restMs, fillBeginsMs);
      await run.measure(readers, readSeconds * 1_000);
    }
    console.log(`\n${pointsTable(run.points)}`);
    if (!values["skip-restarts"]) await run.restarts();
    if (values.keep) console.log(`\nkept: ${(await target.status()).dataDir}`);
  } catch (error) {
    const logs = await mkdtemp(join(tmpdir(), "stamp-bench-logs-"));
    await cp(join((await target.status()).dataDir, "logs"), logs, { recursive: true });
    console.error(`what the processes said: ${logs}`);
    throw error;
  } finally {
    client.close();
    await target.close();
  }
}

class Run {
  readonly points: Point[] = [];
  readonly #target: DrillTarget;
  readonly #client: TableClient;
  readonly #text: string;
  #filled = 0;
  #refused = 0;
  #insert: PointInput["insert"] = { rows: 0, ms: 1, latenciesMs: [], cpu: new Map() };

  constructor(target: DrillTarget, client: TableClient) {
    this.#target = target;
    this.#client = client;
    this.#text = noise(1 << 20);
  }

  /** Both tables, and all rows of the small one. Those that are there already stay. */
  async prepare(): Promise<void> {
    const conflict = 409;
    for (const name of [table, besideTable]) {
      const made = await this.#client.createTable(name);
      if (![201, 204, conflict].includes(made.status)) throw new Error(`no table: ${made.status} ${made.body}`);
      if (name !== besideTable || made.status === conflict) continue;
      for (let i = 0; i < besideRows / rowsPerTransaction; i++) await this.#insertWhole(i, besideTable);
    }
  }

  /** So many rows are there already. */
  isFilled(rows: number): void {
    this.#filled = rows;
  }

  /** Transactions until there are so many rows. */
  async fill(upTo: number, connections: number): Promise<void> {
    const done: { readonly atMs: number; readonly tookMs: number }[] = [];
    let next = this.#filled / rowsPerTransaction;
    const startMs = performance.now();
    const cpuBefore = await this.#cpu();
    let saidMs = startMs;
    let said = 0;
    const writer = async (): Promise<void> => {
      while (next * rowsPerTransaction < upTo) {
        const transaction = next++;
        const sentMs = performance.now();
        await this.#insertWhole(transaction);
        const atMs = performance.now();
        done.push({ atMs, tookMs: atMs - sentMs });
        if (atMs - saidMs < sayEveryMs) continue;
        const perSecond = ((done.length - said) * rowsPerTransaction * 1_000) / (atMs - saidMs);
        [saidMs, said] = [atMs, done.length];
        console.log(
          `  ${this.#filled + done.length * rowsPerTransaction} rows, ${perSecond.toFixed(0)} rows/s${this.#refused > 0 ? `, ${this.#refused} times 503` : ""}`,
        );
      }
    };
    await Promise.all(Array.from({ length: connections }, writer));
    const endMs = performance.now();
    const rows = upTo - this.#filled;
    this.#filled = upTo;
    const cpuAfter = await this.#cpu();
    const cpu = new Map([...cpuAfter].map(([name, ms]) => [name, ((ms - (cpuBefore.get(name) ?? 0)) * 1_000) / rows] as const));
    const late = done.filter(({ atMs }) => atMs > endMs - insertWindowMs);
    const ms = Math.min(insertWindowMs, endMs - startMs);
    this.#insert = { rows: late.length * rowsPerTransaction, ms, latenciesMs: late.map(({ tookMs }) => tookMs), cpu };
  }

  /** Again when the cluster has too much to do: what is refused so was not done. */
  async #insertWhole(transaction: number, into = table): Promise<void> {
    for (;;) {
      const answer = await this.#client.insert(into, this.#rowsOf(transaction));
      const { ok, busy } = transactionStatus(answer);
      if (ok) return;
      if (!busy) throw new Error(`transaction ${transaction}: ${answer.status} ${answer.body.toString().slice(0, 500)}`);
      this.#refused++;
      await pause(100);
    }
  }

  /** Until the cluster has done what the inserts left to do: checkpoints, merges, what extent nodes move from journals to their places. */
  async rest(mostMs: number, leastMs: number): Promise<void> {
    const startMs = performance.now();
    await pause(leastMs);
    for (;;) {
      const [beforeMs, before] = [performance.now(), await this.#clusterCpuMs()];
      await pause(restingLookMs);
      const share = ((await this.#clusterCpuMs()) - before) / (performance.now() - beforeMs);
      const tookMs = performance.now() - startMs;
      if (share >= restingShare && tookMs < mostMs) continue;
      const state = share < restingShare ? "at rest" : `still at work (${share.toFixed(2)} of a core)`;
      console.log(
        `\n${state} ${(tookMs / 1_000).toFixed(0)} s after that; read again${this.#insert.rows > 0 ? " (inserts are those of before)" : ""}:`,
      );
      return;
    }
  }

  async #clusterCpuMs(): Promise<number> {
    return (await processUse(this.#target)).reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  }

  /** Point reads of random rows. */
  async measure(readers: number, readMs: number): Promise<void> {
    const [all, beside] = [new Reads(), new Reads()];
    let readCounts: PointInput["readCounts"] | undefined;
    for (let turn = 0; turn < turns; turn++) {
      await this.#read(beside, besideTable, besideRows, readers, readMs / turns);
      const before = await countsNow(this.#target);
      await this.#read(all, table, this.#filled, readers, readMs / turns);
      readCounts = added(readCounts, before, await countsNow(this.#target));
    }
    const point: Point = {
      rows: this.#filled,
      rowBytes: dataBytes + 30,
      insert: this.#insert,
      read: all.work,
      beside: beside.work,
      readCounts: present(readCounts, "at least one turn"),
      after: await storageNow(this.#target),
      processes: await processUse(this.#target),
    };
    this.points.push(point);
    console.log(pointText(point));
  }

  async #read(into: Reads, from: string, rows: number, readers: number, readMs: number): Promise<void> {
    const cpuBefore = await this.#cpu();
    const startMs = performance.now();
    const endMs = startMs + readMs;
    const reader = async (): Promise<void> => {
      while (performance.now() < endMs) {
        const at = Math.floor(Math.random() * rows);
        const row = this.#row(Math.floor(at / rowsPerTransaction), at % rowsPerTransaction);
        const sentMs = performance.now();
        const answer = await this.#client.get(from, row.partitionKey, row.rowKey);
        if (answer.status !== 200 || !answer.body.includes(row.data))
          throw new Error(`row ${at} of ${from}: ${answer.status} ${answer.body.toString().slice(0, 300)}`);
        into.latenciesMs.push(performance.now() - sentMs);
      }
    };
    await Promise.all(Array.from({ length: readers }, reader));
    into.ms += performance.now() - startMs;
    for (const [name, ms] of await this.#cpu()) into.cpuMs.set(name, (into.cpuMs.get(name) ?? 0) + ms - (cpuBefore.get(name) ?? 0));
  }

  /** How long nobody is served: one partition server killed, then everything. */
  async restarts(): Promise<void> {
    const busiest = await this.#serverOfMost();
    await this.#target.ask({ do: "signal", name: busiest, signal: "SIGKILL" });
    console.log(`\n${busiest} killed (its supervisor starts it again): every range answers again after ${await this.#served()} ms`);
    await untilReady(this.#target);
    await this.#target.ask({ do: "power-loss" });
    const downMs = performance.now();
    await this.#target.ask({ do: "resume" });
    console.log(`every process killed at once and started: every range answers again after ${await this.#served(downMs)} ms`);
    await untilReady(this.#target);
    console.log("afterwards (inserts are those of before):");
    await this.measure(8, 3_000);
  }

  async #serverOfMost(): Promise<string> {
    const count = new Map<string, number>();
    for (const { table: of, server } of await this.#target.inspector.ranges()) {
      if (of === "Entity") count.set(server, (count.get(server) ?? 0) + 1);
    }
    return [...count].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? "";
  }

  /** Until 64 rows from everywhere were read. */
  async #served(sinceMs: number = performance.now()): Promise<string> {
    const wanted = Array.from({ length: 64 }, (_, i) => Math.floor((i * this.#filled) / 64));
    await Promise.all(
      wanted.map(async (at) => {
        const row = this.#row(Math.floor(at / rowsPerTransaction), at % rowsPerTransaction);
        for (;;) {
          const answer = await this.#client.get(table, row.partitionKey, row.rowKey).catch(() => undefined);
          if (answer?.status === 200 && answer.body.includes(row.data)) return;
          if (answer !== undefined && answer.status < 500) throw new Error(`row ${at} after a restart: ${answer.status} ${answer.body}`);
          await pause(20);
        }
      }),
    );
    return (performance.now() - sinceMs).toFixed(0);
  }

  async #cpu(): Promise<Map<string, number>> {
    const { user, system } = process.cpuUsage();
    const all = (await processUse(this.#target)).map(({ name, cpuMs }) => [name, cpuMs] as const);
    return new Map([...all, ["this client", (user + system) / 1_000]]);
  }

  #rowsOf(transaction: number): TableRow[] {
    return Array.from({ length: rowsPerTransaction }, (_, i) => this.#row(transaction, i));
  }

  /** Transactions are spread over all keys, so that every insert goes anywhere. */
  #row(transaction: number, at: number): TableRow {
    const spread = (Math.imul(transaction + 1, 2_654_435_761) >>> 0).toString(16).padStart(8, "0");
    const from = ((transaction * rowsPerTransaction + at) * 613) % (this.#text.length - dataBytes);
    return { partitionKey: `key-${spread}`, rowKey: at.toString().padStart(3, "0"), data: this.#text.slice(from, from + dataBytes) };
  }
}

class Reads {
  readonly latenciesMs: number[] = [];
  readonly cpuMs: Map<string, number> = new Map();
  ms = 0;

  get work(): Work {
    const { length } = this.latenciesMs;
    const cpu = new Map([...this.cpuMs].map(([name, ms]) => [name, (ms * 1_000) / length] as const));
    return { rows: length, ms: this.ms, latenciesMs: this.latenciesMs, cpu };
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Letters and digits that nothing compresses, the same in every run. */
function noise(length: number): string {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  let state = 1;
  let text = "";
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += letters[state >>> 26];
  }
  return text;
}
