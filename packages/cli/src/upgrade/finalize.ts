/**
 * Raises the feature level of a stamp: waits until nobody stands in the way, has the level recorded, and waits until every process writes under it.
 * Whoever runs the command again goes on where it was left.
 */
import { CommandError } from "../exit.ts";
import type { InTheWay, UpgradeState } from "./upgrade-state.ts";

export interface UpgradeDoor {
  readonly state: () => Promise<UpgradeState>;
  /** Has the level recorded. Throws if the stream manager refuses, with its reason. */
  readonly record: (level: number) => Promise<void>;
  readonly pause: () => Promise<void>;
  readonly nowMs: () => number;
  readonly tell: (how: string) => void;
}

export interface RaisedLevel {
  readonly level: number;
  /** Level before this call; the same if there was nothing to do. */
  readonly before: number;
}

export async function finalize(door: UpgradeDoor, timeoutMs: number): Promise<RaisedLevel> {
  const endMs = door.nowMs() + timeoutMs;
  let state = await door.state();
  const before = state.level;
  if (before === undefined) throw new CommandError("no stream manager that leads answered; why: ./stamp health");
  while (state.level !== state.target) {
    if (state.inTheWay.length === 0) {
      door.tell(`recording level ${state.target}`);
      await door.record(state.target);
    } else if (door.nowMs() >= endMs) throw new CommandError(refusal(state));
    else {
      door.tell(`level ${state.target} waits for ${state.inTheWay.length} processes, first ${state.inTheWay[0]?.process}`);
      await door.pause();
    }
    state = await door.state();
  }
  while (state.toHear.length > 0) {
    if (door.nowMs() >= endMs)
      throw new CommandError(`level ${state.level} is recorded; not heard yet by ${state.toHear.join(", ")}: run the command again`);
    door.tell(`level ${state.level} is recorded; waiting for ${state.toHear.length} processes to hear it, first ${state.toHear[0]}`);
    await door.pause();
    state = await door.state();
  }
  return { level: state.target, before };
}

const refusal = ({ inTheWay, level, target }: UpgradeState): string =>
  [
    `the feature level stays ${level}: not every process is known to read what level ${target} brings`,
    ...inTheWay.map((each) => `  ${inTheWayText(each)}`),
    "Nothing was changed. Start each of them with this release, or remove it: ./stamp node remove, ./stamp host remove (docs/guides/upgrade.md).",
  ].join("\n");

export const inTheWayText = ({ knows, process, release, why }: InTheWay): string =>
  `${process}: ${why}${knows === undefined ? "" : `, release ${release || "unknown"}, knows level ${knows}`}`;
