import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeDuty } from "@stamp/wire";
import { healthy, withFacts } from "../health/testing/healthy.ts";
import { nodeRows } from "./node-rows.ts";

const waited = { started: 4, waitedMs: 10, waitedMsMax: 7 };
const queue = {
  inHand: 1,
  queued: 2,
  oldestQueuedMs: 30,
  refused: 5,
  heldBack: {},
  ...Object.fromEntries(["journal", "append", "read", "repair", "scrub"].map((name) => [name, waited])),
};

test("nodes: a node has its queue, and that of the journal's own disk, with the mean wait of each class", () => {
  const told = { disk: queue, journalDisk: { ...queue, inHand: 9 }, journalFreeBytes: 17, freeBytes: 4, takesExtents: true, fragments: 6 };
  const [row] = nodeRows(withFacts("extent-node-1", told)(healthy));
  assert.deepEqual(
    row?.disks.map(({ name, freeBytes, inHand, waiting, oldestMs, refused }) => [name, freeBytes, inHand, waiting, oldestMs, refused]),
    [
      ["data", 4, 1, 2, 30, 5],
      ["journal", 17, 9, 2, 30, 5],
    ],
  );
  assert.deepEqual(row?.disks[0]?.classes[0], { name: "journal", started: 4, meanMs: 2.5, maxMs: 7 });
  assert.deepEqual([row?.takes, row?.fragments], ["everything", 6]);
});

test("nodes: what scrubbing does and found is told; a node that did not answer tells neither", () => {
  const scrub = { enabled: true, running: false, pass: 2, recent: [{ extentId: 8, atMs: 1, why: "a block's checksum is wrong" }] };
  const [row] = nodeRows(withFacts("extent-node-1", { scrub })(healthy));
  assert.deepEqual(row?.scrubFindings, ["extent 8: a block's checksum is wrong"]);
  assert.equal(row?.scrub, "waits for the next pass");
  const [silent] = nodeRows({ ...healthy, processes: [] });
  assert.deepEqual([silent?.scrub, silent?.takes, silent?.disks, silent?.fragments], ["", "", [], null]);
});

test("nodes: a decommissioned node is left out", () => {
  const layer = healthy.streamLayer;
  assert.ok(layer !== undefined);
  const nodes = layer.nodes.map((each, index) => (index === 0 ? { ...each, duty: NodeDuty.DECOMMISSIONED } : each));
  assert.equal(nodeRows({ ...healthy, streamLayer: { ...layer, nodes } }).length, layer.nodes.length - 1);
});
