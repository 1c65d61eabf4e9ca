/**
 * Fault rules of the front-ends, by path: for sessions with the role "operate". The same calls as `stamp faults`.
 *
 * Invariants:
 * - A rule that is added here has an end, so that a page or a console that is closed leaves none behind.
 * - A rule is at every front-end, or at none if one refuses it.
 */
import type { FaultRow } from "@stamp/console-page";
import type { FaultRuleState } from "@stamp/wire";
import { CommandError } from "../../exit.ts";
import {
  type AtFrontEnd,
  addEverywhere,
  faultNames,
  listEverywhere,
  type Rule,
  removeEverywhere,
  ruleText,
} from "../../faults/faults-command.ts";
import { FieldError, type Fields, textIn, wholeIn, wordIn } from "../data/fields.ts";
import type { StampChange } from "./account-operations.ts";

const hourSeconds = 3_600;
const services: readonly string[] = ["", "blob", "queue", "table"];

/** Numbers that a fault needs, with their least and highest values. */
const numbers = {
  busy: { retryAfterSeconds: [1, 3_600] },
  "error-before": {},
  "error-after": {},
  delay: { delayMs: [1, 100_000] },
  cut: { afterBytes: [0, Number.MAX_SAFE_INTEGER] },
  throttle: { perSecond: [1, 1_000_000] },
  "stale-secondary": { behindMs: [0, 86_400_000] },
} as const satisfies Readonly<Record<(typeof faultNames)[number], Readonly<Record<string, readonly [number, number]>>>>;

/** Returns the changes by path. `frontEnds`: those of the stamp that runs now. Throws if none is known. */
export function faultOperations(frontEnds: () => readonly AtFrontEnd[]): Readonly<Record<string, StampChange>> {
  return {
    "/api/add-fault": async (fields) => ({ rule: await addEverywhere(frontEnds(), ruleIn(fields)) }),
    "/api/remove-fault": async (fields) => {
      const rule = wordIn(fields, "rule");
      if ((await removeEverywhere(frontEnds(), rule)) === 0) throw new CommandError(`there is no fault rule ${rule} any more`);
      return {};
    },
  };
}

/** Returns the rules by name, with the hits of all front-ends together. */
export async function faultRows(frontEnds: readonly AtFrontEnd[]): Promise<FaultRow[]> {
  const byName = new Map<string, FaultRow>();
  for (const { rules } of await listEverywhere(frontEnds)) {
    for (const { rule, hits, over } of rules as readonly FaultRuleState[]) {
      if (rule === undefined) continue;
      const before = byName.get(rule.id);
      const row = { name: rule.id, fault: rule.fault, which: ruleText(rule), hits: Number(hits), isOver: over };
      byName.set(rule.id, before === undefined ? row : { ...row, hits: row.hits + before.hits, isOver: over && before.isOver });
    }
  }
  return [...byName.values()];
}

function ruleIn(fields: Fields): Rule {
  const fault = wordIn(fields, "fault");
  if (!(faultNames as readonly string[]).includes(fault)) throw new FieldError(`there is no fault ${fault}: ${faultNames.join(", ")}`);
  const service = textIn(fields, "service");
  if (!services.includes(service)) throw new FieldError(`there is no service ${service}: blob, queue, table, or none`);
  const bounds: Readonly<Record<string, readonly [number, number]>> = numbers[fault as keyof typeof numbers];
  const given = Object.entries(bounds).map(([name, [least, highest]]): [string, number | bigint] => {
    const value = wholeIn(fields, name, least, highest);
    return [name, name === "afterBytes" ? BigInt(value) : value];
  });
  return {
    id: "",
    fault,
    account: textIn(fields, "account"),
    service,
    operation: textIn(fields, "operation"),
    header: textIn(fields, "header"),
    endsAfterMs: 1_000 * wholeIn(fields, "seconds", 1, hourSeconds),
    ...(fields.percent === undefined ? {} : { share: wholeIn(fields, "percent", 1, 100) / 100 }),
    ...(fields.count === undefined ? {} : { count: wholeIn(fields, "count", 1, 1_000_000_000) }),
    ...Object.fromEntries(given),
  };
}
