/** Members that an operator lists, adds, removes, and makes lead. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import type { Outcome } from "@stamp/base";
import { unwrap } from "@stamp/base";
import { Consensus, type ConsensusMember, MemberDuty } from "@stamp/wire";
import { followers, inScene, scene, settled, writing } from "../testing/replicated-run.ts";
import { readyWithinMs } from "../testing/several.ts";

const call = { timeoutMs: 5_000 };
const at = (name: string) => scene.sim.world("operator").transport.client(name, Consensus);
const leader = (): string => scene.active() as string;
const list = async (): Promise<readonly ConsensusMember[]> => unwrap(await at(leader()).listMembers({}, call)).members;
const change = (name: string, duty: MemberDuty): Promise<Outcome<object>> => at(leader()).changeMember({ name, duty }, call);
const words: Readonly<Record<number, string>> = {
  [MemberDuty.NONE]: "NONE",
  [MemberDuty.LEARNER]: "LEARNER",
  [MemberDuty.VOTER]: "VOTER",
};
const why = (outcome: Outcome<object>): string => (outcome.ok ? "ok" : `${outcome.failure.reason}: ${outcome.failure.message}`);
const duties = async (): Promise<string> => (await list()).map(({ name, duty }) => `${name} ${words[duty]}`).join(", ");
const down = (name: string): void => scene.sim.crash(name, { unsynced: "lost", silent: false, stayDown: true });

/** Starts every lock service again, one by one, with the fourth in its configuration, and the fourth with an empty folder. */
async function withFourth(): Promise<void> {
  scene.settings = { members: [...scene.names, "lock-4"].map((name) => `${name}=${name}`).join() };
  for (const name of scene.names) {
    down(name);
    scene.sim.restart(name);
    await settled();
  }
  scene.add("lock-4");
}

const caughtUp = (name: string): Promise<void> =>
  scene.sim.until(async () => (await list()).some((each) => each.name === name && each.caughtUp), readyWithinMs, `${name} catches up`);

test("members: the leader lists them with what it knows of each; the others refuse, and name it", async () => {
  await inScene(1, () =>
    writing(async (writer) => {
      await writer.write(5);
      await settled();
      const [away, other] = followers() as [string, string];
      for (const name of [away, other]) {
        const answer = await at(name).listMembers({}, call);
        assert.ok(!answer.ok);
        assert.deepEqual([answer.failure.reason, answer.failure.details?.leaderAddress], ["notLeader", leader()]);
      }
      down(away);
      await scene.sim.until(
        async () => (await list()).some(({ name, answers }) => name === away && !answers),
        readyWithinMs,
        "the leader misses it",
      );
      await writer.write(3);
      const found = new Map((await list()).map((each) => [each.name, each]));
      assert.deepEqual([...found.keys()], scene.names);
      const shown = (name: string) => {
        const { address, duty, leads, full } = found.get(name) as ConsensusMember;
        return [address, duty, leads, full];
      };
      assert.deepEqual(shown(leader()), [leader(), MemberDuty.VOTER, true, true]);
      assert.deepEqual(shown(other), [other, MemberDuty.VOTER, false, true]);
      assert.deepEqual(shown(away), [away, MemberDuty.VOTER, false, false]);
      assert.ok((found.get(away)?.behind ?? 0n) >= 3n);
      scene.sim.restart(away);
    }),
  );
});

test("members: a fourth takes the log as a learner, votes when it has caught up, and is removed again", async () => {
  for (let seed = 1; seed <= 3; seed++) {
    await inScene(
      seed,
      () =>
        writing(async (writer) => {
          await writer.write(40, 5_000);
          assert.match(
            why(await change("lock-4", MemberDuty.LEARNER)),
            /there is no lock service lock-4: `members` names lock-1, lock-2, lock-3/,
          );
          await withFourth();
          assert.match(await duties(), /lock-4 NONE$/);
          assert.match(why(await change("lock-4", MemberDuty.VOTER)), /lock-4 is no learner: add it first/);
          for (const _ of [1, 2]) assert.equal(why(await change("lock-4", MemberDuty.LEARNER)), "ok");
          assert.match(await duties(), /lock-4 LEARNER$/);
          await caughtUp("lock-4");
          for (const _ of [1, 2]) assert.equal(why(await change("lock-4", MemberDuty.VOTER)), "ok");
          // With two of the four down there is no majority: the fourth's vote counts.
          const [first] = followers() as [string];
          down(first);
          await writer.write(10, 5_000);
          scene.sim.restart(first);
          await settled();
          for (const _ of [1, 2]) assert.equal(why(await change("lock-4", MemberDuty.NONE)), "ok");
          assert.match(await duties(), /lock-1 VOTER, lock-2 VOTER, lock-3 VOTER, lock-4 NONE$/);
          down("lock-4");
          await writer.write(10, 5_000);
        }),
      { settings: { logEntriesMax: 20 } },
    );
  }
});

test("members: none is removed without which no majority answers, nor the leader", async () => {
  await inScene(2, () =>
    writing(async (writer) => {
      await writer.write(3);
      await settled();
      const [away, other] = followers() as [string, string];
      assert.match(why(await change(leader(), MemberDuty.NONE)), /conflict: lock-\d leads: hand leadership over first/);
      down(away);
      await scene.sim.until(async () => !(await list()).every(({ answers }) => answers), readyWithinMs, "the leader misses it");
      assert.match(why(await change(other, MemberDuty.NONE)), /conflict: without lock-\d, 2 vote, and only 1 of them answer/);
      // A member that is away can go.
      assert.equal(why(await change(away, MemberDuty.NONE)), "ok");
      await writer.write(3);
      assert.match(why(await change(other, MemberDuty.NONE)), /conflict: lock-\d and lock-\d are the last two/);
    }),
  );
});

test("members: the next change waits for the commit of the one before", async () => {
  const both = async (): Promise<string> => {
    await settled();
    const all = followers();
    const active = leader();
    // The first change can't be committed: nobody hears the leader.
    scene.sim.partition([active], all);
    const [one, other] = all as [string, string];
    const first = at(active).changeMember({ name: one, duty: MemberDuty.NONE }, call);
    await scene.sim.sleep(50);
    const second = await at(active).changeMember({ name: other, duty: MemberDuty.NONE }, { timeoutMs: 500 });
    scene.sim.heal();
    await first;
    return why(second);
  };
  const names = [1, 2, 3, 4, 5].map((number) => `lock-${number}`);
  await inScene(3, async () => assert.match(await both(), /another change of the members is under way/), { names });
  await inScene(3, async () => assert.doesNotMatch(await both(), /another change/), { names, without: ["raftOneChangeAtATime"] });
});

test("members: leadership is handed to the member that is named, or to another one, and not to one that is away", async () => {
  await inScene(4, () =>
    writing(async (writer) => {
      await writer.write(3);
      for (let i = 0; i < 4; i++) {
        await settled();
        const before = leader();
        const to = i % 2 === 0 ? (followers()[0] as string) : "";
        const told = unwrap(await at(before).transferLeadership({ to }, call));
        assert.ok(to === "" ? told.to !== before : told.to === to);
        await scene.sim.until(() => scene.active() === told.to, readyWithinMs, `${told.to} leads`);
        assert.deepEqual(unwrap(await at(told.to).transferLeadership({ to: told.to }, call)).to, told.to, "it leads already");
      }
      await settled();
      const [away] = followers() as [string];
      down(away);
      await scene.sim.until(async () => !(await list()).every(({ answers }) => answers), readyWithinMs, "the leader misses it");
      const handed = async (to: string): Promise<string> => why(await at(leader()).transferLeadership({ to }, call));
      assert.equal(await handed(away), `conflict: ${away} does not answer with its standing: see stamp lock-service list, and try again`);
      scene.sim.restart(away);
      await settled();
      unwrap(await change(away, MemberDuty.NONE));
      assert.equal(await handed(away), `conflict: ${away} is no member, so it can't lead: add it first (stamp lock-service add ${away})`);
      unwrap(await change(away, MemberDuty.LEARNER));
      assert.equal(await handed(away), `conflict: ${away} has no vote yet: wait until it has (stamp lock-service add ${away})`);
      assert.match(await handed("nobody"), /^conflict: nobody is no member, so it can't lead: members are lock-\d, lock-\d$/);
    }),
  );
});
