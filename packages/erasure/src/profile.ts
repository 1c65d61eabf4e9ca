/**
 * The codes an extent can be stored in. A code has `data` fragments, which are the extent's bytes cut into equal parts, and coding
 * fragments, each a linear combination of the data fragments over GF(2^8). Fragments are numbered: data first, then local parities, then
 * global parities.
 *
 * - `rs-N-M` is Reed-Solomon with a Cauchy matrix: any N of the N + M fragments give the extent back.
 * - `lrc-12-2-2` is a local reconstruction code (Huang et al., "Erasure Coding in Windows Azure Storage", USENIX ATC 2012): two groups of six
 *   data fragments, each with its XOR as local parity, and two global parities. Every loss of three fragments can be decoded, and
 *   every loss of four that any code of this shape can decode. One lost fragment of a group is repaired from six others.
 */
import { assert } from "@stamp/base";
import { inverse, multiply } from "./field.ts";

export type ProfileName = "rs-4-2" | "rs-6-3" | "rs-10-4" | "lrc-12-2-2";

export interface Profile {
  readonly name: ProfileName;
  /** Number of data fragments. */
  readonly data: number;
  /** Number of all fragments. */
  readonly fragments: number;
  /** Fragments of each local group with its parity last; empty for Reed-Solomon. */
  readonly groups: readonly (readonly number[])[];
  /** Number of fragments, whichever they are, that may be lost. */
  readonly losses: number;
  /** Row i holds the coefficients by which the data fragments are multiplied and added to give fragment i. */
  readonly rows: readonly Uint8Array[];
}

export const profileNames: readonly ProfileName[] = ["rs-4-2", "rs-6-3", "rs-10-4", "lrc-12-2-2"];

const profiles: Readonly<Record<ProfileName, Profile>> = {
  "rs-4-2": reedSolomon("rs-4-2", 4, 2),
  "rs-6-3": reedSolomon("rs-6-3", 6, 3),
  "rs-10-4": reedSolomon("rs-10-4", 10, 4),
  "lrc-12-2-2": localReconstruction(),
};

/** Returns the profile, or undefined if no code has this name. */
export function profileOf(name: string): Profile | undefined {
  return Object.hasOwn(profiles, name) ? profiles[name as ProfileName] : undefined;
}

function unitRows(data: number): Uint8Array[] {
  return Array.from({ length: data }, (_, i) => {
    const row = new Uint8Array(data);
    row[i] = 1;
    return row;
  });
}

/** Builds rows 1 / (x + y) with x and y all distinct: every square part of such a matrix can be inverted. */
function reedSolomon(name: ProfileName, data: number, coding: number): Profile {
  const rows = unitRows(data);
  for (let j = 0; j < coding; j++) rows.push(Uint8Array.from({ length: data }, (_, i) => inverse((data + j) ^ i)));
  return { name, data, fragments: data + coding, groups: [], losses: coding, rows };
}

/**
 * Coefficients of the first group are bytes with an empty high half, those of the second have an empty low half; the second global parity has
 * their squares. A sum of two from one group is then never 0, never a sum of two from the other group, and never in the other group:
 * these are the conditions under which each decodable loss of four can be decoded (the paper, section 2.2).
 */
function localReconstruction(): Profile {
  const groupData = 6;
  const data = 2 * groupData;
  const rows = unitRows(data);
  for (const group of [0, 1]) rows.push(Uint8Array.from({ length: data }, (_, i) => (Math.floor(i / groupData) === group ? 1 : 0)));
  const coefficients = Uint8Array.from({ length: data }, (_, i) => (i < groupData ? i + 1 : (i - groupData + 1) << 4));
  rows.push(
    coefficients,
    coefficients.map((each) => multiply(each, each)),
  );
  const groups = [0, 1].map((group) => [...Array.from({ length: groupData }, (_, i) => group * groupData + i), data + group]);
  assert(rows.length === data + 4, "two local and two global parities");
  return { name: "lrc-12-2-2", data, fragments: data + 4, groups, losses: 3, rows };
}
