/** Rules as `stamp faults` makes them of its options, and shows them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ok, refused, unknownOutcome } from "@stamp/base";
import { FaultRuleStateSchema } from "@stamp/wire";
import { addEverywhere, faultNames, listText, ruleOf, ruleText } from "./faults-command.ts";

test("faults: the command line offers the faults that front-ends know", async () => {
  const known = await import("@stamp/front-end");
  assert.deepEqual(faultNames, known.faultNames);
});

test("faults: options become a rule, and a rule is shown by its options", () => {
  const rule = ruleOf("cut", { name: "mine", operation: "GetBlob", afterBytes: "65536", share: "0.25", endsAfter: "1.5", header: "a: b" });
  assert.deepEqual(rule, {
    id: "mine",
    fault: "cut",
    account: "",
    service: "",
    operation: "GetBlob",
    header: "a: b",
    share: 0.25,
    endsAfterMs: 1_500,
    afterBytes: 65_536n,
  });
  const shown = '--operation GetBlob --header "a: b" --share 0.25 --ends-after 1.5 --after-bytes 65536';
  assert.equal(ruleText(rule), shown);
  const state = create(FaultRuleStateSchema, { rule, hits: 3n, over: true });
  assert.match(listText([{ frontEnd: "front-end-1", rules: [state] }]), /mine {2}front-end-1 {2}cut {4}3 {5}over/);
  assert.equal(listText([{ frontEnd: "front-end-1", rules: [] }]), "there are no fault rules");
});

/** A front-end in memory. `answer`: what an addition is answered, whatever was done. */
function frontEnd(name: string, rules: readonly string[], answer: ReturnType<typeof refused> | undefined = undefined, isDone = true) {
  const held = [...rules];
  const client = {
    addFaultRule: async ({ rule }: { readonly rule: { readonly id: string } }) => {
      if (isDone) held.push(rule.id);
      return answer ?? ok({ id: rule.id });
    },
    listFaultRules: async () => ok({ rules: held.map((id) => ({ rule: { id } })) }),
    removeFaultRules: async ({ id }: { readonly id: string }) => {
      const at = held.indexOf(id);
      if (at >= 0) held.splice(at, 1);
      return ok({ removed: at < 0 ? 0 : 1 });
    },
  };
  return { held, at: { name, client: client as never } };
}

test("faults: a rule without a name gets one that no front-end has, also when one has started anew", async () => {
  const [fresh, older] = [frontEnd("front-end-1", []), frontEnd("front-end-2", ["rule-1", "mine"])];
  assert.equal(await addEverywhere([fresh.at, older.at], ruleOf("busy", {})), "rule-2");
  assert.deepEqual([fresh.held, older.held], [["rule-2"], ["rule-1", "mine", "rule-2"]]);
});

test("faults: a rule that one front-end refuses is at none; a lost answer may be one of a rule that is there", async () => {
  const conflict = refused("alreadyExists", "conflict", "there is a fault rule mine");
  const [first, refusing] = [frontEnd("front-end-1", []), frontEnd("front-end-2", ["mine"], conflict, false)];
  await assert.rejects(addEverywhere([first.at, refusing.at], ruleOf("busy", { name: "mine" })), /front-end-2: there is a fault rule mine/);
  assert.deepEqual([first.held, refusing.held], [[], ["mine"]]);
  const lost = frontEnd("front-end-2", ["mine"], unknownOutcome("deadlineExceeded", "timeout", "no answer in 5 s"));
  await assert.rejects(addEverywhere([first.at, lost.at], ruleOf("busy", {})), /front-end-2: no answer/);
  assert.deepEqual([first.held, lost.held], [[], ["mine"]]);
});
