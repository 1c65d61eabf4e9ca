import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng, toHex } from "@stamp/base";
import { type CodingPlan, decodable, encodePlan, repairPlan } from "./plan.ts";
import { type Profile, type ProfileName, profileNames, profileOf } from "./profile.ts";
import { combine } from "./reference.ts";

const bytes = 16;
const profile = (name: ProfileName): Profile => profileOf(name) as Profile;
const all = ({ fragments }: Profile): number[] => Array.from({ length: fragments }, (_, i) => i);

/** Returns all fragments of an extent of random bytes. */
function encoded(code: Profile): Uint8Array[] {
  const prng = new Prng(code.fragments);
  const fragments = all(code).map((i) => Uint8Array.from({ length: bytes }, () => (i < code.data ? prng.below(256) : 0)));
  apply(encodePlan(code), fragments, fragments);
  return fragments;
}

function apply(plan: CodingPlan, from: readonly Uint8Array[], into: readonly Uint8Array[]): void {
  combine(
    plan.coefficients,
    plan.sources.map((each) => from[each] as Uint8Array),
    plan.outputs.map((each) => into[each] as Uint8Array),
  );
}

function* choices(count: number, of: number, first = 0): Generator<number[]> {
  if (count === 0) yield [];
  else for (let i = first; i < of; i++) for (const rest of choices(count - 1, of, i + 1)) yield [i, ...rest];
}

/** Repairs the lost fragments and compares each with what it was. */
function assertRepaired(code: Profile, whole: readonly Uint8Array[], lost: readonly number[]): void {
  const available = all(code).filter((each) => !lost.includes(each));
  const plan = repairPlan(code, lost, available);
  assert.ok(plan !== undefined, `${code.name} without ${lost}`);
  assert.ok(plan.sources.length <= code.data && plan.sources.every((each) => available.includes(each)), `sources ${plan.sources}`);
  const repaired = whole.map((each, i) => (lost.includes(i) ? new Uint8Array(bytes).fill(0xee) : each));
  apply(plan, repaired, repaired);
  assert.deepEqual(repaired, whole, `${code.name} without ${lost}`);
}

for (const name of profileNames.filter((each) => each.startsWith("rs-"))) {
  test(`plan: ${name} gives back every loss up to its number of coding fragments, and no larger one`, () => {
    const code = profile(name);
    const whole = encoded(code);
    const coding = code.fragments - code.data;
    assert.equal(code.losses, coding);
    for (let count = 1; count <= coding; count++) for (const lost of choices(count, code.fragments)) assertRepaired(code, whole, lost);
    for (const lost of choices(coding + 1, code.fragments)) {
      assert.equal(
        repairPlan(
          code,
          lost,
          all(code).filter((each) => !lost.includes(each)),
        ),
        undefined,
        `${lost}`,
      );
    }
  });
}

test("plan: lrc-12-2-2 gives back every loss of three, and each loss of four that its shape can decode: 2,516 patterns", () => {
  const code = profile("lrc-12-2-2");
  const whole = encoded(code);
  let tried = 0;
  let refused = 0;
  for (let count = 1; count <= 4; count++) {
    for (const lost of choices(count, code.fragments)) {
      tried++;
      // Each local parity gives back one fragment of its group; what is lost beyond that needs a global parity each.
      const beyond = code.groups.map((group) => Math.max(0, lost.filter((each) => group.includes(each)).length - 1));
      const globals = [14, 15].filter((each) => !lost.includes(each)).length;
      if (beyond.reduce((sum, each) => sum + each, 0) <= globals) assertRepaired(code, whole, lost);
      else {
        refused++;
        assert.ok(count > code.losses, `${lost} is within the promise`);
        assert.equal(
          decodable(
            code,
            all(code).filter((each) => !lost.includes(each)),
          ),
          false,
          `${lost}`,
        );
      }
    }
  }
  assert.equal(tried, 2_516);
  // Four of the seven fragments of a group (2 times 35), three of a group and a global parity (2 times 35 times 2), two of a group and both
  // global parities (2 times 21).
  assert.equal(refused, 70 + 140 + 42);
});

test("plan: one lost fragment of a local group is repaired from the six others of the group, by XOR", () => {
  const code = profile("lrc-12-2-2");
  for (const lost of [...Array(14).keys()]) {
    const plan = repairPlan(code, [lost], all(code)) as CodingPlan;
    const group = code.groups.find((each) => each.includes(lost)) as readonly number[];
    assert.deepEqual(
      [...plan.sources].sort((a, b) => a - b),
      group.filter((each) => each !== lost),
    );
    assert.deepEqual([...(plan.coefficients[0] as Uint8Array)], [1, 1, 1, 1, 1, 1]);
  }
  assert.equal(repairPlan(code, [0, 6], all(code))?.sources.length, 12);
});

test("plan: fragments are used in the order in which they are named", () => {
  const code = profile("rs-4-2");
  assert.deepEqual(repairPlan(code, [0], [5, 4, 3, 2, 1])?.sources, [5, 4, 3, 2]);
  assert.deepEqual(repairPlan(code, [0], [1, 2, 3, 4, 5])?.sources, [1, 2, 3, 4]);
  assert.equal(repairPlan(code, [0], [1, 2, 3]), undefined);
});

test("plan: a fragment that is wanted is not read, and nothing is needed for nothing", () => {
  const code = profile("rs-4-2");
  assert.ok(!repairPlan(code, [2], all(code))?.sources.includes(2));
  assert.deepEqual(repairPlan(code, [], all(code)), { sources: [], outputs: [], coefficients: [] });
});

test("profile: names that are no code give nothing", () => {
  for (const name of ["", "rs-3-1", "toString", "__proto__", "LRC-12-2-2"]) assert.equal(profileOf(name), undefined);
  assert.deepEqual(
    profileNames.map((name) => [profile(name).data, profile(name).fragments]),
    [
      [4, 6],
      [6, 9],
      [10, 14],
      [12, 16],
    ],
  );
});

/** Generator rows are part of the format of fragments: they never change. */
test("profile: coefficients are what fragments on disk were made with", () => {
  const rows = profileNames.map((name) =>
    profile(name)
      .rows.slice(profile(name).data)
      .map((row) => toHex(row)),
  );
  assert.deepEqual(rows, goldenRows);
});

const goldenRows = [
  ["47a77aba", "a747ba7a"],
  ["7aba47a78ef4", "ba7aa747f48e", "ad9ddd983daa"],
  ["dd98ad9d5d963daa8ef4", "98dd9dad965daa3df48e", "3daa5d96ad9ddd9847a7", "aa3d965d9dad98dda747"],
  ["010101010101000000000000", "000000000000010101010101", "010203040506102030405060", "0104051011141d7469cdd0b9"],
];
