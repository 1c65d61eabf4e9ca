/** Coded extents in the messages of extent_fragments.proto, with the cost of their repair. */
import { neededLevels, type Outcome, ok, refused } from "@stamp/base";
import { profileOf } from "@stamp/erasure";
import { fragmentBytesOf, isContentOf } from "@stamp/extent";
import { type ExtentRecord, type FragmentHealth, type FragmentPlace, repairSources } from "@stamp/stream";
import { toWire } from "@stamp/wire";
import type { Term } from "../term/term.ts";

export const codedOnWire = ({ id, sealedLengthBytes, checksum, coded, creation }: ExtentRecord, profile: string) => ({
  extentId: toWire(id),
  profile,
  sealedLengthBytes: toWire(sealedLengthBytes ?? 0),
  checksum: checksum ?? 0,
  creation: toWire(creation ?? 0),
  fragmentChecksums: coded?.profile === profile ? [...(coded.checksums ?? [])] : [],
});

/**
 * Returns the checksums of fragments that a verification told, if they may be recorded; undefined if the node is of an earlier release or the stamp
 * has not the level for it. Throws nothing: what does not fit the extent is refused with `damaged`.
 */
export function verifiedChecksums(
  { level, world }: Pick<Term, "level" | "world">,
  { checksum = 0, id, sealedLengthBytes = 0 }: ExtentRecord,
  profileName: string,
  told: readonly number[],
): Outcome<readonly number[] | undefined> {
  const profile = profileOf(profileName);
  if (profile === undefined || told.length === 0) return ok(undefined);
  const extent = { sealedLengthBytes, contentChecksum: checksum, fragmentBytes: fragmentBytesOf(sealedLengthBytes, profile.data) };
  if (told.length !== profile.fragments || !isContentOf((bytes) => world.digest.crc32c(bytes), extent, told.slice(0, profile.data)))
    return refused("dataLoss", "damaged", `the checksums of the fragments of extent ${id} do not give its checksum ${checksum}`);
  return ok(level.allows(neededLevels.fragmentChecksums) ? told : undefined);
}

/** Returns the bytes that the cheapest plan reads to make a fragment anew, or elsewhere. */
export function bytesToRepair(
  { coded, sealedLengthBytes = 0 }: ExtentRecord,
  index: number,
  isIntact: (place: FragmentPlace) => boolean,
): number {
  const profile = profileOf(coded?.profile ?? "");
  if (coded === undefined || profile === undefined || sealedLengthBytes === 0) return 0;
  const own = coded.fragments[index];
  if (own !== undefined && isIntact(own)) return fragmentBytesOf(sealedLengthBytes, profile.data);
  const live = coded.fragments.flatMap((place, other) => (other !== index && isIntact(place) ? [other] : []));
  const sources = repairSources(profile, index, live) ?? profile.data;
  return sources * fragmentBytesOf(sealedLengthBytes, profile.data);
}

/** Returns the size of one fragment of a coded extent, in bytes; 0 if this release does not know its code. */
export function bytesOfFragment({ coded, sealedLengthBytes = 0 }: ExtentRecord): number {
  const profile = profileOf(coded?.profile ?? "");
  return profile === undefined ? 0 : fragmentBytesOf(sealedLengthBytes, profile.data);
}

/** Returns the size of the fragments of an extent that are to be made again, and what is read for them, in bytes. */
export function fragmentsToMake(
  extent: ExtentRecord,
  healthOf: (place: FragmentPlace) => FragmentHealth,
): { readonly bytes: number; readonly reads: number } {
  const isIntact = (place: FragmentPlace): boolean => healthOf(place).live;
  const reads = [...(extent.coded?.fragments ?? []).entries()].flatMap(([index, place]) => {
    const { lost, leaving } = healthOf(place);
    return lost || leaving ? [bytesToRepair(extent, index, isIntact)] : [];
  });
  return { bytes: reads.length * bytesOfFragment(extent), reads: reads.reduce((sum, each) => sum + each, 0) };
}
