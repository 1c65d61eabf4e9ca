/** Rows of another stamp are admitted if their bytes were written here for their PartitionName, are here and stay, and if the rows can be read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, concatBytes, type Outcome, ok } from "@stamp/base";
import { accountKeys, blobSchema, encodeKey, encodeRow, entitySchema, messageSchema, type Place } from "@stamp/objects";
import type { Turns } from "@stamp/ports";
import type { Row } from "@stamp/range-partition";
import { Simulation } from "@stamp/virtual-time";
import { admittedRows, keysAdmitted } from "./admission.ts";
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
  reasonOf(await sim.run(() => admittedRows(world, range, rows, stored(before), { table: "Blob", isChecked, vouchers })));

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

test("admission: every malformed row of every kind is refused: other types, bytes behind, cut short, unknown kinds and keys", async () => {
  const [table, entity, queue] = [
    [0, "con"],
    [1, "con", 7, "pk"],
    [1, "con", 7],
  ];
  const message = { message: 4n, inserted: 5n, expires: 6n, dequeueCount: 1, receiptSecret: new Uint8Array(16) };
  const good = [
    ["Entity", table, [], encodeRow(entitySchema, { name: "con", incarnation: 7n })],
    ["Entity", entity, ["rk"], encodeRow(entitySchema, { timestamp: 3n, properties: [{ name: "a", type: "int32", value: 1 }] })],
    ["Message", table, [], encodeRow(messageSchema, { created: 3n, metadata: [], incarnation: 7n })],
    ["Message", queue, [0], encodeRow(messageSchema, { generation: 1n, clock: 3n, count: 0n, headIndex: 0 })],
    ["Message", queue, [1, 1, 0, 10, 4, 0], encodeRow(messageSchema, message)],
    ["Message", queue, [1, 1, 1, 4], encodeRow(messageSchema, { text: "hello", expires: 6n })],
    ["Message", queue, [1, 1, 2, 6, 4], encodeRow(messageSchema, {})],
    ["Blob", table, [], encodeRow(blobSchema, { etag: 3n, lastModified: 4n, incarnation: 7n })],
    ["Blob", entity, [3, 1, 0], encodeRow(blobSchema, { inline: new Uint8Array(3) })],
  ] as const;
  const ask = async (of: (typeof good)[number][0], key: Uint8Array, value: Uint8Array): Promise<string> =>
    reasonOf(
      await sim.run(() => admittedRows(world, range, [[key, value]], stored([]), { table: of, isChecked: false, vouchers: undefined })),
    );
  for (const [of, partition, object, value] of good) {
    const at = (...more: readonly (string | number)[]) => encodeKey([["acct"], partition, [...object, ...more]]);
    const what = `${of} ${JSON.stringify([partition, object])}`;
    assert.equal(await ask(of, at(), value), "ok", what);
    assert.equal(await ask(of, at(), concatBytes([value, new Uint8Array(1)])), "badRequest", `${what}: a byte behind`);
    for (let length = 0; length < value.length; length++)
      assert.equal(await ask(of, at(), value.slice(0, length)), "badRequest", `${what}: ${length} of ${value.length} bytes`);
    if (value.length > 2) {
      const typed = value.slice();
      typed[3] = ((typed[3] ?? 0) % 10) + 1;
      assert.equal(await ask(of, at(), typed), "badRequest", `${what}: another type`);
    }
    assert.equal(await ask(of, at("x"), value), "badRequest", `${what}: one more element`);
    assert.equal(await ask(of, encodeKey([["acct"], [7, ...partition.slice(1)], object]), value), "badRequest", `${what}: an unknown kind`);
    assert.equal(await ask(of, encodeKey([["acct"], partition]), value), "badRequest", `${what}: no ObjectName`);
    const hidden = concatBytes([encodeKey([["acct"], partition]), new Uint8Array([3, 4])]);
    assert.equal(await ask(of, hidden, value), "badRequest", `${what}: a hidden row`);
    assert.equal(reasonOf(keysAdmitted(encodeKey([["acct"], partition]), [hidden])), "badRequest", `${what}: its deletion`);
  }
  for (const object of [[1, 1, 3, 4], [2], [1], [], ["a"]])
    assert.equal(await ask("Message", encodeKey([["acct"], queue, object]), encodeRow(messageSchema, {})), "badRequest", `${object}`);
  const state = encodeKey([["acct"], queue, [0]]);
  const cleared = (garbage: Uint8Array) => ask("Message", state, encodeRow(messageSchema, { generation: 1n, garbage }));
  assert.equal(await cleared(encodeKey([["acct"], queue, [1, 0]])), "ok");
  assert.equal(await cleared(encodeKey([["abba"]])), "badRequest", "rows of another account would be deleted as garbage of the queue");
});

test("admission: handles that lie in one another vouch for no more, and cost the sender its row at most", async () => {
  const key = new HandleKey(world);
  const handle = (name: Uint8Array, at: Place): DataHandle => ({ place: at, mac: key.macOf(name, at) });
  const written = place(1, 1_000, 500);
  const ask = (handles: readonly DataHandle[], at: Place) => asked(rowsOf(mine, [rowOf(at)]), [], new Vouchers(key, handles));
  const junk = Array.from({ length: 9 }, (_, n): DataHandle => ({ place: place(1, 900 + 50 * n, 9_000), mac: new Uint8Array(16) }));
  for (const at of [written, place(1, 1_010, 5), place(1, 1_400, 101), place(1, 5_000, 10)])
    assert.equal(await ask(junk, at), "badPlace", "junk alone");
  assert.equal(await ask([...junk, handle(mine, written)], place(1, 1_400, 101)), "badPlace", "a byte behind what was written");
  assert.equal(await ask([...junk, handle(other, written)], written), "badPlace", "another name's under junk");
  assert.equal(await ask([handle(mine, written), ...junk], place(1, 990, 20)), "badPlace");
});

test("admission: others go first while many handles are sorted, in whatever order they come", async () => {
  const key = new HandleKey(world);
  const places = Array.from({ length: 20_000 }, (_, n) => place(1 + (n % 2), n < 10_000 ? ((n * 7_919) % 10_000) * 10 : n * 10, 10));
  const junk = places[0] as Place;
  const handles = places.map((at): DataHandle => ({ place: at, mac: at === junk ? new Uint8Array(16) : key.macOf(mine, at) }));
  let turnsGiven = 0;
  let pending = 0;
  // Over after 1,000 looks.
  const turns = {
    get over() {
      pending += 1;
      return pending > 1_000;
    },
    next: async () => {
      pending = 0;
      turnsGiven += 1;
    },
  } as unknown as Turns;
  const vouchers = new Vouchers(key, handles);
  assert.equal(turnsGiven, 0, "nothing is sorted before a row needs it");
  assert.deepEqual(await vouchers.unvouched(mine, [junk], turns), [junk]);
  assert.ok(turnsGiven >= 20, `${turnsGiven} times`);
  assert.equal((await vouchers.unvouched(mine, places, turns)).length, 1, "every other handle is found");
});
