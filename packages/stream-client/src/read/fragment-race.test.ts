/** One range of one fragment: whom it asks, and when. Nodes are functions on virtual time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, type RuleName, refused, rulesWithout } from "@stamp/base";
import { Kernel, type Profile, profileOf } from "@stamp/erasure";
import { sleep, type World } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { FragmentRace } from "./fragment-race.ts";
import { NodeHistories } from "./replica-race.ts";

const kibibyte = 1_024;
const silent = Number.POSITIVE_INFINITY;

interface Asked {
  /** Requests of a read: the node, and the time after the begin of the read in ms. */
  readonly requests: (readonly [address: string, atMs: number])[];
  tookMs: number;
}

/** A reader of fragment 0 on virtual time. Each node answers with zeros after as long as a read's `takesMs` says; `silent`: never. */
class Reader {
  readonly histories = new NodeHistories();
  readonly sim: Simulation;
  readonly #profile: Profile;
  readonly #addresses: readonly string[];

  constructor(profileName: string, off: RuleName[] = []) {
    this.sim = new Simulation({ seed: 7, rules: rulesWithout(...off) });
    this.#profile = profileOf(profileName) as Profile;
    this.#addresses = Array.from({ length: this.#profile.fragments }, (_, index) => `n${index}`);
  }

  async read(lengthBytes: number, takesMs: (address: string) => number | "busy"): Promise<Asked> {
    const world = this.sim.world("reader");
    const startMs = world.clock.monotonicMs();
    const asked: Asked = { requests: [], tookMs: 0 };
    const client = (address: string) => ({
      readFragment: async (request: { readonly lengthBytes: number }, options: { readonly signal?: AbortSignal }) => {
        asked.requests.push([address, Math.round(world.clock.monotonicMs() - startMs)]);
        const answersMs = takesMs(address);
        if (answersMs === "busy") return refused("resourceExhausted", "throttled", "too much to do");
        if (answersMs === silent) return new Promise(() => {});
        await sleep(world.clock, answersMs, options.signal);
        return ok({ payload: new Uint8Array(request.lengthBytes) });
      },
    });
    const fragments = this.#addresses.map((address) => ({ version: 1, address }));
    const profile = this.#profile;
    const coded = { profile: profile.name, fragments };
    const race = new FragmentRace(
      { extentId: 1, coded, profile, sealedLengthBytes: 1, index: 0, offsetBytes: 0, lengthBytes },
      {
        world: { ...world, transport: { client } } as unknown as World,
        histories: this.histories,
        kernel: new Kernel(profile.fragments, 64 * kibibyte),
        deadlineMs: startMs + 5_000,
        signal: undefined,
        places: { isCached: false, disproved: () => {} },
      },
    );
    const answer = await race.run();
    if (answer.ok) assert.equal(answer.value.length, lengthBytes);
    asked.tookMs = answer.ok ? world.clock.monotonicMs() - startMs : silent;
    return asked;
  }

  async many(count: number, lengthBytes: number, takesMs: (address: string) => number | "busy"): Promise<Asked[]> {
    const all: Asked[] = [];
    for (let i = 0; i < count; i++) all.push(await this.read(lengthBytes, takesMs));
    return all;
  }
}

const requestsOf = (all: readonly Asked[]): number => all.reduce((sum, { requests }) => sum + requests.length, 0);

test("fragment race: a large read that takes its usual time asks nobody else, after many small ones that were quick", async () => {
  const reader = new Reader("rs-4-2");
  await reader.sim.run(async () => {
    await reader.many(32, 64 * kibibyte, () => 2);
    await reader.many(16, 1_024 * kibibyte, () => 40);
    const usual = await reader.read(1_024 * kibibyte, () => 40);
    assert.deepEqual(usual.requests, [["n0", 0]]);
    const late = await reader.read(1_024 * kibibyte, (address) => (address === "n0" ? 1_000 : 40));
    assert.deepEqual(
      [late.requests.length, late.requests[1]?.[1]],
      [5, 60],
      "four others are asked after one and a half times the usual time",
    );
    const small = await reader.read(64 * kibibyte, (address) => (address === "n0" ? 40 : 2));
    assert.equal(small.requests[1]?.[1], 5);
  });
});

for (const profileName of ["rs-4-2", "lrc-12-2-2"]) {
  test(`fragment race ${profileName}: while all nodes are slow, reads ask few others, one after another and at once`, async () => {
    const reader = new Reader(profileName);
    await reader.sim.run(async () => {
      await reader.many(32, 4 * kibibyte, () => 2);
      const slow = await reader.many(200, 4 * kibibyte, () => 600);
      assert.ok(requestsOf(slow) < 3 * slow.length, `${requestsOf(slow)} requests of ${slow.length} reads`);
      const { hedges, won, patience } = reader.histories.hedges.figures;
      assert.ok(hedges > 0 && won === 0 && patience > 2, `${hedges} hedges, ${won} won, patience ${patience}`);
    });
    const busy = new Reader(profileName);
    await busy.sim.run(async () => {
      await busy.many(32, 4 * kibibyte, () => 2);
      const together = await Promise.all(Array.from({ length: 300 }, () => busy.read(4 * kibibyte, () => 1_500)));
      const { hedges, denied, reads } = busy.histories.hedges.figures;
      assert.equal(reads, 332);
      // At once 10, and 1 for each second of 1.5, and 2 that are overdue: a tenth of the 300 reads was had while the budget was full.
      assert.ok(hedges <= 14 && denied > 100, `${hedges} hedges, ${denied} denied`);
      assert.ok(requestsOf(together) <= 300 + 14 * 15);
    });
  });
}

test("fragment race, rule hedgesBounded: without it each read asks others while all nodes are slow", async () => {
  const reader = new Reader("lrc-12-2-2", ["hedgesBounded"]);
  await reader.sim.run(async () => {
    await reader.many(32, 4 * kibibyte, () => 2);
    const slow = await reader.many(100, 4 * kibibyte, () => 600);
    assert.ok(requestsOf(slow) > 6 * slow.length, `${requestsOf(slow)} requests of ${slow.length} reads`);
  });
});

test("fragment race: a node that is slow or silent is read around as often as it takes, also after all were slow", async () => {
  for (const takesMs of [silent, 3_000]) {
    const reader = new Reader("lrc-12-2-2");
    await reader.sim.run(async () => {
      await reader.many(32, 4 * kibibyte, () => 2);
      await reader.many(100, 4 * kibibyte, () => 600);
      await reader.many(64, 4 * kibibyte, () => 2);
      const around = await reader.many(200, 4 * kibibyte, (address) => (address === "n0" ? takesMs : 2));
      const longestMs = Math.max(...around.map(({ tookMs }) => tookMs));
      assert.ok(longestMs < 1_100, `the longest read took ${longestMs} ms`);
      assert.ok(around.filter(({ tookMs }) => tookMs > 300).length <= 3, "patience goes when hedges win");
      assert.ok((around.at(-1)?.tookMs ?? silent) < 10, "in the end it is asked beside the others");
      const together = await Promise.all(
        Array.from({ length: 100 }, () => reader.read(4 * kibibyte, (address) => (address === "n0" ? takesMs : 2))),
      );
      assert.ok(Math.max(...together.map(({ tookMs }) => tookMs)) < 1_000, "at once too");
    });
  }
});

test("fragment race: a read whose first source of a decoding is silent too asks all others, and their answer is in time", async () => {
  const reader = new Reader("lrc-12-2-2");
  await reader.sim.run(async () => {
    await reader.many(32, 4 * kibibyte, () => 2);
    const group = (profileOf("lrc-12-2-2") as Profile).groups.find((each) => each.includes(0)) as readonly number[];
    const mute = ["n0", `n${group.find((each) => each !== 0)}`];
    const around = await reader.read(4 * kibibyte, (address) => (mute.includes(address) ? silent : 2));
    assert.ok(around.tookMs < 500, `${around.tookMs} ms`);
    assert.equal(around.requests.length, 16);
  });
});

test("fragment race: nodes that have too much to do are not asked all at once by every read that one of them refuses", async () => {
  const reader = new Reader("lrc-12-2-2");
  await reader.sim.run(async () => {
    await reader.many(32, 4 * kibibyte, () => 2);
    const one = await reader.read(4 * kibibyte, (address) => (address === "n0" ? "busy" : 2));
    assert.ok(one.tookMs < 10, "others answer for one that is busy");
    const all = await reader.many(100, 4 * kibibyte, () => "busy");
    // A full budget, and a tenth of the reads.
    assert.ok(requestsOf(all) <= all.length + 21 * 15, `${requestsOf(all)} requests of ${all.length} reads`);
  });
});

test("fragment race: too few fragments answer, and the last that was asked does: the read ends, instead of waiting for ever", async () => {
  const reader = new Reader("rs-4-2");
  await reader.sim.run(async () => {
    await reader.many(32, 4 * kibibyte, () => 2);
    const failing = ["n0", "n3", "n4"];
    const ended = await Promise.race([
      reader.read(4 * kibibyte, (address) => (failing.includes(address) ? "busy" : address === "n5" ? 50 : 2)).then(() => true),
      sleep(reader.sim.world("reader").clock, 10_000).then(() => false),
    ]);
    assert.ok(ended);
  });
});

test("fragment race: one read at a time of a silent node, without budget: each is answered within two seconds", async () => {
  const reader = new Reader("rs-4-2");
  await reader.sim.run(async () => {
    await reader.many(32, 4 * kibibyte, () => 2);
    const { hedges } = reader.histories;
    while (hedges.take(reader.sim.world("reader").clock.monotonicMs()));
    const { tookMs } = await reader.read(4 * kibibyte, (address) => (address === "n0" ? silent : 2));
    assert.ok(tookMs < 1_100, `${tookMs} ms`);
  });
});
