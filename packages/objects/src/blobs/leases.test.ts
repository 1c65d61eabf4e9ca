/** A lease whose row was just loaded (rule leaseRestartedOnLoad). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, rulesWithout } from "@stamp/base";
import type { Lease } from "./leases.ts";
import { LeaseTimers, stateOf } from "./leases.ts";

const lease: Lease = { state: "leased", id: "1ee7ca5e-0000-4000-8000-000000000001", durationMs: 15_000, grant: 7 };

test("leases: a server that loads the row restarts the lease in full, without the rule its holder loses it at once", () => {
  const at = (timers: LeaseTimers, nowMs: number): string => stateOf(lease, { nowMs, endsMs: (one) => timers.endsMs(one) });
  const timers = new LeaseTimers(allRules, 1_000);
  assert.equal(at(timers, 1_000), "leased", "its holder may have renewed it just before");
  assert.equal(at(timers, 15_999), "leased");
  assert.equal(at(timers, 16_000), "expired");
  timers.set(lease.grant, 30_000, 20_000);
  assert.equal(at(timers, 29_999), "leased", "a renewal counts from then on");
  assert.equal(at(new LeaseTimers(rulesWithout("leaseRestartedOnLoad"), 1_000), 1_000), "expired");
});
