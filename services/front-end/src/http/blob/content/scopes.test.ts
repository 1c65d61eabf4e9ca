/** When the blob is looked at before a change, and when the account is read again. What a client sees: tests/conformance/encryption-scopes.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type BlobOperationName, defaultServiceProperties, parsed, restError } from "@stamp/azure-rest";
import { ok } from "@stamp/base";
import { BlobSchema, ContainerSchema } from "@stamp/wire";
import type { AccountKeys } from "../../../accounts/accounts.ts";
import { ScopeKeys } from "../../../accounts/content-key.ts";
import type { OperationKind } from "../../../routing/router.ts";
import { respond } from "../../exchange.ts";
import type { BlobExchange } from "../exchange.ts";
import { seeAgain, withKey } from "./scopes.ts";

const key = new Uint8Array(32).fill(7);

/** A request about a blob that is under `blobScope`; `scopes`: those of its account, and whether they are disabled. */
function asked(operation: BlobOperationName, scopes: Readonly<Record<string, boolean>>, blobScope?: string) {
  const account = {
    kind: "known",
    encryptionScopes: new Map(Object.entries(scopes).map(([name, disabled]) => [name, { key, disabled }])),
  } as unknown as AccountKeys;
  const executed: OperationKind[] = [];
  let again = 0;
  const accounts = {
    find: async () => ok(account),
    findAgain: async () => {
      again++;
      return undefined;
    },
  };
  const row = create(ContainerSchema, { name: "c", incarnation: 1n });
  const objects = {
    parts: { scopes: new ScopeKeys(accounts) },
    container: async () => parsed(row),
    located: () => ({ account: "a", container: "c", blob: "b" }),
    execute: async (kind: OperationKind) => {
      executed.push(kind);
      return parsed(create(BlobSchema, blobScope === undefined ? {} : { encryptionScope: blobScope }));
    },
  };
  const exchange = {
    operation,
    objects,
    account: { ...account, serviceProperties: { blob: defaultServiceProperties } },
    accounts,
    access: { by: "key", may: () => true },
    headers: {},
    version: "2026-10-06",
    target: { account: "a", container: "c", blob: "b", query: new Map() },
    limits: () => ({ deadlineMs: 1_000 }),
  } as unknown as BlobExchange;
  return { exchange, executed, again: () => again };
}

test("scopes: a blob is looked at before a change if it may be under a scope, and before others if one is disabled", async () => {
  for (const [operation, scopes, reads] of [
    ["AppendBlock", {}, 0],
    ["PutPage", {}, 0],
    ["AppendBlock", { one: false }, 1],
    ["PutPageFromUrl", { one: false }, 1],
    ["SetBlobMetadata", { one: false }, 0],
    ["SnapshotBlob", { one: false, two: true }, 1],
    ["PutBlob", { one: false, two: true }, 0],
    ["GetBlob", { one: false, two: true }, 0],
    ["SetBlobTier", { one: false, two: true }, 0],
  ] as const) {
    const { exchange, executed } = asked(operation, scopes);
    const keyed = await withKey(exchange);
    assert.ok(keyed.ok && keyed.value.key === undefined, operation);
    assert.equal(executed.length, reads, `${operation} ${JSON.stringify(scopes)}`);
  }
});

test("scopes: content is written under the scope that the blob was found under, and never under one that is disabled", async () => {
  const found = await withKey(asked("AppendBlock", { one: false }, "one").exchange);
  assert.ok(found.ok);
  assert.deepEqual(found.value.key, { bytes: key, scope: "one", asFound: true });
  const beside = await withKey(asked("SetBlobMetadata", { one: false, two: true }, "one").exchange);
  assert.ok(beside.ok && beside.value.key === undefined);
  for (const operation of ["AppendBlock", "SetBlobMetadata", "SnapshotBlob"] as const) {
    const refused = await withKey(asked(operation, { one: false, two: true }, "two").exchange);
    assert.ok(!refused.ok && refused.error.code === "EncryptionScopeDisabled", operation);
  }
});

test("scopes: an account without scopes is read again when a change is told to come again, and only then", () => {
  const busy = { ok: false, error: restError("ServerBusy") } as const;
  for (const [operation, scopes, answer, reads] of [
    ["AppendBlock", {}, busy, 1],
    ["AppendBlock", { one: false }, busy, 0],
    ["AppendBlock", {}, respond(201), 0],
    ["AppendBlock", {}, { ok: false, error: restError("BlobNotFound") }, 0],
    ["PutBlob", {}, busy, 0],
  ] as const) {
    const { exchange, again } = asked(operation, scopes);
    seeAgain(exchange, answer);
    assert.equal(again(), reads, `${operation} ${JSON.stringify(scopes)}`);
  }
});
