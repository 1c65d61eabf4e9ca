/**
 * The mutation gate: every mutant must be caught by some seed: a checker sees a promise broken without the rules, and with them (only
 * their back-ups off) the same seed passes. The seed that caught it last time is tried first. What was caught by which seed can be
 * written to tests/simulation/seeds/mutants.json and docs/faults.md.
 */
import { readFile, writeFile } from "node:fs/promises";
import type { RuleName } from "@stamp/base";
import { faultsPage } from "./faults-page.ts";
import type { KeptSeed } from "./kept-seeds.ts";
import { keptFile, readKeptSeeds } from "./kept-seeds.ts";
import type { Mutant } from "./mutants.ts";
import { mutantName, mutants, rulesOffFor } from "./mutants.ts";
import { runPool } from "./pool.ts";
import type { SeedReport, WorkloadName } from "./report.ts";

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

export const faultsPagePath: URL = new URL("../../../../docs/faults.md", import.meta.url);

/** Exit code. */
export async function gate(options: GateOptions): Promise<number> {
  const { print } = options;
  const kept = await readKeptSeeds();
  const caught = new Map<string, KeptSeed>();
  const missed: string[] = [];
  for (const mutant of mutants) {
    const before = kept.find((each) => sameRules(each, mutant));
    if (before) caught.set(mutantName(mutant), before);
    if (options.only !== undefined && !mutant.rules.includes(options.only as RuleName)) continue;
    if (options.workload !== undefined && mutant.workload !== options.workload) continue;
    const found = await hunt(mutant, before, options);
    if (found) caught.set(mutantName(mutant), found);
    else missed.push(mutantName(mutant));
  }
  print(missed.length === 0 ? "every mutant was caught" : `NOT caught: ${missed.join(", ")}`);
  if (options.writeDocs && missed.length === 0) {
    const seeds = mutants.flatMap((mutant) => caught.get(mutantName(mutant)) ?? []);
    await writeFile(keptFile("mutants.json"), `[\n${seeds.map((seed) => `  ${JSON.stringify(seed)}`).join(",\n")}\n]\n`);
    await writeFile(faultsPagePath, faultsPage(seeds));
    print("written: tests/simulation/seeds/mutants.json, docs/faults.md");
  }
  return missed.length === 0 ? 0 : 1;
}

/** docs/faults.md anew from the kept seeds: after a row, a rule or a mutant was added. */
export async function writeFaultsPage(): Promise<void> {
  await writeFile(faultsPagePath, (await faultsPageAsItIs()).made);
}

/** Returns docs/faults.md as it is written, and as the kept seeds make it. */
export async function faultsPageAsItIs(): Promise<{ readonly written: string; readonly made: string }> {
  const kept = await readKeptSeeds();
  const seeds = mutants.flatMap((mutant) => kept.find((each) => sameRules(each, mutant)) ?? []);
  return { written: await readFile(faultsPagePath, "utf8"), made: faultsPage(seeds) };
}

const sameRules = (seed: KeptSeed, mutant: Mutant): boolean => seed.rulesOff.join("+") === rulesOffFor(mutant).join("+");

async function hunt(mutant: Mutant, before: KeptSeed | undefined, options: GateOptions): Promise<KeptSeed | undefined> {
  const { print, from, budget, workers, seedTimeoutMs } = options;
  const startedMs = performance.now();
  const { workload, focus } = mutant;
  const known = before && before.workload === workload && before.focus === focus ? [before.seed] : [];
  const seeds = [...known, ...Array.from({ length: budget }, (_, i) => from + i).filter((seed) => !known.includes(seed))];
  let tried = 0;
  let otherwise = 0;
  let caught: SeedReport | undefined;
  await runPool(
    seeds.map((seed) => ({ workload, seed, focus, rulesOff: rulesOffFor(mutant), twice: false, controlRulesOff: mutant.backedUpBy ?? [] })),
    {
      workers,
      seedTimeoutMs: 2 * seedTimeoutMs,
      onReport: (report) => {
        tried += 1;
        if (report.failsAnyway || (report.failure !== undefined && !report.promiseBroken)) otherwise += 1;
        else if (report.failure !== undefined) caught ??= report;
        return caught === undefined;
      },
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
