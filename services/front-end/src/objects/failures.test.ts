import assert from "node:assert/strict";
import { test } from "node:test";
import { restErrorOf } from "./failures.ts";

test("what an older server can't take is an error that says so", () => {
  const message = "an operation on tables with what is not a filter";
  for (const [code, reason] of [
    ["invalidArgument", "badRequest"],
    ["unimplemented", "badRequest"],
  ] as const) {
    const error = restErrorOf({ code, reason, message, applied: "no" });
    assert.deepEqual([error.status, error.code], [500, "InternalError"]);
    assert.equal(error.message, `A server of this stamp, perhaps of another release, refused this request. (${reason}: ${message})`);
  }
});
