/** Findings about faults on purpose (docs/guides/faults.md), as the front-ends tell of them. */
import { counted } from "../counted.ts";
import { factAt, numberAt, type StampFacts } from "../facts.ts";
import { fewNames } from "../few.ts";
import { type Finding, finding } from "../kinds/kinds.ts";

export function findFaultRules({ processes }: StampFacts): Finding[] {
  const told = processes.flatMap(({ name, answer }) =>
    factAt(answer?.facts, "faultRules") === undefined ? [] : [{ name, facts: answer?.facts }],
  );
  if (told.length === 0) return [];
  const active = told.filter(({ facts }) => numberAt(facts, "faultRules.rules") > 0);
  const rules = Math.max(0, ...told.map(({ facts }) => numberAt(facts, "faultRules.rules")));
  const hits = told.reduce((sum, { facts }) => sum + numberAt(facts, "faultRules.hits"), 0);
  const [first] = active;
  if (first === undefined) return [finding("fault-rules-taken", told[0]?.name ?? "", "the setting faultRules is on, and no rule acts")];
  const acted = `${counted(hits, "request")} met one`;
  return [finding("fault-rules-on", first.name, `${counted(rules, "rule")} at ${fewNames(active.map(({ name }) => name))}; ${acted}`)];
}
