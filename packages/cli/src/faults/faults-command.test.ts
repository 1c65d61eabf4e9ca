/** Rules as `stamp faults` makes them of its options, and shows them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { FaultRuleStateSchema } from "@stamp/wire";
import { faultNames, listText, ruleOf, ruleText } from "./faults-command.ts";

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
