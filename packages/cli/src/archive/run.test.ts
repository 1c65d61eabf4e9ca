/** Tests what is said of a service that does not answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { withWords } from "./run.ts";

test("import: a source that can't be reached is named, not the target", async () => {
  const url = "http://127.0.0.1:20000/devstoreaccount1?comp=list";
  const refused = Object.assign(new Error("connect ECONNREFUSED"), { code: "REQUEST_SEND_ERROR", request: { url } });
  await assert.rejects(
    withWords("http://127.0.0.1:10000/acme", () => Promise.reject(refused)),
    /^Error: http:\/\/127\.0\.0\.1:20000 can't be reached/,
  );
});
