/** One range of one fragment: which sources are asked, and when. Sources are functions on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, ok } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { fragmentSourceOf, LateLimit, type Source, StripeRead } from "./stripe-read.ts";

const silent = Number.POSITIVE_INFINITY;

interface Asked {
  readonly indices: number[];
  tookMs: number;
}

/** Reads stripes of one fragment after another, as a job does. */
class Job {
  readonly sim = new Simulation({ seed: 7, rules: allRules });
  readonly late = new LateLimit();
  readonly profile: Profile;
  readonly #wanted: number;
  readonly #sources: readonly Source[];
  #step = 0;

  /** `lost`: the wanted fragment is no source. */
  constructor(profileName: string, { wanted = 0, lost = true } = {}) {
    this.profile = profileOf(profileName) as Profile;
    this.#wanted = wanted;
    const indices = Array.from({ length: this.profile.fragments }, (_, index) => index).filter((index) => !lost || index !== wanted);
    this.#sources = indices.map((index) => fragmentSourceOf({ index, version: 1, address: `n${index}`, diskId: "" } as never));
  }

  async stripe(takesMs: (index: number) => number): Promise<Asked> {
    const { clock } = this.sim.world("node");
    const startMs = clock.monotonicMs();
    const asked: Asked = { indices: [], tookMs: 0 };
    this.#step += 1;
    const found = await new StripeRead({
      clock,
      profile: this.profile,
      wanted: this.#wanted,
      sources: this.#sources,
      step: this.#step,
      late: this.late,
      read: async ({ at }, signal) => {
        asked.indices.push(at.index);
        if (takesMs(at.index) === silent) return new Promise(() => {});
        await sleep(clock, takesMs(at.index), signal);
        return ok(new Uint8Array(64));
      },
    }).run();
    assert.ok("kind" in found);
    asked.tookMs = clock.monotonicMs() - startMs;
    return asked;
  }
}

/** Number of requests that a stripe of a lost fragment 0 needs. */
const needs = { "rs-4-2": 4, "rs-6-3": 6, "lrc-12-2-2": 6 } as const;

for (const profileName of ["rs-4-2", "rs-6-3", "lrc-12-2-2"] as const) {
  test(`stripes ${profileName}: while all nodes are slow, hardly any fragment is asked that is not needed`, async () => {
    for (const slowMs of [400, 1_500, 3_500]) {
      const job = new Job(profileName);
      await job.sim.run(async () => {
        for (let i = 0; i < 10; i++) await job.stripe(() => 5);
        let requests = 0;
        for (let i = 0; i < 40; i++) requests += (await job.stripe((index) => slowMs + index)).indices.length;
        const needed = 40 * needs[profileName];
        assert.ok(requests <= needed + 20, `${slowMs} ms: ${requests} requests, ${needed} needed`);
      });
    }
  });

  test(`stripes ${profileName}: as many silent nodes as the code bears hold up one stripe, and the next ones not`, async () => {
    const job = new Job(profileName);
    const losses = profileName === "rs-4-2" ? 1 : 2;
    await job.sim.run(async () => {
      for (let i = 0; i < 10; i++) await job.stripe(() => 5);
      const isSilent = (index: number): boolean => index >= 1 && index <= losses;
      const first = await job.stripe((index) => (isSilent(index) ? silent : 5));
      assert.ok(first.tookMs < 700, `${first.tookMs} ms`);
      for (let i = 0; i < 15; i++) {
        const next = await job.stripe((index) => (isSilent(index) ? silent : 5));
        assert.ok(next.tookMs < 20, `${next.tookMs} ms`);
      }
    });
  });
}

test("stripes: when all nodes become slow at once, two of them are made up for and not all", async () => {
  for (const [profileName, most] of [
    ["rs-6-3", 8],
    ["lrc-12-2-2", 14],
  ] as const) {
    const job = new Job(profileName);
    await job.sim.run(async () => {
      assert.equal((await job.stripe(() => 900)).indices.length, needs[profileName], "900 ms are not late at first");
      for (let i = 0; i < 10; i++) await job.stripe(() => 5);
      assert.equal((await job.stripe(() => 500)).indices.length, needs[profileName]);
    });
    const fresh = new Job(profileName);
    await fresh.sim.run(async () => {
      const { indices, tookMs } = await fresh.stripe((index) => 3_500 + index);
      assert.ok(indices.length > needs[profileName] && indices.length <= most, `${profileName}: ${indices.length} were asked`);
      assert.ok(tookMs < 3_600, `${tookMs} ms`);
    });
  }
});

test("stripes: a fragment's own file that hangs is computed from others, no more than are needed", async () => {
  const job = new Job("rs-6-3", { lost: false });
  await job.sim.run(async () => {
    assert.deepEqual((await job.stripe(() => 5)).indices, [0]);
    const hung = await job.stripe((index) => (index === 0 ? silent : 5));
    assert.deepEqual(hung.indices, [0, 1, 2, 3, 4, 5, 6]);
    assert.equal((await job.stripe((index) => (index === 0 ? silent : 5))).indices.includes(0), false, "it rests");
  });
});

test("stripes: the time after which an answer is late grows with what answers take, and falls again", () => {
  const late = new LateLimit();
  assert.equal(late.ms, 1_000);
  for (let i = 0; i < 30; i++) late.took(3);
  assert.equal(late.ms, 300);
  for (let i = 0; i < 30; i++) late.took(500);
  assert.equal(late.ms, 2_500);
  for (let i = 0; i < 30; i++) late.took(4_000);
  assert.ok(late.ms > 7_500, `${late.ms} ms`);
  for (let i = 0; i < 60; i++) late.took(3);
  assert.equal(late.ms, 300);
});
