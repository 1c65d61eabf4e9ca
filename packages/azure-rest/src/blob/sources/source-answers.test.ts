/**
 * Answers of sources outside of the stamp are not trusted: any answer is understood or refused, never thrown over,
 * never believed too far.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import fc from "fast-check";
import { isErrorCode } from "../../error-codes.ts";
import { allowedSource, parseSourcePattern } from "./allowed-sources.ts";
import { parseCopySource, urlOf } from "./copy-headers.ts";
import { parseSourceAnswer, parseSourcePages, sourceError, sourceRequestHeaders } from "./source-answers.ts";

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom("bytes 0-9/10", "bytes 5-2/3", "bytes */3", "10", "-1", '"e"', "PageBlob"),
);
const name = fc.constantFrom(
  "content-length",
  "content-range",
  "etag",
  "content-md5",
  "x-ms-blob-content-md5",
  "x-ms-blob-type",
  "x-ms-error-code",
  "x-ms-blob-sequence-number",
  "x-ms-meta-a",
  "x-ms-meta-1 2",
);

test("source answers: any status and headers are understood or refused", () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), fc.dictionary(name, text, { maxKeys: 8 }), (status, headers) => {
      const answer = parseSourceAnswer(status, headers, undefined);
      if (!answer.ok) {
        assert.ok(isErrorCode(answer.error.code) && answer.error.status >= 400);
        return;
      }
      assert.ok(status === 200 || status === 206);
      const { properties, startBytes, lengthBytes } = answer.value;
      assert.ok(Number.isSafeInteger(lengthBytes) && lengthBytes >= 0);
      assert.ok(startBytes + lengthBytes <= properties.contentLengthBytes);
    }),
    { numRuns: 2_000 },
  );
});

test("source answers: what the source refuses becomes the service's code, with what it said", () => {
  for (const [status, code, expected] of [
    [403, "AuthorizationFailure", "403 CannotVerifyCopySource 403 AuthorizationFailure"],
    [404, undefined, "404 CannotVerifyCopySource 404 -"],
    [302, undefined, "400 CannotVerifyCopySource 302 -"],
    [503, "ServerBusy", "500 CannotVerifyCopySource 503 ServerBusy"],
    [404, "no code\r\nx-evil: 1", "404 CannotVerifyCopySource 404 -"],
    [412, "ConditionNotMet", "412 SourceConditionNotMet 412 ConditionNotMet"],
    [304, undefined, "412 SourceConditionNotMet 304 -"],
    [416, "InvalidRange", "416 InvalidRange - -"],
    [409, "BlobArchived", "409 BlobArchived - -"],
  ] as const) {
    const error = sourceError(status, code === undefined ? {} : { "x-ms-error-code": code });
    const { "x-ms-copy-source-status-code": told = "-", "x-ms-copy-source-error-code": toldCode = "-" } = error?.headers ?? {};
    assert.equal(`${error?.status} ${error?.code} ${told} ${toldCode}`, expected);
  }
});

test("source answers: page lists are in order, aligned, or refused", () => {
  const range = fc.tuple(fc.integer({ min: -512, max: 4096 }), fc.integer({ min: -512, max: 4096 }));
  fc.assert(
    fc.property(fc.array(range, { maxLength: 6 }), fc.boolean(), (ranges, more) => {
      const listed = ranges.map(([start, end]) => `<PageRange><Start>${start}</Start><End>${end}</End></PageRange>`).join("");
      const pages = parseSourcePages(utf8(`<PageList>${listed}${more ? "<NextMarker>m</NextMarker>" : ""}</PageList>`));
      if (!pages.ok) return;
      assert.equal(pages.value.more, more);
      let end = 0;
      for (const one of pages.value.ranges) {
        assert.ok(one.startBytes >= end && one.endBytes > one.startBytes && one.startBytes % 512 === 0 && one.endBytes % 512 === 0);
        end = one.endBytes;
      }
    }),
  );
  for (const bad of ["", "<PageList>", "<Other/>", "<!DOCTYPE x [<!ENTITY a 'b'>]><PageList/>"])
    assert.equal(parseSourcePages(utf8(bad)).ok, false);
});

test("source answers: only what is documented is sent to a source", () => {
  const sent = sourceRequestHeaders({
    authorization: "SharedKey of the destination",
    cookie: "x",
    host: "here",
    "x-ms-copy-source-authorization": "Bearer of the source",
    "x-ms-source-if-match": '"e"',
    "x-ms-lease-id": "of the destination",
    "if-match": "of the destination",
  });
  assert.deepEqual(Object.keys(sent).sort(), ["accept-encoding", "authorization", "if-match", "x-ms-version"]);
  assert.deepEqual([sent.authorization, sent["if-match"]], ["Bearer of the source", '"e"']);
});

test("copy sources: whatever URL a request names, it is read the same way again, and no pattern lets it somewhere else", () => {
  const patterns = [parseSourcePattern("https://*.good.example")].flatMap((pattern) => pattern ?? []);
  const host = fc.oneof(
    text,
    fc.constantFrom("a.good.example", "a.good.example:443", "a.good.example@evil", "evil#.good.example", "[::1].good.example"),
  );
  fc.assert(
    fc.property(fc.constantFrom("http", "https", "HTTPS", "ftp"), host, text, (scheme, authority, path) => {
      const url = parseCopySource({ "x-ms-copy-source": `${scheme}://${authority}/${path}` });
      if (!url.ok) return;
      assert.deepEqual(parseCopySource({ "x-ms-copy-source": urlOf(url.value) }), {
        ok: true,
        value: { ...url.value, shown: url.value.shown.replace(/^[^/]*\/\/[^/]*/, (head) => head.toLowerCase()) },
      });
      const allowed = allowedSource(patterns, url.value.secure, url.value.host);
      if (allowed) assert.match(allowed.hostname, /^[a-z0-9._-]+\.good\.example$/);
    }),
    { numRuns: 2_000 },
  );
});
