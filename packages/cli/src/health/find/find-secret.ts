/** Findings about the secret of the stamp, as its processes tell of it. */
import { counted } from "../counted.ts";
import type { StampFacts } from "../facts.ts";
import { few } from "../few.ts";
import { type Finding, finding } from "../kinds/kinds.ts";

const dayMs = 24 * 3_600_000;
/** Age from which a secret should be rotated, in days. */
export const secretOldDays = 365;

export function findSecret({ processes, nowMs }: StampFacts): Finding[] {
  const told = processes.flatMap(({ name, answer }) => (answer?.secret === undefined ? [] : [{ name, ...answer.secret }]));
  const found = told.filter(({ problem }) => problem !== "").map(({ name, problem }) => finding("secret-unusable", name, problem));
  const changing = told.filter(({ ids }) => ids.length > 1).map(({ name }) => name);
  if (changing.length > 0)
    found.push(finding("secret-rotation-open", "", `${counted(changing.length, "process", ["accepts", "accept"])} two: ${few(changing)}`));
  const madeMs = Math.min(...told.flatMap(({ madeMs }) => madeMs ?? []));
  const days = Math.floor((nowMs - madeMs) / dayMs);
  if (Number.isFinite(days) && days > secretOldDays && changing.length === 0)
    found.push(finding("secret-old", "", `it was made ${counted(days, "day")} ago`));
  return found;
}
