import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Outcome, type RuleName, rulesWithout } from "@stamp/base";
import { closedMax, ServerRules } from "./server-rules.ts";

const say = (outcome: Outcome<string>): string => (outcome.ok ? outcome.value : outcome.failure.reason);
const command = (ownerEpoch: number, pmTerm = 1, leaseEpoch = 7) => ({ pmTerm, leaseEpoch, rangeId: "r", ownerEpoch });

function serverWithout(...off: RuleName[]): ServerRules {
  const rules = new ServerRules(off.length > 0 ? rulesWithout(...off) : allRules);
  rules.lease(7);
  return rules;
}

test("server rules: a load is done once, repeated for nothing, and replaced by a higher epoch only", () => {
  const rules = serverWithout();
  assert.equal(say(rules.load(command(3))), "load");
  assert.equal(say(rules.load(command(3))), "already");
  assert.equal(say(rules.load(command(4))), "replace");
  assert.equal(say(rules.load(command(3))), "staleOwnerEpoch");
});

test("server rules: what was closed, or refused by the streams, is never loaded again under that epoch or a lower one", () => {
  const rules = serverWithout();
  rules.load(command(3));
  assert.equal(say(rules.close(command(3))), "drop");
  assert.equal(say(rules.close(command(3))), "nothing");
  assert.equal(say(rules.load(command(3))), "staleOwnerEpoch");
  assert.equal(say(rules.load(command(2))), "staleOwnerEpoch");
  assert.equal(say(rules.load(command(4))), "load");
  rules.dead("r", 4);
  assert.equal(say(rules.load(command(4))), "staleOwnerEpoch");
  assert.equal(say(serverWithout().close(command(9))), "nothing");
  const late = serverWithout();
  late.close(command(9));
  assert.equal(say(late.load(command(9))), "staleOwnerEpoch", "Closed was answered before the Load came");
  const without = serverWithout("closedEpochRefused");
  without.close(command(9));
  assert.equal(say(without.load(command(9))), "load");
});

test("server rules: a close of a lower epoch than the one held is refused", () => {
  const rules = serverWithout();
  rules.load(command(5));
  assert.equal(say(rules.close(command(4))), "staleOwnerEpoch");
});

test("server rules: a split or merge is of what is held, under the epoch that the manager knows", () => {
  const rules = serverWithout();
  rules.load(command(5));
  const { pmTerm, leaseEpoch } = command(5);
  const asked = (...parents: { rangeId: string; ownerEpoch: number }[]): string => {
    const outcome = rules.reshape({ pmTerm, leaseEpoch }, parents);
    return outcome.ok ? "ok" : outcome.failure.reason;
  };
  const held = { rangeId: "r", ownerEpoch: 5 };
  assert.equal(asked(held), "ok");
  for (const ownerEpoch of [4, 6]) assert.equal(asked({ rangeId: "r", ownerEpoch }), "staleOwnerEpoch", `${ownerEpoch}`);
  assert.equal(asked(held, { rangeId: "s", ownerEpoch: 5 }), "staleOwnerEpoch", "of a merge both");
});

test("server rules: commands of an older manager are refused", () => {
  const rules = serverWithout();
  assert.equal(say(rules.load(command(3, 2))), "load");
  assert.equal(say(rules.load(command(4, 1))), "staleTerm");
  assert.equal(say(rules.close(command(4, 1))), "staleTerm");
  assert.equal(rules.pmTermSeen, 2);
  const without = serverWithout("pmTermAtServer");
  without.load(command(3, 2));
  assert.equal(say(without.load(command(4, 1))), "replace");
});

test("server rules: a command names the lease it is for; without a lease nothing is obeyed", () => {
  const rules = serverWithout();
  assert.equal(say(rules.load(command(3, 1, 6))), "staleLeaseEpoch");
  rules.lease(0);
  assert.equal(say(rules.load(command(3))), "notReady");
  rules.lease(8);
  assert.equal(say(rules.load(command(3))), "staleLeaseEpoch");
  assert.equal(say(serverWithout("leaseEpochNamedInLoad").load(command(3, 1, 6))), "load");
});

test("server rules: a load that failed by nobody's doing may be tried again", () => {
  const rules = serverWithout();
  rules.load(command(3));
  rules.forget("r", 3);
  assert.equal(say(rules.load(command(3))), "load");
});

test("server rules: of a bounded number of ranges it is remembered that they were closed, the last ones", () => {
  const rules = serverWithout();
  const verdict = (rangeId: string): string => say(rules.load({ ...command(3), rangeId }));
  rules.dead("first", 3);
  rules.dead("again", 3);
  for (let i = 0; i < closedMax - 1; i++) {
    if (i === 10) rules.dead("again", 2);
    rules.dead(`r${i}`, 3);
  }
  assert.equal(verdict("first"), "load");
  assert.equal(verdict("again"), "staleOwnerEpoch");
  assert.equal(verdict("r0"), "staleOwnerEpoch");
});
