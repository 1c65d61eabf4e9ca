/**
 * Says how fragments are computed from others: which are read, and by which coefficients their bytes are multiplied and added. A plan holds
 * for every byte position of the fragments alike, so a part of a fragment is repaired from the same part of its sources.
 */
import { inverse, multiply } from "./field.ts";
import type { Profile } from "./profile.ts";

export interface CodingPlan {
  /** Indexes of the fragments that are read. */
  readonly sources: readonly number[];
  /** Fragments that are computed. */
  readonly outputs: readonly number[];
  /** Coefficient of each source, for each output. */
  readonly coefficients: readonly Uint8Array[];
}

/** Returns the plan that computes all coding fragments from the data fragments. */
export function encodePlan(profile: Profile): CodingPlan {
  return {
    sources: Array.from({ length: profile.data }, (_, i) => i),
    outputs: Array.from({ length: profile.fragments - profile.data }, (_, i) => profile.data + i),
    coefficients: profile.rows.slice(profile.data),
  };
}

/**
 * Returns the plan that computes `wanted` from fragments of `available`, or undefined if these do not determine them. Fragments of the
 * same local group are used first, then the others in the order given: name the ones that answer soonest first.
 */
export function repairPlan(profile: Profile, wanted: readonly number[], available: readonly number[]): CodingPlan | undefined {
  const near = new Set(profile.groups.filter((group) => group.some((each) => wanted.includes(each))).flat());
  const usable = available.filter((each) => !wanted.includes(each));
  const basis = new Basis(profile.data);
  for (const each of usable.filter((fragment) => near.has(fragment))) basis.add(each, profile.rows[each] as Uint8Array);
  for (const each of usable.filter((fragment) => !near.has(fragment))) basis.add(each, profile.rows[each] as Uint8Array);
  const combinations: ReadonlyMap<number, number>[] = [];
  for (const each of wanted) {
    const combination = basis.combine(profile.rows[each] as Uint8Array);
    if (combination === undefined) return undefined;
    combinations.push(combination);
  }
  const sources = usable.filter((each) => combinations.some((combination) => (combination.get(each) ?? 0) !== 0));
  const coefficients = combinations.map((combination) => Uint8Array.from(sources, (each) => combination.get(each) ?? 0));
  return { sources, outputs: [...wanted], coefficients };
}

/** Returns true if the fragments of `available` determine the whole extent. */
export function decodable(profile: Profile, available: readonly number[]): boolean {
  const lost = Array.from({ length: profile.fragments }, (_, i) => i).filter((each) => !available.includes(each));
  return repairPlan(profile, lost, available) !== undefined;
}

/** Basis of linearly independent rows in echelon form, each with its combination of fragments. */
class Basis {
  readonly #width: number;
  /** Rows, keyed by the column of their first coefficient, which is 1. */
  readonly #rows = new Map<number, { readonly row: Uint8Array; readonly combination: ReadonlyMap<number, number> }>();

  constructor(width: number) {
    this.#width = width;
  }

  /** Adds the row of a fragment, unless the other rows determine it. */
  add(fragment: number, given: Uint8Array): void {
    const { row, combination } = this.#reduce(given);
    const column = row.findIndex((coefficient) => coefficient !== 0);
    if (column === -1) return;
    combination.set(fragment, 1);
    const factor = inverse(row[column] as number);
    this.#rows.set(column, {
      row: row.map((each) => multiply(each, factor)),
      combination: new Map([...combination].map(([each, coefficient]) => [each, multiply(coefficient, factor)])),
    });
  }

  /** Returns the coefficients of fragments that give `wanted`, or undefined if there are none. */
  combine(wanted: Uint8Array): ReadonlyMap<number, number> | undefined {
    const { row, combination } = this.#reduce(wanted);
    return row.some((coefficient) => coefficient !== 0) ? undefined : combination;
  }

  /** Subtracts multiples of the rows here until no column of theirs is left. The combination is that of what was subtracted. */
  #reduce(given: Uint8Array): { row: Uint8Array; combination: Map<number, number> } {
    const row = given.slice();
    const combination = new Map<number, number>();
    for (let column = 0; column < this.#width; column++) {
      const factor = row[column] as number;
      const base = this.#rows.get(column);
      if (factor === 0 || base === undefined) continue;
      for (let i = column; i < this.#width; i++) row[i] = (row[i] as number) ^ multiply(factor, base.row[i] as number);
      for (const [fragment, each] of base.combination) combination.set(fragment, (combination.get(fragment) ?? 0) ^ multiply(factor, each));
    }
    return { row, combination };
  }
}
