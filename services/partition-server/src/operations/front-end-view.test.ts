import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes } from "@stamp/base";
import type { Account } from "@stamp/objects";
import { answeredTo } from "./front-end-view.ts";

const key = new Uint8Array(32).fill(7);
const account: Account = {
  name: "shop",
  keys: ["a2V5MQ==", "a2V5Mg=="],
  delegationSecret: Uint8Array.of(1),
  serviceProperties: { blob: "{}" },
  configuredDigest: Uint8Array.of(2),
  encryptionScopes: [
    { name: "closed", key, disabled: true },
    { name: "open", key, disabled: false },
  ],
  createdMs: 3,
  geoRole: "",
  sealedBy: "00112233aabbccdd",
};

test("accounts for front-ends: what signatures and contents need, and nothing else", () => {
  const seen = answeredTo("front-end", { case: "account", value: account });
  const { sealedBy: _sealedBy, ...rest } = account;
  const encryptionScopes = [
    { name: "closed", key: emptyBytes, disabled: true },
    { name: "open", key, disabled: false },
  ];
  assert.deepEqual(seen, { case: "account", value: { ...rest, configuredDigest: emptyBytes, encryptionScopes } });
  for (const caller of ["partition-manager", undefined])
    assert.deepEqual(answeredTo(caller, { case: "account", value: account }), { case: "account", value: account });
});
