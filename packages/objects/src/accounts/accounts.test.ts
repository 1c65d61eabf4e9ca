import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes } from "@stamp/base";
import type { Account, ChangeAccount } from "../operation.ts";
import { TestTable } from "../table-in-test.ts";

const account = (name: string, keys: string[]): Account => ({
  name,
  keys,
  delegationSecret: emptyBytes,
  serviceProperties: {},
  configuredDigest: emptyBytes,
  createdMs: 0,
});

const change = (name: string, changes: Partial<Omit<ChangeAccount, "expected">>, expected: Partial<ChangeAccount["expected"]> = {}) => ({
  account: name,
  serviceProperties: {},
  ...changes,
  expected: { serviceProperties: {}, ...expected },
});

function held(table: TestTable, name: string): Account {
  const result = table.run({ case: "getAccount", value: { account: name } });
  assert.ok(result.case === "account");
  return result.value;
}

test("accounts: inserted if absent, keys replaced otherwise", () => {
  const table = new TestTable();
  assert.equal(table.outcome("getAccount", { account: "a" }), "AccountNotFound");
  table.run({ case: "putAccount", value: { account: account("a", ["k1", "k2"]), onlyIfAbsent: true } });
  table.run({ case: "putAccount", value: { account: account("a", ["other"]), onlyIfAbsent: true } });
  assert.deepEqual(held(table, "a"), { ...account("a", ["k1", "k2"]), createdMs: table.wallMs });
  table.run({ case: "changeAccount", value: change("a", { serviceProperties: { blob: "text" } }) });
  table.run({ case: "putAccount", value: { account: account("a", ["new"]), onlyIfAbsent: false } });
  assert.deepEqual(held(table, "a"), { ...account("a", ["new"]), createdMs: table.wallMs, serviceProperties: { blob: "text" } });
});

test("accounts: a change touches what it names, and nothing when what it expects is not so", () => {
  const table = new TestTable();
  table.run({ case: "putAccount", value: { account: account("a", ["k1", "k2"]), onlyIfAbsent: true } });
  const secret = Uint8Array.of(1, 2, 3);
  table.run({ case: "changeAccount", value: change("a", { delegationSecret: secret }, { delegationSecret: emptyBytes }) });
  const other = change("a", { delegationSecret: Uint8Array.of(9) }, { delegationSecret: emptyBytes });
  assert.equal(table.outcome("changeAccount", other), "ConditionNotMet 412");
  assert.equal(table.outcome("changeAccount", change("a", { keys: ["k3", "k2"] }, { keys: ["k1", "k2"] })), "account");
  assert.equal(table.outcome("changeAccount", change("a", { keys: ["k4", "k2"] }, { keys: ["k1", "k2"] })), "ConditionNotMet 412");
  const cors = change("a", { serviceProperties: { queue: "q1" } }, { serviceProperties: { queue: "" } });
  assert.equal(table.outcome("changeAccount", cors), "account");
  assert.equal(table.outcome("changeAccount", cors), "ConditionNotMet 412");
  const digest = change("a", { configuredDigest: Uint8Array.of(5) }, { configuredDigest: emptyBytes });
  assert.equal(table.outcome("changeAccount", digest), "account");
  assert.equal(table.outcome("changeAccount", digest), "ConditionNotMet 412");
  assert.deepEqual(held(table, "a"), {
    name: "a",
    keys: ["k3", "k2"],
    delegationSecret: secret,
    serviceProperties: { queue: "q1" },
    configuredDigest: Uint8Array.of(5),
    createdMs: table.wallMs,
  });
  assert.equal(table.outcome("changeAccount", change("none", {})), "AccountNotFound");
});

test("accounts: listed in order of their names, page by page", () => {
  const table = new TestTable();
  const names = Array.from({ length: 25 }, (_, i) => `acct${String(i).padStart(2, "0")}`);
  for (const name of names.toReversed()) table.run({ case: "putAccount", value: { account: account(name, ["k"]), onlyIfAbsent: true } });
  for (const maxResults of [1, 7, 24, 25, 100]) {
    const seen: string[] = [];
    for (let marker = ""; ; ) {
      const page = table.run({ case: "listAccounts", value: { marker, maxResults } });
      assert.ok(page.case === "accounts" && page.value.accounts.length <= maxResults && !page.value.rangeEnded);
      seen.push(...page.value.accounts.map((one) => one.name));
      marker = page.value.nextMarker;
      if (marker === "") break;
    }
    assert.deepEqual(seen, names, `pages of ${maxResults}`);
  }
});
