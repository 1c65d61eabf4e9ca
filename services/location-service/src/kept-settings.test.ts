/** Settings of a copy that were read before an operation began: the operation has sent newer ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok } from "@stamp/base";
import type { AccountRecord } from "@stamp/geo";
import { Simulation } from "@stamp/virtual-time";
import { Operations } from "./operations.ts";
import type { Registry } from "./registry.ts";
import type { StampLink } from "./stamp-link.ts";

const account: AccountRecord = { name: "acme", primary: "north-1", secondary: "south-1", epoch: 1, operation: 7, seeded: true };
const running: AccountRecord["running"] = { kind: "unprotect", step: "unpairing", source: "north-1", target: "south-1" };

/** Compares the settings once. `meanwhile`: the record when the copy's stamp is asked. Returns the stamps to which settings were copied. */
async function copiedTo(meanwhile: AccountRecord): Promise<readonly string[]> {
  const copied: string[] = [];
  let held = account;
  const linkTo = (stamp: string) =>
    ({
      accountForCopy: async () => ok({ name: account.name, keys: ["read before"] }),
      copySettings: async () => {
        copied.push(stamp);
        return ok();
      },
    }) as unknown as StampLink;
  const operations = new Operations({
    world: new Simulation({ seed: 62 }).world("tester"),
    registry: { account: () => held, stamp: (name: string) => ({ name }) } as unknown as Registry,
    onStamp: (stamp, work) => work(linkTo(stamp.name)),
    inTurn: (stamp, work) => {
      if (stamp === "south-1") held = meanwhile;
      return work();
    },
    pendingOf: async () => ok(0),
    lateOf: async () => ok(""),
    leaveOutLost: async () => ok(),
    drainMaxMs: 60_000,
    ended: new AbortController().signal,
  });
  await operations.keep(account, true);
  return copied;
}

test("operations: settings are copied to the copy, but not those that were read before an operation began, ended or moved the copy", async () => {
  assert.deepEqual(await copiedTo(account), ["south-1"]);
  assert.deepEqual(await copiedTo({ ...account, running }), [], "an operation is under way");
  assert.deepEqual(await copiedTo({ ...account, operation: 8 }), [], "an operation has ended");
  assert.deepEqual(await copiedTo({ ...account, secondary: "east-1" }), [], "the copy is elsewhere");
});
