import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import fc from "fast-check";
import { kernelSource } from "../kernel/build.ts";
import { Kernel, laneUnit } from "./kernel.ts";
import { kernelBinary } from "./kernel-binary.ts";
import { type CodingPlan, encodePlan, repairPlan } from "./plan.ts";
import { type Profile, profileNames, profileOf } from "./profile.ts";
import { combine } from "./reference.ts";

const same = (fragment: number): number => fragment;

function fill(kernel: Kernel, lanes: number, seed: number): void {
  const prng = new Prng(seed);
  for (let lane = 0; lane < lanes; lane++) {
    const words = new Uint32Array(kernel.lane(lane).buffer, kernel.lane(lane).byteOffset, kernel.laneBytes / 4);
    for (let i = 0; i < words.length; i++) words[i] = prng.uint32();
  }
}

test("kernel: the committed binary is what its text assembles to", async () => {
  assert.ok((await kernelSource()).includes(`"${kernelBinary}"`));
});

test("kernel: this engine compiles the WebAssembly", () => {
  assert.equal(new Kernel(1, laneUnit).fast, true);
  assert.equal(new Kernel(1, laneUnit, { plain: true }).fast, false);
});

test("kernel: computes what the reference does, for any plan, and touches no other byte", () => {
  const plans = fc
    .record({ sources: fc.integer({ min: 1, max: 16 }), outputs: fc.integer({ min: 1, max: 6 }) })
    .chain(({ sources, outputs }) => {
      // 0 and 1 often: a sum without factors is computed by another function of the module.
      const coefficient = fc.oneof(fc.constantFrom(0, 1), fc.integer({ min: 0, max: 255 }));
      const row = fc.oneof(
        fc.array(fc.constantFrom(0, 1), { minLength: sources, maxLength: sources }),
        fc.array(coefficient, { minLength: sources, maxLength: sources }),
      );
      return fc.record({
        sources: fc.constant(sources),
        rows: fc.array(row, { minLength: outputs, maxLength: outputs }),
        units: fc.integer({ min: 1, max: 400 }),
        seed: fc.nat(),
      });
    });
  fc.assert(
    fc.property(plans, ({ sources, rows, units, seed }) => {
      const bytes = units * laneUnit;
      const lanes = sources + rows.length;
      const kernel = new Kernel(lanes, bytes + laneUnit);
      fill(kernel, lanes, seed);
      const before = Array.from({ length: lanes }, (_, lane) => kernel.lane(lane).slice());
      const plan: CodingPlan = {
        sources: Array.from({ length: sources }, (_, i) => i),
        outputs: rows.map((_, i) => sources + i),
        coefficients: rows.map((row) => Uint8Array.from(row)),
      };
      kernel.run(plan, same, bytes);
      const expected = before.map((lane) => lane.slice());
      combine(
        plan.coefficients,
        expected.slice(0, sources).map((lane) => lane.subarray(0, bytes)),
        expected.slice(sources).map((lane) => lane.subarray(0, bytes)),
      );
      for (let lane = 0; lane < lanes; lane++)
        assert.ok(Buffer.compare(kernel.lane(lane), expected[lane] as Uint8Array) === 0, `lane ${lane}`);
    }),
    { numRuns: 150 },
  );
});

for (const plain of [false, true]) {
  for (const name of profileNames) {
    test(`kernel: ${name} encodes, and repairs as many losses as it promises${plain ? ", in plain TypeScript" : ""}`, () => {
      const profile = profileOf(name) as Profile;
      const kernel = new Kernel(profile.fragments, 8 * 1024 + laneUnit, { plain });
      fill(kernel, profile.data, 7);
      kernel.run(encodePlan(profile), same);
      const whole = Array.from({ length: profile.fragments }, (_, i) => kernel.lane(i).slice());
      const available = whole.map((_, i) => i);
      for (let first = 0; first + profile.losses <= profile.fragments; first++) {
        const lost = available.slice(first, first + profile.losses);
        for (const each of lost) kernel.lane(each).fill(0xee);
        kernel.run(
          repairPlan(
            profile,
            lost,
            available.filter((each) => !lost.includes(each)),
          ) as CodingPlan,
          same,
        );
        for (const each of available)
          assert.ok(Buffer.compare(kernel.lane(each), whole[each] as Uint8Array) === 0, `fragment ${each} without ${lost}`);
      }
    });
  }
}

test("kernel: refuses lanes and lengths that are no multiple of its unit, lanes that are not there, and one lane for two fragments", () => {
  const kernel = new Kernel(6, 128);
  const plan = encodePlan(profileOf("rs-4-2") as Profile);
  assert.throws(() => new Kernel(1, 100), /multiple of 64/);
  assert.throws(() => new Kernel(1, 0), /multiple of 64/);
  for (const bytes of [0, 32, 192, -64]) assert.throws(() => kernel.run(plan, same, bytes), /multiple of 64/);
  for (const lane of [-1, 6, 6.5]) assert.throws(() => kernel.lane(lane), /there is such a lane/);
  assert.throws(() => kernel.run(plan, () => 0), /a lane of its own/);
  assert.throws(() => kernel.run({ sources: [], outputs: [], coefficients: [] }, same), /fits the tables/);
});
