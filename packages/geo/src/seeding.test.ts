import assert from "node:assert/strict";
import { test } from "node:test";
import { seededSoFar } from "./seeding.ts";

test("what is seeded: large blobs behind few keys count by their bytes", () => {
  assert.equal(seededSoFar(7, 90, 100), 90);
});

test("what is seeded: a new owner counts by keys what an earlier one sent", () => {
  assert.equal(seededSoFar(60, 0, 100), 60);
});

test("what is seeded: never everything while the scan goes on", () => {
  assert.equal(seededSoFar(10, 250, 100), 99);
  assert.equal(seededSoFar(100, 10, 100), 99);
});
