/**
 * A signature is good for one request: of the requests that are not refused, no two have one text. Values are made of what separates fields
 * of the texts, so that without the checks texts collide often.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { HttpHeaders } from "../headers.ts";
import { parseTarget, type Query } from "../target.ts";
import { checkSasSignature } from "./check-sas.ts";
import { parseSas, type SasField } from "./sas.ts";
import { sasStringToSign } from "./sas-string.ts";
import { compareByCodeUnit, type SharedKeyScheme, type SignedParts, stringToSign } from "./shared-key.ts";
import {
  anySignature,
  blob,
  codeOf,
  detailOf,
  equal,
  hmacSha256,
  key,
  key5,
  queryOf,
  service,
  utf8,
  valid,
} from "./testing/sas-harness.ts";

/** Texts of all requests so far. Fails if a text comes again for a request that means something else. */
class Texts {
  readonly #meanings = new Map<string, string>();
  taken = 0;
  refused = 0;

  add(text: ReturnType<typeof stringToSign>, meaning: unknown): void {
    if (!text.ok) {
      assert.equal(text.error.code, "AuthenticationFailed");
      this.refused++;
      return;
    }
    this.taken++;
    const shown = JSON.stringify(meaning);
    const held = this.#meanings.get(text.value) ?? shown;
    assert.equal(shown, held, `one text for two requests: ${JSON.stringify(text.value)}`);
    this.#meanings.set(text.value, shown);
  }
}

const sorted = <T>(record: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(record).sort(([a], [b]) => compareByCodeUnit(a, b));
/** The query as the service reads it: what may be repeated (`include`, and what nobody reads) is a set. */
const queryMeaning = (query: Query): unknown =>
  sorted(Object.fromEntries([...query].map(([name, values]) => [name, values.length === 1 ? values[0] : [...values].sort().join()])));

const piece = fc.constantFrom("a", ":", "b", "", "\n", "a:b", "\nb:a", ",", "\nx-ms-a:", "\n/acct/c", "\r", "\t");
const value = fc.array(piece, { maxLength: 3 }).map((pieces) => pieces.join(""));
const headerValue = value.map((text) => text.replace(/^[ \t]+|[ \t]+$/g, ""));
const parameterName = fc.constantFrom("a", "b", "a:b", "include", "a\nb", "", "b,a");

const sharedKeyRequest = fc.record({
  scheme: fc.constantFrom<SharedKeyScheme>("SharedKey", "SharedKeyLite"),
  path: fc.constantFrom("/acct/c", "/acct/c/a", "/acct/c/a%0Ab:a"),
  query: fc.array(fc.tuple(parameterName, value), { maxLength: 3 }),
  headers: fc.dictionary(fc.constantFrom("x-ms-a", "x-ms-b", "x-ms-a:b", "content-md5", "content-type", "if-match", "range"), headerValue),
});

test("Shared Key and Shared Key Lite: no two requests have one text", () => {
  const texts = new Texts();
  fc.assert(
    fc.property(sharedKeyRequest, ({ scheme, path, query, headers }) => {
      const text = query.map(([name, one]) => `${encodeURIComponent(name)}=${encodeURIComponent(one)}`).join("&");
      const target = parseTarget(`${path}?${text}`, "127.0.0.1", { hostSuffixes: [] });
      if (!target.ok) return;
      const { rawPath } = target.value;
      const sent = { ...headers, "x-ms-date": "d" };
      const parts = {
        service: "blob",
        method: "GET",
        account: "acct",
        rawPath,
        query: target.value.query,
        headers: sent,
        version: "2025-01-05",
      };
      const covered = (name: string): boolean => scheme === "SharedKey" || name.startsWith("content-") || name.startsWith("x-ms-");
      // An empty header that is no x-ms- header is as an absent one.
      const meant = sorted(headers).filter(([name, one]) => covered(name) && (one !== "" || name.startsWith("x-ms-")));
      texts.add(stringToSign(scheme, parts as SignedParts, compareByCodeUnit), [
        scheme,
        rawPath,
        meant,
        scheme === "SharedKey" ? queryMeaning(parts.query) : [],
      ]);
    }),
    { numRuns: 20_000 },
  );
  assert.ok(texts.taken > 1_000 && texts.refused > 1_000, `${texts.taken} taken, ${texts.refused} refused`);
});

/** Fields that the text of each kind and version has. */
const kinds: readonly { readonly fixed: Record<string, string>; readonly free: readonly SasField[] }[] = [
  { fixed: { ...service, ss: "b", srt: "o", sv: "2018-11-09" }, free: ["sp", "sip", "spr"] },
  { fixed: { ...service, ss: "b", srt: "o", sv: "2020-12-06" }, free: ["sp", "ses", "srt"] },
  { fixed: { ...service, sr: "b", sv: "2012-02-12" }, free: ["si", "sp"] },
  { fixed: { ...service, sr: "b", sv: "2013-08-15" }, free: ["si", "rscc", "rsct"] },
  { fixed: { ...service, sr: "b", sv: "2018-11-09" }, free: ["si", "rscc", "rsct", "rscd"] },
  { fixed: { ...service, sr: "b", sv: "2020-12-06" }, free: ["si", "ses", "rscc", "rsct"] },
  { fixed: { ...service, ...key5, sr: "c", sv: "2020-12-06" }, free: ["ses", "rscc", "rsct", "scid"] },
  { fixed: { ...service, ...key5, sr: "c", sv: "2026-04-06" }, free: ["ses", "rscc", "rscd", "rsct", "srh", "srq"] },
];
const listOfNames = fc
  .array(fc.constantFrom("x-ms-a", "X-ms-a", "x-ms-b", "prefix", "include", "x-ms-a:b", "a:b", "", "x\nb"), { maxLength: 3 })
  .map((names) => names.join(","));

const sasRequest = fc.record({
  kind: fc.constantFrom(...kinds),
  values: fc.dictionary(fc.constantFrom("si", "ses", "rscc", "rscd", "rsct", "scid", "sp", "srt", "sip"), value),
  srh: listOfNames,
  srq: listOfNames,
  name: fc.constantFrom("a", "a\nb", "a\n\n"),
  headers: fc.dictionary(fc.constantFrom("x-ms-a", "x-ms-b"), headerValue),
  query: fc.array(fc.tuple(fc.constantFrom("include", "prefix", "a:b"), value), { maxLength: 3 }),
});

test("Shared Key: names that are no tokens, and line breaks, are refused", () => {
  const code = (query: [string, string][], headers: HttpHeaders): string =>
    codeOf(
      stringToSign(
        "SharedKey",
        {
          service: "blob",
          method: "GET",
          account: "acct",
          rawPath: "/acct/c",
          query: new Map(query.map(([name, one]) => [name, [one]])),
          headers,
          version: "2025-01-05",
        },
        compareByCodeUnit,
      ),
    );
  assert.equal(code([["a", "b:c"]], { "x-ms-a": "b:c" }), "ok");
  for (const name of ["a:b", "", "a b", "a\nb"]) assert.equal(code([[name, "c"]], {}), "AuthenticationFailed", name);
  assert.equal(code([["a", "b\nc:d"]], {}), "AuthenticationFailed");
  assert.equal(code([], { "x-ms-a:b": "c" }), "AuthenticationFailed");
  assert.equal(code([], { "x-ms-a": "b\nx-ms-b:c" }), "AuthenticationFailed");
  assert.equal(code([], { "content-type": "a\nb" }), "AuthenticationFailed");
});

test("account, service and user delegation SAS: no two requests have one text", () => {
  const texts = new Texts();
  fc.assert(
    fc.property(sasRequest, ({ kind, values, srh, srq, name, headers, query }) => {
      const changed: Record<string, string> = { ...values, srh, srq };
      const fields: Record<string, string> = { ...kind.fixed };
      for (const field of kind.free) if (changed[field]) fields[field] = changed[field];
      const all = new Map<string, string[]>([...queryOf({ ...fields, sig: anySignature })].map(([one, had]) => [one, [...had]]));
      for (const [one, had] of query) all.set(one, [...(all.get(one) ?? []), had]);
      const sas = parseSas(all);
      if (!sas.ok) return;
      const resource = { ...blob, blob: name };
      const signed = { service: "blob", account: "acct", resource, query: all, headers } as const;
      const bound = (list: string | undefined): string[] => (list ? list.split(",") : []);
      texts.add(sasStringToSign(sas.value, signed), [
        sorted(fields),
        fields.sr === "b" ? name : "",
        bound(fields.srh).map((one) => headers[one.toLowerCase()] ?? null),
        bound(fields.srq).map((one) => all.get(one.toLowerCase()) ?? null),
      ]);
    }),
    { numRuns: 20_000 },
  );
  assert.ok(texts.taken > 1_000 && texts.refused > 500, `${texts.taken} taken, ${texts.refused} refused`);
});

test("what a user delegation SAS binds can't be shaken off", () => {
  const fields = { ...service, ...key5, sr: "c", sv: "2026-04-06", srh: "x-ms-a,x-ms-b", srq: "prefix,include" };
  const own = { prefix: "mine", include: "metadata" };
  const headers: HttpHeaders = { "x-ms-a": "1", "x-ms-b": "2" };
  const requestOf = (query: Query, sent = headers) => ({ service: "blob", account: "acct", resource: blob, query, headers: sent }) as const;
  const query = queryOf({ ...fields, ...own });
  const text = sasStringToSign(valid(fields), requestOf(query));
  assert.ok(text.ok);
  const sig = Buffer.from(hmacSha256(key, utf8(text.value))).toString("base64");
  const check = (changed: Record<string, string>, asked: Query, sent?: HttpHeaders) =>
    checkSasSignature(valid({ ...fields, ...changed, sig }), requestOf(asked, sent), { keys: [{ key, is: 0 }], hmacSha256, equal });
  assert.equal(codeOf(check({}, query)), "ok");

  // A newline in the first parameter's value stands for the second one, which is free then.
  const injected = queryOf({ ...own, prefix: "mine\ninclude:metadata", include: "deleted" });
  assert.match(detailOf(check({ srq: "prefix" }, injected)), /line break/);
  assert.match(detailOf(check({}, new Map([...query, ["include", ["metadata", "deleted"]]]))), /include.* more than once/);
  assert.match(detailOf(check({ srh: "x-ms-a:1,x-ms-b" }, query)), /no name of a header/);
  assert.match(detailOf(check({ srh: "x-ms-a,X-MS-A" }, query)), /more than once/);
  assert.match(detailOf(check({}, query, { "x-ms-a": "1" })), /lacks x-ms-b/);
  assert.match(detailOf(check({}, query, { "x-ms-a": "1\nx-ms-b:2" })), /lacks x-ms-b|line break/);
  assert.equal(codeOf(check({ srh: "x-ms-a" }, query)), "AuthenticationFailed");
});
