/** Lineages of a commit log: what begins a new one at a load, and what a merge leaves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { timeNumber, unwrap } from "@stamp/base";
import { decodeState, encodeState, joinedState, type PartitionState } from "./index.ts";
import { lineageAtLoad } from "./log-lineage.ts";

const crc32c = (bytes: Uint8Array): number => bytes.reduce((total, byte) => (total * 31 + byte) >>> 0, 7);
const wallMs = Date.UTC(2026, 10, 28);
const cursorAt = (sequence: number) => ({ a: { sequence, low: "61", high: "62", note: "" } });

test("lineages: a load goes on with the stored one, unless the store was put back or the log ends before a follower's cursor", () => {
  const at = (found: Partial<Parameters<typeof lineageAtLoad>[0]>) =>
    lineageAtLoad({ stored: undefined, store: 0, cursors: cursorAt(10), end: 10, wallMs, ...found });
  assert.deepEqual(at({}), { log: 0, store: 0 });
  assert.deepEqual(at({ stored: { log: 7, store: 5 } }), { log: 7, store: 5 }, "a stream manager of an older release says nothing");
  assert.deepEqual(at({ stored: { log: 7, store: 7 }, store: 7 }), { log: 7, store: 7 });
  assert.deepEqual(at({ store: 9 }), { log: 9, store: 9 }, "the store was put back");
  assert.deepEqual(at({ stored: { log: 7, store: 5 }, store: 6 }), { log: 8, store: 6 }, "put back by a host whose clock is behind");
  assert.deepEqual(at({ end: 9 }), { log: timeNumber(wallMs), store: 0 }, "the log ends before a cursor");
  const above = timeNumber(wallMs) + 4;
  assert.deepEqual(at({ end: 9, stored: { log: above, store: 0 } }), { log: above + 1, store: 0 });
  assert.ok(timeNumber(wallMs + 1_000) > timeNumber(wallMs));
});

test("lineages: a merge has the higher ones; a state with odd ones is damaged", () => {
  const state: PartitionState = {
    rangeId: "r",
    ownerEpoch: 1,
    recordNumber: 1,
    checkpoints: [],
    checkpointedSequence: 4,
    lastTicket: 4,
    logStartExtentId: 0,
    nextCheckpointId: 1,
  };
  const own = { low: new Uint8Array(0), high: new Uint8Array(0) };
  const joined = joinedState({ ...state, lineage: { log: 3, store: 2 } }, own, { ...state, lineage: { log: 9, store: 1 } }, own);
  assert.deepEqual(joined.lineage, { log: 9, store: 2 });
  assert.deepEqual(joinedState(state, own, { ...state, lineage: { log: 9, store: 1 } }, own).lineage, { log: 9, store: 1 });
  assert.equal(joinedState(state, own, state, own).lineage, undefined);
  const lineage = { log: 1, store: 1 };
  assert.deepEqual(unwrap(decodeState(encodeState({ ...state, lineage }, crc32c), crc32c)).lineage, lineage);
  for (const odd of [{ log: 1 }, { log: 1.5, store: 0 }, { log: "1", store: 0 }, null]) {
    const decoded = decodeState(encodeState({ ...state, lineage: odd as never }, crc32c), crc32c);
    assert.ok(!decoded.ok && decoded.failure.reason === "damaged", JSON.stringify(odd));
  }
});
