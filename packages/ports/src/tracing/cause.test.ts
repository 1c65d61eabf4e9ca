import assert from "node:assert/strict";
import { test } from "node:test";
import { causedTogether, causeOf } from "./cause.ts";

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

test("cause: what a caller sends is taken if it is an id, and a span if it is one of W3C Trace Context", () => {
  assert.deepEqual(causeOf({ "request-id": "a-1", traceparent }), { "request-id": "a-1", traceparent });
  for (const bad of [
    "",
    "00-00000000000000000000000000000000-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    `${traceparent}-x`,
    "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  ])
    assert.deepEqual(causeOf({ "request-id": "a-1", traceparent: bad }), { "request-id": "a-1" }, bad);
  for (const id of ["", "a b", "a\nb", "x".repeat(65), Array(17).fill("a").join()])
    assert.equal(causeOf({ "request-id": id }), undefined, id);
  assert.deepEqual(causeOf({ traceparent }), { "request-id": "0af7651916cd43dd8448eb211c80319c", traceparent });
  assert.equal(causeOf({ traceparent: "x" }), undefined);
  assert.equal(causeOf({}), undefined);
});

test("cause: work for several requests has their ids, sixteen at most, and the span of the first that is traced", () => {
  assert.equal(causedTogether([undefined, undefined]), undefined);
  const one = { "request-id": "a" };
  assert.equal(causedTogether([undefined, one]), one);
  assert.deepEqual(causedTogether([one, { "request-id": "b", traceparent }, undefined]), { "request-id": "a,b", traceparent });
  const many = causedTogether(Array.from({ length: 40 }, (_, at) => ({ "request-id": `r${at}` })));
  assert.equal(many?.["request-id"].split(",").length, 16);
  assert.deepEqual(causeOf(many ?? {}), many);
});
