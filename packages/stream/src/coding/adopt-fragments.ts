/**
 * Takes fragments back that are newer than the record of their extent: after metadata were restored from a copy of before the extent was coded, or
 * before fragments moved. Pure: what nodes hold comes in.
 *
 * Invariants:
 * - The record is the proof. A fragment counts only if its head has the recorded sealed length and checksum, and the fragments are taken only after
 *   they were decoded and had this checksum (the caller owes that).
 * - Fragments of different versions may be taken together: the content of a fragment follows from the extent's content, the code and the index.
 */
import { type ExtentId, type ExtentVersion, extentVersion, type Outcome, ok, refused } from "@stamp/base";
import { decodable, type Profile, profileOf } from "@stamp/erasure";
import { samePlace } from "../plan-extents.ts";
import type { ExtentRecord, FragmentPlace, ReplicaPlace } from "../records.ts";
import type { TransactionPlan } from "../state/changes.ts";
import type { StreamState } from "../state.ts";

/** Fragment, as its node describes it. */
export interface FoundFragment extends FragmentPlace {
  readonly index: number;
  /** Name of the code, sealed length in bytes and checksum of the extent, as the fragment's head says. */
  readonly profile: string;
  readonly sealedLengthBytes: number;
  readonly checksum: number;
  /** True if no damage of the fragment is known. */
  readonly intact: boolean;
}

export interface ChosenFragments {
  readonly profile: Profile;
  /** Indexed by the index in the code; undefined where no node has one. */
  readonly fragments: readonly (FragmentPlace | undefined)[];
}

/** Returns why an extent takes no fragments back, whatever nodes hold; undefined if it may. */
export function refuseFragments(id: ExtentId, extent: ExtentRecord | undefined): string | undefined {
  if (extent === undefined || extent.phase === "dropped")
    return `the metadata know no extent ${id}: nothing proves that its fragments belong to the stamp`;
  if (extent.phase !== "sealed" || extent.untold !== undefined) return `extent ${id} is not sealed for good: its length is not settled yet`;
  if (extent.checksum === undefined) return `the metadata hold no checksum of extent ${id}: nothing proves the content of its fragments`;
  if (extent.attempt !== undefined) return `an attempt at extent ${id} is under way: ${extent.attempt.kind}`;
  if (extent.repair !== undefined) return `a replica of extent ${id} is being made anew`;
  return undefined;
}

/** Returns fragments that together determine the extent and fit its record, or why there are none, in words. */
export function chooseFragments(extent: ExtentRecord, found: readonly FoundFragment[]): ChosenFragments | string {
  const fitting = found.filter(
    ({ sealedLengthBytes, checksum }) => sealedLengthBytes === extent.sealedLengthBytes && checksum === extent.checksum,
  );
  const usable = fitting.filter(({ intact }) => intact);
  const isRecorded = (place: FragmentPlace): boolean =>
    extent.coded?.fragments.some((each) => samePlace(each, place) && each.version === place.version) ?? false;
  // A fragment that the record names before others, then the newest.
  const ordered = usable.toSorted((a, b) => Number(isRecorded(b)) - Number(isRecorded(a)) || b.version - a.version);
  const counts: string[] = [];
  for (const name of new Set(usable.map(({ profile }) => profile))) {
    const profile = profileOf(name);
    if (profile === undefined) continue;
    const fragments = Array.from({ length: profile.fragments }, (_, index) => {
      const one = ordered.find((each) => each.profile === name && each.index === index);
      return one && { nodeId: one.nodeId, diskId: one.diskId, version: one.version };
    });
    const indexes = [...fragments.keys()].filter((index) => fragments[index] !== undefined);
    if (decodable(profile, indexes)) return { profile, fragments };
    counts.push(`${indexes.length} of ${name}, which needs ${profile.data}`);
  }
  const damaged = fitting.length - usable.length;
  const other = found.length - fitting.length;
  return [
    counts.length === 0 ? "no intact fragment was found" : `too few different fragments were found: ${counts.join("; ")}`,
    ...(damaged > 0 ? [`${damaged} are damaged`] : []),
    ...(other > 0 ? [`${other} have another length or checksum than is recorded`] : []),
  ].join("; ");
}

/**
 * Stores the extent in these fragments from here on. Refused if the record has changed since `extent`. The version goes above every fragment that was
 * found. A fragment that no node has is recorded as lost on a node that has another one, so that it is made anew. `checksums`: of the content of each
 * fragment, by index; undefined: they are not recorded.
 */
export function planAdoptFragments(
  state: StreamState,
  extent: ExtentRecord,
  { profile, fragments }: ChosenFragments,
  heldVersion: number,
  checksums?: readonly number[],
): Outcome<TransactionPlan> {
  const { id } = extent;
  const why = refuseFragments(id, extent);
  if (why !== undefined) return refused("failedPrecondition", "conflict", why);
  if (state.extent(id) !== extent) return refused("aborted", "conflict", `extent ${id} has changed meanwhile`);
  const version: ExtentVersion = extentVersion(Math.max(extent.version, heldVersion) + 1);
  // A code bears fewer losses than it has data fragments, so each missing one is recorded on a node of its own.
  const holders = fragments.filter((place) => place !== undefined);
  const places = fragments.map((place) => place ?? { ...(holders.shift() as FragmentPlace), version });
  const { replicas, coded, removedFragments = [], ...rest } = extent;
  const isUsed = (place: FragmentPlace): boolean => places.some((each) => samePlace(each, place) && each.version === place.version);
  const gone = replicas.filter((replica) => !extent.removed.some((each) => samePlace(each, replica)));
  const left = [...removedFragments, ...(coded?.fragments ?? [])].filter((place) => !isUsed(place));
  const record: ExtentRecord = {
    ...rest,
    version,
    replicas: [],
    removed: [...extent.removed, ...gone.map(({ nodeId, diskId }): ReplicaPlace => ({ nodeId, diskId }))],
    coded: { profile: profile.name, fragments: places, ...(checksums && { checksums }) },
    ...(left.length === 0 ? {} : { removedFragments: left }),
  };
  return ok({ changes: [{ kind: "extent", record }], reads: [] });
}
