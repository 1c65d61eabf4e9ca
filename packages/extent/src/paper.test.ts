/**
 * Claims of the paper (Calder et al., "Windows Azure Storage", SOSP 2011) that this package is about, each by its section.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, extentId, extentVersion, ownerEpoch } from "@stamp/base";
import { PrimaryWindow } from "./replica/primary-window.ts";
import { Replica } from "./replica/replica.ts";
import type { ReplicaMeta } from "./replica/replica-meta.ts";

const meta: ReplicaMeta = {
  extentId: extentId(1),
  version: extentVersion(1),
  ownerEpoch: ownerEpoch(1),
  state: "open",
  fenced: false,
  restarted: false,
  sealedLengthBytes: undefined,
  checksum: undefined,
  durableBytes: 0,
  committedBytes: 0,
  appliedLsn: 0,
  replicas: ["a", "b", "c"].map((nodeId) => ({ nodeId, address: nodeId, diskId: nodeId })),
  damage: "",
};

test("4.2: the primary is always the same while an extent is open, and it picks the offset", () => {
  const primary = new Replica(meta, allRules);
  assert.equal(primary.refuseAppend("b", ownerEpoch(1), 0)?.reason, "notPrimary");
  assert.deepEqual([primary.accept(30, 0), primary.accept(12, 0), primary.accept(1, 0)], [0, 30, 42]);
});

test("4.3.1: an append is acknowledged only when all three replicas hold it, and in order when several are outstanding", () => {
  const window = new PrimaryWindow<string>(allRules, 3, 0);
  window.add(0, 30, "first");
  window.add(30, 12, "second");
  for (const replica of [0, 1, 2]) assert.deepEqual(window.durable(replica, 42).acknowledged, []);
  window.durable(0, 30);
  window.durable(2, 30);
  assert.deepEqual(
    window.durable(1, 30).acknowledged.map((each) => each.item),
    ["first", "second"],
  );
});

test("4.1: an append of several blocks is atomic: it ends at one offset, which all its blocks share", () => {
  const window = new PrimaryWindow<string>(allRules, 3, 0);
  window.add(0, 90, "three blocks");
  for (const replica of [0, 1, 2]) assert.equal(window.durable(replica, 30).acknowledged.length, 0);
  assert.equal(window.fail(90).failed.length, 1);
});

test("4.3: once sealed, an extent is immutable: no append, no other length, for ever", () => {
  const replica = new Replica(meta, allRules);
  replica.accept(30, 0);
  replica.durableTo(30);
  replica.seal(30, extentVersion(2), 1);
  assert.equal(replica.refuseAppend("a", ownerEpoch(9), 30)?.reason, "extentSealed");
  assert.equal(replica.refuseSeal(29, 1)?.reason, "extentSealed");
  assert.equal(new Replica(replica.meta, allRules).refuseAppend("a", ownerEpoch(9), 30)?.reason, "extentSealed");
});
