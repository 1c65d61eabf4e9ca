/** Shared access signatures: how the query becomes fields, and what is signed in each version. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toBase64 } from "../base64.ts";
import { formatIso, parseIso } from "../dates.ts";
import type { ServiceName } from "../service-properties/service-properties.ts";
import type { OperationAuthorization, SignedResource } from "./authorization.ts";
import { checkSasOperation, checkSasSignature, responseOverrides } from "./check-sas.ts";
import { sasStringToSign } from "./sas-string.ts";
import {
  blob,
  codeOf,
  detailOf,
  equal,
  hmacSha256,
  key,
  key5,
  more,
  queryOf,
  sasOf,
  service,
  signedText,
  utf8,
  valid,
} from "./testing/sas-harness.ts";

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
      "file",
      { ...service, ...more, sr: "f", sv: "2022-11-02" },
      "file",
      { kind: "file", share: "docs", path: "a/b" },
      "r|2026-01-01|2026-02-01|/file/acct/docs/a/b||1.2.3.4|https|2022-11-02|cc|cd|ce|cl|ct",
    ],
    [
      "file by its share",
      { ...service, ...more, sr: "s", si: "id", sv: "2022-11-02" },
      "file",
      { kind: "file", share: "docs", path: "a/b" },
      "r|2026-01-01|2026-02-01|/file/acct/docs|id|1.2.3.4|https|2022-11-02|cc|cd|ce|cl|ct",
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
      { ...service, ...key5, sr: "c", sv: "2026-04-06", srh: "X-A,x-b", srq: "sv" },
      "blob",
      blob,
      "r|2026-01-01|2026-02-01|/blob/acct/pics|oid|tid|2026-01-01|2026-01-08|b|2025-01-05||||||1.2.3.4|https|2026-04-06|c|||X-A:1|x-b:2|||sv:2026-04-06|||||",
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
    assert.equal(signedText(fields, of, resource, { "x-a": "1", "x-b": "2" })?.replaceAll("\n", "|"), expected, name);
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
  const plain = { ok: true, value: { "Content-Type": "text/html" } };
  const none = { ok: true, value: {} };
  assert.deepEqual(responseOverrides(valid({ ...fields, sv: "2013-08-15" }), "blob"), plain);
  assert.deepEqual(responseOverrides(valid({ ...fields, sv: "2012-02-12" }), "blob"), none);
  assert.deepEqual(responseOverrides(valid({ ...fields, sr: "", tn: "t", sv: "2020-12-06" }), "table"), none);
  assert.deepEqual(responseOverrides(valid({ ...fields, sr: "", sv: "2020-12-06" }), "queue"), none);
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
  const text = sasStringToSign(valid(fields), request);
  assert.ok(text.ok);
  const sig = toBase64(hmacSha256(key, utf8(text.value)));
  const signing = { keys: [{ key, is: 1 }], hmacSha256, equal };
  assert.equal(codeOf(checkSasSignature(valid({ ...fields, sig }), request, signing)), "AuthenticationFailed");
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
  for (const sdd of ["", "0", "-1", "1a"])
    assert.equal(codeOf(sasOf({ ...service, sr: "d", sdd, sv: "2020-02-10" })), "AuthenticationFailed");
  assert.equal(codeOf(sasOf({ ...service, ...key5, suoid: "u", saoid: "v", sr: "c", sv: "2020-02-10" })), "AuthenticationFailed");
  for (const who of ["suoid", "saoid"]) {
    assert.equal(codeOf(sasOf({ ...service, ...key5, [who]: "u", sr: "c", sv: "2020-02-10" })), "ok");
    assert.match(detailOf(sasOf({ ...service, ...key5, [who]: "u", sr: "c", sv: "2019-12-12" })), /newer than sv/, "it is not signed");
    for (const id of ["a,b", "a:b", "a b", "u".repeat(257)])
      assert.match(detailOf(sasOf({ ...service, ...key5, [who]: id, sr: "c", sv: "2020-02-10" })), /ids of users/, id);
  }
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
