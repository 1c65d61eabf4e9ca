/** Replicas that a manager takes for those of a later metadata store, and replicas that have another reason to differ from the records. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExtentId, ExtentVersion, OwnerEpoch } from "@stamp/base";
import type { ExtentRecord, ReplicaPlace } from "@stamp/stream";
import { type ExtentReplica, ReplicaState } from "@stamp/wire";
import { LaterReplicas, whyLater } from "./later-replicas.ts";

const place = { nodeId: "en1", diskId: "d1" } as ReplicaPlace;
const open: ExtentRecord = {
  id: 7 as ExtentId,
  phase: "open",
  version: 3 as ExtentVersion,
  ownerEpoch: 1 as OwnerEpoch,
  stream: "/s",
  replicas: [{ ...place } as ExtentRecord["replicas"][number]],
  removed: [],
};
const replica = (version: bigint, durableBytes: bigint, state: ReplicaState = ReplicaState.OPEN) =>
  ({ extentId: 7n, version, durableBytes, state }) as ExtentReplica;

test("later replicas: a higher version is one, and so are bytes of an extent that was never opened", () => {
  assert.match(whyLater(open, place, replica(4n, 0n)) ?? "", /knows version 4 of extent 7, and the records only version 3/);
  const neverOpened: ExtentRecord = { ...open, phase: "dropped" };
  assert.match(whyLater(neverOpened, place, replica(3n, 10n)) ?? "", /holds 10 bytes of extent 7, which was never opened/);
});

test("later replicas: what a drop, a coding, a repair or a disk explains is none", () => {
  assert.equal(whyLater(undefined, place, replica(4n, 10n)), undefined);
  assert.equal(whyLater(open, place, replica(3n, 10n)), undefined);
  const neverOpened: ExtentRecord = { ...open, phase: "dropped" };
  assert.equal(whyLater(neverOpened, place, replica(3n, 0n)), undefined, "it was made, and nothing was written");
  assert.equal(whyLater(neverOpened, place, replica(3n, 10n, ReplicaState.DAMAGED)), undefined);
  assert.equal(whyLater({ ...neverOpened, droppedAtMs: 5 }, place, replica(9n, 10n)), undefined, "it was dropped after use");
  assert.equal(whyLater({ ...open, replicas: [] }, place, replica(4n, 10n)), undefined, "the node was replaced");
  assert.equal(whyLater({ ...open, attempt: {} as ExtentRecord["attempt"] & object }, place, replica(4n, 10n)), undefined);
});

test("later replicas: a node's are bounded, stay noted until they are released, and are told with the first reason", () => {
  const later = new LaterReplicas();
  for (let id = 0; id < 1_500; id++) later.note("en1", id as ExtentId, `reason ${id}`);
  const [told] = later.summary();
  assert.deepEqual([told?.nodeId, told?.count, told?.sample.length, told?.why], ["en1", 1_000, 10, "reason 0"]);
  for (const id of later.of("en1")) later.release("en1", id);
  assert.deepEqual(later.summary(), []);
});

test("later replicas: extents of before the last restore are none, as nodes know of what came after its copy", () => {
  const later = new LaterReplicas();
  later.floor = 8;
  later.note("en1", 7 as ExtentId, "a seal after the copy");
  assert.deepEqual(later.summary(), []);
  later.note("en1", 8 as ExtentId, "a seal that only a later store made");
  assert.equal(later.summary().length, 1);
});
