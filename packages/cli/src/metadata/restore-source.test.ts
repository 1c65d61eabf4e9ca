/** A restore begins from a copy, or from what members of the lost majority still hold. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenSource, type RestoreSource, type SurvivingFolder } from "./restore-source.ts";

const stampId = "stamp";
const copyAt = (version: number): RestoreSource => ({
  about: { file: "copy", stampId, version, takenAt: "now" },
  withSnapshot: () => Promise.reject(new Error("not read here")),
});
/** `committed`: last transaction that the member knows to be committed; `last`: last one in its log. */
const member = (name: string, committed: number, last: number, lineage = "one"): SurvivingFolder => ({
  name,
  folder: `/${name}`,
  survivor: {
    snapshot: { stampId, version: last, takenAtMs: 0, lineage, entries: () => assert.fail("not read here") },
    committedVersion: committed,
    last: { term: 1, index: last },
    close: async () => {},
  },
});
const chosen = (given: RestoreSource | undefined, survived: readonly SurvivingFolder[], isFirstHere = true): string => {
  const source = chosenSource(given, survived, { first: "lock-service-1", isFirstHere, members: 3 });
  return source.member ?? source.about.file;
};

test("restore source, a majority has the copy's transactions in its logs and does not know them to be committed: it serves, nothing is restored", () => {
  const majority = [member("lock-service-2", 8, 10), member("lock-service-3", 7, 9)];
  const refused = /2 of 3 lock services hold the metadata \(lock-service-2 holds transaction 10, and copy (9|10)\)\. Start the stamp/;
  assert.throws(() => chosen(copyAt(9), majority), refused);
  assert.throws(() => chosen(copyAt(10), majority), refused);
  assert.equal(chosen(copyAt(11), majority), "copy", "their folders were put back: the copy has more");
});

test("restore source, one member or two of different lineages: they count as far as they know to be committed", () => {
  assert.equal(chosen(copyAt(9), [member("lock-service-2", 8, 10)]), "copy");
  assert.equal(chosen(copyAt(8), [member("lock-service-2", 8, 10)]), "lock-service-2");
  assert.equal(chosen(copyAt(9), [member("lock-service-2", 8, 10), member("lock-service-3", 1, 2, "other")]), "copy");
});

test("restore source, where the first lock service is not: a newer member is not restored there", () => {
  assert.throws(
    () => chosen(copyAt(8), [member("lock-service-2", 8, 10)], false),
    /take \/lock-service-2 to the lock service lock-service-1/,
  );
  assert.throws(() => chosen(undefined, []), /no lock service here holds anything/);
});
