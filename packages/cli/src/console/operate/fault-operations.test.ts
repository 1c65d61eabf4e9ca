import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ok, refused } from "@stamp/base";
import { FaultRuleSchema, FaultRuleStateSchema } from "@stamp/wire";
import { faultNames, type Rule } from "../../faults/faults-command.ts";
import { faultOperations, faultRows } from "./fault-operations.ts";

const never = new AbortController().signal;

/** Two front-ends that keep rules. */
function world({ refusal = "" } = {}) {
  const kept = [new Map<string, Rule>(), new Map<string, Rule>()];
  const frontEnds = kept.map((rules, index) => ({
    name: `front-end-${index + 1}`,
    client: {
      addFaultRule: async ({ rule }: { readonly rule: Rule }) => {
        if (index === 1 && refusal !== "") return refused("invalidArgument", "badRequest", refusal);
        rules.set(rule.id, rule);
        return ok({ id: rule.id });
      },
      listFaultRules: async () =>
        ok({ rules: [...rules.values()].map((rule) => create(FaultRuleStateSchema, { rule: create(FaultRuleSchema, rule), hits: 2n })) }),
      removeFaultRules: async ({ id }: { readonly id: string }) => ok({ removed: rules.delete(id) ? 1 : 0 }),
    },
  }));
  const operations = faultOperations(() => frontEnds as never);
  const run = async (what: string, fields: object): Promise<object | undefined> => operations[`/api/${what}`]?.(fields as never, never);
  return { run, kept, rows: () => faultRows(frontEnds as never) };
}

const fields = { account: "", service: "blob", operation: "PutBlob", header: "", percent: 25, seconds: 300 };

test("faults: a rule is added at every front-end with an end, shown once with the hits of all, and removed", async () => {
  const { run, kept, rows } = world();
  assert.deepEqual(await run("add-fault", { fault: "delay", delayMs: 500, ...fields }), { rule: "rule-1" });
  for (const rules of kept) {
    const { endsAfterMs, share, delayMs, operation, service } = rules.get("rule-1") ?? ({} as Rule);
    assert.deepEqual([endsAfterMs, share, delayMs, operation, service], [300_000, 0.25, 500, "PutBlob", "blob"]);
  }
  const which = "--service blob --operation PutBlob --share 0.25 --ends-after 300 --delay-ms 500";
  assert.deepEqual(await rows(), [{ name: "rule-1", fault: "delay", which, hits: 4, isOver: false }]);
  await run("remove-fault", { rule: "rule-1" });
  assert.deepEqual(await rows(), []);
  await assert.rejects(run("remove-fault", { rule: "rule-1" }), /there is no fault rule rule-1 any more/);
});

test("faults: a rule that one front-end refuses is at none, and the refusal is told", async () => {
  const { run, kept } = world({ refusal: "there is no operation PutBlub" });
  await assert.rejects(run("add-fault", { fault: "error-before", ...fields }), /there is no operation PutBlub/);
  assert.deepEqual(
    kept.map((rules) => rules.size),
    [0, 0],
  );
});

test("faults: a rule without an end, with an unknown fault or service, or a number out of bounds is not sent", async () => {
  const { run, kept } = world();
  const refusals: readonly (readonly [object, RegExp])[] = [
    [{ fault: "busy", retryAfterSeconds: 1, ...fields, seconds: undefined }, /seconds is a whole number, 1 to 3600/],
    [{ fault: "busy", retryAfterSeconds: 1, ...fields, seconds: 3_601 }, /seconds is a whole number, 1 to 3600/],
    [{ fault: "burn", ...fields }, /there is no fault burn/],
    [{ fault: "toString", ...fields }, /there is no fault toString/],
    [{ fault: "error-before", ...fields, service: "dfs" }, /there is no service dfs/],
    [{ fault: "delay", ...fields, delayMs: 100_001 }, /delayMs is a whole number/],
    [{ fault: "throttle", ...fields }, /perSecond is a whole number/],
    [{ fault: "error-before", ...fields, percent: 0 }, /percent is a whole number, 1 to 100/],
  ];
  for (const [wrong, words] of refusals) await assert.rejects(run("add-fault", wrong), words);
  assert.equal(kept[0]?.size, 0);
});

test("faults: the console knows each fault of the command line", async () => {
  const numbers = { retryAfterSeconds: 1, delayMs: 1, afterBytes: 0, perSecond: 1, behindMs: 1 };
  const { run, kept } = world();
  for (const fault of faultNames) await run("add-fault", { fault, ...numbers, ...fields });
  assert.equal(kept[0]?.size, faultNames.length);
});
