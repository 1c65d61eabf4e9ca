/** A coded extent in the words of extent_fragments.proto, and what its repair costs. */
import { profileOf, repairPlan } from "@stamp/erasure";
import { fragmentBytesOf } from "@stamp/extent";
import type { ExtentRecord, FragmentPlace } from "@stamp/stream";
import { toWire } from "@stamp/wire";

export const codedOnWire = ({ id, sealedLengthBytes, checksum }: ExtentRecord, profile: string) => ({
  extentId: toWire(id),
  profile,
  sealedLengthBytes: toWire(sealedLengthBytes ?? 0),
  checksum: checksum ?? 0,
});

/** Bytes that the cheapest plan reads to make a fragment anew. */
export function bytesToRepair(
  { coded, sealedLengthBytes = 0 }: ExtentRecord,
  index: number,
  isIntact: (place: FragmentPlace) => boolean,
): number {
  const profile = profileOf(coded?.profile ?? "");
  if (coded === undefined || profile === undefined || sealedLengthBytes === 0) return 0;
  const live = coded.fragments.flatMap((place, other) => (other !== index && isIntact(place) ? [other] : []));
  const sources = repairPlan(profile, [index], live)?.sources.length ?? profile.data;
  return sources * fragmentBytesOf(sealedLengthBytes, profile.data);
}
