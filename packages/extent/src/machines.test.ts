/** The replica, the primary's window and the replay, without any I/O. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type ExtentId, extentId, extentVersion, ownerEpoch, rulesWithout } from "@stamp/base";
import fc from "fast-check";
import { encodePointerBody, encodeSealBody, type JournalHeader, type JournalType } from "./journal/journal-record.ts";
import { PointedData } from "./journal/pointed-data.ts";
import { Replay, type ReplayEffect } from "./journal/replay.ts";
import { PrimaryWindow } from "./replica/primary-window.ts";
import { Replica } from "./replica/replica.ts";
import { encodeMeta, type ReplicaMeta, unreadableMeta } from "./replica/replica-meta.ts";

const meta: ReplicaMeta = {
  extentId: extentId(1),
  version: extentVersion(1),
  ownerEpoch: ownerEpoch(5),
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
const epoch = ownerEpoch(5);

test("primary window: acknowledges in offset order, each when all hold it, whatever order the answers come in", () => {
  fc.assert(
    fc.property(
      fc.shuffledSubarray(
        Array.from({ length: 24 }, (_, i) => i),
        { minLength: 24, maxLength: 24 },
      ),
      (order) => {
        const window = new PrimaryWindow<number>(allRules, 3, 0);
        for (let i = 0; i < 8; i++) window.add(i * 10, 10, i);
        const acknowledged: number[] = [];
        const holders = new Map<number, Set<number>>();
        for (const each of order) {
          const append = Math.floor(each / 3);
          holders.set(append, (holders.get(append) ?? new Set()).add(each % 3));
          for (const done of window.durable(each % 3, append * 10 + 10).acknowledged) {
            assert.equal(holders.get(done.item)?.size, 3);
            acknowledged.push(done.item);
          }
        }
        assert.deepEqual(acknowledged, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert.equal(window.committedBytes, 80);
      },
    ),
  );
});

test("primary window: a failure fails that append and all after it; those before can still be acknowledged", () => {
  const window = new PrimaryWindow<number>(allRules, 2, 0);
  for (let i = 0; i < 4; i++) window.add(i * 10, 10, i);
  for (const replica of [0, 1]) window.durable(replica, 40);
  assert.deepEqual(
    window.fail(20).failed.map((each) => each.item),
    [1, 2, 3],
  );
  assert.equal(window.stopped, true);
  window.durable(0, 10);
  assert.deepEqual(
    window.durable(1, 10).acknowledged.map((each) => each.item),
    [0],
  );
  assert.throws(() => window.add(40, 10, 4));
});

test("primary window, rules off: too few holders are enough, and a later append lands behind a hole", () => {
  const two = new PrimaryWindow<number>(rulesWithout("ackNeedsAllReplicas"), 3, 0);
  two.add(0, 10, 0);
  two.durable(0, 10);
  assert.equal(two.durable(2, 10).acknowledged.length, 1);
  const hole = new PrimaryWindow<number>(rulesWithout("primaryStopsAtFailure"), 1, 0);
  hole.add(0, 10, 0);
  hole.add(10, 10, 1);
  hole.fail(10);
  assert.deepEqual(
    hole.durable(0, 20).acknowledged.map((each) => each.item),
    [1],
  );
});

test("replica: takes appends at its end only, from its primary's first incarnation only, until fenced, failed, restarted or sealed", () => {
  const replica = new Replica(meta, allRules);
  assert.equal(replica.refuseAppend("b", epoch, 0)?.reason, "notPrimary");
  assert.equal(replica.refuseAppend("a", ownerEpoch(4), 0)?.reason, "staleOwnerEpoch");
  assert.equal(replica.refuseAppend("a", epoch, 1)?.reason, "offsetGap");
  assert.equal(replica.refuseAppend("a", epoch, 0), undefined);
  replica.accept(10, 1);
  replica.rememberPrimary(3);
  assert.equal(replica.refuseReplicate(epoch, 10, 3), undefined);
  assert.equal(replica.refuseReplicate(epoch, 10, 4)?.reason, "extentStale");
  assert.equal(replica.refuseReplicate(epoch, 0, 3)?.reason, "offsetGap");
  const closers: [(each: Replica) => void, string][] = [
    [(each) => each.fence(), "extentFenced"],
    [(each) => each.fail(), "extentFailed"],
    [(each) => each.restart(), "extentStale"],
    [(each) => each.seal(0, extentVersion(2), 0), "extentSealed"],
    [(each) => each.markDamaged("test"), "damaged"],
  ];
  for (const [close, reason] of closers) {
    const closed = new Replica(meta, allRules);
    close(closed);
    assert.equal(closed.refuseAppend("a", epoch, 0)?.reason, reason);
    assert.equal(closed.refuseReplicate(epoch, 0, 1)?.reason, reason);
    assert.equal(new Replica(closed.meta, allRules).state === "open", false);
  }
});

test("replica: a restarted one serves nothing before it is sealed, a damaged one never", () => {
  const replica = new Replica({ ...meta, durableBytes: 100 }, allRules);
  assert.equal(replica.refuseRead(0, 100), undefined);
  assert.equal(replica.refuseRead(0, 101)?.reason, "outOfRange");
  replica.restart();
  assert.equal(replica.refuseRead(0, 10)?.reason, "extentStale");
  replica.seal(50, extentVersion(2), 7);
  assert.equal(replica.refuseRead(0, 50), undefined);
  assert.equal(replica.refuseRead(0, 51)?.reason, "outOfRange");
  assert.equal(replica.refuseSeal(60, 1)?.reason, "extentSealed");
  replica.markDamaged("test");
  assert.equal(replica.refuseRead(0, 1)?.reason, "damaged");
  assert.equal(replica.refuseSeal(50, 1)?.reason, "damaged");
});

test("replica, rules off: each is enforced in one place", () => {
  const gap = new Replica(meta, rulesWithout("clientExpectsOffset", "ownerEpochAtNode", "contiguousOffsets"));
  assert.equal(gap.refuseAppend("a", ownerEpoch(1), 500), undefined);
  assert.equal(gap.refuseReplicate(ownerEpoch(1), 500, 1), undefined);
  const again = new Replica(meta, rulesWithout("neverReopen"));
  again.restart();
  assert.equal(again.refuseAppend("a", epoch, 0), undefined);
  const untrimmed = new Replica({ ...meta, durableBytes: 10, restarted: true, state: "closed" }, rulesWithout("trimBeforeServing"));
  assert.equal(untrimmed.refuseRead(0, 10), undefined);
});

let lsn = 0;
function header(type: JournalType, offsetBytes = 0, bodyBytes = 0): JournalHeader {
  lsn += 1;
  const fixed = { generation: 1, syncedLsn: 0, bodyChecksum: 0, ownerEpoch: epoch, committedBytes: 0 };
  return { ...fixed, type, lsn, extentId: extentId(type === "term" ? 0 : 1), offsetBytes, bodyBytes };
}
const empty = new Uint8Array(0);
const created = (): Replay => {
  const replay = new Replay(new Map<ExtentId, Replica>(), allRules);
  replay.record(header("create"), encodeMeta(meta));
  return replay;
};
const only = (replay: Replay): Replica | undefined => replay.replicas.get(extentId(1));

test("replay: appends beyond the seal and of a deleted extent write nothing; what was open is restarted", () => {
  const replay = created();
  const first = header("append", 0, 100);
  assert.deepEqual(replay.record(first, empty), { kind: "write", offsetBytes: 0 });
  const second = header("append", 100, 50);
  replay.record(second, empty);
  const seal = header("seal", 100);
  assert.deepEqual(replay.record(seal, encodeSealBody({ version: 2, checksum: 3 })), { kind: "truncate", lengthBytes: 100 });
  assert.deepEqual(replay.record(second, empty), { kind: "none" });
  assert.deepEqual(replay.record(first, empty), { kind: "write", offsetBytes: 0 });
  assert.deepEqual(replay.record(seal, encodeSealBody({ version: 2, checksum: 3 })), { kind: "none" });
  replay.record(header("delete", 2), empty);
  assert.deepEqual(replay.record(first, empty), { kind: "none" });
  const open = created();
  const term = (number: number, lowerings: number) => ({ ...header("term", number), ownerEpoch: ownerEpoch(lowerings) });
  open.record(term(9, 0), empty);
  open.finish();
  assert.deepEqual(open.obeyed, { term: 9, lowerings: 0 });
  open.record(term(4, 1), empty);
  assert.deepEqual(open.obeyed, { term: 4, lowerings: 1 }, "a term after a lowering outweighs every one before");
  open.record(term(Number.MAX_SAFE_INTEGER, 0), empty);
  open.learnTerm({ term: Number.MAX_SAFE_INTEGER, lowerings: 0 });
  assert.deepEqual(open.obeyed, { term: 4, lowerings: 1 }, "in any order");
  open.record(term(5, 1), empty);
  assert.deepEqual(open.obeyed, { term: 5, lowerings: 1 });
  assert.deepEqual([only(open)?.state, only(open)?.restarted], ["closed", true]);
});

test("replay: a pointer counts as an append; what it points to is to be seen, unless it is known to be synced, cut off, or of a deleted extent", () => {
  const body = encodePointerBody({ lengthBytes: 500, checksum: 77 });
  const pointer = (offsetBytes: number): JournalHeader => header("pointer", offsetBytes, body.length);
  const replay = created();
  replay.record(header("append", 0, 100), empty);
  const first = pointer(100);
  assert.deepEqual(replay.record(first, body), { kind: "pointed", offsetBytes: 100, lengthBytes: 500, checksum: 77 });
  assert.equal(only(replay)?.endBytes, 600);
  const second = pointer(600);
  assert.equal(replay.record(second, body).kind, "pointed");
  replay.record(header("seal", 600), encodeSealBody({ version: 2, checksum: 3 }));
  assert.equal(replay.record(first, body).kind, "pointed");
  assert.deepEqual(replay.record(second, body), { kind: "none" });
  replay.record(header("delete", 2), empty);
  assert.deepEqual(replay.record(first, body), { kind: "none" });

  const gap = created();
  gap.record(pointer(100), body);
  assert.equal(only(gap)?.state, "damaged");
  const malformed = created();
  malformed.record(pointer(0), body.subarray(1));
  assert.equal(only(malformed)?.state, "damaged");
  const synced = new Replay(
    new Map([[extentId(1), new Replica({ ...meta, durableBytes: 500 }, allRules)]]),
    allRules,
    new Map([[extentId(1), 500]]),
  );
  assert.deepEqual(synced.record(pointer(0), body), { kind: "none" });
  assert.equal(synced.record(pointer(500), body).kind, "pointed");
});

test("replay: a replica whose file has no readable header is made anew only from a journal that has it all", () => {
  const replayed = (before: ReplicaMeta, behindCheckpoint: number): string | undefined => {
    const create = header("create");
    const replay = new Replay(new Map([[extentId(1), new Replica(before, allRules)]]), allRules);
    replay.checkpointLsn = create.lsn - behindCheckpoint;
    replay.record(create, encodeMeta(meta));
    return only(replay)?.state;
  };
  const unreadable = unreadableMeta(extentId(1), "no header");
  assert.equal(replayed(unreadable, 1), "open");
  assert.equal(replayed(unreadable, 0), "damaged");
  assert.equal(replayed({ ...meta, state: "damaged" }, 1), "damaged", "one whose header says so stays damaged");
});

test("pointed data: what a later record cuts off, replaces or deletes need not be in the file", () => {
  const id = extentId(1);
  const at = (offsetBytes: number): ReplayEffect => ({ kind: "pointed", offsetBytes, lengthBytes: 100, checksum: 1 });
  const left = (...effects: ReplayEffect[]): number[] => {
    const pointed = new PointedData();
    pointed.note(extentId(2), at(7));
    for (const effect of effects) pointed.note(id, effect);
    return [...pointed.all()].filter(([of]) => of === id).map(([, each]) => each.offsetBytes);
  };
  assert.deepEqual(left(at(0), { kind: "write", offsetBytes: 100 }, at(200), { kind: "none" }), [0, 200]);
  assert.deepEqual(left(at(0), at(200), { kind: "truncate", lengthBytes: 200 }), [0]);
  assert.deepEqual(left(at(0), at(100), { kind: "truncate", lengthBytes: 200 }), [0, 100]);
  assert.deepEqual(left(at(0), { kind: "adoptCopy" }), []);
  assert.deepEqual(left(at(0), { kind: "remove" }), []);
});

test("replay: a gap, a lost record at the end and a seal beyond the data mark the replica damaged, never shorter", () => {
  const gap = created();
  gap.record(header("append", 100, 50), empty);
  assert.equal(only(gap)?.state, "damaged");
  const lost = created();
  lost.record(header("append", 0, 50), empty);
  lost.lostRecords();
  lost.finish();
  assert.equal(only(lost)?.state, "damaged");
  assert.equal(lost.forgetful, true);
  const proven = created();
  proven.record(header("append", 0, 50), empty);
  proven.lostRecords();
  proven.record(header("append", 50, 50), empty);
  proven.finish();
  assert.equal(only(proven)?.state, "closed");
  const short = created();
  short.record(header("seal", 100), encodeSealBody({ version: 2, checksum: 3 }));
  assert.equal(only(short)?.state, "damaged");
});
