/** Facts about servers, by their names: which are silent, and for how long that is remembered. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, refused } from "@stamp/base";
import { Simulation } from "@stamp/virtual-time";
import { rangeOf, withParts } from "../testing/term-harness.ts";
import { Servers } from "./servers.ts";

test("servers: who is silent and has no lease any more, not even an ended one, is forgotten", () =>
  withParts([rangeOf("Entity", "entity-1")], async ({ servers, leases, until }) => {
    leases["ps-nowhere"] = 7;
    await until(() => servers.unreachable.has("ps-nowhere"), 30_000, "calls to it failed for long");
    leases["ps-nowhere"] = 0;
    await until(() => servers.leases.some((lease) => lease.server === "ps-nowhere" && lease.ended), 5_000, "its lease has ended");
    await until(() => servers.unreachable.has("ps-nowhere"), 1, "an ended lease is not forgotten");
    delete leases["ps-nowhere"];
    await until(() => !servers.unreachable.has("ps-nowhere"), 5_000, "it is forgotten");
  }));

test("servers: the lock service has time to hold a question only when it was told a state; without one a missing answer is missed soon", async () => {
  const waits: number[] = [];
  const answers = [ok({ leases: [], state: "state 1" }), refused("unavailable", "timeout", "no answer"), ok({ leases: [], state: "" })];
  const listLeases = async (_request: unknown, { timeoutMs }: { readonly timeoutMs: number }) => {
    waits.push(timeoutMs);
    return answers[waits.length - 1] ?? ok({ leases: [], state: "" });
  };
  const world = { ...new Simulation({ seed: 1 }).world("tester"), transport: { client: () => ({ listLeases }) } };
  const limits = { unreachableAfterMs: 5_000, loadTimeoutMs: 10_000, heldQuestionMs: 20_000 };
  const servers = new Servers(world as never, { lockService: "lock", pmTerm: 1, ...limits });
  for (let look = 0; look < 4; look++) await servers.look();
  assert.deepEqual(waits, [1_000, 21_000, 1_000, 1_000]);
});
