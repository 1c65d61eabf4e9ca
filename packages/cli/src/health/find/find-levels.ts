/** Findings about the feature level of the stamp (docs/design/mixed-releases.md). */
import { upgradeStateOf } from "../../upgrade/upgrade-state.ts";
import type { StampFacts } from "../facts.ts";
import { type Finding, finding } from "../kinds/kinds.ts";

/** Levels of the processes, and of the stamp. A process that is too old for the stamp's level can take what it reads for damage. */
export function findLevels(facts: StampFacts): Finding[] {
  const { inTheWay, level, target } = upgradeStateOf(facts);
  if (level === undefined || facts.streamLayer?.level === undefined) return [];
  const older = facts.processes.filter(({ answer }) => answer !== undefined && (answer.versions?.featureLevel ?? 0) < level);
  const found = older.map(({ name, answer }) =>
    finding("process-too-old", name, `it knows level ${answer?.versions?.featureLevel ?? 0}, and the stamp has level ${level}`),
  );
  if (level < target && inTheWay.length === 0)
    found.push(finding("upgrade-open", "", `every process knows level ${target}, and the stamp has level ${level}`));
  return found;
}
