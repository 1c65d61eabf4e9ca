/** The order of repairs: the fewest intact copies first. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, extentVersion, ownerEpoch } from "@stamp/base";
import { assess, RepairQueue } from "./repair.ts";
import { replicas } from "./testing/harness.ts";

test("repair: the fewest intact copies first, each extent once; a lost replica before one of a node that is to be emptied", () => {
  const queue = new RepairQueue();
  queue.offer(extentId(1), 3, 10);
  queue.offer(extentId(2), 1, 20);
  queue.offer(extentId(3), 2, 30);
  queue.offer(extentId(1), 2, 10);
  queue.offer(extentId(4), 0, 0);
  assert.deepEqual([queue.size, queue.bytes, queue.endangered], [4, 60, 2]);
  queue.drop(extentId(4));
  assert.deepEqual([queue.take(), queue.take(), queue.take(), queue.take()], [2, 3, 1, undefined]);
  assert.deepEqual([queue.size, queue.bytes], [0, 0]);

  const extent = {
    id: extentId(1),
    phase: "sealed" as const,
    version: extentVersion(2),
    ownerEpoch: ownerEpoch(1),
    stream: "/s",
    replicas: replicas.map((replica) => ({ ...replica, complete: true })),
    sealedLengthBytes: 10,
    removed: [],
  };
  const judge = (states: string, one = extent) =>
    assess(one, 3, (replica) => {
      const state = states[one.replicas.indexOf(replica)];
      return { live: state === "l" || state === "d", lost: state === "x", leaving: state === "d" };
    });
  assert.deepEqual(judge("lll"), { kind: "fine" });
  assert.deepEqual(judge("lla"), { kind: "grace" });
  assert.deepEqual(judge("dlx"), { kind: "repair", replaced: extent.replicas[2], copiesLeft: 2 });
  assert.deepEqual(judge("dll"), { kind: "repair", replaced: extent.replicas[0], copiesLeft: 3 });
  assert.deepEqual(judge("xxa"), { kind: "unreachable" });
  assert.equal(judge("xxx", { ...extent, sealedLengthBytes: 0 }).kind, "repair", "an empty extent needs no source");
  assert.deepEqual(judge("dl", { ...extent, replicas: extent.replicas.slice(0, 2) }), {
    kind: "repair",
    replaced: undefined,
    copiesLeft: 2,
  });
});
