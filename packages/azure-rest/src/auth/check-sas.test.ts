/** Checks of shared access signatures: resources, stored policies, permissions, times and addresses; each refusal has its code. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toBase64 } from "../base64.ts";
import type { ServiceName } from "../service-properties/service-properties.ts";
import { parseQuery } from "../target.ts";
import { type OperationAuthorization, permits, type SignedResource } from "./authorization.ts";
import { checkSasOperation, checkSasSignature, checkSasUse, responseOverrides } from "./check-sas.ts";
import { isInRange, parseIpRange } from "./ip-range.ts";
import { parseSas } from "./sas.ts";
import { sasStringToSign } from "./sas-string.ts";
import { type SignedIdentifier, termsOf } from "./signed-identifiers.ts";
import {
  anySignature,
  blob,
  codeOf,
  detailOf,
  equal,
  hmacSha256,
  key,
  more,
  nowMs,
  queryOf,
  sasOf,
  service,
  signedText,
  utf8,
  valid,
} from "./testing/sas-harness.ts";

test("a service SAS is for what its resource says: the account, another kind or another name never fits", () => {
  const check = (fields: Record<string, string>, of: ServiceName, signedFor: SignedResource, used: SignedResource): string => {
    const text = signedText(fields, of, signedFor);
    assert.ok(text !== undefined);
    const sig = toBase64(hmacSha256(key, utf8(text)));
    const request = { service: of, account: "acct", resource: used, query: queryOf(fields), headers: {} };
    return codeOf(
      checkSasSignature(valid({ ...fields, sig }), request, {
        keys: [
          { key: new Uint8Array(8), is: 0 },
          { key, is: 1 },
        ],
        hmacSha256,
        equal,
      }),
    );
  };
  const container: SignedResource = { kind: "container", container: "pics" };
  const c = { ...service, sr: "c", sv: "2020-12-06" };
  const b = { ...service, sr: "b", sv: "2020-12-06" };
  const no = "AuthenticationFailed";
  assert.equal(check(c, "blob", container, container), "ok");
  assert.equal(check(c, "blob", container, blob), "ok");
  assert.equal(check(c, "blob", container, { kind: "container", container: "other" }), no);
  assert.equal(check(c, "blob", container, { kind: "account" }), no);
  assert.equal(check(b, "blob", blob, blob), "ok");
  assert.equal(check(b, "blob", blob, { ...blob, blob: "a" }), no);
  assert.equal(check(b, "blob", blob, container), no);
  const bs = { ...service, sr: "bs", sv: "2020-12-06" };
  assert.equal(check(bs, "blob", blob, blob), "ok");
  assert.equal(check(bs, "blob", blob, { ...blob, snapshot: "OTHER" }), no);
  assert.equal(check(bs, "blob", blob, { kind: "blob", container: "pics", blob: "a/b c.png" }), no);
  const t = { ...service, tn: "People", sv: "2019-02-02" };
  assert.equal(check(t, "table", { kind: "table", table: "people" }, { kind: "table", table: "PEOPLE" }), "ok");
  assert.equal(check(t, "table", { kind: "table", table: "people" }, { kind: "table", table: "others" }), no);
  // Until 2015-02-21 the text of a container is that of the share of its name.
  const share: SignedResource = { kind: "share", share: "pics" };
  for (const [sv, expected] of [
    ["2014-02-14", no],
    ["2015-02-21", "ok"],
  ] as const)
    assert.equal(check({ ...service, sr: "s", sv }, "file", share, share), expected, sv);
});

test("a stored access policy gives what the SAS leaves out; what both say is refused", () => {
  const policies: SignedIdentifier[] = [
    { id: "full", startMs: 1000, expiryMs: 2000, permissions: "r" },
    { id: "empty" },
    { id: "end", expiryMs: 2000 },
  ];
  const terms = (fields: Record<string, string>) => termsOf(valid({ sr: "c", sv: "2020-12-06", ...fields }), policies);
  const value = (result: ReturnType<typeof terms>) => (result.ok ? result.value : detailOf(result));
  assert.deepEqual(value(terms({ si: "full" })), { permissions: "r", startMs: 1000, expiryMs: 2000 });
  assert.match(String(value(terms({ si: "full", sp: "r" }))), /not both/);
  assert.match(String(value(terms({ si: "full", st: "2026-01-01" }))), /not both/);
  assert.match(String(value(terms({ si: "full", se: "2026-01-01" }))), /not both/);
  assert.deepEqual(value(terms({ si: "end", sp: "w" })), { permissions: "w", startMs: undefined, expiryMs: 2000 });
  assert.match(String(value(terms({ si: "empty", sp: "w" }))), /se is mandatory/);
  assert.match(String(value(terms({ si: "empty", se: "2026-01-01" }))), /sp is mandatory/);
  assert.match(String(value(terms({ si: "other" }))), /identifier/);
  assert.match(String(value(terms({}))), /mandatory/);
});

test("protocol, address, time, service, resource type and permission are refused with their codes, in this order", () => {
  const terms = { permissions: "rl", startMs: nowMs - 1000, expiryMs: nowMs + 1000 };
  const use = { service: "blob" as ServiceName, remoteAddress: "::ffff:1.2.3.4", secure: true, nowMs };
  const sas = valid({ ...service, ss: "b", srt: "o", sv: "2020-12-06" });
  const used = (changes: Partial<typeof use>): string => codeOf(checkSasUse(sas, terms, { ...use, ...changes }));
  assert.equal(used({}), "ok");
  assert.equal(used({ secure: false, remoteAddress: "9.9.9.9", nowMs: 0 }), "AuthorizationProtocolMismatch");
  assert.equal(used({ remoteAddress: "1.2.3.5", nowMs: 0 }), "AuthorizationSourceIPMismatch");
  assert.equal(used({ remoteAddress: "::1" }), "AuthorizationSourceIPMismatch");
  assert.equal(used({ nowMs: nowMs - 1001, service: "queue" }), "AuthenticationFailed");
  assert.equal(used({ nowMs: nowMs + 1000 }), "AuthenticationFailed");
  assert.equal(used({ service: "queue" }), "AuthorizationServiceMismatch");
  const needs = (changes: Partial<OperationAuthorization>): string =>
    codeOf(
      checkSasOperation(sas, terms, {
        resourceType: "o",
        accountSas: ["r"],
        serviceSas: "never",
        delegationSas: "never",
        role: "read",
        ...changes,
      }),
    );
  assert.equal(needs({}), "ok");
  assert.equal(needs({ resourceType: "c", accountSas: ["w"] }), "AuthorizationResourceTypeMismatch");
  assert.equal(needs({ resourceType: "sco" }), "ok");
  assert.equal(needs({ accountSas: ["cw"] }), "AuthorizationPermissionMismatch");
  assert.equal(needs({ accountSas: ["rw", "l"] }), "ok");
  assert.equal(needs({ accountSas: ["rw", "t"] }), "AuthorizationPermissionMismatch");
  assert.equal(needs({ accountSas: "never" }), "AuthorizationPermissionMismatch");
  assert.equal(permits("rwdlacxyupftmeoi", "never"), false);
});

test("addresses: one, or a range with its ends; nothing else", () => {
  assert.deepEqual(parseIpRange("1.2.3.4"), { from: 0x01020304, to: 0x01020304 });
  assert.deepEqual(parseIpRange("255.255.255.254-255.255.255.255"), { from: 0xfffffffe, to: 0xffffffff });
  for (const wrong of ["", "1.2.3", "1.2.3.256", "1.2.3.4-", "1.2.3.4-1.2.3.3", "1.2.3.4-1.2.3.5-1.2.3.6", "::1", "1.2.3.4/8"]) {
    assert.equal(parseIpRange(wrong), undefined, wrong);
  }
  const range = parseIpRange("10.0.0.1-10.0.0.3");
  assert.ok(range);
  assert.deepEqual(
    ["10.0.0.0", "10.0.0.1", "::ffff:10.0.0.3", "10.0.0.4"].map((address) => isInRange(range, address)),
    [false, true, true, false],
  );
});

test("fuzz: whatever stands in the query, it is an answer; a signed SAS with any field changed is none", () => {
  const names = [
    "sv",
    "ss",
    "srt",
    "sr",
    "sp",
    "st",
    "se",
    "si",
    "sip",
    "spr",
    "sig",
    "tn",
    "spk",
    "skoid",
    "ske",
    "sks",
    "skt",
    "srh",
    "srq",
    "rscc",
    "ses",
  ];
  const noise = fc.oneof(fc.string({ maxLength: 40 }), fc.constantFrom("b", "c", "r", "2020-12-06", "2026-01-01", "1.1.1.1", anySignature));
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom(...names), noise),
      fc.constantFrom<SignedResource>(blob, { kind: "account" }, { kind: "queue", queue: "q" }),
      (fields, resource) => {
        const query = parseQuery(new URLSearchParams(fields).toString());
        if (!query.ok) return;
        const sas = parseSas(query.value);
        if (!sas.ok) {
          assert.ok(["AuthenticationFailed", "NotImplemented"].includes(sas.error.code));
          return;
        }
        const request = { service: "blob" as const, account: "acct", resource, query: query.value, headers: {} };
        assert.equal(codeOf(checkSasSignature(sas.value, request, { keys: [{ key, is: 0 }], hmacSha256, equal })), "AuthenticationFailed");
        const overrides = responseOverrides(sas.value, "blob");
        if (overrides.ok) for (const value of Object.values(overrides.value)) assert.match(value, /^[\t\x20-\x7e]+$/);
        else assert.equal(overrides.error.code, "InvalidQueryParameterValue");
      },
    ),
    { numRuns: 2000 },
  );
  const good: Record<string, string> = { ...service, ...more, sr: "b", sv: "2020-12-06", si: "" };
  const request = (fields: Record<string, string>) => ({
    service: "blob" as const,
    account: "acct",
    resource: blob,
    query: queryOf(fields),
    headers: {},
  });
  const text = sasStringToSign(valid(good), request(good));
  assert.ok(text.ok);
  const sig = toBase64(hmacSha256(key, utf8(text.value)));
  fc.assert(
    fc.property(fc.constantFrom(...Object.keys(good)), fc.string({ minLength: 1, maxLength: 20 }), (name, text) => {
      fc.pre(good[name] !== text);
      const changed = { ...good, [name]: text, sig };
      const sas = sasOf(changed);
      if (sas.ok)
        assert.equal(
          codeOf(checkSasSignature(sas.value, request(changed), { keys: [{ key, is: 0 }], hmacSha256, equal })),
          "AuthenticationFailed",
        );
    }),
    { numRuns: 1000 },
  );
});
