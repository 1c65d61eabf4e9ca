/**
 * Durability, cost and repair traffic of each code, by a formula. Machines fail independently and at a constant rate; a loss is mended a
 * constant time after it, one after another. An extent of n pieces that bears m losses is lost at the rate
 *
 *     s · λ^(m+1) · T^m · n · (n-1) · … · (n-m)
 *
 * λ: failures of a machine's disk in a year. T: years from a loss until it is mended. s: share of the losses of m+1 pieces that can't be decoded. Losses of
 * more pieces than m+1 are left out: they add less than 1% while T is an hour or less.
 */
import { decodable, type Profile, profileNames, profileOf, repairPlan } from "@stamp/erasure";

const hoursPerYear = 8_766;

export interface DurabilityRow {
  readonly name: string;
  /** Bytes on disk for a byte of data. */
  readonly cost: number;
  /** Machines that an extent needs. */
  readonly machines: number;
  /** Losses that every extent bears, whichever pieces they hit. */
  readonly losses: number;
  /** Bytes read to make a lost byte again, on average over the pieces of an extent. */
  readonly readForOne: number;
  /** Extents that are lost in a year, of one, for each repair time. */
  readonly lostInYear: readonly number[];
}

/** `failuresPerYear`: of a machine's disk, 0.02 is 2%. `repairHours`: each gives a column of losses. */
export function durability(failuresPerYear: number, repairHours: readonly number[]): DurabilityRow[] {
  const replicas = { name: "3 replicas", cost: 3, machines: 3, losses: 2, readForOne: 1, share: 1 };
  return [replicas, ...profileNames.map((name) => rowOf(profileOf(name) as Profile))].map(({ share, ...row }) => ({
    ...row,
    lostInYear: repairHours.map((hours) => {
      let rate = share * failuresPerYear ** (row.losses + 1) * (hours / hoursPerYear) ** row.losses;
      for (let gone = 0; gone <= row.losses; gone++) rate *= row.machines - gone;
      return rate;
    }),
  }));
}

function rowOf(profile: Profile) {
  const all = Array.from({ length: profile.fragments }, (_, index) => index);
  const sources = all.map(
    (lost) =>
      repairPlan(
        profile,
        [lost],
        all.filter((each) => each !== lost),
      )?.sources.length ?? 0,
  );
  let patterns = 0;
  let undecodable = 0;
  for (const lost of choices(profile.losses + 1, all)) {
    patterns += 1;
    if (
      !decodable(
        profile,
        all.filter((each) => !lost.includes(each)),
      )
    )
      undecodable += 1;
  }
  return {
    name: profile.name,
    cost: profile.fragments / profile.data,
    machines: profile.fragments,
    losses: profile.losses,
    readForOne: sources.reduce((sum, each) => sum + each, 0) / sources.length,
    share: undecodable / patterns,
  };
}

function* choices(count: number, from: readonly number[]): Generator<readonly number[]> {
  if (count === 0) yield [];
  else for (const [at, first] of from.entries()) for (const rest of choices(count - 1, from.slice(at + 1))) yield [first, ...rest];
}

/** The table as the guide has it. */
export function durabilityTable(failuresPerYear: number, repairHours: readonly number[]): string {
  const columns = repairHours.map((hours) => `lost in a year, mended in ${hours} h`);
  const head = ["stored as", "bytes for a byte", "machines", "losses it bears", "read for a lost byte", ...columns];
  const rows = durability(failuresPerYear, repairHours).map(({ name, cost, machines, losses, readForOne, lostInYear }) => [
    name,
    cost.toFixed(2),
    String(machines),
    String(losses),
    readForOne.toFixed(2),
    ...lostInYear.map((rate) => rate.toExponential(1)),
  ]);
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
