/** One member that runs Raft over its store: when it may serve, and what it does while its disk is full or keeps it waiting. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { type FailureError, utf8 } from "@stamp/base";
import { DiskError, type KeyValueOperation } from "@stamp/ports";
import { aloneWith, type LoneMember } from "../testing/lone-member.ts";
import { encodeOperations } from "./records.ts";

const nothing = { kind: "data", data: encodeOperations([]) } as const;

/** Proposes as the leader; nobody hears of it, and each proposal is told that leadership was lost. */
async function proposeInVain({ member, sim }: LoneMember, count: number): Promise<void> {
  const { leading } = member;
  assert.ok(leading !== undefined);
  for (let i = 0; i < count; i++) {
    const refused = ({ failure }: FailureError): void => assert.equal(failure.reason, "notLeader");
    void member.propose(leading, nothing.data).then(() => assert.fail("it was not taken"), refused);
  }
  await sim.sleep(100);
}

test("member: elected again with a log that is shorter than the one that it had, it serves", async () => {
  await aloneWith(async (lone) => {
    const { member } = lone;
    await lone.readmit();
    await lone.elect();
    await lone.acknowledge();
    await proposeInVain(lone, 20);
    const { lastIndex } = member.status;
    // b leads with a log that has none of them.
    await lone.receive("b", 3, { kind: "heartbeat", round: 0, commit: 3, commitTerm: 2 });
    await lone.append(3, 3, 2, [nothing]);
    await lone.elect();
    await lone.acknowledge();
    assert.ok(member.status.lastIndex < lastIndex);
    assert.ok(member.leading !== undefined, "an entry of its term is applied");
  });
});

test("member: while its disk hangs it holds so many messages and no more, and goes on afterwards", async () => {
  let resume: (() => void) | undefined;
  let hangs = false;
  const batches =
    (write: (...batch: [readonly KeyValueOperation[], { readonly sync: boolean }]) => Promise<void>) =>
    async (...batch: Parameters<typeof write>): Promise<void> => {
      if (hangs) {
        await new Promise<void>((resolve) => {
          resume = resolve;
        });
      }
      await write(...batch);
    };
  await aloneWith(
    async (lone) => {
      const { member } = lone;
      await lone.readmit();
      hangs = true;
      await lone.append(1, 2, 1, [nothing]);
      for (let round = 1; round <= 10_000; round++) lone.give("b", 1, { kind: "heartbeat", round, commit: 3, commitTerm: 1 });
      assert.ok(member.facts.waiting <= 2, `${member.facts.waiting} after heartbeats`);
      const again = { kind: "append", prevIndex: 3, prevTerm: 1, entries: [], commit: 3 } as const;
      for (let i = 0; i < 10_000; i++) lone.give("b", 1, again);
      assert.equal(member.facts.waiting, 4_096);
      hangs = false;
      resume?.();
      await lone.sim.sleep(1_000);
      assert.deepEqual([member.facts.waiting, member.facts.applied], [0, 3]);
      await lone.append(1, 3, 1, [nothing]);
      assert.equal(member.facts.applied, 4);
    },
    { batches },
  );
});

/** Runs a test with a member whose disk is full for these batches while `disk.full`. */
async function onFullDisk(
  concerns: (keys: readonly string[]) => boolean,
  work: (lone: LoneMember, disk: { full: boolean; tries: number }) => Promise<void>,
): Promise<void> {
  const disk = { full: false, tries: 0 };
  await aloneWith((lone) => work(lone, disk), {
    logEntriesMax: 16,
    batches: (write) => async (operations, options) => {
      if (disk.full && concerns(operations.map(({ key }) => String.fromCharCode(...key)))) {
        disk.tries += 1;
        throw new DiskError("full", "consensus-1", "no space left on device");
      }
      await write(operations, options);
    },
  });
}

test("member: a disk that is full when the log is cut is waited for", async () => {
  await onFullDisk(
    (keys) => keys.includes("s"),
    async (lone, disk) => {
      await lone.readmit();
      disk.full = true;
      await lone.append(1, 2, 1, new Array(20).fill(nothing));
      await lone.sim.sleep(3_000);
      assert.ok(disk.tries > 3);
      assert.equal(lone.member.facts.diskFull, true);
      disk.full = false;
      await lone.sim.sleep(1_000);
      assert.equal(lone.member.facts.diskFull, false);
      await lone.append(1, 22, 1, [nothing]);
      assert.deepEqual([lone.member.facts.snapshotIndex, lone.member.facts.applied], [22, 23]);
    },
  );
});

test("member: a disk that is full when a piece of a snapshot comes is waited for", async () => {
  await onFullDisk(
    (keys) => keys.some((key) => key.startsWith("r/")),
    async (lone, disk) => {
      await lone.readmit();
      disk.full = true;
      const snapshot = { index: 50, term: 1, members: { voters: ["a", "b", "c"], learners: [] }, sessions: {} };
      await lone.receive("b", 1, { kind: "snapshotOffer", snapshot });
      const bytes = encodeOperations([{ kind: "put", key: utf8("k/x"), value: utf8("x") }]);
      await lone.receive("b", 1, { kind: "snapshotChunk", index: 50, offsetBytes: 0, bytes, last: false });
      await lone.sim.sleep(3_000);
      assert.ok(disk.tries > 3);
      disk.full = false;
      await lone.sim.sleep(1_000);
      const offsets = lone.sent.flatMap((message) => (message.kind === "snapshotAnswer" ? [message.offsetBytes] : []));
      assert.deepEqual(offsets, [0, bytes.length]);
    },
  );
});
