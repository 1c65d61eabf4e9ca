import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import fc from "fast-check";
import { isErrorCode } from "../error-codes.ts";
import { type BatchRequest, batchAnswerText, batchRequestsMax, parseBatch, parseBatchBoundary } from "./batch.ts";

const envelope = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary";
const requestText = (n: number, blob = "b") =>
  `--x\r\n${envelope}\r\nContent-ID: ${n}\r\n\r\nDELETE /acct/c/${blob}?a=1 HTTP/1.1\r\nx-ms-date: today\r\nAuthorization: SharedKey a:b==\r\nContent-Length: 0\r\n\r\n`;
const read = (text: string, boundary = "x") => parseBatch(utf8(text), boundary);
const code = (result: { ok: boolean; error?: { code: string } }): string => (result.ok ? "ok" : (result.error?.code ?? ""));

const expected = (n: number): BatchRequest => ({
  contentId: String(n),
  method: "DELETE",
  target: "/acct/c/b?a=1",
  headers: { "x-ms-date": "today", authorization: "SharedKey a:b==", "content-length": "0" },
});
const plain = (requests: readonly BatchRequest[]) => requests.map((request) => ({ ...request, headers: { ...request.headers } }));

test("batch: requests come in order, with what their headers say", () => {
  const result = read(`${requestText(0)}${requestText(1)}--x--\r\n`);
  assert.ok(result.ok);
  assert.deepEqual(plain(result.value), [expected(0), expected(1)]);
});

test("batch: lines may end with LF, a preamble and an epilogue are nothing, the end may be missing", () => {
  const text = `preamble\r\n${requestText(0)}${requestText(1)}`;
  for (const variant of [text, `${text}--x--\r\nepilogue --x`, text.replaceAll("\r\n", "\n"), text.replaceAll("--x\r\n", "--x  \r\n")]) {
    const result = read(variant);
    assert.ok(result.ok, variant);
    assert.deepEqual(plain(result.value), [expected(0), expected(1)]);
  }
  const absolute = read(requestText(0).replace("/acct/c/b?a=1", "http://h:1/acct/c/b?a=1"));
  assert.ok(absolute.ok && absolute.value[0]?.target === "/acct/c/b?a=1");
});

test("batch: what is no request is refused as a whole", () => {
  for (const text of [
    "",
    "--x--",
    "--x\r\n\r\n",
    `--x\r\nContent-Type: text/plain\r\n\r\nDELETE /a HTTP/1.1\r\n\r\n`,
    `--x\r\n${envelope}\r\n\r\nnonsense\r\n`,
    `--x\r\n${envelope}\r\n\r\nDELETE /a HTTP/1.1\r\nno header\r\n`,
    `--x\r\n${envelope}\r\n\r\nPUT /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc\r\n`,
    `--x\r\n${envelope}\r\n\r\nPUT /a HTTP/1.1\r\n\r\nabc\r\n`,
  ]) {
    assert.equal(code(read(text)), "InvalidInput", JSON.stringify(text));
  }
  assert.equal(code(parseBatch(Uint8Array.of(0xff, 0xfe), "x")), "InvalidInput");
  assert.equal(code(parseBatch(new Uint8Array(4 * 1024 * 1024 + 1), "x")), "RequestBodyTooLarge");
});

test("batch: 256 requests, not one more", () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => requestText(i)).join("");
  assert.equal(code(read(many(batchRequestsMax))), "ok");
  assert.equal(code(read(many(batchRequestsMax + 1))), "ExceedsMaxBatchRequestCount");
});

test("batch: boundaries are found in the content type", () => {
  for (const [type, boundary] of [
    ["multipart/mixed; boundary=batch_1", "batch_1"],
    ['Multipart/Mixed; charset=x; boundary="a b"', "a b"],
    ["multipart/mixed;boundary=a;x=y", "a"],
  ] as const) {
    const result = parseBatchBoundary(type);
    assert.ok(result.ok && result.value === boundary, type);
  }
  for (const type of [undefined, "", "multipart/form-data; boundary=a", "multipart/mixed", `multipart/mixed; boundary=${"a".repeat(71)}`]) {
    assert.equal(code(parseBatchBoundary(type)), "InvalidHeaderValue");
  }
});

test("batch: any text is answered, and what was written as an answer is what a batch reader splits again", () => {
  const piece = fc.oneof(
    fc.string({ unit: "binary", maxLength: 20 }),
    fc.constantFrom("--x", "--x--", "\r\n", "\n", "\r\n\r\n", envelope, "DELETE /a HTTP/1.1", "Content-Length: 0", ":", requestText(1)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const result = read(pieces.join(""));
      if (!result.ok) assert.ok(isErrorCode(result.error.code) && result.error.status < 500);
      else assert.ok(result.value.length > 0 && result.value.every((request) => request.target.startsWith("/")));
    }),
    { numRuns: 2_000 },
  );
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void parseBatch(bytes, "x")));
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 100 }), (type) => void parseBatchBoundary(type)));
  const answers = [202, 404].map((status, i) => ({
    contentId: String(i),
    status,
    statusText: "T",
    headers: { a: "1", b: ["2", "3"] },
    body: i ? "<e/>" : "",
  }));
  const text = batchAnswerText("y", answers);
  assert.equal(text.split("--y\r\n").length, 3);
  assert.ok(text.endsWith("--y--\r\n") && text.includes("Content-ID: 1\r\n\r\nHTTP/1.1 404 T\r\na: 1\r\nb: 2\r\nb: 3\r\n\r\n<e/>\r\n"));
});
