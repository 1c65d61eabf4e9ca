/** Seeds that once found something, in tests/simulation/seeds/*.json: with all rules they must pass, with the named ones off, fail. */
import { readdir, readFile } from "node:fs/promises";
import type { RuleName } from "@stamp/base";
import type { WorkloadName } from "./report.ts";

export interface KeptSeed {
  readonly workload: WorkloadName;
  readonly seed: number;
  readonly focus?: string | undefined;
  /** Empty: it once failed with all rules, because of a bug since mended. */
  readonly rulesOff: readonly RuleName[];
  readonly why: string;
}

export const keptFile = (name: string): URL => new URL(name, folder);

const folder = new URL("../../../../tests/simulation/seeds/", import.meta.url);

export async function readKeptSeeds(): Promise<KeptSeed[]> {
  const kept: KeptSeed[] = [];
  for (const name of (await readdir(folder)).sort()) {
    if (name.endsWith(".json")) kept.push(...(JSON.parse(await readFile(new URL(name, folder), "utf8")) as KeptSeed[]));
  }
  return kept;
}
