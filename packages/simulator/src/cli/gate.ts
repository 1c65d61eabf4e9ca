/**
 * The mutation gate: every mutant must be caught by some seed: a checker sees a promise broken without the rules, and with them (only
 * their back-ups off) the same seed passes. The seeds that caught them last time are tried first, of all mutants beside each other; for a
 * mutant that its seed does not catch any more, others are searched. What was caught by which seed can be written to
 * tests/simulation/seeds/mutants.json.
 */
import { writeFile } from "node:fs/promises";
import type { RuleName } from "@stamp/base";
import type { KeptSeed } from "./kept-seeds.ts";
import { keptFile, readKeptSeeds } from "./kept-seeds.ts";
import type { Mutant } from "./mutants.ts";
import { mutantName, mutants, rulesOffFor } from "./mutants.ts";
import { Pool } from "./pool.ts";
import type { SeedJob, SeedReport, WorkloadName } from "./report.ts";

export interface GateOptions {
  readonly only?: string | undefined;
  readonly workload?: string | undefined;
  readonly from: number;
  /** Seeds tried for each. */
  readonly budget: number;
  readonly workers: number;
  readonly seedTimeoutMs: number;
  readonly writeDocs: boolean;
  readonly print: (text: string) => void;
}

/** Returns the exit code. */
export async function gate(options: GateOptions): Promise<number> {
  const { print } = options;
  const kept = await readKeptSeeds();
  const before = (mutant: Mutant): KeptSeed | undefined => kept.find((each) => isOf(each, mutant));
  // In the order of the kept file, so that its diff shows only the seeds that are new.
  const caught = new Map<string, KeptSeed>();
  for (const seed of kept) {
    const mutant = mutants.find((each) => before(each) === seed);
    if (mutant) caught.set(mutantName(mutant), seed);
  }
  const wanted = mutants.filter(
    ({ rules, workload }) =>
      (options.only === undefined || rules.includes(options.only as RuleName)) &&
      (options.workload === undefined || workload === options.workload),
  );
  const missed: string[] = [];
  const pool = new Pool({ workers: options.workers, seedTimeoutMs: 2 * options.seedTimeoutMs });
  try {
    const rest = await tryKept(wanted, before, pool, print);
    for (const mutant of rest) {
      const found = await hunt(mutant, before(mutant), pool, options);
      if (found) caught.set(mutantName(mutant), found);
      else missed.push(mutantName(mutant));
    }
  } finally {
    pool.close();
  }
  print(missed.length === 0 ? "every mutant was caught" : `NOT caught: ${missed.join(", ")}`);
  if (options.writeDocs && missed.length === 0) {
    const seeds = [...caught.values()];
    await writeFile(keptFile("mutants.json"), `[\n${seeds.map((seed) => `  ${JSON.stringify(seed)}`).join(",\n")}\n]\n`);
    print("written: tests/simulation/seeds/mutants.json");
  }
  return missed.length === 0 ? 0 : 1;
}

const isOf = (seed: KeptSeed, mutant: Mutant): boolean =>
  seed.workload === mutant.workload && seed.rulesOff.join("+") === rulesOffFor(mutant).join("+");

/** Returns the seed that caught the mutant last time, if it is of the same workload and focus. */
const knownSeed = ({ workload, focus }: Mutant, before: KeptSeed | undefined): number | undefined =>
  before !== undefined && before.workload === workload && before.focus === focus ? before.seed : undefined;

interface MutantJob extends SeedJob {
  readonly mutant: Mutant;
}

const jobOf = (mutant: Mutant, seed: number): MutantJob => {
  const { workload, focus } = mutant;
  return { workload, seed, focus, rulesOff: rulesOffFor(mutant), twice: false, controlRulesOff: mutant.backedUpBy ?? [], mutant };
};

/** True if a checker saw a promise broken, and the same seed passes with the rules on. */
const catches = (report: SeedReport): boolean =>
  report.failure !== undefined && report.promiseBroken === true && report.failsAnyway !== true;

/** Tries each mutant with the seed that caught it last time. Returns those that are not caught. */
async function tryKept(
  wanted: readonly Mutant[],
  before: (mutant: Mutant) => KeptSeed | undefined,
  pool: Pool,
  print: GateOptions["print"],
): Promise<Mutant[]> {
  const jobs = wanted.flatMap((mutant) => {
    const seed = knownSeed(mutant, before(mutant));
    return seed === undefined ? [] : [jobOf(mutant, seed)];
  });
  const caught = new Set<Mutant>();
  const startedMs = performance.now();
  await pool.run(jobs, (report, { mutant, seed }) => {
    if (!catches(report)) return true;
    caught.add(mutant);
    print(
      `caught  ${mutantName(mutant)} -> ${where(mutant.workload, mutant.focus)} seed ${seed} (kept): ${report.failure?.split("\n")[0]}`,
    );
    return true;
  });
  print(`${caught.size} of ${wanted.length} were caught by their kept seeds in ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
  return wanted.filter((mutant) => !caught.has(mutant));
}

/** Searches a seed that catches the mutant. Skips the kept one, which did not. */
async function hunt(
  mutant: Mutant,
  before: KeptSeed | undefined,
  pool: Pool,
  { print, from, budget }: GateOptions,
): Promise<KeptSeed | undefined> {
  const startedMs = performance.now();
  const { workload, focus } = mutant;
  const known = knownSeed(mutant, before);
  const seeds = Array.from({ length: budget }, (_, i) => from + i).filter((seed) => seed !== known);
  let tried = 0;
  let otherwise = 0;
  let caught: SeedReport | undefined;
  await pool.run(
    seeds.map((seed) => jobOf(mutant, seed)),
    (report) => {
      tried += 1;
      if (catches(report)) caught ??= report;
      else if (report.failure !== undefined) otherwise += 1;
      return caught === undefined;
    },
  );
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  const others = otherwise > 0 ? `, ${otherwise} failed in another way or with all rules too` : "";
  const how = where(workload, focus);
  if (!caught) {
    print(`NOT CAUGHT  ${mutantName(mutant)} (${how}): ${tried} seeds in ${seconds} s noticed nothing${others}`);
    return undefined;
  }
  const [what = ""] = (caught.failure ?? "").split("\n");
  print(`caught  ${mutantName(mutant)} -> ${how} seed ${caught.seed} (${tried} tried in ${seconds} s${others}): ${what}`);
  return { workload, seed: caught.seed, ...(focus === undefined ? {} : { focus }), rulesOff: rulesOffFor(mutant), why: mutant.why };
}

export const where = (workload: WorkloadName, focus: string | undefined): string =>
  focus === undefined ? workload : `${workload} --focus ${focus}`;
