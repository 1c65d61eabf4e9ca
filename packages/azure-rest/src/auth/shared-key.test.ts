import assert from "node:assert/strict";
import { createHmac, timingSafeEqual } from "node:crypto";
import { test } from "node:test";
import { fromBase64 } from "../base64.ts";
import { formatRfc1123 } from "../dates.ts";
import type { HttpHeaders } from "../headers.ts";
import { parseTarget } from "../target.ts";
import { compareByCulture } from "./header-order.ts";
import {
  checkSignature,
  compareByCodeUnit,
  type HeaderOrder,
  type HmacSha256,
  parseAuthorization,
  type SharedKeyScheme,
  type SignedParts,
  signRequest,
  stringToSign as stringToSignOf,
} from "./shared-key.ts";
import { claimsOfToken, makeToken, verifyToken } from "./token.ts";

const hmacSha256: HmacSha256 = (key, message) => createHmac("sha256", key).update(message).digest();
const equal = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b);
const key = fromBase64("Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==") as Uint8Array;
const nowMs = 1_700_000_000_000;

function stringToSign(scheme: SharedKeyScheme, parts: SignedParts, order: HeaderOrder): string {
  const text = stringToSignOf(scheme, parts, order);
  assert.ok(text.ok, JSON.stringify(text));
  return text.value;
}

function partsOf(method: string, target: string, headers: HttpHeaders, version = "2025-01-05"): SignedParts {
  const parsed = parseTarget(target, "127.0.0.1:10000", { hostSuffixes: [] });
  assert.ok(parsed.ok);
  return {
    service: "blob",
    method,
    account: parsed.value.account,
    rawPath: parsed.value.rawPath,
    query: parsed.value.query,
    headers,
    version,
  };
}

test("the text to sign of a path-style request names the account twice, and sorts headers and parameters", () => {
  const headers = {
    "content-length": "5",
    "content-type": "text/plain",
    "x-ms-version": "2025-01-05",
    "x-ms-date": "Tue, 14 Nov 2023 22:13:20 GMT",
    "x-ms-blob-type": "BlockBlob",
    "if-none-match": "*",
  };
  const text = stringToSign(
    "SharedKey",
    partsOf("PUT", "/acct/c/a%20b?timeout=30&comp=block&blockid=QQ%3D%3D", headers),
    compareByCodeUnit,
  );
  assert.equal(
    text,
    "PUT\n\n\n5\n\ntext/plain\n\n\n\n*\n\n\n" +
      "x-ms-blob-type:BlockBlob\nx-ms-date:Tue, 14 Nov 2023 22:13:20 GMT\nx-ms-version:2025-01-05\n" +
      "/acct/acct/c/a%20b\nblockid:QQ==\ncomp:block\ntimeout:30",
  );
});

test("a length of 0 is signed empty since 2015-02-21 and as 0 before", () => {
  const headers = { "content-length": "0", "x-ms-date": "x" };
  assert.match(stringToSign("SharedKey", partsOf("PUT", "/acct/c", headers), compareByCodeUnit), /^PUT\n\n\n\n\n/);
  assert.match(stringToSign("SharedKey", partsOf("PUT", "/acct/c", headers, "2014-02-14"), compareByCodeUnit), /^PUT\n\n\n0\n\n/);
});

test("SharedKeyLite signs fewer headers and only comp of the query", () => {
  const parts = partsOf("GET", "/acct/c?restype=container&comp=list&prefix=x", { "x-ms-date": "d", "content-md5": "m" });
  assert.equal(stringToSign("SharedKeyLite", parts, compareByCodeUnit), "GET\nm\n\n\nx-ms-date:d\n/acct/acct/c?comp=list");
});

test("what signRequest signs is accepted by either key, and nothing that was changed is", () => {
  const target = "/acct/c/b?comp=metadata";
  const headers = signRequest(
    { method: "PUT", target, headers: { "x-ms-meta-a": "1", "content-length": "0" } },
    "acct",
    key,
    nowMs,
    hmacSha256,
  );
  const check = (changes: { method?: string; target?: string; headers?: HttpHeaders; keys?: Uint8Array[]; nowMs?: number } = {}) => {
    const sent = { ...headers, ...changes.headers };
    const authorization = parseAuthorization(headers.authorization as string);
    assert.ok(authorization.ok);
    return checkSignature({
      parts: partsOf(changes.method ?? "PUT", changes.target ?? target, sent),
      authorization: authorization.value,
      keys: changes.keys ?? [key],
      nowMs: changes.nowMs ?? nowMs,
      hmacSha256,
      equal,
    }).ok;
  };
  assert.equal(check(), true);
  assert.equal(check({ keys: [new Uint8Array(64), key] }), true);
  assert.equal(check({ keys: [new Uint8Array(64)] }), false);
  assert.equal(check({ keys: [] }), false);
  assert.equal(check({ method: "GET" }), false);
  assert.equal(check({ target: "/acct/c/other?comp=metadata" }), false);
  assert.equal(check({ target: "/acct/c/b?comp=properties" }), false);
  assert.equal(check({ headers: { "x-ms-meta-a": "2" } }), false);
  assert.equal(check({ headers: { "x-ms-meta-new": "2" } }), false);
  assert.equal(check({ nowMs: nowMs + 14 * 60_000 }), true);
  assert.equal(check({ nowMs: nowMs + 16 * 60_000 }), false);
  assert.equal(check({ nowMs: nowMs - 16 * 60_000 }), false);
  assert.equal(check({ headers: { "x-ms-date": formatRfc1123(nowMs + 1000) } }), false);
});

test("headers sort by culture as the service does: hyphens count last, underscores before digits before letters", () => {
  const sorted = ["x-ms-meta-a-b", "x-ms-meta-ab", "x-ms-meta-a_b", "x-ms-meta-a1", "x-ms-meta-a"].sort(compareByCulture);
  assert.deepEqual(sorted, ["x-ms-meta-a", "x-ms-meta-a_b", "x-ms-meta-a1", "x-ms-meta-ab", "x-ms-meta-a-b"]);
});

test("a token is valid until it expires, for its key and as it was made", () => {
  const digests = { hmacSha256, equal };
  const token = makeToken({ account: "acct", expiresMs: nowMs + 1000 }, key, hmacSha256);
  assert.deepEqual(claimsOfToken(token), { account: "acct", expiresMs: nowMs + 1000 });
  assert.deepEqual(verifyToken(token, [key], nowMs, digests), { kind: "valid", account: "acct" });
  assert.deepEqual(verifyToken(token, [key], nowMs + 1000, digests), { kind: "expired" });
  assert.deepEqual(verifyToken(token, [new Uint8Array(64)], nowMs, digests), { kind: "forged" });
  const other = makeToken({ account: "other", expiresMs: nowMs + 1000 }, key, hmacSha256);
  assert.deepEqual(verifyToken(`${other.split(".")[0]}.${token.split(".")[1]}`, [key], nowMs, digests), { kind: "forged" });
  for (const wrong of ["", "a", "a.b", `${token}.x`]) assert.equal(verifyToken(wrong, [key], nowMs, digests).kind, "malformed", wrong);
});
