import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import fc from "fast-check";
import { place, weighted } from "./placement.ts";

const node = (name: string, domain: string, free = 50) => ({
  nodeId: name,
  diskId: name,
  faultDomain: domain,
  freeBytes: free,
  totalBytes: 100,
  openReplicas: 0,
});

test("placement: different fault domains first, avoided nodes last, never fewer domains than it could", () => {
  const prng = new Prng(4);
  const random = (): number => prng.float();
  const nodes = [node("a1", "a"), node("a2", "a"), node("b1", "b"), node("b2", "b"), node("c1", "c")];
  const none = new Set<string>();
  for (let i = 0; i < 200; i++) {
    const chosen = place({ nodes, copies: 3, minCopies: 2, avoid: none, random });
    assert.equal(new Set(chosen.map((one) => one.faultDomain)).size, 3);
    const without = place({ nodes, copies: 3, minCopies: 2, avoid: new Set(["c1", "a1"]), random });
    assert.ok(without.length === 3 && without.every((one) => one.nodeId !== "c1" && one.nodeId !== "a1"));
    const forced = place({ nodes: nodes.slice(0, 3), copies: 3, minCopies: 2, avoid: new Set(["a1", "b1"]), random });
    assert.deepEqual(forced.map((one) => one.nodeId).sort(), ["a2", "b1"], "an avoided node only to reach minCopies, in another domain");
    const spare = new Set(["a1", "b1", "c1"]);
    const spared = place({ nodes: nodes.slice(1), copies: 3, minCopies: 2, avoid: none, spare, random });
    assert.deepEqual(spared.map((one) => one.nodeId).sort(), ["a2", "b2", "c1"], "one to spare when there are not enough others");
    assert.ok(["a2", "b2"].includes(spared[0]?.nodeId ?? ""), "and not as the primary");
  }
  assert.equal(place({ nodes: [], copies: 3, minCopies: 2, avoid: none, random }).length, 0);
  const repair = place({ nodes, copies: 1, minCopies: 1, avoid: none, usedDomains: new Set(["a", "b"]), random });
  assert.equal(repair[0]?.nodeId, "c1");
});

test("placement: as many fault domains as there can be, whatever the nodes are, as long as they are not to be avoided", () => {
  const nodesOf = fc.array(fc.record({ domain: fc.nat(4), free: fc.nat(100), spare: fc.boolean(), avoid: fc.boolean() }), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(nodesOf, fc.nat(1_000), (given, seed) => {
      const prng = new Prng(seed);
      const nodes = given.map(({ domain, free }, i) => node(`n${i}`, `d${domain}`, free));
      const named = (what: "spare" | "avoid") => new Set(given.flatMap((each, i) => (each[what] ? [`n${i}`] : [])));
      const [avoid, spare] = [named("avoid"), named("spare")];
      const chosen = place({ nodes, copies: 3, minCopies: 2, avoid, spare, random: () => prng.float() });
      const usable = nodes.filter(({ nodeId }) => !avoid.has(nodeId));
      const domains = new Set(usable.map(({ faultDomain }) => faultDomain)).size;
      const used = new Set(chosen.map(({ faultDomain }) => faultDomain)).size;
      assert.equal(new Set(chosen).size, chosen.length);
      assert.ok(chosen.length >= Math.min(3, usable.length));
      assert.ok(used >= Math.min(3, domains), `${used} of ${domains} domains`);
    }),
  );
});

test("placement: every good node is the primary at times, fuller ones more rarely", () => {
  const prng = new Prng(9);
  const nodes = [node("empty", "a", 95), node("half", "b", 50), node("full", "c", 2), node("other", "d", 50)];
  const counts = new Map<string, number>();
  for (let i = 0; i < 3_000; i++) {
    const [primary] = place({ nodes, copies: 3, minCopies: 2, avoid: new Set(), random: () => prng.float() });
    counts.set(primary?.nodeId ?? "", (counts.get(primary?.nodeId ?? "") ?? 0) + 1);
  }
  const of = (name: string): number => counts.get(name) ?? 0;
  assert.ok(of("empty") > of("half") && of("half") > of("full") && of("full") > 0, JSON.stringify([...counts]));
});

test("placement: a disk with few free inodes is chosen as rarely as one with few free bytes", () => {
  const withFiles = (name: string, freeFiles: number) => ({ ...node(name, name, 90), freeFiles, totalFiles: 100 });
  let few = 0;
  for (let i = 0; i < 100; i++) if (weighted([withFiles("few", 2), withFiles("many", 90)], () => i / 100)?.nodeId === "few") few += 1;
  assert.ok(few > 0 && few < 10, `${few} of 100`);
});
