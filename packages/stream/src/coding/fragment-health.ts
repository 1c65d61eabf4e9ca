/**
 * Finds fragments of a coded extent that have to be made again, and how urgent each is. Pure: facts about the nodes
 * come in.
 */
import { decodable, type Profile, profileOf } from "@stamp/erasure";
import type { CodedRecord, FragmentPlace } from "../records.ts";
import { repairSources } from "./repair-sources.ts";

export interface FragmentHealth {
  /** True if the fragment is intact, as far as is known, and its node is up with that disk. */
  readonly live: boolean;
  /** True if the fragment is damaged, and its node is up with that disk: its good chunks can be read. */
  readonly readable: boolean;
  /** True if the fragment is damaged or missing, its disk is gone, or its node is away for longer than the grace. */
  readonly lost: boolean;
  /** True if the fragment's node is to be emptied. */
  readonly leaving: boolean;
}

export type FragmentAssessment =
  | { readonly kind: "fine" }
  /** A node is away and may come back. */
  | ({ readonly kind: "grace" } & LossesLeft)
  /** A fragment is lost, and the fragments within reach do not determine it. */
  | ({ readonly kind: "unreachable" } & LossesLeft)
  /** A fragment is to be made anew; `isUncertain`: only from good chunks of damaged fragments, which may not be enough. */
  | ({ readonly kind: "repair"; readonly index: number; readonly isUncertain: boolean } & LossesLeft);

interface LossesLeft {
  /** Number of further losses that the code bears for certain; negative when it has lost more than it promises. */
  readonly lossesLeft: number;
}

/** True if fragments with these indexes give the whole extent back. False for a code that this release does not know. */
export function givesBack(profileName: string, indexes: readonly number[]): boolean {
  const profile = profileOf(profileName);
  return profile !== undefined && decodable(profile, indexes);
}

export function assessFragments(
  { fragments }: CodedRecord,
  profile: Profile,
  health: (place: FragmentPlace, index: number) => FragmentHealth,
): FragmentAssessment {
  const live: number[] = [];
  const readable: number[] = [];
  const lost: number[] = [];
  const leaving: number[] = [];
  fragments.forEach((place, index) => {
    const known = health(place, index);
    if (known.live) live.push(index);
    else if (known.readable) readable.push(index);
    if (known.lost) lost.push(index);
    else if (known.leaving) leaving.push(index);
  });
  const lossesLeft = profile.losses - (profile.fragments - live.length);
  for (const index of [...lost, ...leaving]) {
    const others = live.filter((each) => each !== index);
    if (repairSources(profile, index, others) !== undefined) return { kind: "repair", index, isUncertain: false, lossesLeft };
  }
  for (const index of lost) {
    const others = [...live, ...readable].filter((each) => each !== index);
    if (repairSources(profile, index, others) !== undefined) return { kind: "repair", index, isUncertain: true, lossesLeft };
  }
  if (lost.length > 0) return { kind: "unreachable", lossesLeft };
  return live.length < fragments.length ? { kind: "grace", lossesLeft } : { kind: "fine" };
}
