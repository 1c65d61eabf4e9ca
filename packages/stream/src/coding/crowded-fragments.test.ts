/** Fragments that share a fault domain move to domains with room, and every chain of moves ends. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentVersion } from "@stamp/base";
import fc from "fast-check";
import type { FragmentPlace } from "../records.ts";
import { crowdedFragment } from "./crowded-fragments.ts";

const domainOf = (nodeId: string): string => nodeId.slice(0, 1);
const at = (nodeId: string): FragmentPlace => ({ nodeId, diskId: "d", version: extentVersion(2) });
const taker = (nodeId: string) => ({
  ...{ nodeId, diskId: "d", faultDomain: domainOf(nodeId) },
  ...{ freeBytes: 1, totalBytes: 1, openReplicas: 0 },
});
const crowded = (held: readonly string[], takers: readonly string[]): number | undefined =>
  crowdedFragment(held.map(at), domainOf, takers.map(taker));

test("crowded fragments: one of the fullest domain moves if a domain with two fewer takes it; else none does", () => {
  assert.equal(crowded(["a1", "b1", "c1"], ["d1"]), undefined);
  assert.equal(crowded(["a1", "b1", "a2"], ["c1"]), 2);
  assert.equal(crowded(["a1", "b1", "a2"], []), undefined, "no node takes one");
  assert.equal(crowded(["a1", "b1", "a2"], ["b2"]), undefined, "the other domain would be as full");
  assert.equal(crowded(["a1", "b1", "a2", "a3"], ["b2"]), 3);
  assert.equal(crowded(["a1", "b1", "a2", "a3"], ["b1"]), undefined, "a node has no two");
});

test("crowded fragments: moves end, and then no domain has two more than another one with room", () => {
  const nodes = fc.array(fc.constantFrom(..."abcd".split("").flatMap((domain) => [1, 2, 3, 4].map((i) => `${domain}${i}`))), {
    maxLength: 16,
  });
  let moved = 0;
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.constantFrom("a1", "a2", "a3", "a4", "b1", "b2", "c1", "d1"), { minLength: 1 }),
      nodes,
      (held, takers) => {
        const places: string[] = [...held];
        for (let moves = 0; ; moves++) {
          assert.ok(moves <= 64, `${places} and no end`);
          const index = crowded(places, takers);
          if (index === undefined) break;
          const counts = new Map(places.map((name) => [domainOf(name), places.filter((each) => domainOf(each) === domainOf(name)).length]));
          const free = takers.filter((name) => !places.includes(name));
          const emptiest = free.toSorted((a, b) => (counts.get(domainOf(a)) ?? 0) - (counts.get(domainOf(b)) ?? 0))[0];
          places[index] = emptiest as string;
          moved += 1;
        }
        const count = (domain: string): number => places.filter((name) => domainOf(name) === domain).length;
        const most = Math.max(...places.map((name) => count(domainOf(name))));
        for (const name of takers) assert.ok(places.includes(name) || count(domainOf(name)) >= most - 1);
      },
    ),
  );
  assert.ok(moved > 20);
});
