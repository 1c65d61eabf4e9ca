/** An elected standby knows when its predecessor renewed last: on a simulated etcd. */
import { strict as assert } from "node:assert";
import { test } from "node:test";
import { allRules, type Rules, rulesWithout, utf8 } from "@stamp/base";
import type { World } from "@stamp/ports";
import { calmEtcd, type EtcdHabits, EtcdState, SimulatedEtcd, Simulation } from "@stamp/virtual-time";
import { beatEveryMs, lookAtBeats, removeSilent } from "./beats.ts";
import { silentMs } from "./election.ts";
import { Election, EtcdClient, EtcdKeys, EtcdKeyValue, type Session } from "./index.ts";

const prefix = "/stamp/test/";
const keys = new EtcdKeys(prefix);
const ttlSeconds = 3;
const answerEveryMs = 20;

interface Scene {
  readonly sim: Simulation;
  readonly state: EtcdState;
  habits: EtcdHabits;
}

async function scene(seed: number, work: (scene: Scene) => Promise<void>): Promise<void> {
  const sim = new Simulation({ seed, timeLimitMs: 600_000 });
  const state = new EtcdState();
  const made: Scene = { sim, state, habits: calmEtcd };
  const prng = sim.prng.fork();
  sim.addProcess("etcd", (world) => new SimulatedEtcd(world, { listen: "etcd", state, prng, habits: () => made.habits }));
  await sim.run(async () => {
    await sim.sleep(50);
    await work(made);
  });
}

const never = new AbortController().signal;
const electionOf = (world: World, name: string, rules: Rules, ttl = ttlSeconds): Election =>
  new Election(new EtcdClient(world, { endpoints: ["etcd"], prefix }), { keys, name, address: () => name, ttlSeconds: ttl }, rules);

interface Answers {
  /** When the last confirmed answer was judged. */
  judgedMs: number;
  count: number;
}

/** Confirms answers, as renewals need it, until the session has ended or the process is told to stop. */
function answer(sim: Simulation, session: Session, rules: Rules, nowMs: () => number, until: () => boolean): Answers {
  const store = new EtcdKeyValue(session, rules);
  const told: Answers = { judgedMs: 0, count: 0 };
  void (async () => {
    while (!until()) {
      const judgedMs = nowMs();
      try {
        await store.confirm();
      } catch {
        return;
      }
      told.judgedMs = judgedMs;
      told.count += 1;
      await sim.sleep(answerEveryMs);
    }
  })();
  return told;
}

/** Kills the first process while it answers; gives what the second one knows. Times are by the clock of the second one. */
async function takeOver(seed: number, rules: Rules, habits: EtcdHabits = calmEtcd) {
  const found = { judgedMs: 0, knownMs: undefined as number | undefined, electedMs: 0, answers: 0 };
  await scene(seed, async (made) => {
    const { sim } = made;
    const first = await electionOf(sim.world("one"), "one", rules).campaign(never);
    let killed = false;
    const nowMs = (): number => sim.world("two").clock.monotonicMs();
    const answers = answer(sim, first, rules, nowMs, () => killed);
    const standby = electionOf(sim.world("two"), "two", rules).campaign(never);
    made.habits = habits;
    await sim.sleep(1_000 + sim.prng.below(1_500));
    killed = true;
    first.end("it was killed");
    made.habits = calmEtcd;
    const second = await standby;
    Object.assign(found, { judgedMs: answers.judgedMs, knownMs: second.lastJudgedMs, electedMs: nowMs(), answers: answers.count });
  });
  return found;
}

test("a standby knows, within two looks, when its killed predecessor judged its last answer", async () => {
  let most = 0;
  for (let seed = 1; seed <= 30; seed++) {
    const { judgedMs, knownMs, electedMs, answers } = await takeOver(seed, allRules);
    assert.ok(answers > 20, `${answers} answers`);
    assert.ok(knownMs !== undefined && knownMs >= judgedMs, `seed ${seed}: judged ${judgedMs}, known ${knownMs}`);
    assert.ok(knownMs < electedMs - 1_000, `seed ${seed}: ${electedMs - knownMs} ms before the election`);
    most = Math.max(most, knownMs - judgedMs);
  }
  assert.ok(most <= 3 * beatEveryMs, `${most} ms after the last answer`);
});

test("with lost answers, late transactions and changes of the leader, what a standby knows is never too early", async () => {
  let known = 0;
  for (let seed = 1; seed <= 40; seed++) {
    const { judgedMs, knownMs } = await takeOver(seed, allRules, { answerLost: 0.3, applyLate: 0.3, leaderChange: 0.1 });
    if (knownMs === undefined) continue;
    known += 1;
    assert.ok(knownMs >= judgedMs, `seed ${seed}: judged ${judgedMs}, known ${knownMs}`);
  }
  assert.ok(known > 20, `${known} of 40`);
});

test("without beats a standby takes renewals for older than they are", async () => {
  const { judgedMs, knownMs } = await takeOver(1, rulesWithout("answersBeat"));
  assert.ok(knownMs !== undefined && knownMs < judgedMs - 500, `judged ${judgedMs}, known ${knownMs}`);
});

/** The etcd lease alone would keep an active process for so long. */
const longTtlSeconds = 15;

test("a standby takes the place of a process that is cut off, long before its etcd lease ends; what it knows is never too early", async () => {
  for (let seed = 1; seed <= 20; seed++)
    await scene(seed, async ({ sim }) => {
      const nowMs = (): number => sim.world("two").clock.monotonicMs();
      const first = await electionOf(sim.world("one"), "one", allRules, longTtlSeconds).campaign(never);
      const answers = answer(sim, first, allRules, nowMs, () => first.ended.aborted);
      const standby = electionOf(sim.world("two"), "two", allRules, longTtlSeconds).campaign(never);
      await sim.sleep(1_500 + sim.prng.below(1_000));
      const cutMs = nowMs();
      sim.partition(["one"], ["etcd"]);
      const second = await standby;
      assert.ok(nowMs() - cutMs <= silentMs + 1_000, `seed ${seed}: ${nowMs() - cutMs} ms`);
      assert.ok(second.lastJudgedMs !== undefined && second.lastJudgedMs >= answers.judgedMs, `seed ${seed}: ${second.lastJudgedMs}`);
      sim.heal();
      await sim.until(() => first.ended.aborted, 10_000, "the first one knows that it was deposed");
    });
});

test("a process that has nothing to answer stays the active one, also when etcd answers nobody for a while", async () => {
  for (let seed = 1; seed <= 5; seed++)
    await scene(seed, async ({ sim }) => {
      const first = await electionOf(sim.world("one"), "one", allRules, longTtlSeconds).campaign(never);
      void electionOf(sim.world("two"), "two", allRules, longTtlSeconds).campaign(never);
      await sim.sleep(20_000);
      assert.equal(first.ended.aborted, false);
      for (const awayMs of [500, 1_900, 4_000, 6_000]) {
        sim.partition(["one", "two"], ["etcd"]);
        await sim.sleep(awayMs);
        // The standby happens to get its answers first.
        sim.network.heal("two", "etcd");
        sim.network.heal("etcd", "two");
        await sim.sleep(1_000);
        sim.heal();
        await sim.sleep(5_000);
        assert.equal(first.ended.aborted, false, `seed ${seed}, etcd away for ${awayMs} ms: ${first.why}`);
      }
    });
});

test("a beat that is on its way to etcd undoes the removal of a process that was silent", async () => {
  await scene(1, async ({ sim }) => {
    const first = await electionOf(sim.world("one"), "one", allRules).campaign(never);
    const store = new EtcdKeyValue(first, allRules);
    await store.confirm();
    const client = new EtcdClient(sim.world("two"), { endpoints: ["etcd"], prefix });
    const seen = await lookAtBeats(client, keys, first.attempt, undefined, undefined);
    assert.ok(seen.ok && seen.value !== undefined);
    await sim.sleep(beatEveryMs);
    await store.confirm();
    await removeSilent(client, keys, seen.value);
    await store.confirm();
    await store.batch([{ kind: "put", key: utf8("k"), value: utf8("v") }]);
    assert.equal(first.ended.aborted, false);
    const again = await lookAtBeats(client, keys, first.attempt, undefined, undefined);
    assert.ok(again.ok && again.value !== undefined);
    first.end("it was killed");
    await removeSilent(client, keys, again.value);
    const gone = await lookAtBeats(client, keys, first.attempt, undefined, undefined);
    assert.ok(gone.ok && gone.value === undefined, "nobody is active");
  });
});

/** A standby that stands still for a while after it looked; meanwhile `work` runs. Gives what it knows when it is elected. */
async function stoodStill(seed: number, rules: Rules, work: (made: Scene, first: Session) => Promise<void>) {
  let knownMs: number | undefined;
  await scene(seed, async (made) => {
    const { sim } = made;
    const first = await electionOf(sim.world("one"), "one", rules).campaign(never);
    const standby = electionOf(sim.world("two"), "two", rules).campaign(never);
    await sim.sleep(1_000);
    sim.partition(["two"], ["etcd"]);
    await work(made, first);
    sim.heal();
    knownMs = (await standby).lastJudgedMs;
  });
  return knownMs;
}

test("what a standby saw does not count if the active one answered or wrote since, and it did not see it", async () => {
  for (const write of [false, true]) {
    const renews = async ({ sim }: Scene, first: Session): Promise<void> => {
      await sim.sleep(4_000);
      const store = new EtcdKeyValue(first, allRules);
      await (write ? store.batch([{ kind: "put", key: utf8("k"), value: utf8("v") }]) : store.confirm());
      await first.resign();
    };
    assert.equal(await stoodStill(1, allRules, renews), undefined);
    assert.ok((await stoodStill(1, rulesWithout("sightsStand"), renews)) !== undefined);
  }
});

test("what a standby saw does not count if another process was active since, also one that does not beat", async () => {
  const other = async ({ sim, state }: Scene, first: Session): Promise<void> => {
    await first.resign();
    const third = await electionOf(sim.world("three"), "three", allRules).campaign(never);
    // A release before beats leaves no such key.
    state.forget(keys.beat(third.attempt));
    await sim.sleep(4_000);
    await third.resign();
  };
  assert.equal(await stoodStill(1, allRules, other), undefined);
});

test("an etcd without room: answers are confirmed, and a successor knows no moment", async () => {
  await scene(1, async ({ sim, state }) => {
    const first = await electionOf(sim.world("one"), "one", allRules).campaign(never);
    const standby = electionOf(sim.world("two"), "two", allRules).campaign(never);
    const store = new EtcdKeyValue(first, allRules);
    await store.confirm();
    await sim.sleep(1_000);
    state.quotaBytes = 0;
    for (let i = 0; i < 5; i++) {
      await store.confirm();
      await sim.sleep(300);
    }
    state.quotaBytes = Number.POSITIVE_INFINITY;
    await store.confirm();
    await first.resign();
    assert.equal((await standby).lastJudgedMs, undefined);
  });
});

test("beats of earlier elections are removed", async () => {
  await scene(1, async ({ sim, state }) => {
    for (let i = 0; i < 4; i++) {
      const session = await electionOf(sim.world(`p${i}`), `p${i}`, allRules).campaign(never);
      await sim.sleep(500);
      const found = state.range({ key: keys.beats, rangeEnd: keys.beatsEnd, revision: 0n, limit: 0n } as Parameters<EtcdState["range"]>[0]);
      assert.equal(found.ok && found.value.kvs.length, 1);
      await session.resign();
    }
  });
});
