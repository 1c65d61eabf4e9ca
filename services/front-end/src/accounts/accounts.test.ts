import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, ok, refused } from "@stamp/base";
import type { Clock, World } from "@stamp/ports";
import type { Router } from "../routing/router.ts";
import { Accounts, type AccountsOptions } from "./accounts.ts";

const clock: Clock = { monotonicMs: () => 0, wallMs: () => 0, suspendedMs: () => 0, after: () => ({ cancel: () => {} }) };

test("accounts: a lookup that fails, or throws, is told to those who wait for it, and is not kept", async () => {
  let lookups = 0;
  const router = {
    execute: () => {
      lookups += 1;
      if (lookups === 1) return Promise.reject(new Error("too many open files"));
      return Promise.resolve(lookups === 2 ? refused("unavailable", "notReady", "not yet") : ok({ case: "error", value: {} }));
    },
  } as unknown as Router;
  const options = { accountCacheMs: 10_000, lookupTimeoutMs: 1_000, accountsMax: 10 } as unknown as AccountsOptions;
  const accounts = new Accounts({ clock, rules: allRules } as World, router, options);
  const find = () => accounts.find("acct", { deadlineMs: 1_000 });
  await Promise.all([assert.rejects(find(), /too many open files/), assert.rejects(find(), /too many open files/)]);
  assert.equal(lookups, 1);
  assert.equal((await find())?.ok, false);
  assert.deepEqual(await find(), ok({ kind: "unknown" }));
  assert.equal(lookups, 3);
});
