/**
 * Rules of figure 2 of the Raft paper (Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm"), one test each, by the
 * paper's sections. A cluster of these tests begins behind a snapshot at index 1, so its first entry is 2.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, rulesWithout, utf8 } from "@stamp/base";
import { Alone, entryOf } from "./testing/alone.ts";
import { electionTicks, World } from "./testing/world.ts";

const heartbeat = { kind: "heartbeat", round: 0, commit: 1, commitTerm: 0 } as const;

test("raft 5.1: each role takes a higher term over and follows", () => {
  const follower = new Alone({}).receive("b", 4, heartbeat);
  assert.deepEqual([follower.raft.status.term, follower.raft.status.role, follower.raft.status.leader], [4, "follower", "b"]);
  const candidate = new Alone({});
  candidate.raft.campaign();
  candidate.settle();
  assert.equal(candidate.raft.status.role, "candidate");
  candidate.receive("b", 4, { kind: "voteAnswer", candidate: 1, granted: false });
  assert.deepEqual([candidate.raft.status.term, candidate.raft.status.role], [4, "follower"]);
  const leader = new Alone({}).lead();
  leader.receive("b", 4, { kind: "appendAnswer", accepted: false, index: 2, hintIndex: 1, hintTerm: 0 });
  assert.deepEqual([leader.raft.status.term, leader.raft.status.role], [4, "follower"]);
});

test("raft 5.1: a message of an earlier term changes nothing, and its leader hears of the higher term", () => {
  const member = new Alone({ term: 5, log: [5] }).receive("b", 4, {
    kind: "append",
    prevIndex: 1,
    prevTerm: 0,
    entries: [entryOf(2, 4)],
    commit: 2,
  });
  assert.deepEqual(member.log, [5]);
  assert.equal(member.raft.status.leader, undefined);
  assert.deepEqual(
    member.take("heartbeatAnswer").map(({ to, term }) => [to, term]),
    [["b", 5]],
  );
});

test("raft 5.2: a leader sends heartbeats, at once and in turn", () => {
  const leader = new Alone({}).lead();
  assert.deepEqual(
    leader.take("heartbeat").map(({ to }) => to),
    ["b", "c"],
  );
  leader.tick(2);
  assert.equal(leader.take("heartbeat").length, 2);
});

test("raft 5.2: a follower without a leader runs for election: next term, its own vote, requests to all", () => {
  const member = new Alone({ term: 3 }).tick(electionTicks);
  assert.equal(member.raft.status.term, 3, "it asks first");
  member.receive("b", 3, { kind: "preVoteAnswer", candidate: 1, nextTerm: 4, granted: true });
  assert.deepEqual([member.raft.status.term, member.raft.status.role], [4, "candidate"]);
  assert.deepEqual(
    member.take("vote").map(({ to, term }) => [to, term]),
    [
      ["b", 4],
      ["c", 4],
    ],
  );
  assert.equal(member.readys.findLast(({ hardState }) => hardState !== undefined)?.hardState?.vote, "a");
});

test("raft 5.2: a heartbeat puts the election off", () => {
  const member = new Alone({})
    .tick(electionTicks - 1)
    .receive("b", 1, heartbeat)
    .tick(electionTicks - 1);
  assert.equal(member.raft.status.role, "follower");
  assert.equal(member.take("preVote").length, 0);
});

test("raft 5.2: a member votes once in a term, first come, first served; only when its vote is durable", () => {
  const member = new Alone({});
  member.raft.step({ from: "b", to: "a", term: 1, session: 1, full: true, kind: "vote", lastIndex: 1, lastTerm: 0, transfer: false });
  const ready = member.raft.ready();
  assert.deepEqual(ready?.messages, []);
  assert.deepEqual([ready?.hardState?.vote, ready?.mustSync], ["b", true]);
  assert.deepEqual(
    ready?.messagesAfterSync.map((message) => message.kind === "voteAnswer" && message.granted),
    [true],
  );
  member.receive("c", 1, { kind: "vote", lastIndex: 9, lastTerm: 0, transfer: false });
  assert.deepEqual(
    member.take("voteAnswer").map(({ granted }) => granted),
    [false],
  );
  member.receive("b", 1, { kind: "vote", lastIndex: 9, lastTerm: 0, transfer: false }, { session: 2 });
  assert.equal(member.take("voteAnswer").length, 0, "the next start of b gets no second vote in the term");
});

test("raft 5.2: a candidate wins by a majority, and its own vote counts when it is durable", () => {
  const member = new Alone({ voters: ["a", "b", "c", "d", "e"] });
  member.raft.campaign();
  const ready = member.raft.ready();
  assert.deepEqual(ready?.messages, [], "no request before the term is durable");
  for (const from of ["b", "c"]) {
    member.raft.step({ from, to: "a", term: 1, session: 1, full: true, kind: "voteAnswer", candidate: 1, granted: true });
  }
  assert.equal(member.raft.status.role, "candidate");
  member.raft.persisted(ready?.number ?? 0);
  assert.equal(member.raft.status.role, "leader");
});

test("raft 5.2: a candidate that a majority refuses, or that hears a leader of its term, follows", () => {
  const refused = new Alone({});
  refused.raft.campaign();
  refused.settle();
  for (const from of ["b", "c"]) refused.receive(from, 1, { kind: "voteAnswer", candidate: 1, granted: false });
  assert.equal(refused.raft.status.role, "follower");
  const late = new Alone({});
  late.raft.campaign();
  late.settle().receive("c", 1, heartbeat);
  assert.deepEqual([late.raft.status.role, late.raft.status.leader], ["follower", "c"]);
});

test("raft 5.2: a vote for an earlier start of the candidate is no vote", () => {
  const member = new Alone({});
  member.raft.campaign();
  member.settle().receive("b", 1, { kind: "voteAnswer", candidate: 7, granted: true });
  assert.equal(member.raft.status.role, "candidate");
});

test("raft 5.2: election timeouts are drawn between one and two timeouts, anew each time", () => {
  const draws = [0, 0.99, 0.5];
  const member = new Alone({ random: () => draws.shift() ?? 0 });
  member.tick(electionTicks);
  assert.equal(member.take("preVote").length, 2);
  member.tick(Math.floor(electionTicks * 1.99) - 1);
  assert.equal(member.take("preVote").length, 0);
  member.tick(1);
  assert.equal(member.take("preVote").length, 2);
});

test("raft 5.3: a leader appends and sends before its own write is durable, and commits by a majority on disk", () => {
  const leader = new Alone({}).lead();
  leader.receive("b", 1, { kind: "appendAnswer", accepted: true, index: 2 });
  assert.equal(leader.raft.status.commit, 2);
  leader.sent = [];
  leader.raft.propose(utf8("x"));
  const ready = leader.raft.ready();
  assert.ok(ready?.messages.some(({ kind, to }) => kind === "append" && to === "b"));
  leader.raft.step({ from: "b", to: "a", term: 1, session: 1, full: true, kind: "appendAnswer", accepted: true, index: 3 });
  assert.equal(leader.raft.status.commit, 2, "its own copy is not on disk yet");
  leader.raft.persisted(ready?.number ?? 0);
  assert.equal(leader.raft.status.commit, 3);
});

test("raft 5.3: a follower acknowledges entries when they are durable, and applies what the leader committed", () => {
  const follower = new Alone({});
  const append = { kind: "append", prevIndex: 1, prevTerm: 0, entries: [entryOf(2, 1), entryOf(3, 1)], commit: 2 } as const;
  follower.raft.step({ from: "b", to: "a", term: 1, session: 1, full: true, ...append });
  const ready = follower.raft.ready();
  assert.deepEqual([ready?.messages, ready?.committed, ready?.mustSync], [[], [], true]);
  assert.deepEqual(
    ready?.messagesAfterSync.map((message) => message.kind === "appendAnswer" && message.accepted && message.index),
    [3],
  );
  follower.raft.persisted(ready?.number ?? 0);
  assert.deepEqual(
    follower.raft.ready()?.committed.map(({ index }) => index),
    [2],
  );
});

test("raft 5.3: a follower refuses an append whose previous entry it does not have, with a hint by terms", () => {
  const follower = new Alone({ term: 5, log: [1, 1, 4, 4, 4] }).receive("b", 6, {
    kind: "append",
    prevIndex: 6,
    prevTerm: 3,
    entries: [],
    commit: 1,
  });
  const [answer] = follower.take("appendAnswer");
  assert.deepEqual(answer?.accepted === false && [answer.index, answer.hintIndex, answer.hintTerm], [6, 3, 1]);
});

test("raft 5.3: a conflicting entry and all behind it are cut off; an older, shorter append cuts nothing off", () => {
  const append = (prevIndex: number, prevTerm: number, ...terms: readonly number[]) =>
    ({ kind: "append", prevIndex, prevTerm, entries: terms.map((term, at) => entryOf(prevIndex + 1 + at, term)), commit: 1 }) as const;
  const follower = new Alone({ term: 2, log: [1, 2, 2] });
  follower.receive("b", 3, append(2, 1, 3));
  assert.deepEqual(follower.log, [1, 3]);
  follower.receive("b", 3, append(3, 3, 3, 3));
  follower.receive("b", 3, append(2, 1, 3));
  assert.deepEqual(follower.log, [1, 3, 3, 3]);
});

test("raft 5.3, figure 2: the commit index of a follower is at most that of the last entry that is known to match", () => {
  const follower = new Alone({ term: 1, log: [1, 1, 1] });
  follower.receive("b", 2, { kind: "append", prevIndex: 1, prevTerm: 0, entries: [entryOf(2, 1)], commit: 4 });
  assert.equal(follower.raft.status.commit, 2);
  follower.receive("b", 2, { kind: "heartbeat", round: 1, commit: 4, commitTerm: 2 });
  assert.equal(follower.raft.status.commit, 2, "its entry 4 has another term");
  follower.receive("b", 2, { kind: "heartbeat", round: 1, commit: 4, commitTerm: 1 });
  assert.equal(follower.raft.status.commit, 4);
});

test("raft 5.3, figure 7: a leader makes every log equal to its own, with few refusals", () => {
  const leaders = [1, 1, 1, 4, 4, 5, 5, 6, 6, 6];
  const others = [
    [1, 1, 1, 4, 4, 5, 5, 6, 6],
    [1, 1, 1, 4],
    [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6],
    [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7],
    [1, 1, 1, 4, 4, 4, 4],
    [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
  ];
  for (const log of others) {
    const leader = new Alone({ term: 7, log: leaders, voters: ["a", "b", "c"] });
    leader.raft.campaign();
    leader.settle().receive("b", 8, { kind: "voteAnswer", candidate: 1, granted: true });
    const follower = new Alone({ term: 7, log, voters: ["b", "a", "c"] });
    let refusals = 0;
    for (let turn = 0; turn < 30; turn++) {
      const appends = leader.take("append").filter(({ to }) => to === "b");
      for (const { to: _to, from: _from, ...append } of appends) follower.receive("b", 8, append);
      for (const { to: _to, from: _from, ...answer } of follower.take("appendAnswer")) {
        if (!answer.accepted) refusals += 1;
        leader.receive("b", 8, answer);
      }
    }
    assert.deepEqual(follower.log, leader.log, `${log}`);
    assert.ok(refusals <= 3, `${log}: ${refusals} refusals`);
  }
});

test("raft 5.4.1: a vote needs a log that is as up to date: last term first, then length", () => {
  const cases = [
    { own: [1, 1], last: [2, 1], granted: false },
    { own: [1, 1], last: [3, 1], granted: true },
    { own: [1, 1], last: [2, 2], granted: true },
    { own: [1, 2], last: [5, 1], granted: false },
  ] as const;
  for (const { own, last, granted } of cases) {
    const [lastIndex, lastTerm] = last;
    const vote = { kind: "vote", lastIndex, lastTerm, transfer: false } as const;
    const member = new Alone({ term: 2, log: own }).receive("b", 3, vote);
    assert.deepEqual(
      member.take("voteAnswer").map((answer) => answer.granted),
      [granted],
      `${own} asked with ${last}`,
    );
    const careless = new Alone({ term: 2, log: own, rules: rulesWithout("raftVoteChecksLog") }).receive("b", 3, vote);
    assert.equal(careless.take("voteAnswer")[0]?.granted, true);
  }
});

test("raft 5.4.2, figure 8: entries of earlier terms are committed by an entry of the leader's term, never by counting", () => {
  for (const rules of [allRules, rulesWithout("raftCommitsOwnTerm")]) {
    const leader = new Alone({ term: 2, log: [1, 2], rules });
    leader.raft.campaign();
    leader.settle().receive("b", 3, { kind: "voteAnswer", candidate: 1, granted: true });
    leader.receive("b", 3, { kind: "appendAnswer", accepted: true, index: 3 });
    assert.equal(leader.raft.status.commit, rules === allRules ? 1 : 3);
    leader.receive("b", 3, { kind: "appendAnswer", accepted: true, index: 4 });
    assert.equal(leader.raft.status.commit, 4);
  }
});

test("raft 5.5: an append that comes twice is answered twice and stored once", () => {
  const append = { kind: "append", prevIndex: 1, prevTerm: 0, entries: [entryOf(2, 1)], commit: 1 } as const;
  const follower = new Alone({}).receive("b", 1, append).receive("b", 1, append);
  assert.deepEqual(follower.log, [1]);
  assert.equal(follower.take("appendAnswer").length, 2);
});

test("raft 8: a leader begins its term with an empty entry", () => {
  const world = new World({ voters: ["a", "b", "c"], trusted: true });
  world.run(40);
  assert.deepEqual(world.leader?.state, ["empty"]);
});

test("raft: a write that a truncation overtook makes nothing durable behind the cut", () => {
  const follower = new Alone({});
  const step = (from: string, term: number, entries: readonly [number, number][]): number => {
    const append = {
      kind: "append",
      prevIndex: 1,
      prevTerm: 0,
      entries: entries.map(([index, of]) => entryOf(index, of)),
      commit: 1,
    } as const;
    follower.raft.step({ from, to: "a", term, session: 1, full: true, ...append });
    return follower.raft.ready()?.number ?? 0;
  };
  const first = step("b", 1, [
    [2, 1],
    [3, 1],
  ]);
  const second = step("c", 2, [[2, 2]]);
  follower.raft.persisted(first);
  assert.equal(follower.raft.status.durable, 1);
  follower.raft.persisted(second);
  assert.equal(follower.raft.status.durable, 2);
});
