/** Findings about the master keys, as the partition servers tell of them. */
import { masterKeysTold } from "../../keys/keys-told.ts";
import { counted } from "../counted.ts";
import type { StampFacts } from "../facts.ts";
import { fewNames } from "../few.ts";
import { type Finding, finding } from "../kinds/kinds.ts";
import { findProblems } from "./find-secret.ts";

const dayMs = 24 * 3_600_000;
/** A master key that is older should be rotated. */
const keyOldDays = 365;

export function findMasterKey({ processes, nowMs }: StampFacts): Finding[] {
  const told = processes.flatMap(({ name, host, answer }) => {
    const keys = answer === undefined ? undefined : masterKeysTold(answer.facts);
    return keys === undefined ? [] : [{ name, host, ...keys }];
  });
  const found = findProblems("master-key-unusable", told);
  const sealing = Map.groupBy(told, ({ ids }) => ids[0] ?? "none");
  if (sealing.size > 1) {
    const each = [...sealing].map(([id, holders]) => `${fewNames(holders.map(({ name }) => name))} with ${id}`);
    found.push(finding("master-keys-differ", "", each.join("; ")));
  }
  const several = told.filter(({ ids }) => ids.length > 1).map(({ name }) => name);
  if (several.length > 0)
    found.push(
      finding("master-key-rotation-open", "", `${counted(several.length, "partition server")} with several: ${fewNames(several)}`),
    );
  const madeMs = Math.min(...told.flatMap((each) => each.madeMs ?? []));
  const days = Math.floor((nowMs - madeMs) / dayMs);
  if (Number.isFinite(days) && days > keyOldDays && several.length === 0)
    found.push(finding("master-key-old", "", `it was made ${counted(days, "day")} ago`));
  return found;
}
