/** Questions of a view end with it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readRoute } from "./store.ts";
import { whileShown } from "./while-shown.ts";

test("lists of a view: a question ends when another view is opened, not when another thing is shown in its view", () => {
  readRoute("#/geo/acme");
  const signal = whileShown(60_000);
  readRoute("#/geo/other");
  assert.equal(signal.aborted, false);
  readRoute("#/events");
  assert.equal(signal.aborted, true);
  assert.equal(whileShown(60_000).aborted, false, "the next view asks anew");
});
