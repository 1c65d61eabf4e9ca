/** Keys of encryption scopes, as a front-end knows them: found anew once, refused while disabled; and which blobs have one key. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, refused } from "@stamp/base";
import type { AccountKeys, AccountLookup } from "./accounts.ts";
import { ScopeKeys, sharesKey, underFoundKey, underKey } from "./content-key.ts";

const key = new Uint8Array(32).fill(7);
const account = (scopes: Readonly<Record<string, boolean>>): AccountLookup =>
  ({
    kind: "known",
    encryptionScopes: new Map(Object.entries(scopes).map(([name, disabled]) => [name, { key, disabled }])),
  }) as unknown as AccountKeys;
const limits = { deadlineMs: 1_000 };

function over(first: AccountLookup, again?: AccountLookup) {
  let reads = 0;
  const scopes = new ScopeKeys({
    find: async () => ok(first),
    findAgain: async () => {
      reads++;
      return again && ok(again);
    },
  });
  return { scopes, reads: () => reads };
}

test("scopes: a key is that of the account as it is known; one that is not known is looked for once more", async () => {
  const known = over(account({ one: false }));
  assert.deepEqual(await known.scopes.named("a", "one", limits), { ok: true, value: { bytes: key, scope: "one" } });
  assert.equal(known.reads(), 0);
  const fresh = over(account({}), account({ one: false }));
  assert.deepEqual(await fresh.scopes.key("a", "one", limits), { ok: true, value: { bytes: key, scope: "one" } });
  assert.equal(fresh.reads(), 1);
  for (const absent of [over(account({})), over(account({}), account({ two: false })), over({ kind: "unknown" })]) {
    const named = await absent.scopes.named("a", "one", limits);
    assert.ok(!named.ok && named.error.status === 400 && named.error.code === "InvalidHeaderValue");
    const held = await absent.scopes.key("a", "one", limits);
    assert.ok(!held.ok && held.error.status === 500, "content under a scope that is gone is no mistake of the client");
  }
});

test("scopes: one that is disabled gives no key; an account that can't be read is unavailable", async () => {
  const disabled = over(account({ one: true }));
  for (const found of [await disabled.scopes.named("a", "one", limits), await disabled.scopes.key("a", "one", limits)]) {
    assert.ok(!found.ok && found.error.status === 403 && found.error.code === "EncryptionScopeDisabled");
  }
  const failing = new ScopeKeys({ find: async () => refused("unavailable", "notReady", "not now"), findAgain: async () => undefined });
  const late = new ScopeKeys({ find: async () => undefined, findAgain: async () => undefined });
  for (const scopes of [failing, late]) {
    const found = await scopes.named("a", "one", limits);
    assert.ok(!found.ok && found.error.status === 503, JSON.stringify(found));
  }
});

test("scopes: of a blob without a scope, the key is what the client brings; of one with a scope, it is the scope's", async () => {
  const { scopes } = over(account({ one: false }));
  const brought = { bytes: key, sha256: key };
  assert.deepEqual(await scopes.ofBlob("a", {}, brought, limits), { ok: true, value: brought });
  assert.deepEqual(await scopes.ofBlob("a", {}, undefined, limits), { ok: true, value: undefined });
  assert.deepEqual(await scopes.ofBlob("a", { encryptionScope: "one" }, undefined, limits), {
    ok: true,
    value: { bytes: key, scope: "one" },
  });
});

test("scopes: stored bytes are good for another blob under the same scope of the same account, or if neither has one", () => {
  const at = (name: string, scope?: string) => ({ account: name, scope });
  assert.equal(sharesKey(at("a"), at("b")), true);
  assert.equal(sharesKey(at("a", "one"), at("a", "one")), true);
  assert.equal(sharesKey(at("a", "one"), at("b", "one")), false);
  assert.equal(sharesKey(at("a", "one"), at("a", "two")), false);
  assert.equal(sharesKey(at("a", "one"), at("a")), false);
  assert.equal(sharesKey(at("a"), at("a", "one")), false);
});

test("conditions name the key, and say of a change whose client named none that the blob was found so", () => {
  const lease = { leaseId: "l" };
  assert.deepEqual(underKey(undefined, lease), lease);
  assert.deepEqual(underKey({ bytes: key, sha256: key }, lease), { ...lease, encryptionKeySha256: key });
  assert.deepEqual(underKey({ bytes: key, scope: "one" }, lease), { ...lease, encryptionScope: "one" });
  assert.deepEqual(underKey({ bytes: key, scope: "one", asFound: true }, lease), {
    ...lease,
    encryptionScope: "one",
    encryptionAsFound: true,
  });
  assert.deepEqual(underFoundKey(undefined, lease), { ...lease, encryptionAsFound: true });
  assert.deepEqual(underFoundKey({ bytes: key, scope: "one" }, lease), { ...lease, encryptionScope: "one" });
});
