/** After a restore of the metadata store a range begins with the last record whose checkpoints are in extents that the store knows. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PartitionState } from "@stamp/lsm";
import { isWhole, rolledBack } from "./rolled-back.ts";

const checkpointIn = (id: number, ...extentIds: readonly number[]) => ({
  id,
  indexPlaces: extentIds.map((extentId) => ({ extentId, offsetBytes: 0, lengthBytes: 1 })),
  bytes: 1,
  entryCount: 1,
  minSequence: 1,
  maxSequence: id * 10,
});
const record = (recordNumber: number, checkpoints: PartitionState["checkpoints"], more: Partial<PartitionState> = {}): PartitionState => ({
  rangeId: "r1",
  ownerEpoch: 1,
  recordNumber,
  checkpoints,
  checkpointedSequence: recordNumber * 10,
  lastTicket: recordNumber * 100,
  logStartExtentId: recordNumber,
  nextCheckpointId: recordNumber + 1,
  ...more,
});
/** The restored store knows extents below 10. */
const knows = (extentId: number): boolean => extentId < 10;

test("load: a range whose newest checkpoints the restored store does not know goes back to the last one that it knows", () => {
  const one = checkpointIn(1, 5);
  const left = record(2, [one], { rangeId: "r0" });
  const split = record(7, [one], { heirs: ["r2"] });
  const newest = record(9, [checkpointIn(9, 9, 10), one], { shippedFences: { aa: 7 }, needs: { row: 6 } });
  assert.equal(isWhole(newest, knows), false);
  const back = rolledBack(newest, [left, record(3, []), record(5, [one]), split, record(8, [checkpointIn(8, 11)]), newest], knows);
  assert.deepEqual(back, {
    ...newest,
    checkpoints: [one],
    checkpointedSequence: 50,
    logStartExtentId: 5,
    logStart: undefined,
    rest: undefined,
  });
  assert.equal(rolledBack(newest, [left, newest], knows), undefined, "nothing that the range can begin with");
});
