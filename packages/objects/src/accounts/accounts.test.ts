import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { emptyBytes, FailureError } from "@stamp/base";
import { versionOfRow } from "../rows/row.ts";
import { TestTable } from "../testing/table.ts";
import { encryptionScopesMax } from "./accounts.ts";
import type { Account, ChangeAccount } from "./operation.ts";

const account = (name: string, keys: string[]): Account => ({
  name,
  keys,
  delegationSecret: emptyBytes,
  serviceProperties: {},
  configuredDigest: emptyBytes,
  encryptionScopes: [],
  createdMs: 0,
  geoRole: "",
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

test("accounts: settings are replaced only if the account still has those that the caller names, whichever of them differs", () => {
  const table = new TestTable();
  table.run({ case: "putAccount", value: { account: { ...account("a", ["k1"]), geoRole: "r" }, onlyIfAbsent: true } });
  table.run({ case: "changeAccount", value: change("a", { serviceProperties: { queue: "q", blob: "b" } }) });
  const { keys, delegationSecret, serviceProperties, configuredDigest, encryptionScopes } = held(table, "a");
  const has = { keys, delegationSecret, serviceProperties, configuredDigest, encryptionScopes };
  const put = (expectedSettings: typeof has) =>
    table.outcome("putAccount", {
      account: { ...account("a", ["k2"]), geoRole: "r" },
      onlyIfAbsent: false,
      expectedGeoRole: "r",
      expectedSettings,
    });
  const one = Uint8Array.of(1);
  for (const other of [
    { keys: ["k"] },
    { keys: [] },
    { delegationSecret: one },
    { serviceProperties: { blob: "b" } },
    { configuredDigest: one },
    { encryptionScopes: [{ name: "s", key: new Uint8Array(32), disabled: false }] },
  ])
    assert.equal(put({ ...has, ...other }), "ConditionNotMet 412", JSON.stringify(other));
  assert.equal(put({ ...has, serviceProperties: { blob: "b", queue: "q" } }), "account", "in any order");
  assert.equal(put(has), "ConditionNotMet 412", "once");
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
    encryptionScopes: [],
    createdMs: table.wallMs,
    geoRole: "",
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

const goldenRole = new URL("../../../../tests/golden/row/v5/account-with-role.bin", import.meta.url);

test("accounts: a role is changed where it is as expected, and its row is of version 5", () => {
  const table = new TestTable();
  table.run({ case: "putAccount", value: { account: account("a", ["k1"]), onlyIfAbsent: true } });
  table.mayWrite = false;
  assert.throws(() => table.outcome("changeAccount", change("a", { geoRole: "secondary" }, { geoRole: "" })), /need feature level 1/);
  table.mayWrite = true;
  const become = (geoRole: string, expected: string) => table.outcome("changeAccount", change("a", { geoRole }, { geoRole: expected }));
  assert.equal(become("secondary", "other"), "ConditionNotMet 412");
  assert.equal(become("secondary", ""), "account");
  table.run({ case: "changeAccount", value: change("a", { keys: ["k2"] }) });
  assert.deepEqual(held(table, "a"), { ...account("a", ["k2"]), createdMs: table.wallMs, geoRole: "secondary" }, "other changes leave it");
  const replace = (expectedGeoRole: string) =>
    table.outcome("putAccount", { account: { ...account("a", ["k3"]), geoRole: "primary" }, onlyIfAbsent: false, expectedGeoRole });
  assert.equal(replace(""), "ConditionNotMet 412");
  table.run({ case: "changeAccount", value: change("a", { serviceProperties: { blob: "text" } }) });
  assert.equal(replace("secondary"), "account");
  assert.deepEqual(held(table, "a"), { ...account("a", ["k3"]), createdMs: table.wallMs, geoRole: "primary" }, "everything is replaced");
  const bytes = table.sorted()[0]?.value ?? emptyBytes;
  assert.equal(versionOfRow(bytes), 5);
  if (process.env.STAMP_WRITE_GOLDEN && !existsSync(goldenRole)) {
    mkdirSync(new URL(".", goldenRole), { recursive: true });
    writeFileSync(goldenRole, bytes);
  }
  assert.deepEqual(bytes, new Uint8Array(readFileSync(goldenRole)));
  assert.equal(become("", "primary"), "account");
  assert.equal(versionOfRow(table.sorted()[0]?.value ?? emptyBytes), 1, "without a role an older release reads it");
});

const scope = (name: string, fill: number, disabled = false) => ({ name, key: new Uint8Array(32).fill(fill), disabled });
const golden = new URL("../../../../tests/golden/row/v3/account-with-scopes.bin", import.meta.url);

test("accounts: a scope is added once, keeps its key, and changes its state; its row is of version 3", () => {
  const table = new TestTable();
  table.run({ case: "putAccount", value: { account: account("a", ["k1"]), onlyIfAbsent: true } });
  const version = () => table.sorted().map(({ value }) => versionOfRow(value));
  assert.deepEqual(version(), [1]);
  const added = (one: ReturnType<typeof scope>) => table.outcome("changeAccount", change("a", { newEncryptionScope: one }));
  const state = (name: string, disabled: boolean) =>
    table.outcome("changeAccount", change("a", { encryptionScopeState: { name, disabled } }));
  assert.equal(added(scope("two", 2)), "account");
  assert.equal(added(scope("one", 1)), "account");
  assert.equal(state("two", true), "account");
  assert.equal(added(scope("two", 9)), "account", "it is there already, and stays as it is");
  const scopes = [scope("one", 1), scope("two", 2, true)];
  assert.deepEqual(held(table, "a").encryptionScopes, scopes);
  assert.equal(state("none", true), "ResourceNotFound");
  table.run({ case: "changeAccount", value: change("a", { keys: ["k2"], serviceProperties: { blob: "text" } }) });
  table.run({ case: "putAccount", value: { account: account("a", ["k3"]), onlyIfAbsent: false } });
  assert.deepEqual(held(table, "a").encryptionScopes, scopes, "other changes leave them");
  assert.deepEqual(version(), [3]);
  const bytes = table.sorted()[0]?.value ?? emptyBytes;
  if (process.env.STAMP_WRITE_GOLDEN && !existsSync(golden)) {
    mkdirSync(new URL(".", golden), { recursive: true });
    writeFileSync(golden, bytes);
  }
  assert.deepEqual(bytes, new Uint8Array(readFileSync(golden)));
  assert.equal(state("two", false), "account");
  assert.deepEqual(held(table, "a").encryptionScopes, [scope("one", 1), scope("two", 2)]);
  const short = { name: "short", key: new Uint8Array(31), disabled: false };
  assert.equal(table.decide({ case: "changeAccount", value: change("a", { newEncryptionScope: short }) }).refusal?.reason, "badRequest");
});

test("accounts: scopes have a bound, and one that is there is no more of them", () => {
  const table = new TestTable();
  table.run({ case: "putAccount", value: { account: account("a", ["k1"]), onlyIfAbsent: true } });
  const adding = (name: string) => ({ case: "changeAccount", value: change("a", { newEncryptionScope: scope(name, 1) }) }) as const;
  for (let i = 0; i < encryptionScopesMax; i++) table.run(adding(`scope-${i}`));
  assert.equal(table.decide(adding("one-more")).refusal?.reason, "badRequest");
  assert.equal(table.decide(adding("scope-0")).result.case, "account");
});

test("accounts: a change for a client keeps what the operator has set in the properties of services", () => {
  const table = new TestTable();
  table.run({ case: "putAccount", value: { account: account("a", ["k1", "k2"]), onlyIfAbsent: true } });
  const set = (properties: object | string, keeps = true): string => {
    const blob = typeof properties === "string" ? properties : JSON.stringify(properties);
    const value = change("a", { serviceProperties: { blob }, ...(keeps ? { keepsOperatorSettings: true } : {}) });
    return table.decide({ case: "changeAccount", value }).refusal?.reason ?? table.outcome("changeAccount", value);
  };
  const cors = [{ allowedOrigins: ["*"] }];
  const defaults = { v: 1, versioning: false, containerDeleteRetention: { enabled: false } };
  assert.equal(set({ ...defaults, cors }), "account");
  const operators = { v: 2, versioning: true, containerDeleteRetention: { enabled: true, days: 7 }, publicAccessForbidden: true };
  for (const name of ["versioning", "containerDeleteRetention", "publicAccessForbidden"] as const)
    assert.equal(set({ ...defaults, [name]: operators[name] }), "badRequest", name);
  assert.equal(set(operators, false), "account");
  assert.equal(set({ ...operators, containerDeleteRetention: { days: 7, enabled: true }, cors }), "account");
  assert.equal(set({ ...operators, publicAccessForbidden: false }), "badRequest");
  assert.equal(set({ ...operators, containerDeleteRetention: { enabled: true, days: 8 } }), "badRequest");
  for (const text of ["", "no JSON", "[]", "null"]) assert.equal(set(text), "badRequest", text);
  assert.deepEqual(JSON.parse(held(table, "a").serviceProperties.blob ?? ""), { ...operators, cors });
});

test("accounts: a hierarchical namespace is there from the creation on or never, needs its level, and has one stamp", () => {
  const table = new TestTable();
  const blob = JSON.stringify({ v: 3, hierarchicalNamespace: true });
  const put = (name: string, made: Partial<Account>) =>
    table.run({ case: "putAccount", value: { account: { ...account(name, ["k1"]), ...made }, onlyIfAbsent: true } });
  const says = (pattern: RegExp) => (error: unknown) =>
    error instanceof FailureError && error.failure.applied === "no" && pattern.test(error.failure.message);
  table.mayWrite = false;
  assert.throws(() => put("lake", { serviceProperties: { blob } }), says(/feature level 4/));
  assert.equal(table.outcome("getAccount", { account: "lake" }), "AccountNotFound");
  table.mayWrite = true;
  assert.throws(() => put("lake", { serviceProperties: { blob }, geoRole: '{"role":"secondary"}' }), says(/one stamp/));
  put("lake", { serviceProperties: { blob } });
  put("flat", {});
  const set = (name: string, text: string) =>
    table.run({ case: "changeAccount", value: change(name, { serviceProperties: { blob: text } }) });
  assert.throws(() => set("lake", '{"v":1}'), says(/when it is made, or never/));
  assert.throws(() => set("flat", blob), says(/when it is made, or never/));
  assert.throws(() => table.run({ case: "changeAccount", value: change("lake", { geoRole: '{"role":"primary"}' }) }), says(/one stamp/));
  set("lake", JSON.stringify({ v: 3, hierarchicalNamespace: true, cors: [] }));
  table.run({ case: "changeAccount", value: change("lake", { keys: ["k2"] }) });
  assert.deepEqual(held(table, "lake").keys, ["k2"]);
});
