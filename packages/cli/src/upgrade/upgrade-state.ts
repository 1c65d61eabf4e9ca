/**
 * How far an upgrade of the stamp is: the feature level that it has, the one that it can have, and who stands in the way. Pure; from the facts of
 * `stamp health`. The leading stream manager knows who has announced itself; the plan of the cluster knows who has to be asked besides.
 */
import { featureLevel, featureLevels, neededLevels } from "@stamp/base";
import type { ProcessAnswer, StampFacts } from "../health/facts.ts";

export interface InTheWay {
  readonly process: string;
  /** Release of the process; empty: it does not answer or does not say. */
  readonly release: string;
  /** Highest feature level that the process knows; undefined: it does not answer. */
  readonly knows: number | undefined;
  readonly why: string;
}

export interface UpgradeState {
  /** Recorded level of the stamp; undefined if no stream manager that leads answered. */
  readonly level: number | undefined;
  /** Level that the stamp could have if nobody stood in the way: the one that the leading stream manager knows. */
  readonly target: number;
  /** Highest level that the stamp can have now. */
  readonly possible: number;
  readonly inTheWay: readonly InTheWay[];
  /** Processes that know the level of the stamp and do not write under it yet. They hear it within seconds. */
  readonly toHear: readonly string[];
  /** Processes that have announced themselves and are in no plan: location services, and processes that people started themselves. */
  readonly besides: readonly BesideProcess[];
}

export interface BesideProcess {
  readonly process: string;
  readonly role: string;
  readonly release: string;
  readonly knows: number;
}

export function upgradeStateOf({ processes, streamLayer }: Pick<StampFacts, "processes" | "streamLayer">): UpgradeState {
  const recorded = streamLayer?.level;
  // A stream manager of a release before feature levels leads: it writes what level 0 allows.
  const level = streamLayer === undefined ? undefined : (recorded?.level ?? 0);
  const target = streamLayer === undefined ? featureLevel : (recorded?.known ?? Math.max(level ?? 0, featureLevel));
  const asked = processes.flatMap(({ name, answer, silence }): InTheWay[] => {
    if (answer === undefined) return [{ process: name, release: "", knows: undefined, why: `it does not answer (${silence})` }];
    const knows = answer.versions?.featureLevel ?? 0;
    if (knows >= target) return level !== undefined && level < target ? namelessAt(name, answer, target) : [];
    const why = answer.versions === undefined ? "it is of a release before feature levels" : "it is of an older release";
    return [{ process: name, release: answer.release, knows, why }];
  });
  const named = new Set(processes.map(({ name }) => name));
  // The text of the leader begins with the name. Who was asked above has told more.
  const told = (recorded?.inTheWay ?? [])
    .map((text) => ({ process: text.split(" ")[0] ?? "", text }))
    .filter(({ process }) => !named.has(process) || !asked.some((each) => each.process === process))
    .map(({ process, text }) => ({ process, release: "", knows: undefined, why: text.slice(process.length + 1) }));
  // When the level is reached, a process that does not answer is in nobody's way. One that is older than the level still is.
  const inTheWay = level === target ? asked.filter(({ knows }) => knows !== undefined) : [...asked, ...told];
  const toHear = processes.flatMap(({ name, answer }) =>
    answer?.versions !== undefined && level !== undefined && (answer.versions.levelInUse ?? 0) < level ? [name] : [],
  );
  const besides = (recorded?.processes ?? [])
    .filter(({ name }) => !named.has(name))
    .map(({ name, role, release, featureLevel: knows }) => ({ process: name, role, release, knows }));
  const possible = level !== undefined && inTheWay.length === 0 ? target : (level ?? 0);
  return { level, target, possible, inTheWay, toHear, besides };
}

/** Returns other stamps that a front-end would refuse from the next level on: they ship nothing then until they have a secret of their own. */
function namelessAt(process: string, { facts, release, versions }: ProcessAnswer, target: number): InTheWay[] {
  const told = facts.geoNamelessPeers;
  if (target < neededLevels.pairSecrets || !Array.isArray(told)) return [];
  return told
    .filter((peer) => typeof peer === "string")
    .map((peer) => ({
      process,
      release,
      knows: versions?.featureLevel,
      why: `stamp ${peer} does not prove its name at the geo door: give it the secret of ./stamp secret geo-peer --for ${peer} (docs/guides/geo.md)`,
    }));
}

export const levelText = (level: number): string => `${level} (${featureLevels[level] ?? "of a later release than this command"})`;

/** Returns one line for `stamp status`. */
export function upgradeLine(state: UpgradeState): string {
  const { inTheWay, level, target } = state;
  if (level === undefined) return "not known: no stream manager that leads answered";
  if (level >= target) return String(level);
  if (inTheWay.length === 0) return `${level}; level ${target} is possible: ./stamp upgrade finalize`;
  return `${level}; level ${target} once all processes know it: ./stamp upgrade status`;
}
