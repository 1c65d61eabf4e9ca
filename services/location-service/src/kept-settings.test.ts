/** Settings of a copy that were read before an operation began: the operation has sent newer ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, fromUtf8, ok, utf8 } from "@stamp/base";
import type { AccountRecord } from "@stamp/geo";
import { Simulation } from "@stamp/virtual-time";
import { CopySettings } from "./copies/copy-settings.ts";
import { Operations, type OperationsOptions } from "./operations.ts";
import type { Registry } from "./registry.ts";
import type { StampLink } from "./stamp-link.ts";

const account: AccountRecord = { name: "acme", primary: "north-1", secondary: "south-1", epoch: 1, operation: 7, seeded: true };
const running: AccountRecord["running"] = { kind: "unprotect", step: "unpairing", source: "north-1", target: "south-1" };

/**
 * Compares the settings once. `meanwhile`: the record when the copy's stamp is asked. `levels`: feature levels of north-1 and south-1. Returns what was
 * asked of the stamps about settings.
 */
async function askedOf(meanwhile: AccountRecord, levels: readonly [number, number]): Promise<readonly string[]> {
  const asked: string[] = [];
  let held = account;
  const linkTo = (stamp: string) =>
    ({
      level: levels[stamp === "north-1" ? 0 : 1],
      accountForCopy: async () => {
        asked.push(`keys of ${stamp}`);
        return ok({ name: account.name, keys: ["read before"] });
      },
      copySettings: async () => {
        asked.push(`keys to ${stamp}`);
        return ok();
      },
      settingsInForce: async () => {
        asked.push(`tag of ${stamp}`);
        return ok({ inForce: true, waitMs: 0, where: "", tag: utf8("a tag") });
      },
      vouchForCopy: async (_name: string, _epoch: number, tag: Uint8Array) => {
        asked.push(`${fromUtf8(tag)} to ${stamp}`);
        return ok();
      },
    }) as unknown as StampLink;
  const registry = { account: () => held, stamp: (name: string) => ({ name }) } as unknown as Registry;
  const onStamp: OperationsOptions["onStamp"] = (stamp, work) => work(linkTo(stamp.name));
  const inTurn: OperationsOptions["inTurn"] = (stamp, work) => {
    if (stamp === "south-1") held = meanwhile;
    return work();
  };
  const operations = new Operations({
    world: new Simulation({ seed: 62 }).world("tester"),
    registry,
    onStamp,
    inTurn,
    settings: new CopySettings({
      rules: allRules,
      registry,
      onStamp,
      inTurn,
      levelOf: (stamp) => onStamp(stamp, async (link) => ok(link.level)),
    }),
    pendingOf: async () => ok(0),
    lateOf: async () => ok(""),
    leaveOutLost: async () => ok(),
    drainMaxMs: 60_000,
    ended: new AbortController().signal,
  });
  await operations.keep(account, true);
  return asked;
}

const ended: readonly (readonly [AccountRecord, string])[] = [
  [{ ...account, running }, "an operation is under way"],
  [{ ...account, operation: 8 }, "an operation has ended"],
  [{ ...account, secondary: "east-1" }, "the copy is elsewhere"],
];

test("operations: below the level settings are copied to the copy, but not those that were read before an operation began, ended or moved the copy", async () => {
  assert.deepEqual(await askedOf(account, [3, 3]), ["keys of north-1", "keys to south-1"]);
  for (const [meanwhile, what] of ended) assert.deepEqual(await askedOf(meanwhile, [3, 3]), ["keys of north-1"], what);
});

test("operations: from the level on a copy is vouched for with the hash of its primary's settings, and no keys are asked for or given", async () => {
  for (const levels of [
    [4, 4],
    [4, 3],
    [3, 4],
  ] as const)
    assert.deepEqual(await askedOf(account, levels), ["tag of north-1", "a tag to south-1"], levels.join());
  for (const [meanwhile, what] of ended) assert.deepEqual(await askedOf(meanwhile, [4, 4]), ["tag of north-1"], what);
  assert.deepEqual(await askedOf(account, [0, 4]), [], "a stamp has not said its level");
});
