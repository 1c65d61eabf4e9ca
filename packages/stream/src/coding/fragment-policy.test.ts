/** Where fragments go, and which are made again first. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentVersion, Prng } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import fc from "fast-check";
import type { PlacementNode } from "../placement.ts";
import { assessFragments, type FragmentHealth } from "./fragment-health.ts";
import { placeFragment, placeFragments } from "./place-fragments.ts";

const profile = (name: string): Profile => profileOf(name) as Profile;
const node = (i: number, faultDomain: string, freeBytes = 500): PlacementNode => ({
  nodeId: `n${i}`,
  diskId: `d${i}`,
  faultDomain,
  freeBytes,
  totalBytes: 1_000,
  openReplicas: 0,
});

test("placement of fragments: never two on a node, spread evenly, and no domain has more than the code can lose", () => {
  const clusters = fc.record({
    name: fc.constantFrom("rs-4-2", "rs-6-3", "rs-10-4", "lrc-12-2-2"),
    domains: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 18 }),
    seed: fc.nat(),
  });
  let placed = 0;
  fc.assert(
    fc.property(clusters, ({ name, domains, seed }) => {
      const code = profile(name);
      const prng = new Prng(seed);
      const nodes = domains.flatMap((count, d) => Array.from({ length: count }, (_, i) => node(d * 100 + i, `rack ${d}`)));
      const chosen = placeFragments(code, nodes, () => prng.float());
      const room = domains.reduce((sum, count) => sum + Math.min(count, code.losses), 0);
      assert.equal(typeof chosen === "string", room < code.fragments, JSON.stringify(domains));
      if (typeof chosen === "string") return;
      placed += 1;
      assert.equal(chosen.length, code.fragments);
      assert.equal(new Set(chosen).size, code.fragments);
      const counts = new Map<string, number>();
      for (const { faultDomain } of chosen) counts.set(faultDomain, (counts.get(faultDomain) ?? 0) + 1);
      assert.ok(Math.max(...counts.values()) <= code.losses);
      // One could not be moved from a fuller domain to one that has two fewer and a node to spare.
      for (const [d, count] of domains.entries()) {
        const here = counts.get(`rack ${d}`) ?? 0;
        if (here < count) assert.ok(Math.max(...counts.values()) - here <= 1, JSON.stringify([...counts]));
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(placed > 30);
});

test("placement of one fragment: into the domain with the fewest, and nowhere rather than beyond what the code can lose", () => {
  const code = profile("rs-4-2");
  const nodes = [node(1, "a"), node(2, "b"), node(3, "c")];
  assert.equal(placeFragment(code, nodes, ["a", "a", "b", "c", "c"], () => 0.5)?.faultDomain, "b");
  assert.equal(
    placeFragment(code, nodes.slice(0, 1), ["a", "a", "b"], () => 0.5),
    undefined,
  );
  assert.equal(
    placeFragment(code, [], [], () => 0.5),
    undefined,
  );
});

test("repair of fragments: lost ones before those of nodes to be emptied, with the losses that are left; what can't be computed is told", () => {
  const code = profile("lrc-12-2-2");
  const coded = {
    profile: code.name,
    fragments: Array.from({ length: 16 }, (_, i) => ({ nodeId: `n${i}`, diskId: "d", version: extentVersion(3) })),
  };
  const assess = (states: Readonly<Record<number, Partial<FragmentHealth>>>) =>
    assessFragments(coded, code, (_, index) => ({ live: true, readable: false, lost: false, leaving: false, ...states[index] }));
  const lost = { live: false, lost: true };
  assert.deepEqual(assess({}), { kind: "fine" });
  assert.deepEqual(assess({ 4: { live: false } }), { kind: "grace", lossesLeft: 2 });
  assert.deepEqual(assess({ 4: { live: false }, 9: lost }), { kind: "repair", isUncertain: false, index: 9, lossesLeft: 1 });
  assert.deepEqual(assess({ 2: { leaving: true }, 9: lost }), { kind: "repair", isUncertain: false, index: 9, lossesLeft: 2 });
  assert.deepEqual(assess({ 2: { leaving: true } }), { kind: "repair", isUncertain: false, index: 2, lossesLeft: 3 });
  assert.deepEqual(assess({ 0: lost, 1: lost, 2: lost }), { kind: "repair", isUncertain: false, index: 0, lossesLeft: 0 });
  // Four of one group and its global parities: not to be decoded. A loss in the other group still is.
  const four = { 0: lost, 1: lost, 2: lost, 3: lost };
  assert.deepEqual(assess(four), { kind: "unreachable", lossesLeft: -1 });
  // A fragment with some bad chunks helps where the other three are good, so the repair is tried.
  const damaged = { live: false, lost: true, readable: true };
  assert.deepEqual(assess({ ...four, 3: damaged }), { kind: "repair", index: 0, isUncertain: true, lossesLeft: -1 });
  assert.deepEqual(assess({ 0: damaged }), { kind: "repair", index: 0, isUncertain: false, lossesLeft: 2 });
  assert.deepEqual(assess({ ...four, 3: { readable: true, live: false } }).kind, "repair");
  assert.deepEqual(assess({ ...four, 7: lost }), { kind: "repair", isUncertain: false, index: 7, lossesLeft: -2 });
});
