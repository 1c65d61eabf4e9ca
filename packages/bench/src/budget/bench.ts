/**
 * `stamp bench --budget`: processor time of every process of a cluster for one operation, as a multiple of what the yardstick (yardstick.ts) takes for
 * an operation like it, in turns in one run. If a multiple is more than `tolerance` above its entry in `budget.json`, the command fails.
 * `--write` sets the budget to what was measured.
 *
 * Processor time and a quotient take away most of what other programs on the machine do, and not all: at a load of 20, multiples were up to twice
 * those of a quiet machine. So a scenario fails only if it is above its budget in every one of `passes` turns, and a budget is a median.
 */
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { loadavg } from "node:os";
import { join } from "node:path";
import { startOwn } from "@stamp/drills";
import { cpuMsOf } from "../processor-time.ts";
import { scenarioNamed, scenariosOf } from "../scenarios/all.ts";
import type { Scenario } from "../scenarios/scenario.ts";

/** Factor above the budget from which on a scenario fails. */
export const tolerance = 1.4;
/**
 * Passes over the scenarios that are above their budget. They lie apart in time, so that one disturbance does not meet all of them.
 * A budget is the median of all passes.
 */
const passes = 6;
/**
 * Load average of the last minute above which nothing is judged: with that many processes on two cores multiples double. A run by itself makes
 * a load of 5.
 */
const loadMax = 10;
/** Time of warming up before anything is measured, since every operation shares most of its code with the first. */
const firstWarmUpMs = 4_000;
const warmUpMs = 500;
const turnMs = 700;
const yardstickTurnMs = 400;
const yardstickConcurrency = 32;
/** Scenarios, and how many operations of each run at once. */
const budgeted: readonly (readonly [name: string, concurrency: number])[] = [
  ["put 1 KiB", 32],
  ["get 1 KiB", 32],
  ["put 4 MiB", 8],
  ["get 4 MiB", 8],
  ["upload 64 MiB, blocks of 8 MiB", 2],
  ["list 1,000 of 10,000", 4],
  ["table insert 1 KiB", 32],
  ["table point read", 32],
  ["table transaction of 100", 8],
  ["table query, 1,000 entities", 4],
  ["queue put", 32],
];
/** Bodies above this are sent to the yardstick by as many clients as to the cluster. */
const largeBytes = 1024 * 1024;
/** Least number of operations in a turn, for each of those that run at once. */
const operationsMin = 2;
const budgetFile = join(import.meta.dirname, "budget.json");

export type Budget = Readonly<Record<string, number>>;

export interface MeasuredScenario {
  readonly name: string;
  /** Processor time of one operation, in microseconds: of all processes of the cluster, and of the yardstick. */
  readonly clusterMicros: number;
  readonly yardstickMicros: number;
  readonly multiple: number;
}

/** Returns the names of scenarios above their budget, and of those without one. */
export const overBudget = (measured: readonly MeasuredScenario[], budget: Budget): readonly string[] =>
  measured.filter(({ name, multiple }) => !(multiple <= (budget[name] ?? 0) * tolerance)).map(({ name }) => name);

export function tableOf(measured: readonly MeasuredScenario[], budget: Budget): string {
  const lines = measured.map(({ name, clusterMicros, yardstickMicros, multiple }) => {
    const allowed = budget[name];
    const share = allowed === undefined ? "no budget" : `${((multiple / allowed) * 100).toFixed(0)}% of ${allowed.toFixed(2)}`;
    return `${name.padEnd(22)} ${clusterMicros.toFixed(0).padStart(8)} µs  yardstick ${yardstickMicros.toFixed(0).padStart(6)} µs  ${multiple.toFixed(2).padStart(7)}×  ${share}`;
  });
  return lines.join("\n");
}

type Operation = (number: number) => Promise<unknown>;

/** Runs operations for a while; returns processor time for one of them, in microseconds. */
async function turn(
  operation: Operation,
  concurrency: number,
  forMs: number,
  from: { next: number },
  cpuMs: () => number,
): Promise<number> {
  const startMs = performance.now();
  const before = cpuMs();
  let done = 0;
  const going = (): boolean => performance.now() - startMs < forMs || done < concurrency * operationsMin;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (going()) {
        await operation(from.next++);
        done++;
      }
    }),
  );
  return ((cpuMs() - before) * 1_000) / done;
}

/** Measurements of one scenario so far, one for each turn of the bench. */
class Turns {
  readonly scenario: Scenario;
  readonly #concurrency: number;
  readonly #from = { next: 0 };
  readonly #turns: MeasuredScenario[] = [];

  constructor(scenario: Scenario, concurrency: number) {
    this.scenario = scenario;
    this.#concurrency = concurrency;
  }

  get least(): MeasuredScenario {
    return this.#at(0);
  }

  get median(): MeasuredScenario {
    return this.#at(this.#turns.length >> 1);
  }

  async warmUp(cluster: () => number, yardstick: Yardstick, forMs: number): Promise<void> {
    await this.scenario.prepare();
    await this.#theirs(yardstick, warmUpMs);
    await this.#ours(cluster, forMs);
  }

  async measure(cluster: () => number, yardstick: Yardstick): Promise<MeasuredScenario> {
    const yardstickMicros = await this.#theirs(yardstick, yardstickTurnMs);
    const clusterMicros = await this.#ours(cluster, turnMs);
    const measured = { name: this.scenario.name, clusterMicros, yardstickMicros, multiple: clusterMicros / yardstickMicros };
    this.#turns.push(measured);
    return measured;
  }

  #at(place: number): MeasuredScenario {
    const turn = this.#turns.toSorted((a, b) => a.multiple - b.multiple)[place];
    return turn ?? { name: this.scenario.name, clusterMicros: Number.NaN, yardstickMicros: Number.NaN, multiple: Number.NaN };
  }

  #ours(cluster: () => number, forMs: number): Promise<number> {
    return turn((number) => this.scenario.operation(number), this.#concurrency, forMs, this.#from, cluster);
  }

  #theirs({ ask, cpuMs }: Yardstick, forMs: number): Promise<number> {
    const { like } = this.scenario;
    const atOnce = like.bytes > largeBytes ? this.#concurrency : yardstickConcurrency;
    return turn(() => ask(like), atOnce, forMs, { next: 0 }, cpuMs);
  }
}

interface Yardstick {
  ask(like: Scenario["like"]): Promise<void>;
  cpuMs(): number;
  stop(): Promise<void>;
}

async function startYardstick(): Promise<Yardstick> {
  const child = spawn(process.execPath, [join(import.meta.dirname, "yardstick.ts")], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.setEncoding("utf8").once("data", (text: string) => resolve(Number(text)));
    child.once("exit", (code) => reject(new Error(`the yardstick ended with ${code}`)));
  });
  const agent = new Agent({ keepAlive: true });
  return {
    ask: ({ method, bytes }) =>
      new Promise((resolve, reject) => {
        const body = method === "PUT" ? Buffer.alloc(bytes, 5) : undefined;
        const asked = request({ host: "127.0.0.1", port, path: `/${bytes}`, method, agent }, (answer) => {
          answer.on("end", resolve).on("error", reject).resume();
        });
        asked.on("error", reject).end(body);
      }),
    cpuMs: () => cpuMsOf(child.pid ?? 0) ?? Number.NaN,
    stop: () => {
      agent.destroy();
      child.stdin.end();
      return exited;
    },
  };
}

/** Measures every scenario, and once more each whose least multiple so far `isOver`. */
async function measureAll(say: (text: string) => void, isOver: (least: MeasuredScenario) => boolean): Promise<readonly Turns[]> {
  const target = await startOwn({}, false);
  const yardstick = await startYardstick();
  const scenarios = scenariosOf(target.connectionString, { shared: "budget", own: "budget" });
  try {
    const { processes } = await target.status();
    const pids = processes.flatMap(({ pid }) => (pid === null ? [] : [pid]));
    const cluster = (): number => pids.reduce((sum, pid) => sum + (cpuMsOf(pid) ?? Number.NaN), 0);
    const all = budgeted.map(([name, concurrency]) => new Turns(scenarioNamed(scenarios, name), concurrency));
    let left = all;
    for (let pass = 0; pass < passes && left.length > 0; pass++) {
      for (const one of left) {
        if (pass === 0) await one.warmUp(cluster, yardstick, one === all[0] ? firstWarmUpMs : warmUpMs);
        say(tableOf([await one.measure(cluster, yardstick)], readBudget()));
      }
      left = left.filter((one) => isOver(one.least));
    }
    return all;
  } finally {
    scenarios.close();
    await yardstick.stop();
    await target.close();
  }
}

const readBudget = (): Budget => JSON.parse(readFileSync(budgetFile, "utf8")) as Budget;

/** Returns the exit code. */
export async function budgetBench(options: { readonly write: boolean }): Promise<number> {
  const budget = readBudget();
  const isOver = (one: MeasuredScenario): boolean => options.write || overBudget([one], budget).length > 0;
  const turns = await measureAll((text) => console.log(text), isOver);
  if (options.write) {
    const rounded = turns.map(({ median }) => [median.name, Math.round(median.multiple * 100) / 100] as const);
    writeFileSync(budgetFile, `${JSON.stringify(Object.fromEntries(rounded), null, 2)}\n`);
    return 0;
  }
  const over = overBudget(
    turns.map(({ least }) => least),
    budget,
  );
  const [load = 0] = loadavg();
  if (over.length > 0 && load > loadMax) {
    console.error(`not judged: the load of the machine is ${Math.round(load)}; above the budget: ${over.join(", ")}`);
    return 0;
  }
  for (const name of over) console.error(`${name}: more than ${tolerance} times its budget (packages/bench/src/budget/budget.json)`);
  return over.length === 0 ? 0 : 1;
}
