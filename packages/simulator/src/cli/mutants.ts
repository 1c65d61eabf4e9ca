/**
 * The mutation gate: each safety rule is switched off, and some seed must then fail. A rule whose absence no seed notices is not tested.
 * Rules that stand for the same are switched off together; a rule that another backs up, together with that one.
 */
import type { RuleName } from "@stamp/base";
import type { MutantRun, Rule, UnnoticedRule } from "./fault-rows/fault-row.ts";
import { faultRows } from "./fault-rows/fault-rows.ts";

/** Rules that are switched off together in one workload. */
export interface Mutant extends Omit<MutantRun, "together"> {
  readonly rules: readonly RuleName[];
}

const rules: readonly Rule[] = faultRows.flatMap((row) => row.rules.filter((rule) => typeof rule !== "string"));

export const mutants: readonly Mutant[] = rules
  .flatMap((rule) => ("unnoticed" in rule ? [] : [rule]))
  .flatMap(({ name, also, ...run }) =>
    [run, ...(also ? [also] : [])].map(({ together = [], ...rest }) => ({ rules: [name, ...together], ...rest })),
  );

export const unnoticedRules: readonly UnnoticedRule[] = rules.filter((rule) => "unnoticed" in rule);

/** Some rules are off in two workloads. */
export const mutantName = ({ rules, workload }: Mutant): string => `${rules.join("+")} (${workload})`;

export const rulesOffFor = (mutant: Mutant): RuleName[] => [...mutant.rules, ...(mutant.backedUpBy ?? [])];
