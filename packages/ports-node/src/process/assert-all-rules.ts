/**
 * Production keeps every safety rule of docs/faults.md. Rules can be switched off only in a world that the simulator or a test has
 * made; a process that was given such a world by mistake must not touch the data of a stamp.
 */
import { allRules, assert } from "@stamp/base";
import type { World } from "@stamp/ports";

/** Throws if some rule may be off. Every way to start roles outside the simulator calls this before it makes a role. */
export function assertAllRules({ rules }: Pick<World, "rules">): void {
  assert(rules === allRules, "safety rules are switched off, which only the simulator and tests may do");
}
