/** Rows of another stamp are admitted if their bytes are here and stay: in extents that nothing leaves, or in a row that they replace. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok } from "@stamp/base";
import type { Place } from "@stamp/objects";
import { admitted } from "./admission.ts";
import { place, rowOf } from "./testing/bench.ts";

/** Extents from 10 on are about to leave the blob data. */
const range = {
  rangeId: "r",
  need: async () => ok(),
  ownsPlace: ({ extentId }: Place) => extentId < 10,
};
const reasonOf = (outcome: Outcome<void>): string => (outcome.ok ? "ok" : outcome.failure.reason);
const reads = { count: 0 };
const stored =
  (...rows: Uint8Array[]) =>
  async (): Promise<readonly Uint8Array[]> => {
    reads.count++;
    return rows;
  };
const asked = async (rows: readonly Uint8Array[], before: readonly Uint8Array[], isChecked = true): Promise<string> =>
  reasonOf(await admitted(range, rows, stored(...before), isChecked));

test("admission: while extents are about to leave, a row that grows keeps what it has in them, and gets nothing new there", async () => {
  const old = rowOf(place(11, 0, 100), place(12, 50, 100));
  assert.equal(await asked([rowOf(place(1, 0, 9))], []), "ok");
  assert.equal(reads.count, 0, "nothing is read if all bytes are in extents that stay");
  assert.equal(await asked([rowOf(place(11, 0, 100), place(12, 50, 100), place(1, 0, 9))], [old]), "ok");
  assert.equal(await asked([rowOf(place(12, 60, 20))], [old]), "ok", "a part of it");
  assert.equal(await asked([rowOf(place(12, 60, 91))], [old]), "badPlace", "more than is there");
  assert.equal(await asked([rowOf(place(12, 49, 2))], [old]), "badPlace");
  assert.equal(await asked([rowOf(place(13, 0, 1))], [old]), "badPlace");
  assert.equal(await asked([rowOf(place(11, 0, 100)), rowOf(place(13, 0, 1))], [old]), "badPlace", "one row of two");
  assert.equal(await asked([rowOf(place(11, 0, 1))], []), "badPlace");
});

test("admission: without the rule geoPlacesChecked a row is written whose bytes are not here", async () => {
  assert.equal(await asked([rowOf(place(13, 0, 1))], [], false), "ok");
});
