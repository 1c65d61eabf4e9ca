import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type SignedParts, stringToSign } from "../auth/shared-key.ts";
import { isErrorCode } from "../error-codes.ts";
import type { Parsed } from "../rest-error.ts";
import { parseQuery } from "../target.ts";
import { entityContinuation, parseEntityContinuation } from "./continuation.ts";
import { doubleJson, entityEtag, formatDateTime, parseDateTime, parseDouble, timestampOfEtag } from "./edm.ts";
import { entityJson, entityPath, type JsonForm, parseEntity, type ShownEntity } from "./entity-json.ts";
import { type FilterStep, parseFilter } from "./filter.ts";
import { parseMetadataLevel } from "./format.ts";
import { jsonNamesMax, readFlatObject } from "./json-reader.ts";
import { parseTableQuery } from "./query.ts";
import { parseTableResource } from "./resource.ts";
import { parseTransaction, transactionResponse } from "./transaction.ts";

function value<T>(parsed: Parsed<T>): T {
  assert.ok(parsed.ok, parsed.ok ? "" : parsed.error.code);
  return parsed.value;
}

const codeOf = (parsed: Parsed<unknown>): string => (parsed.ok ? "ok" : parsed.error.code);

/** Postfix, as people read it. */
const shown = (steps: readonly FilterStep[]): string =>
  steps
    .map((step) => (step.kind === "compare" ? `${step.property} ${step.operator} ${step.constant.type}:${step.constant.value}` : step.kind))
    .join(", ");

test("filters: or binds weaker than and, and weaker than not, not weaker than a comparison", () => {
  const read = (text: string): string => shown(value(parseFilter(text)));
  assert.equal(read("a eq 1 or b eq 2 and c eq 3"), "a eq int32:1, b eq int32:2, c eq int32:3, and, or");
  assert.equal(read("(a eq 1 or b eq 2) and c eq 3"), "a eq int32:1, b eq int32:2, or, c eq int32:3, and");
  assert.equal(read("not a eq 1 and b eq 2"), "a eq int32:1, not, b eq int32:2, and");
  assert.equal(read("not (a eq 1 and b eq 2)"), "a eq int32:1, b eq int32:2, and, not");
  assert.equal(read("not not a"), "a eq bool:true, not, not");
  assert.equal(read("5 lt a"), "a gt int32:5");
  assert.equal(read("'x' ge a"), "a le string:x");
  assert.equal(read("a eq 2147483648L"), "a eq int64:2147483648");
  assert.equal(codeOf(parseFilter("a eq 2147483648")), "InvalidInput");
  assert.equal(read("true"), "");
  assert.equal(read("false"), "PartitionKey lt string:");
  assert.equal(read("not FALSE or a eq 1"), "");
  assert.equal(read("true and (false or a eq 1) and not (b eq 2 and false)"), "a eq int32:1");
  assert.equal(read("not true and a eq 1"), "PartitionKey lt string:");
  assert.equal(read("a eq True"), "a eq bool:true");
  assert.equal(
    read("a eq 1d or a eq -1.5E3 or a eq NaN or a eq -INF"),
    "a eq double:1, a eq double:-1500, or, a eq double:NaN, or, a eq double:-Infinity, or",
  );
  assert.equal(read("INFO eq 1 and nota eq 2 and ander eq 3"), "INFO eq int32:1, nota eq int32:2, and, ander eq int32:3, and");
  assert.equal(read(""), "");
});

test("filters: a program has at most 2,000 steps, so that a partition server takes it with a SAS's range of keys", () => {
  const many = (comparisons: number, nots: number): string =>
    Array.from({ length: comparisons }, () => `${"not ".repeat(nots)}a`).join(" or ");
  assert.equal(value(parseFilter(many(500, 2))).length, 1_999);
  assert.equal(codeOf(parseFilter(many(500, 3))), "InvalidInput");
  assert.equal(codeOf(parseFilter(`${many(500, 3)} or true`)), "ok");
});

test("$top: 0 is an empty page, beyond 1,000 and what is no number are refused", () => {
  const top = (text: string): string | number => {
    const query = parseTableQuery(value(parseQuery(`$top=${text}`)));
    return query.ok ? query.value.top : query.error.code;
  };
  assert.deepEqual(["0", "00", "1", "1000"].map(top), [0, 0, 1, 1_000]);
  for (const text of ["1001", "-1", "+1", "1.0", "x", "9999999999"]) assert.equal(top(text), "InvalidQueryParameterValue", text);
});

test("any text is answered as a filter, and what is understood is a program that leaves one value", () => {
  const word = fc.constantFrom(
    "a",
    "PartitionKey",
    "and",
    "or",
    "not",
    "eq",
    "lt",
    "(",
    ")",
    "'x'",
    "'it''s'",
    "5",
    "5L",
    "1.5",
    "true",
    "null",
    "X'0f'",
    "guid'x'",
    "datetime'2020-01-01T00:00:00Z'",
    "'",
  );
  const texts = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc.array(word, { maxLength: 14 }).map((words) => words.join(" ")),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const parsed = parseFilter(text);
      if (!parsed.ok) {
        assert.ok(isErrorCode(parsed.error.code));
        return;
      }
      let depth = 0;
      for (const { kind } of parsed.value) {
        assert.ok(depth >= (kind === "compare" ? 0 : kind === "not" ? 1 : 2));
        depth += kind === "compare" ? 1 : kind === "not" ? 0 : -1;
      }
      assert.equal(depth, parsed.value.length === 0 ? 0 : 1);
    }),
    { numRuns: 3_000 },
  );
});

test("times: every tick from 1601 to 9999 comes back, also from an ETag", () => {
  const first = parseDateTime("1601-01-01T00:00:00Z") as bigint;
  const last = parseDateTime("9999-12-31T23:59:59.9999999Z") as bigint;
  fc.assert(
    fc.property(fc.bigInt({ min: first, max: last }), (ticks) => {
      assert.equal(parseDateTime(formatDateTime(ticks)), ticks);
      assert.equal(timestampOfEtag(entityEtag(ticks)), ticks);
    }),
  );
  assert.equal(formatDateTime(-1n), "1969-12-31T23:59:59.9999999Z");
  assert.equal(formatDateTime(0n), "1970-01-01T00:00:00Z");
  for (const text of ["2020-02-30T00:00:00Z", "2020-01-01", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00.Z", "x"])
    assert.equal(parseDateTime(text), undefined);
  // Digits behind the seventh are cut, but not in ETags.
  assert.equal(formatDateTime(parseDateTime("2020-01-01T00:00:00.123456789Z") as bigint), "2020-01-01T00:00:00.1234567Z");
  assert.equal(parseDateTime("9999-12-31T23:59:59.999999999Z"), last);
  assert.equal(timestampOfEtag("W/\"datetime'2020-01-01T00:00:00.12345670Z'\""), undefined);
  for (const etag of ["*", '"0x8D"', "W/\"datetime'x'\"", "datetime'2020-01-01T00:00:00Z'", ""])
    assert.equal(timestampOfEtag(etag), undefined);
});

test("doubles: what is written is read as the same double, and is seen not to be an integer", () => {
  fc.assert(
    fc.property(fc.double(), (number) => {
      const text = doubleJson(number);
      const back = text.startsWith('"') ? parseDouble(text.slice(1, -1)) : parseDouble(text);
      assert.ok(Object.is(back, number), text);
      assert.ok(text.startsWith('"') || /[.e]/.test(text));
    }),
  );
});

const property = fc.oneof(
  fc.record({ type: fc.constant("string" as const), value: fc.string({ unit: "grapheme", maxLength: 20 }) }),
  fc.record({ type: fc.constant("bool" as const), value: fc.boolean() }),
  fc.record({ type: fc.constant("int32" as const), value: fc.integer() }),
  fc.record({ type: fc.constant("int64" as const), value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
  fc.record({ type: fc.constant("double" as const), value: fc.double() }),
  fc.record({ type: fc.constant("binary" as const), value: fc.uint8Array({ maxLength: 20 }) }),
  fc.record({ type: fc.constant("GUID" as const), value: fc.uint8Array({ minLength: 16, maxLength: 16 }) }),
  fc.record({ type: fc.constant("DateTime" as const), value: fc.bigInt({ min: 0n, max: 2n ** 57n }) }),
);
const properties = fc.uniqueArray(
  fc.tuple(fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,8}$/), property).map(([name, typed]) => ({ name, ...typed })),
  { selector: ({ name }) => name, maxLength: 8 },
);
const form = (metadata: JsonForm["metadata"]): JsonForm => ({ metadata, endpoint: "http://h/acct/", account: "acct" });

test("entities: an object of more names than any entity has is refused there, and nothing behind is looked at", () => {
  const names = (count: number): string => Array.from({ length: count }, (_, i) => `"P${i}":1`).join(",");
  assert.equal(value(parseEntity(`{${names(jsonNamesMax)}}`)).properties.length, jsonNamesMax);
  assert.equal(codeOf(parseEntity(`{${names(jsonNamesMax + 1)}, and this is not JSON`)), "TooManyProperties");
  assert.equal(codeOf(parseEntity(`{${names(3)}, and this is not JSON`)), "InvalidInput");
});

test("an entity that is shown is read as the same entity", () => {
  const reserved = ["PartitionKey", "RowKey", "Timestamp"];
  fc.assert(
    fc.property(properties, fc.constantFrom("minimal" as const, "full" as const), (list, metadata) => {
      const kept = list.filter(({ name }) => !reserved.includes(name));
      const entity: ShownEntity = { partitionKey: "p'", rowKey: "\u{1f600}", timestamp: 5n, properties: kept };
      const back = value(parseEntity(entityJson(form(metadata), "t", entity, [])));
      assert.deepEqual([back.partitionKey, back.rowKey], ["p'", "\u{1f600}"]);
      assert.deepEqual(
        back.properties.map((one) => [one.name, one.type, one.value instanceof Uint8Array ? [...one.value] : one.value]),
        kept.map((one) => [one.name, one.type, one.value instanceof Uint8Array ? [...one.value] : one.value]),
      );
    }),
  );
});

test("any text is answered as an entity, and whatever JSON.parse takes for a flat object is one here", () => {
  const flat = fc.dictionary(
    fc.string(),
    fc.oneof(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        flat.map((object) => JSON.stringify(object, null, 1)),
      ),
      (text) => {
        const parsed = parseEntity(text);
        assert.ok(parsed.ok || isErrorCode(parsed.error.code));
      },
    ),
    { numRuns: 1_000 },
  );
  fc.assert(
    fc.property(flat, (object) => {
      const read = readFlatObject(JSON.stringify(object));
      assert.ok(read.ok);
      assert.deepEqual(read.entries.map(([name]) => name).sort(), Object.keys(object).sort());
    }),
  );
  for (const text of ["{", '{"a"}', '{"a":01}', '{"a":1,}', "{} x", '{"a":"\u0001"}', '{"a":"\\x"}', "[]", "5", ""])
    assert.equal(codeOf(parseEntity(text)), "InvalidInput");
});

test("paths: any is answered, and the path of an entity names it", () => {
  const key = fc.string({ unit: "grapheme", maxLength: 8 }).filter((text) => !text.includes("/") && text.isWellFormed());
  fc.assert(
    fc.property(key, key, (partitionKey, rowKey) => {
      assert.deepEqual(value(parseTableResource(entityPath("tab", { partitionKey, rowKey }))), {
        kind: "entity",
        table: "tab",
        partitionKey,
        rowKey,
      });
    }),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((text) => `t(PartitionKey='${text}',RowKey='${text}'`),
      ),
      (path) => {
        const parsed = parseTableResource(path);
        assert.ok(parsed.ok || isErrorCode(parsed.error.code));
      },
    ),
  );
});

test("continuation tokens come back; others are refused", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (partitionKey, rowKey) => {
      const headers = entityContinuation({ partitionKey, rowKey });
      const text = Object.entries(headers).map(
        ([name, token]) => `${name.slice("x-ms-continuation-".length)}=${encodeURIComponent(token)}`,
      );
      const back = value(parseEntityContinuation(value(parseQuery(text.join("&")))));
      assert.deepEqual(back, { partitionKey: partitionKey.toWellFormed(), rowKey: rowKey.toWellFormed() });
    }),
  );
  for (const token of ["x", "1!4!abc", "2!4!abcd", "1!4!ab=d", "1!4!abcd!x"]) {
    assert.equal(codeOf(parseEntityContinuation(value(parseQuery(`NextPartitionKey=${token}`)))), "InvalidQueryParameterValue");
  }
});

test("transactions: what is written as one is read as it; any text is answered", () => {
  const body = fc.record({ PartitionKey: fc.string(), RowKey: fc.string() }).map((entity) => JSON.stringify(entity));
  fc.assert(
    fc.property(fc.array(body, { minLength: 1, maxLength: 5 }), fc.constantFrom("\r\n", "\n"), (bodies, end) => {
      const parts = bodies.flatMap((one) => [
        "--c",
        "Content-Type: application/http",
        "",
        "POST /acct/t HTTP/1.1",
        "Content-Type: application/json",
        "",
        one,
      ]);
      const text = ["--b", "Content-Type: multipart/mixed; boundary=c", "", ...parts, "--c--", "--b--", ""].join(end);
      const read = value(parseTransaction("multipart/mixed; boundary=b", text));
      assert.ok(read.kind === "changes");
      assert.deepEqual(
        read.requests.map((request) => request.body),
        bodies,
      );
    }),
  );
  const piece = fc.constantFrom(
    "--b",
    "--b--",
    "--c",
    "--c--",
    "\r\n",
    "\r\n\r\n",
    "Content-Type: multipart/mixed; boundary=c",
    "Content-Type: application/http",
    "POST /x HTTP/1.1",
    "GET /x HTTP/1.1",
    "{}",
    "x:y",
    ":",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 25 }), (pieces) => {
      const parsed = parseTransaction("multipart/mixed; boundary=b", pieces.join(""));
      assert.ok(parsed.ok || isErrorCode(parsed.error.code));
    }),
    { numRuns: 3_000 },
  );
});

test("answers of a transaction are parts of a change set, each with its status line", () => {
  const { contentType, body } = transactionResponse("7", "changes", [
    { status: 204, headers: { ETag: "x" }, body: "", contentId: "3" },
    { status: 409, headers: {}, body: "{}", contentId: undefined },
  ]);
  assert.equal(contentType, "multipart/mixed; boundary=batchresponse_7");
  assert.equal(
    body,
    "--batchresponse_7\r\nContent-Type: multipart/mixed; boundary=changesetresponse_7\r\n\r\n" +
      "--changesetresponse_7\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 204 No Content\r\nContent-ID: 3\r\nETag: x\r\n\r\n\r\n" +
      "--changesetresponse_7\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nHTTP/1.1 409 Conflict\r\n\r\n{}\r\n" +
      "--changesetresponse_7--\r\n--batchresponse_7--\r\n",
  );
});

test("the Table service signs method, MD5, type, date and path; Lite the date and the path", () => {
  const headers = {
    "x-ms-date": "d",
    date: "other",
    "content-type": "application/json",
    "content-md5": "m",
    "x-ms-version": "v",
    "content-length": "5",
  };
  const parts: SignedParts = {
    service: "table",
    method: "POST",
    account: "acct",
    rawPath: "/acct/t",
    query: value(parseQuery("comp=acl&timeout=5")),
    headers,
    version: "2019-02-02",
  };
  const order = (a: string, b: string): number => (a < b ? -1 : 1);
  assert.deepEqual(stringToSign("SharedKey", parts, order), { ok: true, value: "POST\nm\napplication/json\nd\n/acct/acct/t?comp=acl" });
  assert.deepEqual(stringToSign("SharedKeyLite", parts, order), { ok: true, value: "d\n/acct/acct/t?comp=acl" });
});

test("the form of an answer: $format before Accept, the first that is known of several", () => {
  const level = (accept: string | undefined, query = ""): string => {
    const parsed = parseMetadataLevel(accept === undefined ? {} : { accept }, value(parseQuery(query)));
    return parsed.ok ? parsed.value : parsed.error.code;
  };
  assert.equal(level(undefined), "minimal");
  assert.equal(level("*/*"), "minimal");
  assert.equal(level("application/json;odata=nometadata"), "none");
  assert.equal(level("application/atom+xml,application/json; odata=fullmetadata"), "full");
  assert.equal(level("application/atom+xml"), "AtomFormatNotSupported");
  assert.equal(level("application/json;odata=verbose"), "JsonVerboseFormatNotSupported");
  assert.equal(level("application/atom+xml", "$format=application/json;odata%3Dnometadata"), "none");
});
