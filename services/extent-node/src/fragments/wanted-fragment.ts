/** Code and content that a fragment has to have, apart from its name. */
import type { FragmentHead, FragmentSpec } from "@stamp/extent";

/** Code and content that a fragment is expected to have. Its name does not say them, and a history that was lost with the metadata gave names too. */
export type WantedFragment = Partial<Pick<FragmentSpec, "profile" | "sealedLengthBytes" | "contentChecksum">> & {
  /** Creation number of the extent; 0: it has none. Undefined: any. */
  readonly creation?: number | undefined;
  /** crc32c of the fragment's own content, as recorded when the extent was coded; undefined: it is not recorded. */
  readonly fragmentChecksum?: number;
};

/** Says why a fragment is not the one that is wanted; undefined: it is. */
export function otherThan({ extentId: id, version, index, ...head }: FragmentHead, wanted: WantedFragment): string | undefined {
  if (wanted.creation !== undefined && (head.creation ?? 0) !== wanted.creation)
    return `fragment ${index} of extent ${id}, version ${version}, is of another extent that had the same number`;
  const { profile, sealedLengthBytes, contentChecksum } = { ...head, ...wanted };
  if (head.profile === profile && head.sealedLengthBytes === sealedLengthBytes && head.contentChecksum === contentChecksum)
    return undefined;
  const here = `${head.profile} of ${head.sealedLengthBytes} bytes with checksum ${head.contentChecksum}`;
  const named = `${profile} of ${sealedLengthBytes} bytes with checksum ${contentChecksum}`;
  return `fragment ${index} of extent ${id}, version ${version}, is that of ${here} on this node, not of ${named}`;
}

/** True if the fragment is of this creation of its extent; undefined: of any. */
export const isOf = (spec: FragmentSpec, creation: number | undefined): boolean =>
  creation === undefined || (spec.creation ?? 0) === creation;
