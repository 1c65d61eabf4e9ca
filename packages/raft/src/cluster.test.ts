/** Clusters of the dissertation's chapters: members (4), handover (3.10), reads (6.4), quorum check (6.2), snapshots (7), and folders that forgot. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, rulesWithout } from "@stamp/base";
import { decidingVoters } from "./log.ts";
import { Alone, entryOf } from "./testing/alone.ts";
import { newFolder } from "./testing/disk.ts";
import { electionTicks, type Member, World, type WorldOptions } from "./testing/world.ts";
import { firstSnapshot } from "./types.ts";

/** A cluster whose leader is a. */
function led(options: Partial<WorldOptions> = {}): World {
  const voters = options.voters ?? ["a", "b", "c"];
  const world = new World({ trusted: true, voters, draw: (id) => "abcdef".indexOf(id) / 10, ...options });
  world.run(electionTicks + 4);
  assert.equal(world.leader?.id, "a");
  return world;
}

const leaderOf = (world: World): Member => {
  assert.ok(world.leader !== undefined, "somebody leads");
  return world.leader;
};

function reasonOf(outcome: { ok: boolean; failure?: { message: string } }): string {
  return outcome.ok ? "ok" : (outcome.failure?.message ?? "");
}

test("raft 4.1: the members change one at a time, and not before the leader has committed an entry of its term", () => {
  const fresh = new Alone({}).lead();
  assert.match(reasonOf(fresh.raft.changeMembers({ kind: "remove", member: "c" })), /the leader is new/);
  const world = led();
  const { raft } = world.member("a");
  assert.ok(raft.changeMembers({ kind: "addLearner", member: "d" }).ok);
  assert.match(reasonOf(raft.changeMembers({ kind: "remove", member: "c" })), /under way/);
  world.collect("a");
  world.settle();
  assert.ok(raft.changeMembers({ kind: "remove", member: "c" }).ok);
  const careless = new Alone({ rules: rulesWithout("raftOneChangeAtATime") }).lead();
  assert.ok(careless.raft.changeMembers({ kind: "remove", member: "c" }).ok);
});

test("raft 4.1: a configuration is used as soon as it is in the log, and the one before it when that entry is cut off", () => {
  const world = led();
  world.isolate("a", ["b", "c"]);
  world.raft("a").changeMembers({ kind: "remove", member: "c" });
  world.collect("a");
  assert.deepEqual(world.raft("a").members.voters, ["a", "b"]);
  world.network = [];
  for (let i = 0; i < 25; i++) {
    for (const id of ["b", "c"]) world.tick(id);
    world.settle();
  }
  world.cut.clear();
  world.run(6);
  assert.notEqual(leaderOf(world).id, "a");
  assert.deepEqual(world.raft("a").members.voters, ["a", "b", "c"]);
});

test("raft 4.2.1: a learner counts in no quorum, and is promoted only when it has caught up", () => {
  const world = led();
  world.raft("a").changeMembers({ kind: "addLearner", member: "d" });
  world.collect("a");
  world.settle();
  assert.match(reasonOf(world.raft("a").changeMembers({ kind: "promote", member: "d" })), /has not caught up/);
  world.crash("b");
  world.crash("c");
  world.join("d");
  const { commit } = world.raft("a").status;
  world.propose("a", "x");
  world.run(4);
  assert.equal(world.raft("a").status.commit, commit, "a and the learner are no majority");
  world.restart("b");
  world.run(25);
  const leader = leaderOf(world);
  assert.equal(reasonOf(leader.raft.changeMembers({ kind: "promote", member: "d" })), "ok");
  world.collect(leader.id);
  world.run(4);
  assert.deepEqual(world.raft("d").members.voters, ["a", "b", "c", "d"]);
  assert.ok(world.member("d").state.includes("x"));
});

test("raft 4.2.2: a leader that is removed leads until that is committed, and then no more; the removed disturb nobody", () => {
  const world = led();
  assert.ok(world.raft("a").changeMembers({ kind: "remove", member: "a" }).ok);
  world.collect("a");
  assert.equal(world.raft("a").status.role, "leader");
  world.settle();
  assert.equal(world.raft("a").status.role, "follower");
  world.run(30);
  const leader = leaderOf(world);
  assert.notEqual(leader.id, "a");
  const { term } = leader.raft.status;
  world.run(60);
  assert.deepEqual([leaderOf(world).id, leaderOf(world).raft.status.term], [leader.id, term]);
});

test("raft 4.2.3: who hears a leader refuses elections, but one that the leader asks for", () => {
  const follower = new Alone({}).receive("b", 1, { kind: "heartbeat", round: 0, commit: 1, commitTerm: 0 });
  const vote = { kind: "vote", lastIndex: 9, lastTerm: 1 } as const;
  follower.receive("c", 7, { ...vote, transfer: false });
  assert.deepEqual([follower.raft.status.term, follower.take("voteAnswer").length], [1, 0]);
  follower.receive("c", 7, { kind: "preVote", nextTerm: 8, lastIndex: 9, lastTerm: 1 });
  assert.equal(follower.take("preVoteAnswer")[0]?.granted, false);
  follower.receive("c", 2, { ...vote, transfer: true });
  assert.equal(follower.take("voteAnswer")[0]?.granted, true);
});

test("raft: the only voter is not removed, a member is not added twice, and nobody is promoted who is no learner", () => {
  const world = led({ voters: ["a"] });
  const { raft } = world.member("a");
  assert.match(reasonOf(raft.changeMembers({ kind: "remove", member: "a" })), /only voter/);
  assert.match(reasonOf(raft.changeMembers({ kind: "addLearner", member: "a" })), /a member already/);
  assert.match(reasonOf(raft.changeMembers({ kind: "promote", member: "b" })), /no learner/);
  assert.match(reasonOf(raft.changeMembers({ kind: "remove", member: "b" })), /no member/);
});

test("raft: one member grows to three and shrinks to one again, and loses nothing", () => {
  const world = led({ voters: ["a"] });
  const change = (kind: "addLearner" | "promote" | "remove", member: string): void => {
    const leader = leaderOf(world);
    assert.equal(reasonOf(leader.raft.changeMembers({ kind, member })), "ok", `${kind} ${member}`);
    world.collect(leader.id);
    world.run(1);
  };
  world.propose("a", "x");
  for (const id of ["b", "c"]) {
    world.join(id);
    change("addLearner", id);
    world.run(electionTicks);
    change("promote", id);
  }
  world.propose(leaderOf(world).id, "y");
  world.run(4);
  change("remove", "a");
  world.run(40);
  change("remove", leaderOf(world).id);
  world.run(40);
  assert.equal(leaderOf(world).raft.members.voters.length, 1);
  assert.deepEqual(
    leaderOf(world).state.filter((text) => text.length === 1),
    ["x", "y"],
  );
});

test("raft 3.10: leadership is handed over to a member that has everything, without an election timeout", () => {
  const world = led();
  world.propose("a", "x");
  assert.ok(world.raft("a").transferLeadership("c").ok);
  assert.equal(world.propose("a", "y"), false, "nothing new meanwhile");
  world.collect("a");
  world.settle();
  assert.equal(leaderOf(world).id, "c");
  assert.ok(leaderOf(world).state.includes("x"));
});

test("raft 3.10: a handover to a member that does not answer is given up on after an election timeout", () => {
  const world = led();
  world.isolate("c", ["a", "b"]);
  assert.ok(world.raft("a").transferLeadership("c").ok);
  world.run(electionTicks);
  assert.equal(world.propose("a", "x"), true);
  assert.match(reasonOf(world.raft("a").transferLeadership("d")), /is no voter that answers/);
  assert.match(reasonOf(world.raft("b").transferLeadership("c")), /b does not lead: ask a/);
});

test("raft 3.10: a member that answers gets leadership also right after a check of the quorum, before its next answer", () => {
  const leader = new Alone({}).lead();
  leader.receive("b", 1, { kind: "appendAnswer", accepted: true, index: 2 });
  for (let i = 0; i < electionTicks; i++) leader.raft.tick();
  assert.equal(reasonOf(leader.raft.transferLeadership("b")), "ok");
  leader.tick(electionTicks - 1);
  leader.receive("c", 1, { kind: "appendAnswer", accepted: true, index: 2 }).tick(1);
  assert.match(reasonOf(leader.raft.transferLeadership("b")), /no voter that answers/, "silent from one check to the next");
});

test("raft 6.2: a leader that hears no majority leads no more, and gives its reads up", () => {
  const world = led();
  world.isolate("a", ["b", "c"]);
  const { raft } = world.member("a");
  raft.readIndex(1);
  for (let i = 0; i < 2 * electionTicks; i++) raft.tick();
  assert.equal(raft.status.role, "follower");
  assert.deepEqual(raft.ready()?.lostReads, [1]);
});

test("raft 6.4: a read is confirmed by a round of heartbeats that began after it", () => {
  const leader = new Alone({}).lead();
  leader.raft.readIndex(1);
  leader.settle();
  const reads = () => leader.readys.flatMap((ready) => ready.reads);
  leader.receive("b", 1, { kind: "heartbeatAnswer", round: 0 });
  assert.deepEqual(reads(), [], "nothing of its term is committed");
  leader.receive("b", 1, { kind: "appendAnswer", accepted: true, index: 2 });
  leader.receive("b", 1, { kind: "heartbeatAnswer", round: 0 });
  assert.deepEqual(reads(), [], "that round began before");
  leader.receive("b", 1, { kind: "heartbeatAnswer", round: 1 });
  assert.deepEqual(reads(), [{ context: 1, index: 2 }]);
  assert.match(reasonOf(new Alone({}).raft.readIndex(1)), /does not lead/);
});

test("raft 6.4: without raftReadConfirmed a deposed leader answers", () => {
  for (const rules of [allRules, rulesWithout("raftReadConfirmed")]) {
    const world = led({ rules });
    world.isolate("a", ["b", "c"]);
    world.raft("a").readIndex(1);
    const confirmed = world.raft("a").ready()?.reads.length ?? 0;
    assert.equal(confirmed, rules === allRules ? 0 : 1);
  }
});

test("raft 9.6: a member that is cut off keeps its term; without raftPreVote it deposes the leader when it is back", () => {
  for (const rules of [allRules, rulesWithout("raftPreVote")]) {
    const world = led({ rules });
    const { term } = world.raft("a").status;
    world.isolate("c", ["a", "b"]);
    world.run(60);
    assert.equal(world.raft("c").status.term === term, rules === allRules);
    world.cut.clear();
    world.run(30);
    assert.equal(leaderOf(world).raft.status.term === term, rules === allRules);
  }
});

test("raft 7: a follower that is far behind gets a snapshot in chunks, also when every third message is lost", () => {
  const world = led({ limits: { appendEntriesMax: 2 } });
  world.crash("c");
  for (let i = 0; i < 12; i++) world.propose("a", `v${i}`);
  world.settle();
  world.compact("a", 0);
  assert.ok(world.raft("a").entriesHeld === 0);
  world.restart("c");
  for (let i = 0; i < 60; i++) {
    for (const id of ["a", "b", "c"]) world.tick(id);
    for (let turn = 0; turn < 20; turn++) {
      for (const id of ["a", "b", "c"]) world.persist(id);
      const message = world.network.shift();
      if (message !== undefined && turn % 3 !== 2) world.deliver(message);
    }
  }
  world.run(10);
  assert.deepEqual(world.member("c").state, world.member("a").state);
  assert.ok(world.member("c").folder.snapshot.index >= 12);
});

test("raft 7: chunks that are damaged are sent again; a snapshot that is gone is replaced by the newest", () => {
  const world = led();
  const { raft } = world.member("a");
  world.crash("c");
  for (let i = 0; i < 4; i++) world.propose("a", `v${i}`);
  world.settle();
  world.compact("a", 0);
  const gone = raft.status.commit;
  for (let i = 0; i < 4; i++) world.propose("a", `w${i}`);
  world.settle();
  world.compact("a", 0);
  raft.giveChunk("c", gone, 0, undefined);
  world.restart("c");
  world.run(10);
  assert.deepEqual(world.member("c").state, world.member("a").state);
  const receiver = new Alone({});
  const snapshot = { index: 9, term: 1, members: { voters: ["a", "b", "c"], learners: [] }, sessions: {} };
  receiver.receive("b", 1, { kind: "snapshotOffer", snapshot });
  receiver.receive("b", 1, { kind: "snapshotChunk", index: 9, offsetBytes: 0, bytes: new Uint8Array(3), last: true });
  receiver.raft.chunkStored(9, undefined, true);
  receiver.settle();
  assert.deepEqual(
    receiver.take("snapshotAnswer").map(({ offsetBytes }) => offsetBytes),
    [0, 0],
  );
  assert.equal(receiver.raft.status.commit, 1);
});

test("raft 7: while a chunk is in the caller's hand, the next leader's snapshot does not take its place", () => {
  const receiver = new Alone({});
  const snapshot = { index: 9, term: 1, members: { voters: ["a", "b", "c"], learners: [] }, sessions: {} };
  const offered = (term: number) => receiver.receive("b", term, { kind: "snapshotOffer", snapshot }).take("snapshotAnswer");
  const chunk = { kind: "snapshotChunk", index: 9, bytes: new Uint8Array(3) } as const;
  offered(1);
  receiver.receive("b", 1, { ...chunk, offsetBytes: 0, last: false });
  // The same member is elected again, with the same snapshot.
  assert.deepEqual(offered(2), []);
  receiver.receive("b", 2, { ...chunk, offsetBytes: 0, last: false });
  assert.equal(receiver.readys.flatMap(({ chunksToStore }) => chunksToStore).length, 1);
  receiver.raft.chunkStored(9, 3, false);
  receiver.settle();
  assert.deepEqual(receiver.take("snapshotAnswer"), []);
  assert.equal(offered(2)[0]?.offsetBytes, 0, "from the beginning");
});

test("raft 7: of the entries below a snapshot a leader keeps the newest, so many and so large", () => {
  const world = led();
  const { raft } = world.member("a");
  for (let i = 0; i < 10; i++) world.propose("a", "0123456789");
  world.settle();
  const { commit } = raft.status;
  raft.compact(commit, 6);
  assert.equal(raft.firstHeld, commit - 5);
  raft.compact(commit, 6, 3 * 42);
  assert.equal(raft.firstHeld, commit - 2);
});

test("raft: while a disk hangs, what is said without a write holds nothing", () => {
  const follower = new Alone({}).receive("b", 1, { kind: "heartbeat", round: 0, commit: 1, commitTerm: 0 });
  const append = { kind: "append", prevIndex: 1, prevTerm: 0, entries: [entryOf(2, 1)], commit: 1 } as const;
  follower.raft.step({ from: "b", to: "a", term: 1, session: 1, full: true, ...append });
  const writing = follower.raft.ready();
  for (let round = 1; round <= 100; round++) {
    follower.raft.step({ from: "b", to: "a", term: 1, session: 1, full: true, kind: "heartbeat", round, commit: 1, commitTerm: 0 });
    assert.equal(follower.raft.ready()?.messages.length, 1);
  }
  assert.equal(follower.raft.writesHeld, 1);
  follower.raft.persisted((writing?.number ?? 0) + 100);
  assert.deepEqual([follower.raft.writesHeld, follower.raft.status.durable], [0, 2]);
});

test("raft: proposals are refused when too much is uncommitted, and go on when it is committed", () => {
  const world = led({ limits: { uncommittedBytesMax: 200 } });
  world.isolate("a", ["b", "c"]);
  let accepted = 0;
  while (accepted < 100 && world.propose("a", "0123456789")) accepted += 1;
  assert.ok(accepted > 2 && accepted < 10, `${accepted}`);
  world.cut.clear();
  world.run(4);
  assert.ok(world.propose("a", "x"));
});

test("raft: appends to one follower stay within the window", () => {
  const leader = new Alone({}).lead();
  leader.receive("b", 1, { kind: "appendAnswer", accepted: true, index: 2 });
  leader.take("append");
  for (let i = 0; i < 100; i++) {
    leader.raft.propose(new Uint8Array(1));
    leader.settle();
  }
  assert.equal(leader.take("append").filter(({ to, entries }) => to === "b" && entries.length > 0).length, 64);
  leader.receive("b", 1, { kind: "appendAnswer", accepted: true, index: 12 });
  assert.ok(leader.take("append").some(({ to }) => to === "b"));
});

test("raft standing: a member that starts has none until an entry that names its start is committed", () => {
  const world = led({ trusted: false });
  assert.ok([...world.members.values()].every(({ raft }) => raft.status.full));
  world.crash("c");
  world.restart("c");
  assert.equal(world.raft("c").status.full, false);
  world.run(4);
  assert.equal(world.raft("c").status.full, true);
});

test("raft standing: a folder that was put back does not help to elect a member without what it acknowledged", () => {
  for (const rules of [allRules, rulesWithout("raftReturningHasNoVote")]) {
    const world = led({ trusted: false, rules });
    const copy = world.member("c").folder;
    world.isolate("b", ["a"]);
    world.propose("a", "x");
    world.settle();
    assert.ok(world.member("a").state.includes("x"), "a and c have committed it");
    world.crash("a");
    world.crash("c");
    world.cut.clear();
    world.restart("c", copy);
    const wrong = (() => {
      try {
        world.run(60);
        return false;
      } catch {
        return true;
      }
    })();
    assert.equal(wrong || world.leader !== undefined, rules !== allRules, "b and c elect nobody");
    if (rules !== allRules) continue;
    world.restart("a");
    world.run(60);
    assert.ok(leaderOf(world).state.includes("x"));
    assert.ok([...world.members.values()].every(({ raft, state }) => raft.status.full && state.includes("x")));
  }
});

test("raft standing: each member in turn loses its folder, and nothing is lost and nobody types a command", () => {
  const world = led({ trusted: false });
  for (const [turn, id] of ["a", "b", "c", "a"].entries()) {
    world.propose(leaderOf(world).id, `v${turn}`);
    world.settle();
    world.crash(id);
    world.restart(id, newFolder());
    world.run(60);
    assert.ok(
      [...world.members.values()].every(({ raft }) => raft.status.full),
      `after ${id}`,
    );
  }
  for (const { state } of world.members.values()) {
    assert.deepEqual(
      state.filter((text) => text.startsWith("v")),
      ["v0", "v1", "v2", "v3"],
    );
  }
});

test("raft standing: all start at once, one of them without its folder", () => {
  const world = led({ trusted: false });
  world.propose("a", "x");
  world.settle();
  for (const id of ["a", "b", "c"]) world.crash(id);
  world.restart("a", newFolder());
  world.restart("b");
  world.restart("c");
  world.run(80);
  assert.ok([...world.members.values()].every(({ raft, state }) => raft.status.full && state.includes("x")));
});

test("raft standing: an empty folder under the name of a lost member replaces it while the others have no standing", () => {
  const world = led({ trusted: false });
  world.propose("a", "x");
  world.settle();
  for (const id of ["a", "b", "c"]) world.crash(id);
  world.restart("b");
  world.restart("c");
  world.run(60);
  assert.equal(world.leader, undefined, "one of the two could have forgotten");
  world.restart("a", newFolder());
  world.run(60);
  assert.ok(leaderOf(world).state.includes("x"));
});

test("raft standing: a single member has nobody to ask, so its caller vouches for it; else it never leads", () => {
  assert.equal(led({ voters: ["a"] }).leader?.id, "a");
  const unsure = new World({ voters: ["a"], trusted: false });
  unsure.run(60);
  assert.equal(unsure.leader, undefined);
});

test("raft standing: who has a vote after a start stands in the log, committed or not, and not in the last snapshot only", () => {
  const entries = [entryOf(2, 1), { index: 3, term: 1, body: { kind: "members", members: { voters: ["a"], learners: [] } } }] as const;
  const after = (commit: number) =>
    decidingVoters({ hardState: { term: 1, vote: undefined, commit }, snapshot: firstSnapshot(["a", "b"]), entries });
  assert.deepEqual([after(2), after(3)], [[["a", "b"], ["a"]], [["a"]]]);
});

test("raft: a log that contradicts what was committed here is refused for ever, and the status says why", () => {
  const member = new Alone({ term: 2, log: [1, 2], commit: 3 });
  const entries = [{ index: 3, term: 4, body: { kind: "empty" } }] as const;
  member.receive("b", 4, { kind: "append", prevIndex: 2, prevTerm: 1, entries, commit: 3 });
  assert.match(member.raft.status.contradiction ?? "", /put back together/);
  member.tick(50);
  assert.deepEqual([member.log, member.take("preVote").length], [[1, 2], 0]);
});
