/** After a restore of the metadata store a range begins with the last record whose checkpoints are in extents that the store knows. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PartitionState } from "@stamp/lsm";
import { type IsReadable, isWhole, LogGaps, rolledBack, withoutUnknown } from "./rolled-back.ts";

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
const isReadable: IsReadable = async ({ indexPlaces }) => indexPlaces.every(({ extentId }) => extentId < 10);

test("load: a range whose newest checkpoints the restored store does not know goes back to the last one that it knows", async () => {
  const one = checkpointIn(1, 5);
  const left = record(2, [one], { rangeId: "r0" });
  const split = record(7, [one], { heirs: ["r2"] });
  const newest = record(9, [checkpointIn(9, 9, 10), one], { shippedFences: { aa: 7 }, needs: { row: 6 } });
  assert.equal(await isWhole(newest, isReadable), false);
  const back = await rolledBack(
    newest,
    [left, record(3, []), record(5, [one]), split, record(8, [checkpointIn(8, 11)]), newest],
    isReadable,
  );
  assert.deepEqual(back, {
    ...newest,
    checkpoints: [one],
    checkpointedSequence: 50,
    logStartExtentId: 5,
    logStart: undefined,
    rest: undefined,
  });
  assert.equal(await rolledBack(newest, [left, newest], isReadable), undefined, "nothing that the range can begin with");
});

test("load: without a whole record the checkpoints that are known stay, and those that were given up are counted", async () => {
  const one = checkpointIn(1, 5);
  const newest = record(9, [checkpointIn(9, 9, 10), one, checkpointIn(8, 12)], { losses: { commits: [[3, 4]], checkpoints: 1 } });
  const kept = await withoutUnknown(newest, isReadable);
  assert.deepEqual(kept.checkpoints, [one]);
  assert.deepEqual(kept.losses, { commits: [[3, 4]], checkpoints: 3 });
});

test("load: gaps of a log are passed after a restore only, and those that were passed stay passable (rule restoredLogsMayLack)", () => {
  const restored = new LogGaps(record(9, []), true);
  assert.equal(restored.losses, undefined);
  assert.ok(restored.passes(5, 9) && restored.passes(12, 12));
  assert.deepEqual(restored.losses, {
    commits: [
      [5, 9],
      [12, 12],
    ],
    checkpoints: 0,
  });
  const later = new LogGaps(record(10, [], { losses: restored.losses }), false);
  assert.ok(later.passes(5, 9) && later.passes(6, 9));
  assert.ok(!later.passes(5, 10) && !later.passes(13, 13));
  assert.deepEqual(later.losses, restored.losses);
});
