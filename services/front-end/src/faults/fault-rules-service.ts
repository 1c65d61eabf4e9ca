/** `stamp.v1.FaultRules` over the rules of `fault-rules.ts`. */
import { type Outcome, ok, refused } from "@stamp/base";
import type { Handlers } from "@stamp/ports";
import { type FaultRule as FaultRuleMessage, type FaultRules as FaultRulesService, fromWire, toWire } from "@stamp/wire";
import type { FaultRule } from "./fault-rule.ts";
import type { FaultRules } from "./fault-rules.ts";

/** `rules`: rules of the front-end; undefined while its setting is off. */
export function faultRulesHandlers(rules: FaultRules | undefined): Handlers<typeof FaultRulesService> {
  const on = async <T>(work: (rules: FaultRules) => Outcome<T>): Promise<Outcome<T>> => (rules === undefined ? off : work(rules));
  return {
    addFaultRule: ({ rule }) =>
      on((held) => {
        const added = held.add(rule === undefined ? {} : ruleFromWire(rule));
        return added.ok ? ok({ id: added.value }) : added;
      }),
    listFaultRules: () =>
      on((held) => ok({ rules: held.list().map(({ rule, hits, over }) => ({ rule: ruleToWire(rule), hits: toWire(hits), over })) })),
    removeFaultRules: ({ id }) => on((held) => ok({ removed: held.remove(id === "" ? undefined : id) })),
  };
}

const off = refused(
  "failedPrecondition",
  "badRequest",
  "fault rules are off at this front-end: switch them on with its setting faultRules (./stamp up --fault-rules true)",
);

/** Texts that are empty, and numbers that are absent, are left out. */
function ruleFromWire({ $typeName: _type, $unknown: _unknown, afterBytes, ...rule }: FaultRuleMessage): unknown {
  const given = Object.entries(rule).filter(([, value]) => value !== undefined && value !== "");
  return { ...Object.fromEntries(given), ...(afterBytes === undefined ? {} : { afterBytes: fromWire(afterBytes) }) };
}

const ruleToWire = ({ afterBytes, ...rule }: FaultRule) => ({
  ...rule,
  ...(afterBytes === undefined ? {} : { afterBytes: toWire(afterBytes) }),
});
