/** User delegation keys: each field and role gives another key. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toBase64 } from "../base64.ts";
import { formatIso } from "../dates.ts";
import { delegationKeysOf, deriveDelegationKey, parseDelegationKeyRequest } from "./delegation-key.ts";
import { codeOf, equal, hmacSha256, key5, nowMs, service, utf8, valid } from "./testing/sas-harness.ts";

test("a user delegation key is another for every field and role; the role is found by the signature", () => {
  const secret = new Uint8Array(32).fill(3);
  const sas = valid({ ...service, ...key5, sr: "c", sv: "2020-12-06" });
  const keys = delegationKeysOf(secret, sas.fields, hmacSha256);
  assert.equal(new Set(keys.map(({ key: one }) => toBase64(one))).size, 3);
  const mine = {
    objectId: "oid",
    tenantId: "tid",
    startMs: Date.UTC(2026, 0, 1),
    expiryMs: Date.UTC(2026, 0, 8),
    service: "b",
    version: "2025-01-05",
    delegatedTenantId: "",
  };
  const made = deriveDelegationKey(secret, "contribute", mine, hmacSha256);
  assert.deepEqual(
    keys.filter(({ key: one }) => equal(one, made)).map(({ is }) => is),
    ["contribute"],
  );
  for (const change of [
    { objectId: "x" },
    { tenantId: "x" },
    { startMs: 0 },
    { expiryMs: 0 },
    { service: "q" },
    { version: "x" },
    { delegatedTenantId: "x" },
  ]) {
    assert.ok(!equal(deriveDelegationKey(secret, "contribute", { ...mine, ...change }, hmacSha256), made), JSON.stringify(change));
  }
  assert.ok(!equal(deriveDelegationKey(new Uint8Array(32), "contribute", mine, hmacSha256), made));
  const asked = (start: number, end: number): string => {
    const body = `<KeyInfo><Start>${formatIso(start)}</Start><Expiry>${formatIso(end)}</Expiry></KeyInfo>`;
    return codeOf(parseDelegationKeyRequest(utf8(body), nowMs));
  };
  const day = 24 * 60 * 60 * 1000;
  assert.equal(asked(nowMs, nowMs + 7 * day), "ok");
  assert.equal(asked(nowMs, nowMs + 7 * day + 1), "InvalidXmlNodeValue");
  assert.equal(asked(nowMs + 8 * day, nowMs + 9 * day), "InvalidXmlNodeValue");
  assert.equal(asked(nowMs, nowMs - 1), "InvalidXmlNodeValue");
  assert.equal(asked(nowMs + 6 * day, nowMs + 7 * day), "ok");
  for (const end of [7 * day + 1, 12.9 * day])
    assert.equal(asked(nowMs + 6 * day, nowMs + end), "InvalidXmlNodeValue", `${end / day} days`);
  assert.equal(asked(nowMs - 30 * day, nowMs + 7 * day), "ok");
  assert.equal(asked(nowMs - 30 * day, nowMs + 7 * day + 1), "InvalidXmlNodeValue");
});
