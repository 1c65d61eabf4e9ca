/** Shared access signatures: what is signed in each version, what goes with a stored policy, and who is refused with which code. */
import assert from "node:assert/strict";
import { createHmac, timingSafeEqual } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { toBase64 } from "../base64.ts";
import { formatIso, parseIso } from "../dates.ts";
import type { Parsed } from "../rest-error.ts";
import type { ServiceName } from "../service-properties/service-properties.ts";
import { parseQuery } from "../target.ts";
import { type OperationAuthorization, permits, type SignedResource } from "./authorization.ts";
import { checkSasOperation, checkSasSignature, checkSasUse, responseOverrides } from "./check-sas.ts";
import { delegationKeysOf, deriveDelegationKey, parseDelegationKeyRequest } from "./delegation-key.ts";
import { isInRange, parseIpRange } from "./ip-range.ts";
import { parseSas, type Sas } from "./sas.ts";
import { type SignedRequest, sasStringToSign } from "./sas-string.ts";
import type { HmacSha256 } from "./shared-key.ts";
import { parseSignedIdentifiers, type SignedIdentifier, signedIdentifiersXml, termsOf } from "./signed-identifiers.ts";

const hmacSha256: HmacSha256 = (key, message) => createHmac("sha256", key).update(message).digest();
const equal = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b);
const key = Uint8Array.from({ length: 64 }, (_, i) => i);
const anySignature = toBase64(new Uint8Array(32));
const nowMs = Date.UTC(2026, 0, 15, 12);
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

const queryOf = (fields: Record<string, string>) => {
  const query = parseQuery(new URLSearchParams(fields).toString().replaceAll("+", "%20"));
  assert.ok(query.ok);
  return query.value;
};
const sasOf = (fields: Record<string, string>): Parsed<Sas> => parseSas(queryOf({ sig: anySignature, ...fields }));
function valid(fields: Record<string, string>): Sas {
  const sas = sasOf(fields);
  assert.ok(sas.ok, JSON.stringify(sas));
  return sas.value;
}
const codeOf = (result: Parsed<unknown>): string => (result.ok ? "ok" : result.error.code);
const detailOf = (result: Parsed<unknown>): string => (result.ok ? "" : (result.error.details.AuthenticationErrorDetail ?? ""));

const blob: SignedResource = { kind: "blob", container: "pics", blob: "a/b c.png", snapshot: "SNAP", versionId: "VERS" };
const signedText = (fields: Record<string, string>, service: ServiceName, resource: SignedResource, headers = {}): string | undefined =>
  sasStringToSign(valid(fields), { service, account: "acct", resource, query: queryOf(fields), headers } satisfies SignedRequest);

const service = { sp: "r", st: "2026-01-01", se: "2026-02-01", sip: "1.2.3.4", spr: "https" };
const more = { rscc: "cc", rscd: "cd", rsce: "ce", rscl: "cl", rsct: "ct" };
const key5 = { skoid: "oid", sktid: "tid", skt: "2026-01-01", ske: "2026-01-08", sks: "b", skv: "2025-01-05" };

test("SAS: an encryption scope is taken where it is signed, and refused where it is not", () => {
  const account = { ss: "b", srt: "o", sp: "w", se: "2026-02-01", ses: "scope" };
  assert.equal(valid({ ...account, sv: "2020-12-06" }).fields.ses, "scope");
  assert.equal(codeOf(sasOf({ ...account, sv: "2020-10-02" })), "AuthenticationFailed");
  assert.equal(codeOf(sasOf({ sr: "c", sp: "w", se: "2026-02-01", ses: "scope", sv: "2020-10-02" })), "AuthenticationFailed");
});

test("what a SAS signs, line by line, in each version", () => {
  const table: readonly [string, Record<string, string>, ServiceName, SignedResource, string][] = [
    [
      "account",
      { ...service, ss: "bq", srt: "so", sv: "2019-12-12" },
      "blob",
      blob,
      "acct|r|bq|so|2026-01-01|2026-02-01|1.2.3.4|https|2019-12-12|",
    ],
    [
      "account with scope",
      { ...service, ss: "b", srt: "o", sv: "2020-12-06" },
      "blob",
      blob,
      "acct|r|b|o|2026-01-01|2026-02-01|1.2.3.4|https|2020-12-06||",
    ],
    ["blob without sv", { ...service, sr: "c", si: "id" }, "blob", blob, "r|2026-01-01|2026-02-01|/acct/pics|id"],
    [
      "blob 2012",
      { ...service, ...more, sr: "b", sv: "2012-02-12" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/acct/pics/a/b c.png||2012-02-12",
    ],
    [
      "blob 2013",
      { ...service, ...more, sr: "b", sv: "2013-08-15" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/acct/pics/a/b c.png||2013-08-15|cc|cd|ce|cl|ct",
    ],
    [
      "blob 2015",
      { ...service, ...more, sr: "c", sv: "2015-04-05" },
      "blob",
      { kind: "container", container: "pics" },
      "r|2026-01-01|2026-02-01|/blob/acct/pics||1.2.3.4|https|2015-04-05|cc|cd|ce|cl|ct",
    ],
    [
      "blob 2018",
      { ...service, ...more, sr: "b", sv: "2018-11-09" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/blob/acct/pics/a/b c.png||1.2.3.4|https|2018-11-09|b||cc|cd|ce|cl|ct",
    ],
    [
      "snapshot",
      { ...service, ...more, sr: "bs", sv: "2020-12-06" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/blob/acct/pics/a/b c.png||1.2.3.4|https|2020-12-06|bs|SNAP||cc|cd|ce|cl|ct",
    ],
    [
      "version",
      { ...service, sr: "bv", sv: "2026-04-06" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/blob/acct/pics/a/b c.png||1.2.3.4|https|2026-04-06|bv|VERS||||||",
    ],
    [
      "queue 2012",
      { ...service, sv: "2012-02-12" },
      "queue",
      { kind: "queue", queue: "work" },
      "r|2026-01-01|2026-02-01|/acct/work||2012-02-12",
    ],
    [
      "queue 2015",
      { ...service, sv: "2015-04-05" },
      "queue",
      { kind: "queue", queue: "work" },
      "r|2026-01-01|2026-02-01|/queue/acct/work||1.2.3.4|https|2015-04-05",
    ],
    [
      "table 2012",
      { ...service, tn: "People", sv: "2012-02-12", spk: "a", epk: "y", erk: "z" },
      "table",
      { kind: "table", table: "People" },
      "r|2026-01-01|2026-02-01|/acct/people||2012-02-12|a||y|z",
    ],
    [
      "table 2015",
      { ...service, tn: "People", sv: "2015-04-05", spk: "a", srk: "b", epk: "c", erk: "d" },
      "table",
      { kind: "table", table: "People" },
      "r|2026-01-01|2026-02-01|/table/acct/people||1.2.3.4|https|2015-04-05|a|b|c|d",
    ],
    [
      "delegation 2018",
      { ...service, ...key5, sr: "c", sv: "2018-11-09" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/blob/acct/pics|oid|tid|2026-01-01|2026-01-08|b|2025-01-05|1.2.3.4|https|2018-11-09|c||||||",
    ],
    [
      "delegation 2020-02",
      { ...service, ...key5, saoid: "sa", scid: "sc", sr: "c", sv: "2020-02-10" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/blob/acct/pics|oid|tid|2026-01-01|2026-01-08|b|2025-01-05|sa||sc|1.2.3.4|https|2020-02-10|c||||||",
    ],
    [
      "delegation 2020-12",
      { ...service, ...key5, sr: "c", sv: "2020-12-06" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/blob/acct/pics|oid|tid|2026-01-01|2026-01-08|b|2025-01-05||||1.2.3.4|https|2020-12-06|c|||||||",
    ],
    [
      "delegation 2025",
      { ...service, ...key5, skdutid: "dt", sduoid: "du", sr: "c", sv: "2025-07-05" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/blob/acct/pics|oid|tid|2026-01-01|2026-01-08|b|2025-01-05||||dt|du|1.2.3.4|https|2025-07-05|c|||||||",
    ],
    [
      "delegation 2026",
      { ...service, ...key5, sr: "c", sv: "2026-04-06", srh: "X-A,x-b", srq: "comp" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/blob/acct/pics|oid|tid|2026-01-01|2026-01-08|b|2025-01-05||||||1.2.3.4|https|2026-04-06|c|||X-A:1|x-b:|||comp:|||||",
    ],
    [
      "delegation of a queue",
      { ...service, ...key5, sks: "q", sv: "2025-07-05" },
      "queue",
      { kind: "queue", queue: "work" },
      "r|2026-01-01|2026-02-01|/queue/acct/work|oid|tid|2026-01-01|2026-01-08|q|2025-01-05|||1.2.3.4|https|2025-07-05",
    ],
  ];
  for (const [name, fields, of, resource, expected] of table) {
    assert.equal(signedText(fields, of, resource, { "x-a": "1" })?.replaceAll("\n", "|"), expected, name);
  }
});

test("fields that do not go together are refused: a reading that ignores one of them would grant more", () => {
  const onTable = { ...service, tn: "people", sv: "2019-02-02" };
  for (const [fields, why] of [
    [{ ...onTable, srk: "a" }, /^srk is given without spk/],
    [{ ...onTable, spk: "a", srk: "a", erk: "b" }, /^erk is given without epk/],
    [{ ...onTable, spk: "a", erk: "b" }, /^erk /],
    [{ ...onTable, epk: "a", srk: "b" }, /^srk /],
    [{ ...service, sr: "c", sv: "2020-12-06", sp: "rz" }, /^sp has a letter/],
    [{ ...service, sr: "c", sv: "2020-12-06", sp: "R" }, /^sp has a letter/],
    [{ ...service, ss: "b", srt: "o", sv: "2014-02-14" }, /^sv is older/],
    [{ ...service, ...key5, sr: "c", sv: "2017-11-09" }, /^sv is older/],
    [{ ...service, ss: "b", srt: "o", sv: "2020-12-06", si: "p" }, /stored access policy/],
    [{ ...service, ...key5, sr: "c", sv: "2020-12-06", si: "p" }, /stored access policy/],
    [{ ...service, sr: "bs", sv: "2017-11-09" }, /^sr=bs is newer/],
    [{ ...service, sr: "bv", sv: "2018-11-09" }, /^sr=bv is newer/],
  ] as const) {
    const checked = sasOf(fields);
    assert.equal(codeOf(checked), "AuthenticationFailed", JSON.stringify(fields));
    assert.match(detailOf(checked), why);
  }
  for (const fields of [{ ...onTable, spk: "a", srk: "b" }, { ...onTable, spk: "a", epk: "b", erk: "c" }, onTable]) {
    assert.equal(codeOf(sasOf(fields)), "ok", JSON.stringify(fields));
  }
});

test("letters count since the version that brought them, and some operations take one only since a later one", () => {
  const needs: OperationAuthorization = {
    resourceType: "o",
    accountSas: ["w"],
    serviceSas: ["w"],
    delegationSas: ["cw"],
    since: { c: "2026-04-06" },
    role: "contribute",
  };
  const of = (fields: Record<string, string>, groups: OperationAuthorization): string => {
    const sas = valid(fields);
    return codeOf(checkSasOperation(sas, { permissions: fields.sp ?? "", startMs: undefined, expiryMs: 0 }, groups));
  };
  const no = "AuthorizationPermissionMismatch";
  const delegated = { ...service, ...key5, sr: "c", sp: "c" };
  assert.equal(of({ ...delegated, sv: "2026-02-06" }, needs), no);
  assert.equal(of({ ...delegated, sv: "2026-04-06" }, needs), "ok");
  assert.equal(of({ ...service, sr: "c", sp: "c", sv: "2026-04-06" }, needs), no);
  for (const [letter, before, since] of [
    ["t", "2019-10-10", "2019-12-12"],
    ["f", "2019-10-10", "2019-12-12"],
    ["x", "2019-10-10", "2019-12-12"],
    ["y", "2019-12-12", "2020-02-10"],
    ["i", "2020-04-08", "2020-06-12"],
  ] as const) {
    const alone = { ...needs, serviceSas: [letter] };
    assert.equal(of({ ...service, sr: "c", sp: letter, sv: before }, alone), no, letter);
    assert.equal(of({ ...service, sr: "c", sp: letter, sv: since }, alone), "ok", letter);
  }
});

test("response headers are those of a signature that covers them: blobs, since 2013-08-15", () => {
  const fields = { ...service, sr: "b", rsct: "text/html" };
  const plain = { "Content-Type": "text/html" };
  assert.deepEqual(responseOverrides(valid({ ...fields, sv: "2013-08-15" }), "blob"), plain);
  assert.deepEqual(responseOverrides(valid({ ...fields, sv: "2012-02-12" }), "blob"), {});
  assert.deepEqual(responseOverrides(valid({ ...fields, sr: "", tn: "t", sv: "2020-12-06" }), "table"), {});
  assert.deepEqual(responseOverrides(valid({ ...fields, sr: "", sv: "2020-12-06" }), "queue"), {});
});

test("a SAS of a queue or table without a version is refused: its text has no range of entities", () => {
  const fields = { ...service, tn: "people", spk: "a" };
  const request = {
    service: "table",
    account: "acct",
    resource: { kind: "table", table: "people" },
    query: queryOf(fields),
    headers: {},
  } as const;
  const text = sasStringToSign(valid(fields), request) ?? "";
  const sig = toBase64(hmacSha256(key, utf8(text)));
  const signing = { keys: [{ key, is: 1 }], hmacSha256, equal };
  assert.equal(codeOf(checkSasSignature(valid({ ...fields, sig }), request, signing)), "AuthenticationFailed");
});

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
});

test("fields that are missing, malformed or not here are refused, each by its name", () => {
  const account = { ...service, ss: "b", srt: "o", sv: "2020-12-06" };
  for (const name of ["sp", "se", "ss", "srt", "sv"]) {
    const { [name]: _, ...rest } = account as Record<string, string>;
    assert.match(detailOf(sasOf(rest)), new RegExp(`^${name} is mandatory`), name);
  }
  assert.match(detailOf(sasOf({ ...account, sig: "AAAA" })), /Signature size/);
  assert.match(detailOf(sasOf({ ...account, sig: "*" })), /Signature size/);
  assert.match(detailOf(sasOf({ ...account, sv: "2020-13-01" })), /^sv /);
  assert.match(detailOf(sasOf({ ...account, se: "tomorrow" })), /^se /);
  assert.match(detailOf(sasOf({ ...account, st: "2026-02-30" })), /^st /);
  assert.match(detailOf(sasOf({ ...account, sip: "1.2.3" })), /^sip /);
  assert.match(detailOf(sasOf({ ...account, spr: "ftp" })), /^spr /);
  assert.match(detailOf(sasOf({ ...account, sp: "r\nw" })), /^sp has characters/);
  assert.match(detailOf(sasOf({ ...account, si: "x".repeat(5000) })), /^si is too long/);
  assert.equal(codeOf(sasOf({ ...service, sr: "d", sdd: "1", sv: "2020-02-10" })), "NotImplemented");
  assert.equal(codeOf(sasOf({ ...service, ...key5, suoid: "u", sr: "c", sv: "2020-02-10" })), "NotImplemented");
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

test("times: days, minutes, seconds, fractions and zones; what is none is refused", () => {
  const at = Date.UTC(2026, 0, 15, 10, 20, 30, 123);
  for (const [text, expected] of [
    ["2026-01-15", Date.UTC(2026, 0, 15)],
    ["2026-01-15T10:20Z", Date.UTC(2026, 0, 15, 10, 20)],
    ["2026-01-15T10:20:30Z", at - 123],
    ["2026-01-15T10:20:30.1234567Z", at],
    ["2026-01-15T12:20:30.123+02:00", at],
    ["2026-01-15T04:50:30.123-05:30", at],
  ] as const) {
    assert.equal(parseIso(text), expected, text);
  }
  for (const wrong of [
    "",
    "2026-1-5",
    "2026-02-30",
    "2026-01-15T25:00Z",
    "2026-01-15T10:20",
    "2026-01-15T10:20:61Z",
    "2026-01-15T10:20:30.12345678Z",
    "2026-01-15T10:20+15:00",
  ]) {
    assert.equal(parseIso(wrong), undefined, wrong);
  }
  fc.assert(fc.property(fc.integer({ min: 0, max: 4e12 }), (ms) => parseIso(formatIso(ms)) === ms));
});

test("signed identifiers come back from their XML as they were; at most five, each id once, known letters", () => {
  const one = fc.record(
    {
      id: fc.string({ minLength: 1, maxLength: 64 }).filter((id) => id === id.trim()),
      startMs: fc.option(fc.integer({ min: 0, max: 4e12 }), { nil: undefined }),
      expiryMs: fc.option(fc.integer({ min: 0, max: 4e12 }), { nil: undefined }),
      permissions: fc.option(fc.constantFrom("r", "rwdl", "racwdl"), { nil: undefined }),
    },
    { noNullPrototype: true },
  );
  fc.assert(
    fc.property(fc.uniqueArray(one, { maxLength: 5, selector: ({ id }) => id }), (identifiers) => {
      const back = parseSignedIdentifiers(utf8(signedIdentifiersXml(identifiers)), "blob");
      assert.ok(back.ok, JSON.stringify(back));
      assert.deepEqual(
        back.value.map((each) => ({ startMs: undefined, expiryMs: undefined, permissions: undefined, ...each })),
        identifiers,
      );
    }),
  );
  const parse = (xml: string, of: ServiceName = "blob"): string => codeOf(parseSignedIdentifiers(utf8(xml), of));
  const policy = (permission: string, id = "x"): string =>
    `<SignedIdentifier><Id>${id}</Id><AccessPolicy><Permission>${permission}</Permission></AccessPolicy></SignedIdentifier>`;
  const list = (inner: string): string => `<SignedIdentifiers>${inner}</SignedIdentifiers>`;
  assert.equal(parse(""), "ok");
  assert.equal(parse(list("")), "ok");
  assert.equal(parse(list(policy("raup")), "queue"), "ok");
  assert.equal(parse(list(policy("w")), "queue"), "InvalidXmlNodeValue");
  assert.equal(parse(list(policy("r") + policy("r"))), "InvalidXmlNodeValue");
  assert.equal(parse(list([1, 2, 3, 4, 5, 6].map((id) => policy("r", String(id))).join(""))), "InvalidXmlDocument");
  assert.equal(parse(list("<SignedIdentifier></SignedIdentifier>")), "MissingRequiredXmlNode");
  assert.equal(parse(list("<Other/>")), "UnsupportedXmlNode");
  assert.equal(parse(list(policy("r", "x".repeat(65)))), "InvalidXmlNodeValue");
  assert.equal(parse("<!DOCTYPE x [<!ENTITY a 'b'>]><SignedIdentifiers/>"), "InvalidXmlDocument");
});

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
        for (const value of Object.values(responseOverrides(sas.value, "blob"))) assert.match(value, /^[\t\x20-\x7e]+$/);
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
  const sig = toBase64(hmacSha256(key, utf8(sasStringToSign(valid(good), request(good)) ?? "")));
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
