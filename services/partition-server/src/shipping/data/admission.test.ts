/** Rows of another stamp are admitted if their bytes were written here for their PartitionName, are here and stay, and if the rows can be read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, concatBytes, type Outcome, ok } from "@stamp/base";
import { accountKeys, blobSchema, encodeKey, encodeRow, type Place } from "@stamp/objects";
import type { Row } from "@stamp/range-partition";
import { Simulation } from "@stamp/virtual-time";
import { admitted, keysAdmitted } from "./admission.ts";
import { type DataHandle, HandleKey, Vouchers } from "./data-handles.ts";
import { place, rowOf } from "./testing/bench.ts";

const sim = new Simulation({ seed: 1, rules: allRules });
const world = sim.world("server");
/** Extents from 10 on are about to leave the blob data. */
const range = {
  rangeId: "r",
  need: async () => ok(),
  ownsPlace: ({ extentId }: Place) => extentId < 10,
};
const reasonOf = (outcome: Outcome<void>): string => (outcome.ok ? "ok" : outcome.failure.reason);
const nameOf = (blob: string, account = "acct"): Uint8Array => encodeKey([[account], [1, "con", 7, blob]]);
const [mine, other] = [nameOf("mine"), nameOf("other")];
/** Rows of a blob that no release reads as a head: any bytes are good there. */
const keyOf = (name: Uint8Array, n = 0): Uint8Array => concatBytes([name, encodeKey([[3, 1, n]])]);
const rowsOf = (name: Uint8Array, values: readonly Uint8Array[]): Row[] => values.map((value, n) => [keyOf(name, n), value]);
const reads = { count: 0 };
const stored = (rows: readonly Row[]) => async (): Promise<readonly Row[]> => {
  reads.count++;
  return rows;
};
const asked = async (rows: readonly Row[], before: readonly Row[], vouchers?: Vouchers, isChecked = true): Promise<string> =>
  reasonOf(await sim.run(() => admitted(world, range, rows, stored(before), { table: "Blob", isChecked, vouchers })));

test("admission: while extents are about to leave, a row that grows keeps what it has in them, and gets nothing new there", async () => {
  const old = rowsOf(mine, [rowOf(place(11, 0, 100), place(12, 50, 100))]);
  const ask = (...values: Uint8Array[]) => asked(rowsOf(mine, values), old);
  assert.equal(await asked(rowsOf(mine, [rowOf(place(1, 0, 9))]), []), "ok");
  assert.equal(reads.count, 0, "nothing is read if all bytes are in extents that stay");
  assert.equal(await ask(rowOf(place(11, 0, 100), place(12, 50, 100), place(1, 0, 9))), "ok");
  assert.equal(await ask(rowOf(place(12, 60, 20))), "ok", "a part of it");
  assert.equal(await ask(rowOf(place(12, 60, 91))), "badPlace", "more than is there");
  assert.equal(await ask(rowOf(place(12, 49, 2))), "badPlace");
  assert.equal(await ask(rowOf(place(13, 0, 1))), "badPlace");
  assert.equal(await ask(rowOf(place(11, 0, 100)), rowOf(place(13, 0, 1))), "badPlace", "one row of two");
  assert.equal(await asked(rowsOf(mine, [rowOf(place(11, 0, 1))]), []), "badPlace");
  assert.equal(await asked(rowsOf(other, [rowOf(place(11, 0, 1))]), old), "badPlace", "the row of another PartitionName has it");
});

test("admission: without the rule geoPlacesChecked a row is written whose bytes are not here", async () => {
  assert.equal(await asked(rowsOf(mine, [rowOf(place(13, 0, 1))]), [], undefined, false), "ok");
});

test("admission: a row refers to bytes by a handle of its own PartitionName, or as the row before it does", async () => {
  const key = new HandleKey(world);
  const handle = (name: Uint8Array, at: Place, by = key): DataHandle => ({ place: at, mac: by.macOf(name, at) });
  const ask = (handles: readonly DataHandle[], at: Place, before: readonly Row[] = [], name = mine) =>
    asked(rowsOf(name, [rowOf(at)]), before, new Vouchers(key, handles));
  const written = place(1, 1_000, 500);
  assert.equal(await ask([handle(mine, written)], written), "ok");
  assert.equal(await ask([handle(mine, written)], place(1, 1_200, 300)), "ok", "a part of the bytes");
  assert.equal(await ask([], written), "badPlace", "no handle");
  assert.equal(await ask([handle(mine, written)], place(1, 999, 2)), "badPlace", "a byte before");
  assert.equal(await ask([handle(mine, written)], place(1, 1_400, 101)), "badPlace", "a byte behind");
  assert.equal(await ask([handle(mine, written)], place(2, 1_000, 500)), "badPlace", "another extent");
  assert.equal(await ask([handle(other, written)], written), "badPlace", "written for another blob");
  assert.equal(await ask([handle(nameOf("mine", "victim"), written)], written), "badPlace", "written for another account");
  assert.equal(await ask([handle(mine, written, new HandleKey(world))], written), "badPlace", "the key of another process");
  const wider = { place: place(1, 0, 5_000), mac: handle(mine, written).mac };
  assert.equal(await ask([wider], place(1, 0, 5_000)), "badPlace", "a handle that was widened");
  assert.equal(await ask([{ place: written, mac: new Uint8Array() }], written), "badPlace", "an empty code");
  assert.equal(await ask([], written, rowsOf(mine, [rowOf(written)])), "ok", "the row before it has them");
  assert.equal(await ask([], written, rowsOf(other, [rowOf(written)])), "badPlace", "the row of another blob has them");
  const many = Array.from({ length: 3_000 }, (_, n) => place(1 + (n % 3), n * 700, 500));
  const rows = rowsOf(mine, [rowOf(...many)]);
  const handles = many.map((at) => handle(mine, at));
  assert.equal(await asked(rows, [], new Vouchers(key, handles)), "ok");
  assert.equal(await asked(rows, [], new Vouchers(key, handles.slice(1))), "badPlace", "one of 3,000 is missing");
});

test("admission: a row is of its PartitionName, and can be read by whoever walks over all accounts of the range", async () => {
  const good: [Uint8Array, Uint8Array[]][] = [
    [mine, [keyOf(mine)]],
    [mine, []],
  ];
  for (const [name, keys] of good) assert.equal(reasonOf(keysAdmitted(name, keys)), "ok");
  const bad: [Uint8Array, Uint8Array[]][] = [
    [accountKeys("acct").low, [keyOf(mine)]],
    [mine.slice(0, -1), [keyOf(mine)]],
    [keyOf(mine), [keyOf(mine)]],
    [mine, [keyOf(other)]],
    [mine, [concatBytes([mine, new Uint8Array(20_000)])]],
    [new Uint8Array([5, 1, 0]), []],
  ];
  for (const [name, keys] of bad) assert.equal(reasonOf(keysAdmitted(name, keys)), "badRequest");
  const head = concatBytes([mine, encodeKey([[0]])]);
  const broken = Uint8Array.from([1, 1, 4, 9, 1, 1]);
  for (const [key, value] of [
    [head, Uint8Array.from([1, 1])],
    [head, broken],
    [head, encodeRow(blobSchema, { places: [] }).slice(0, -1)],
    [keyOf(mine), Uint8Array.from([1, 200])],
    [concatBytes([mine, encodeKey([[2]])]), Uint8Array.from([1, 5])],
  ] as Row[])
    assert.equal(await asked([[key, value]], []), "badRequest", Buffer.from(key).toString("hex"));
});
