/** Messages of Raft on the wire: each kind comes back as it was, a cluster works over their bytes, and malformed ones are refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { allRules, FailureError, utf8 } from "@stamp/base";
import { type Entry, firstSnapshot, type HardState, type Message, type MessageBody, Raft } from "@stamp/raft";
import { RaftMessageSchema, requestCheckOf } from "@stamp/wire";
import { messageFromWire, messageToWire } from "./wire-messages.ts";

const snapshot = { index: 9, term: 4, members: { voters: ["a", "b", "c"], learners: ["d"] }, sessions: { a: 2 ** 50 } };
const entries: Entry[] = [
  { index: 8, term: 3, body: { kind: "empty" } },
  { index: 9, term: 4, body: { kind: "data", data: new Uint8Array([0, 255, 7]) } },
  { index: 10, term: 4, body: { kind: "members", members: snapshot.members } },
  { index: 11, term: 5, body: { kind: "readmit", member: "b", session: 2 ** 53 - 1 } },
];
const bodies: readonly MessageBody[] = [
  { kind: "preVote", nextTerm: 6, lastIndex: 11, lastTerm: 5 },
  { kind: "preVoteAnswer", candidate: 77, nextTerm: 6, granted: true },
  { kind: "vote", lastIndex: 11, lastTerm: 5, transfer: true },
  { kind: "voteAnswer", candidate: 77, granted: false },
  { kind: "append", prevIndex: 7, prevTerm: 2, entries, commit: 6 },
  { kind: "appendAnswer", accepted: true, index: 11 },
  { kind: "appendAnswer", accepted: false, index: 7, hintIndex: 5, hintTerm: 1 },
  { kind: "heartbeat", round: 3, commit: 6, commitTerm: 2 },
  { kind: "heartbeatAnswer", round: 3 },
  { kind: "snapshotOffer", snapshot },
  { kind: "snapshotChunk", index: 9, offsetBytes: 2 ** 40, bytes: new Uint8Array([1, 2]), last: true },
  { kind: "snapshotAnswer", index: 9, offsetBytes: 1 },
  { kind: "timeoutNow" },
];

const bytesOf = (message: Message): Uint8Array => toBinary(RaftMessageSchema, create(RaftMessageSchema, messageToWire(message)));
const overWire = (message: Message): Message => messageFromWire(message.from, message.to, fromBinary(RaftMessageSchema, bytesOf(message)));

test("messages of Raft: each kind comes back from its bytes as it was", () => {
  assert.equal(new Set(bodies.map(({ kind }) => kind)).size, 12);
  for (const body of bodies) {
    const message: Message = { from: "a", to: "b", term: 5, session: 12, full: true, ...body };
    assert.deepEqual(overWire(message), message, body.kind);
  }
});

test("messages of Raft: what no member sends is refused, and throws nothing but a failure", () => {
  const [append] = bodies.filter(({ kind }) => kind === "append");
  const whole = bytesOf({ from: "a", to: "b", term: 5, session: 12, full: true, ...(append as MessageBody) });
  let refusals = 0;
  for (let at = 0; at < whole.length * 8; at++) {
    const bytes = whole.slice();
    bytes[at >> 3] = (bytes[at >> 3] as number) ^ (1 << (at & 7));
    let message: ReturnType<typeof create<typeof RaftMessageSchema>>;
    try {
      message = fromBinary(RaftMessageSchema, bytes);
    } catch {
      continue;
    }
    try {
      const read = messageFromWire("a", "b", message);
      if (read.kind !== "append") continue;
      const terms = [read.prevTerm, ...read.entries.map(({ term }) => term)];
      assert.deepEqual(
        terms.toSorted((a, b) => a - b),
        terms,
        "terms never fall",
      );
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      refusals += 1;
    }
  }
  assert.ok(refusals > 20, `${refusals} refusals`);
  const refusedWith = (init: Parameters<typeof create<typeof RaftMessageSchema>>[1]) =>
    assert.throws(() => messageFromWire("a", "b", create(RaftMessageSchema, init)), FailureError);
  refusedWith({ term: 1n, session: 1n });
  refusedWith({ term: 1n, session: 0n, body: { case: "timeoutNow", value: {} } });
  refusedWith({ term: 2n ** 60n, session: 1n, body: { case: "timeoutNow", value: {} } });
  const body = new Uint8Array([0]);
  const far = { prevIndex: 2n ** 53n - 1n, prevTerm: 1n, entries: [{ term: 3n, body }] };
  refusedWith({ term: 4n, session: 1n, body: { case: "append", value: far } });
  const falling = [3n, 2n].map((term) => ({ term, body }));
  refusedWith({ term: 4n, session: 1n, body: { case: "append", value: { prevIndex: 1n, prevTerm: 1n, entries: falling } } });
});

test("messages of Raft: three members elect a leader and commit over the bytes of their messages", () => {
  const ids = ["a", "b", "c"];
  const hardState: HardState = { term: 0, vote: undefined, commit: 1 };
  const member = (id: string, at: number): Raft =>
    new Raft({
      id,
      session: 1 + at,
      trusted: false,
      stored: { hardState, snapshot: firstSnapshot(ids), entries: [] },
      applied: 1,
      electionTicks: 10,
      heartbeatTicks: 2,
      random: () => at / 10,
      rules: allRules,
    });
  const members = new Map(ids.map((id, at) => [id, member(id, at)]));
  const state = new Map<string, Uint8Array[]>(ids.map((id) => [id, []]));
  const settle = (): void => {
    for (let busy = true; busy; ) {
      busy = false;
      for (const [id, raft] of members) {
        const ready = raft.ready();
        if (ready === undefined) continue;
        busy = true;
        raft.persisted(ready.number);
        for (const { body } of ready.committed) if (body.kind === "data") state.get(id)?.push(body.data);
        for (const message of [...ready.messages, ...ready.messagesAfterSync]) members.get(message.to)?.step(overWire(message));
      }
    }
  };
  const run = (ticks: number): void => {
    for (let i = 0; i < ticks; i++) {
      for (const raft of members.values()) raft.tick();
      settle();
    }
  };
  run(30);
  const leader = [...members.values()].find(({ status }) => status.role === "leader");
  assert.ok(leader?.propose(utf8("written")).ok);
  run(10);
  for (const [id, applied] of state) assert.deepEqual(applied, [utf8("written")], id);
});

test("consensus: a lock service delivers messages as itself, and nobody else does", () => {
  const check = requestCheckOf("stamp.v1.Consensus/Deliver");
  assert.equal(check?.({ from: "lock-service-1" }, "lock-service", "lock-service-1"), undefined);
  assert.match(check?.({ from: "lock-service-2" }, "lock-service", "lock-service-1") ?? "", /lock-service-2.*lock-service-1/);
  for (const caller of ["operator", "stream-manager", "extent-node"] as const)
    assert.ok(check?.({ from: "lock-service-1" }, caller, undefined), caller);
});
