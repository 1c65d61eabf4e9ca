/** Findings about the secret of the stamp, as its processes tell of it. */
import { counted } from "../counted.ts";
import type { StampFacts } from "../facts.ts";
import { fewNames } from "../few.ts";
import { type Code, type Finding, finding } from "../kinds/kinds.ts";

const dayMs = 24 * 3_600_000;
/** Age from which a secret should be rotated, in days. */
export const secretOldDays = 365;

/** Returns a finding for each problem, not for each process that tells it: processes of a host read the same files. */
export function findProblems(
  code: Code,
  told: readonly { readonly name: string; readonly host: string | undefined; readonly problem: string }[],
): Finding[] {
  const byProblem = Map.groupBy(
    told.filter(({ problem }) => problem !== ""),
    ({ host = "", problem }) => `${host} ${problem}`,
  );
  return [...byProblem.values()].map(([first, ...others]) => {
    const more = `; ${counted(others.length, "more process", ["says", "say"])} so: ${fewNames(others.map(({ name }) => name))}`;
    return finding(code, first?.name ?? "", `${first?.problem}${others.length === 0 ? "" : more}`);
  });
}

export function findSecret({ processes, nowMs }: StampFacts): Finding[] {
  const told = processes.flatMap(({ name, host, answer }) => (answer?.secret === undefined ? [] : [{ name, host, ...answer.secret }]));
  const found = findProblems("secret-unusable", told);
  const changing = told.filter(({ ids }) => ids.length > 1).map(({ name }) => name);
  if (changing.length > 0)
    found.push(
      finding("secret-rotation-open", "", `${counted(changing.length, "process", ["accepts", "accept"])} two: ${fewNames(changing)}`),
    );
  const madeMs = Math.min(...told.flatMap(({ madeMs }) => madeMs ?? []));
  const days = Math.floor((nowMs - madeMs) / dayMs);
  if (Number.isFinite(days) && days > secretOldDays && changing.length === 0)
    found.push(finding("secret-old", "", `it was made ${counted(days, "day")} ago`));
  return found;
}
