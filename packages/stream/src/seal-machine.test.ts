/** The seal machine: which answers make a length, and how long it waits for more of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Rules, rulesWithout } from "@stamp/base";
import fc from "fast-check";
import { type SealAnswer, SealMachine } from "./seal-machine.ts";

const length = (durableBytes: number, committedBytes = 0): SealAnswer => ({
  kind: "length",
  durableBytes,
  committedBytes,
  restarted: false,
});

test("seal: a dialogue of three replicas", () => {
  const machine = new SealMachine(["a", "b", "c"], allRules);
  assert.deepEqual(machine.decide(5_000), { kind: "wait" });
  machine.answered("a", length(300));
  assert.deepEqual(machine.decide(1), { kind: "wait", untilMs: 2_000 });
  machine.answered("b", length(200));
  assert.deepEqual(machine.decide(9), { kind: "wait", untilMs: 10 });
  assert.deepEqual(machine.unanswered, ["c"]);
  const decision = machine.decide(10);
  assert.deepEqual(decision, { kind: "seal", lengthBytes: 200, counted: ["a", "b"], suspect: [], lossAccepted: false });
  machine.answered("c", length(100));
  assert.deepEqual(machine.decide(11), decision, "late answers are ignored");
});

test("seal: who is known to be unreachable is not waited for when two answers count", () => {
  const machine = new SealMachine(["a", "b", "c"], allRules);
  machine.unreachable("c");
  machine.answered("a", length(300));
  assert.deepEqual(machine.decide(1), { kind: "wait", untilMs: 2_000 }, "b may answer");
  machine.answered("b", length(200));
  assert.deepEqual(machine.decide(1), { kind: "seal", lengthBytes: 200, counted: ["a", "b"], suspect: [], lossAccepted: false });
});

test("seal: one answer is enough after 200 ms when everybody else is known to be unreachable", () => {
  const machine = new SealMachine(["a", "b", "c"], allRules);
  machine.answered("a", length(300));
  machine.unreachable("b");
  assert.deepEqual(machine.decide(500), { kind: "wait", untilMs: 2_000 }, "c may answer");
  machine.unreachable("c");
  assert.deepEqual(machine.decide(199), { kind: "wait", untilMs: 200 }, "a node that starts again refuses connections for a moment");
  assert.deepEqual(machine.decide(200), { kind: "seal", lengthBytes: 300, counted: ["a"], suspect: [], lossAccepted: false });
  const lost = new SealMachine(["a", "b"], allRules);
  lost.clientKnows(301);
  lost.answered("a", length(300));
  lost.unreachable("b");
  assert.deepEqual(lost.decide(60_000), { kind: "wait" }, "an answer that does not count is never enough");
});

test("seal: all answers at once need no patience, one intact answer needs 2 s unless all have answered", () => {
  const all = new SealMachine(["a", "b", "c"], allRules);
  for (const node of ["a", "b", "c"]) all.answered(node, length(7));
  assert.equal(all.decide(0).kind, "seal");
  const one = new SealMachine(["a", "b", "c"], allRules);
  one.answered("a", length(7));
  assert.equal(one.decide(1_999).kind, "wait");
  assert.equal(one.decide(2_000).kind, "seal");
  const broken = new SealMachine(["a", "b", "c"], allRules);
  broken.answered("a", { kind: "unknownExtent" });
  broken.answered("b", { kind: "damaged" });
  assert.equal(broken.decide(60_000).kind, "wait");
  broken.answered("c", length(9));
  assert.deepEqual(broken.decide(60_000), { kind: "seal", lengthBytes: 9, counted: ["c"], suspect: [], lossAccepted: false });
});

test("seal: a replica below a committed length known to another or to the client does not count", () => {
  const heard = new SealMachine(["a", "b", "c"], allRules);
  heard.answered("a", length(100));
  heard.answered("b", length(300, 250));
  heard.answered("c", length(280, 200));
  assert.deepEqual(heard.decide(0), { kind: "seal", lengthBytes: 280, counted: ["b", "c"], suspect: ["a"], lossAccepted: false });
  const client = new SealMachine(["a", "b"], allRules);
  client.clientKnows(150);
  client.answered("a", length(100));
  assert.deepEqual(client.decide(60_000), { kind: "wait" }, "the only answer lost data: it is not sealed");
  client.answered("b", length(150));
  assert.deepEqual(client.decide(60_000), { kind: "seal", lengthBytes: 150, counted: ["b"], suspect: ["a"], lossAccepted: false });
});

test("seal: accepted loss takes the longest length that is left, and only when none counts", () => {
  const lost = new SealMachine(["a", "b", "c"], allRules);
  lost.clientKnows(150);
  lost.answered("a", length(100));
  lost.answered("b", { kind: "damaged" });
  assert.deepEqual(lost.decide(60_000), { kind: "wait" });
  lost.acceptLoss(60_000);
  assert.deepEqual(lost.decide(60_001), { kind: "wait", untilMs: 62_000 }, "the third one may still answer");
  assert.deepEqual(lost.decide(62_000), { kind: "seal", lengthBytes: 100, counted: ["a"], suspect: ["b", "c"], lossAccepted: true });
  const intact = new SealMachine(["a", "b"], allRules);
  intact.acceptLoss(0);
  intact.answered("a", length(5));
  intact.answered("b", length(7));
  assert.deepEqual(intact.decide(1), { kind: "seal", lengthBytes: 5, counted: ["b", "a"], suspect: [], lossAccepted: false });
  const nothing = new SealMachine(["a"], allRules);
  nothing.acceptLoss(0);
  nothing.answered("a", { kind: "unknownExtent" });
  assert.deepEqual(nothing.decide(1), { kind: "seal", lengthBytes: 0, counted: [], suspect: ["a"], lossAccepted: true });
});

test("seal: without its rules lost data and unknown extents become the length", () => {
  const known = new SealMachine(["a", "b"], rulesWithout("knownCommittedLength"));
  known.clientKnows(150);
  known.answered("a", length(100));
  known.answered("b", length(150));
  assert.deepEqual(known.decide(0), { kind: "seal", lengthBytes: 100, counted: ["b", "a"], suspect: [], lossAccepted: false });
  const unknown = new SealMachine(["a", "b"], rulesWithout("unknownIsNotLength"));
  unknown.answered("a", { kind: "unknownExtent" });
  unknown.answered("b", length(150));
  assert.deepEqual(unknown.decide(0), { kind: "seal", lengthBytes: 0, counted: ["b", "a"], suspect: [], lossAccepted: false });
});

test("seal: whatever answers when, nothing that every replica holds is cut off, and nothing known to be committed", () => {
  const nodes = ["a", "b", "c"];
  const answer = fc.record({
    node: fc.nat(2),
    kind: fc.constantFrom("length", "length", "length", "unknownExtent", "damaged"),
    atMs: fc.nat(3_000),
  });
  const run = (rules: Rules) =>
    // Every replica holds at least `committed` but those that lie; those answer less.
    fc.property(
      fc.nat(100),
      fc.array(fc.nat(50), { minLength: 3, maxLength: 3 }),
      fc.nat(3),
      fc.array(answer, { maxLength: 12 }),
      (committed, extra, liar, answers) => {
        const machine = new SealMachine(nodes, rules);
        machine.clientKnows(committed);
        for (const one of answers.toSorted((x, y) => x.atMs - y.atMs)) {
          const lies = one.node === liar && committed > 0;
          const durable = lies ? committed - 1 : committed + (extra[one.node] as number);
          machine.answered(nodes[one.node] as string, one.kind === "length" ? length(durable) : { kind: one.kind as "damaged" });
          const decision = machine.decide(one.atMs);
          if (decision.kind !== "seal") continue;
          assert.ok(decision.lengthBytes >= committed);
        }
      },
    );
  fc.assert(run(allRules));
  assert.ok(fc.check(run(rulesWithout("knownCommittedLength")), { numRuns: 2_000, seed: 3 }).failed);
});
