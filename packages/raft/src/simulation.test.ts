/** Random runs of whole clusters: nothing is violated with all rules on, and each rule is needed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type RuleName, rulesWithout } from "@stamp/base";
import { allFocuses, type Focus, optionsOf, Simulation, violationOf } from "./testing/simulation.ts";

/** Runs of each focus. More: `testing/explore.ts`. */
const seeds = 60;

for (const focus of allFocuses) {
  test(`raft simulation: ${seeds} runs about ${focus} keep all properties, and go on when the faults end`, () => {
    let committed = 0;
    let forgot = 0;
    let reads = 0;
    for (let seed = 1; seed <= seeds; seed++) {
      const simulation = new Simulation(optionsOf(seed, focus, allRules));
      try {
        simulation.run();
      } catch (error) {
        throw new Error(`focus ${focus}, seed ${seed}`, { cause: error });
      }
      committed += simulation.world.checker.committedCount;
      forgot += simulation.forgot;
      reads += simulation.world.readsDone;
    }
    assert.ok(committed > seeds * 5 && reads > seeds, `the runs do something: ${committed} entries, ${reads} reads`);
    assert.ok(focus !== "folders" || forgot > seeds, `folders are put back: ${forgot}`);
  });
}

test("raft simulation: a seed gives the same run each time", () => {
  const run = (): string => {
    const simulation = new Simulation(optionsOf(7, "mixed", allRules));
    simulation.run();
    return JSON.stringify([...simulation.world.members.values()].map(({ id, state }) => [id, state]));
  };
  assert.equal(run(), run());
});

/** Rule, what its runs are about, what is violated without it, and a seed near the first that notices. */
const mutants: readonly (readonly [rule: RuleName, focus: Focus, violated: RegExp, from: number])[] = [
  ["raftVoteChecksLog", "leaders", /Leader Completeness/, 1],
  ["raftVoteAfterSync", "leaders", /Election Safety|Log Matching/, 305],
  ["raftPreVote", "reads", /Pre-vote/, 1],
  ["raftCommitsOwnTerm", "leaders", /Leader Completeness|State Machine Safety/, 487],
  ["raftAckAfterSync", "leaders", /Leader Completeness|State Machine Safety|Log Matching/, 1],
  ["raftReadConfirmed", "reads", /Reads/, 38],
  ["raftOneChangeAtATime", "members", /Leader Completeness|Election Safety|State Machine Safety|Log Matching/, 281],
  ["raftReturningHasNoVote", "folders", /Leader Completeness|Election Safety|State Machine Safety|Log Matching/, 1],
];
const searchMax = 4_000;

for (const [rule, focus, violated, from] of mutants) {
  test(`raft simulation: without ${rule} a run about ${focus} is wrong`, () => {
    const rules = rulesWithout(rule);
    for (let seed = from; seed < from + searchMax; seed++) {
      const violation = violationOf(optionsOf(seed, focus, rules));
      if (violation === undefined || !violated.test(violation)) continue;
      assert.equal(violationOf(optionsOf(seed, focus, allRules)), undefined, `with the rule seed ${seed} keeps all properties`);
      return;
    }
    assert.fail(`no seed from ${from} to ${from + searchMax} notices`);
  });
}
