/** Accounts by the operator's calls and by the configuration, over a partition server that has one row table in memory. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { decodeServiceProperties } from "@stamp/azure-rest";
import { allRules, compareBytes, emptyBytes, type Failure, featureLevel, type Outcome, ok, refused, unwrap } from "@stamp/base";
import { encodeRole } from "@stamp/geo";
import { firstRangeOf, RangeMap } from "@stamp/partition-map";
import { served } from "@stamp/ports";
import { InProcessNetwork, nodeWorld } from "@stamp/ports-node";
import { type Account, Accounts, type ChangeAccount, type ExecuteRequest, operationOf, PartitionServer } from "@stamp/wire";
import type { MapState } from "../map/map-state.ts";
import { insertAccounts } from "../term/init.ts";
import type { Term } from "../term/term.ts";
import { accountsHandlers } from "./accounts.ts";

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
const key = (fill: number): string => Buffer.alloc(32, fill).toString("base64");

/** A partition server that decides as @stamp/objects does, on plain accounts: what matters here is who asks what. */
class ServerOfAccounts {
  readonly held = new Map<string, Account>();
  refusals = 0;
  /** Id of the master key that seals what is written; by account in `sealedBy`. */
  seals = "";
  afterApplying: (() => Outcome<never> | undefined) | undefined;

  execute(kind: { readonly case: string | undefined; readonly value?: unknown }): Outcome<{ result: { kind: unknown } }> {
    if (this.refusals-- > 0) return refused("unavailable", "wrongPartition", "not yet");
    const result = this.#decide(kind.case ?? "", kind.value as Record<string, unknown>);
    return this.afterApplying?.() ?? ok({ result: { kind: result } });
  }

  #decide(name: string, value: Record<string, unknown>): unknown {
    const error = (code: string) => ({ case: "error", value: { code, details: {} } });
    if (name === "listAccounts") {
      const { marker, maxResults } = value as unknown as { marker: string; maxResults: number };
      const all = [...this.held.values()].filter((one) => one.name >= marker).sort((a, b) => (a.name < b.name ? -1 : 1));
      const accounts = all.slice(0, maxResults);
      return { case: "accounts", value: { accounts, nextMarker: all[maxResults]?.name ?? "", rangeEnded: false } };
    }
    if (name === "putAccount") {
      const account = value.account as Account;
      if (!this.held.has(account.name)) this.held.set(account.name, { ...account, sealedBy: this.seals });
      return { case: "account", value: this.held.get(account.name) };
    }
    const account = this.held.get(value.account as string);
    if (!account) return error("AccountNotFound");
    if (name === "getAccount") return { case: "account", value: account };
    const change = value as unknown as ChangeAccount;
    const differs =
      (change.expectedKeys.length > 0 && String(change.expectedKeys) !== String(account.keys)) ||
      (change.expectedConfiguredDigest !== undefined && compareBytes(change.expectedConfiguredDigest, account.configuredDigest) !== 0) ||
      (change.expectedGeoRole !== undefined && change.expectedGeoRole !== account.geoRole) ||
      Object.entries(change.expectedServiceProperties ?? {}).some(([service, text]) => (account.serviceProperties[service] ?? "") !== text);
    if (differs) return error("ConditionNotMet");
    const { newEncryptionScope: added, encryptionScopeState: state } = change;
    const hasScope = (name: string | undefined): boolean => account.encryptionScopes.some((scope) => scope.name === name);
    if (state && !hasScope(state.name)) return error("ResourceNotFound");
    const scopes = added && !hasScope(added.name) ? [...account.encryptionScopes, added] : account.encryptionScopes;
    const or = <T extends { length: number }>(given: T, had: T): T => (given.length > 0 ? given : had);
    const next = {
      ...account,
      keys: or(change.keys, account.keys),
      delegationSecret: or(change.delegationSecret, account.delegationSecret),
      configuredDigest: or(change.configuredDigest, account.configuredDigest),
      serviceProperties: { ...account.serviceProperties, ...change.serviceProperties },
      sealedBy: this.seals,
      encryptionScopes: scopes.map((scope) => (scope.name === state?.name ? { ...scope, disabled: state.disabled } : scope)),
    } as Account;
    this.held.set(account.name, next);
    return { case: "account", value: next };
  }
}

/** `level`: feature level of the stamp; undefined: not heard yet. */
async function started(t: TestContext, level: () => number | undefined = () => featureLevel) {
  const folder = mkdtempSync(join(tmpdir(), "stamp-accounts-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const network = new InProcessNetwork();
  const world = nodeWorld({ dataDir: folder, name: "pm", transport: network.transport("pm"), logLevel: "error", rules: allRules });
  const server = new ServerOfAccounts();
  const unused = async (): Promise<Outcome<never>> => refused("unimplemented", "unknownMethod", "not in this test");
  const handlers = Object.fromEntries(Object.keys(PartitionServer.method).map((name) => [name, unused]));
  await world.transport.serve("ps-1", [
    served(PartitionServer, {
      ...handlers,
      execute: async (request: ExecuteRequest) => server.execute((operationOf(request)?.kind ?? {}) as never),
    } as never),
  ]);
  const range = { ...firstRangeOf("Account"), low: emptyBytes, high: emptyBytes, server: "ps-1", serverAddress: "ps-1", loaded: true };
  const current = new RangeMap(1, [range]);
  const map = { current, newerThan: async () => ok(current) } as unknown as MapState;
  await world.transport.serve("pm", [
    served(
      Accounts,
      accountsHandlers(world, () => ok({ map } as unknown as Term), level),
    ),
  ]);
  const insert = (accounts: { name: string; keys: string[] }[], onRefused?: (failure: Failure) => void) =>
    insertAccounts(world, map, accounts, new AbortController().signal, onRefused);
  return { server, insert, accounts: world.transport.client("pm", Accounts) };
}

const options = { timeoutMs: 5000 };
const failure = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : outcome.failure.code);

test("accounts: created once, listed without keys, shown with them; no secret leaves", async (t) => {
  const { accounts, server } = await started(t);
  const made = unwrap(await accounts.create({ account: "acct1" }, options));
  assert.deepEqual(
    made.keys.map((one) => Buffer.from(one, "base64").length),
    [64, 64],
  );
  assert.notEqual(made.keys[0], made.keys[1]);
  assert.equal(failure(await accounts.create({ account: "acct1" }, options)), "alreadyExists");
  assert.equal(failure(await accounts.create({ account: "No" }, options)), "invalidArgument");
  assert.equal(failure(await accounts.create({ account: "acct2", keys: ["*"] }, options)), "invalidArgument");
  unwrap(await accounts.create({ account: "acct0", keys: [key(1)] }, options));
  const page = unwrap(await accounts.list({}, options));
  assert.deepEqual(
    page.accounts.map(({ name, keys }) => [name, keys.length]),
    [
      ["acct0", 0],
      ["acct1", 0],
    ],
  );
  unwrap(await accounts.revokeDelegationKeys({ account: "acct0" }, options));
  assert.equal(server.held.get("acct0")?.delegationSecret.length, 32);
  assert.equal(unwrap(await accounts.get({ account: "acct0" }, options)).delegationSecret.length, 0);
  assert.equal(failure(await accounts.get({ account: "none" }, options)), "notFound");
});

test("accounts: one key is rotated while the other stays, also when the answer was lost on the way", async (t) => {
  const { accounts, server } = await started(t);
  unwrap(await accounts.create({ account: "acct", keys: [key(1)] }, options));
  assert.deepEqual(unwrap(await accounts.rotateKey({ account: "acct", keyNumber: 2, newKey: key(2) }, options)).keys, [key(1), key(2)]);
  assert.deepEqual(unwrap(await accounts.rotateKey({ account: "acct", keyNumber: 1, newKey: key(3) }, options)).keys, [key(3), key(2)]);
  assert.equal(failure(await accounts.rotateKey({ account: "acct", keyNumber: 3 }, options)), "invalidArgument");
  let lost = 1;
  server.refusals = 2;
  server.afterApplying = () =>
    lost-- > 0 ? { ok: false, failure: { code: "unavailable", reason: "connectionLost", message: "", applied: "unknown" } } : undefined;
  const rotated = unwrap(await accounts.rotateKey({ account: "acct", keyNumber: 2 }, options));
  assert.equal(rotated.keys[0], key(3));
  assert.notEqual(rotated.keys[1], key(2));
  assert.deepEqual(server.held.get("acct")?.keys, rotated.keys);
});

test("accounts: versioning and retention are set beside what the account's users have set", async (t) => {
  const { accounts, server } = await started(t);
  unwrap(await accounts.create({ account: "acct" }, options));
  const blob = (): unknown => {
    const properties = decodeServiceProperties(server.held.get("acct")?.serviceProperties.blob ?? "");
    return [properties?.versioning, properties?.containerDeleteRetention];
  };
  unwrap(await accounts.setBlobSettings({ account: "acct", versioning: true }, options));
  assert.deepEqual(blob(), [true, { enabled: false }]);
  unwrap(await accounts.setBlobSettings({ account: "acct", containerDeleteRetentionDays: 7 }, options));
  assert.deepEqual(blob(), [true, { enabled: true, days: 7 }]);
  unwrap(await accounts.setBlobSettings({ account: "acct", containerDeleteRetentionDays: 0, versioning: false }, options));
  assert.deepEqual(blob(), [false, { enabled: false }]);
  assert.equal(failure(await accounts.setBlobSettings({ account: "acct", containerDeleteRetentionDays: 366 }, options)), "invalidArgument");
});

test("accounts: public access is forbidden and allowed again, and other settings leave it as it is", async (t) => {
  const { accounts, server } = await started(t);
  unwrap(await accounts.create({ account: "acct" }, options));
  const forbidden = (): unknown => decodeServiceProperties(server.held.get("acct")?.serviceProperties.blob ?? "")?.publicAccessForbidden;
  assert.equal(forbidden(), false);
  unwrap(await accounts.setBlobSettings({ account: "acct", allowPublicAccess: false }, options));
  unwrap(await accounts.setBlobSettings({ account: "acct", versioning: true }, options));
  assert.equal(forbidden(), true);
  unwrap(await accounts.setBlobSettings({ account: "acct", allowPublicAccess: true }, options));
  assert.equal(forbidden(), false);
});

test("accounts: keys are in the answers that are about keys, and in no other", async (t) => {
  const { accounts, server } = await started(t);
  const count = ({ keys }: { readonly keys: readonly string[] }): number => keys.length;
  assert.equal(count(unwrap(await accounts.create({ account: "acct" }, options))), 2);
  assert.equal(count(unwrap(await accounts.get({ account: "acct" }, options))), 2);
  assert.equal(count(unwrap(await accounts.rotateKey({ account: "acct", keyNumber: 1 }, options))), 2);
  assert.equal(count(unwrap(await accounts.setBlobSettings({ account: "acct", versioning: true }, options))), 0);
  assert.equal(count(unwrap(await accounts.revokeDelegationKeys({ account: "acct" }, options))), 0);
  assert.equal(server.held.get("acct")?.keys.length, 2);
});

test("accounts: a configuration that changed gives its keys; one that did not leaves what was rotated since", async (t) => {
  const { accounts, insert, server } = await started(t);
  const keysHeld = (): string[] => server.held.get("acct")?.keys ?? [];
  await insert([{ name: "acct", keys: [key(1), key(2)] }]);
  assert.deepEqual(keysHeld(), [key(1), key(2)]);
  unwrap(await accounts.rotateKey({ account: "acct", keyNumber: 1, newKey: key(9) }, options));
  await insert([{ name: "acct", keys: [key(1), key(2)] }]);
  assert.deepEqual(keysHeld(), [key(9), key(2)]);
  await insert([{ name: "acct", keys: [key(3), key(2)] }]);
  assert.deepEqual(keysHeld(), [key(3), key(2)]);
  const digest = text(server.held.get("acct")?.configuredDigest ?? emptyBytes);
  await insert([{ name: "acct", keys: [key(3), key(2)] }]);
  assert.equal(text(server.held.get("acct")?.configuredDigest ?? emptyBytes), digest);
});

test("accounts: a master key that is missing is told at once with its message, and insertion goes on when it is back", async (t) => {
  const { accounts, insert, server } = await started(t);
  const told: Failure[] = [];
  let missing = 3;
  server.afterApplying = () => (missing > 0 ? refused("failedPrecondition", "masterKeyMissing", "sealed by master key 0a") : undefined);
  const got = await accounts.get({ account: "acct" }, options);
  assert.ok(!got.ok && got.failure.reason === "masterKeyMissing" && /sealed by master key 0a/.test(got.failure.message));
  await insert([{ name: "acct", keys: [key(1)] }], (failure) => {
    told.push(failure);
    missing--;
  });
  assert.deepEqual(
    told.map(({ reason }) => reason),
    ["masterKeyMissing", "masterKeyMissing", "masterKeyMissing"],
  );
  assert.equal(server.held.has("acct"), true);
});

test("accounts: a scope has a random key, which no answer tells; it is made once, disabled and enabled", async (t) => {
  const { accounts, server } = await started(t);
  unwrap(await accounts.create({ account: "acct" }, options));
  const shown = ({ encryptionScopes, keys }: Account): unknown => [
    keys,
    encryptionScopes.map(({ name, key: secret, disabled }) => [name, secret.length, disabled]),
  ];
  assert.deepEqual(shown(unwrap(await accounts.createEncryptionScope({ account: "acct", scope: "one" }, options))), [
    [],
    [["one", 0, false]],
  ]);
  const held = () => server.held.get("acct")?.encryptionScopes ?? [];
  const [first] = held();
  assert.equal(first?.key.length, 32);
  assert.equal(failure(await accounts.createEncryptionScope({ account: "acct", scope: "one" }, options)), "alreadyExists");
  assert.deepEqual(held(), [first], "its key stays");
  unwrap(await accounts.createEncryptionScope({ account: "acct", scope: "two" }, options));
  assert.notDeepEqual(held()[1]?.key, first?.key);
  const disable = (scope: string, disabled: boolean) => accounts.setEncryptionScopeState({ account: "acct", scope, disabled }, options);
  const changed = unwrap(await disable("one", true));
  assert.deepEqual(shown(changed), [
    [],
    [
      ["one", 0, true],
      ["two", 0, false],
    ],
  ]);
  assert.deepEqual(held()[0]?.key, first?.key);
  unwrap(await disable("one", false));
  assert.deepEqual(held()[0], first);
  assert.equal(failure(await disable("none", true)), "notFound");
  assert.equal(failure(await accounts.setEncryptionScopeState({ account: "nobody", scope: "one" }, options)), "notFound");
  for (const name of ["ab", "One", "a--b", "-ab", "ab-", "a_b", "a".repeat(64)]) {
    assert.equal(failure(await accounts.createEncryptionScope({ account: "acct", scope: name }, options)), "invalidArgument", name);
  }
  for (const one of [unwrap(await accounts.get({ account: "acct" }, options)), ...unwrap(await accounts.list({}, options)).accounts]) {
    assert.deepEqual(
      one.encryptionScopes.map(({ key: secret }) => secret.length),
      [0, 0],
    );
  }
});

test("accounts: a scope whose making was answered late is the one that was made", async (t) => {
  const { accounts, server } = await started(t);
  unwrap(await accounts.create({ account: "acct" }, options));
  let lost = 1;
  server.afterApplying = () => (lost-- > 0 ? refused("unavailable", "connectionLost", "the answer is lost") : undefined);
  unwrap(await accounts.createEncryptionScope({ account: "acct", scope: "one" }, options));
  assert.equal(server.held.get("acct")?.encryptionScopes.length, 1);
});

test("accounts: at a stamp that is not the primary no setting is changed, also by the configuration; an account that was removed is not listed", async (t) => {
  const { accounts, insert, server } = await started(t);
  unwrap(await accounts.create({ account: "acct", keys: [key(1)] }, options));
  const become = (role: "primary" | "secondary" | "drained" | "removed") => {
    const held = server.held.get("acct") as Account;
    server.held.set("acct", { ...held, geoRole: encodeRole({ role, epoch: 2, obeyed: { operation: 2, phase: 1 }, peer: "south-1" }) });
  };
  for (const role of ["secondary", "drained"] as const) {
    become(role);
    const refusals = [
      await accounts.rotateKey({ account: "acct", keyNumber: 1 }, options),
      await accounts.revokeDelegationKeys({ account: "acct" }, options),
      await accounts.setBlobSettings({ account: "acct", versioning: true }, options),
      await accounts.createEncryptionScope({ account: "acct", scope: "one" }, options),
      await accounts.setEncryptionScopeState({ account: "acct", scope: "one" }, options),
    ];
    assert.deepEqual(refusals.map(failure), Array(5).fill("failedPrecondition"), role);
    await insert([{ name: "acct", keys: [key(5)] }]);
    assert.deepEqual(server.held.get("acct")?.keys, [key(1)]);
  }
  assert.equal(unwrap(await accounts.list({}, options)).accounts.length, 1);
  become("removed");
  assert.equal(unwrap(await accounts.list({}, options)).accounts.length, 0);
  assert.equal(failure(await accounts.get({ account: "acct" }, options)), "notFound");
  assert.equal(failure(await accounts.create({ account: "acct", keys: [key(1)] }, options)), "notFound");
  become("primary");
  unwrap(await accounts.rotateKey({ account: "acct", keyNumber: 1, newKey: key(7) }, options));
  assert.equal(failure(await accounts.setEncryptionScopeState({ account: "acct", scope: "none" }, options)), "notFound");
});

test("accounts: below the level what a copy needs is told with the secrets; from it on, and before it is heard, to nobody", async (t) => {
  let level: number | undefined = 3;
  const { accounts } = await started(t, () => level);
  unwrap(await accounts.create({ account: "acct", keys: [key(1)] }, options));
  unwrap(await accounts.createEncryptionScope({ account: "acct", scope: "one" }, options));
  const copied = unwrap(await accounts.getForCopy({ account: "acct" }, options));
  assert.deepEqual([copied.keys, copied.encryptionScopes.map(({ key: secret }) => secret.length)], [[key(1)], [32]]);
  level = 4;
  assert.equal(failure(await accounts.getForCopy({ account: "acct" }, options)), "failedPrecondition");
  level = undefined;
  assert.equal(failure(await accounts.getForCopy({ account: "acct" }, options)), "unavailable");
  assert.equal(unwrap(await accounts.getRole({ account: "acct" }, options)).geoRole, "");
  assert.equal(failure(await accounts.getRole({ account: "none" }, options)), "notFound");
  const bare = { account: "acct", epoch: 1n, tag: Uint8Array.of(1), settings: { name: "acct" } };
  assert.equal(failure(await accounts.confirmCopy(bare, options)), "invalidArgument", "settings without keys");
  assert.equal(failure(await accounts.obey({ account: "acct", command: 0, operation: 2n }, options)), "invalidArgument");
});

const accountOf = (name: string) => ({
  ...{ name, keys: [], serviceProperties: {}, encryptionScopes: [], createdMs: 0n, geoRole: "" },
  ...{ delegationSecret: emptyBytes, configuredDigest: emptyBytes },
});

test("accounts: rows that another master key has sealed, or none, are sealed anew page by page; what was done stays done", async (t) => {
  const { accounts, server } = await started(t);
  const reseal = async (keyId: string) => {
    const rows = new Map<string, number>();
    let resealed = 0;
    for (let marker = ""; ; ) {
      const page = unwrap(await accounts.reseal({ marker, keyId }, options));
      for (const each of page.rows) rows.set(each.keyId, (rows.get(each.keyId) ?? 0) + each.accounts);
      resealed += page.resealed;
      marker = page.nextMarker;
      if (marker === "") return { rows: Object.fromEntries(rows), resealed };
    }
  };
  for (let i = 0; i < 150; i++) {
    server.seals = i < 20 ? "" : "a";
    const role = i === 3 ? "secondary" : i === 4 ? "removed" : "";
    const geoRole = role === "" ? "" : encodeRole({ role, epoch: 3, obeyed: { operation: 3, phase: 1 }, peer: "north-1" });
    server.execute({ case: "putAccount", value: { account: { ...accountOf(`acct${100 + i}`), keys: [key(1)], geoRole } } });
  }
  const before = [...server.held.values()].map(({ sealedBy: _sealedBy, ...rest }) => rest);
  assert.deepEqual(await reseal(""), { rows: { "": 20, a: 130 }, resealed: 0 });
  const early = await accounts.reseal({ keyId: "b" }, options);
  assert.match(early.ok ? "" : early.failure.message, /acct\d+ was sealed by master key a, not by b: not every partition server/);
  server.seals = "b";
  let answered = 0;
  server.afterApplying = () => (answered++ >= 40 ? refused("failedPrecondition", "masterKeyMissing", "in the middle") : undefined);
  assert.ok(!(await accounts.reseal({ keyId: "b" }, options)).ok);
  server.afterApplying = undefined;
  const left = [...server.held.values()].filter(({ sealedBy }) => sealedBy !== "b").length;
  assert.ok(left > 50 && left < 150, `${left} rows`);
  assert.deepEqual(await reseal("b"), { rows: { b: 150 }, resealed: left });
  assert.deepEqual(await reseal("b"), { rows: { b: 150 }, resealed: 0 });
  assert.deepEqual(
    [...server.held.values()].map(({ sealedBy: _sealedBy, ...rest }) => rest),
    before,
    "nothing else of an account changes",
  );
  server.seals = "";
  server.execute({ case: "putAccount", value: { account: { ...accountOf("open"), keys: [key(1)] } } });
  assert.deepEqual(await reseal("b"), { rows: { "": 1, b: 150 }, resealed: 0 }, "the level of the stamp keeps a row from being sealed");
});

test("accounts: one with a hierarchical namespace is made by a call of its own, and keeps no versions", async (t) => {
  const { accounts, server } = await started(t);
  const isHierarchical = (account: string) =>
    decodeServiceProperties(server.held.get(account)?.serviceProperties.blob ?? "")?.hierarchicalNamespace;
  unwrap(await accounts.createHierarchical({ account: "lake" }, options));
  unwrap(await accounts.create({ account: "flat" }, options));
  assert.deepEqual([isHierarchical("lake"), isHierarchical("flat")], [true, false]);
  assert.equal(failure(await accounts.createHierarchical({ account: "flat" }, options)), "alreadyExists");
  // Keys tell a repeated creation from another one, but only of the same kind of account.
  const given = { account: "given", keys: [key(1)] };
  unwrap(await accounts.create(given, options));
  unwrap(await accounts.create(given, options));
  assert.equal(failure(await accounts.createHierarchical(given, options)), "alreadyExists");
  const tree = { account: "tree", keys: [key(1)] };
  unwrap(await accounts.createHierarchical(tree, options));
  unwrap(await accounts.createHierarchical(tree, options));
  assert.equal(failure(await accounts.create(tree, options)), "alreadyExists");
  assert.equal(failure(await accounts.setBlobSettings({ account: "lake", versioning: true }, options)), "invalidArgument");
  unwrap(await accounts.setBlobSettings({ account: "lake", containerDeleteRetentionDays: 7 }, options));
  assert.equal(isHierarchical("lake"), true);
});
