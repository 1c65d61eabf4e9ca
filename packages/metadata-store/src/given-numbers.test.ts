import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, refused, utf8 } from "@stamp/base";
import type { World } from "@stamp/ports";
import { LockService, toWire } from "@stamp/wire";
import { GivenNumbers, unvouchedEpochsMax, unvouchedTermsMax } from "./given-numbers.ts";

const most = Number.MAX_SAFE_INTEGER;

/** A lock service that answers with what was given when the question came, after `held` is resolved. */
function lockService() {
  const given = { term: 0, ownerEpoch: "0", reads: 0, answers: true, held: Promise.resolve() };
  const lease = {
    getLease: async () => {
      const { term } = given;
      given.reads++;
      await given.held;
      return given.answers ? ok({ leaseEpoch: toWire(term) }) : refused("unavailable", "connectFailed", "nobody is there");
    },
  };
  const store = {
    getKeys: async () => {
      const value = utf8(given.ownerEpoch);
      await given.held;
      return ok({ entries: [{ key: "", value, version: 1n }] });
    },
  };
  const transport = { client: (_: string, service: unknown) => (service === LockService ? lease : store) };
  const numbers = new GivenNumbers({ transport } as unknown as World, { lockService: "lock", timeoutMs: 1_000 });
  const vouched = async (of: Parameters<GivenNumbers["vouchFor"]>[0]): Promise<string> => {
    const outcome = await numbers.vouchFor(of);
    return outcome.ok ? "ok" : outcome.failure.reason;
  };
  return { given, numbers, vouched };
}

test("given numbers: a little above the last one that was read is not far, and small steps do not add up", async () => {
  const { given, numbers, vouched } = lockService();
  Object.assign(given, { term: 7, ownerEpoch: "1000" });
  assert.equal(await vouched({ term: most, ownerEpoch: 1 }), "badRequest");
  assert.deepEqual(numbers.known, { term: 7, ownerEpoch: 1_000 });
  for (let step = 0; step < 3; step++) {
    assert.equal(numbers.isFar({ term: 7 + unvouchedTermsMax, ownerEpoch: 1_000 + unvouchedEpochsMax }), false);
    assert.equal(numbers.isFar({ term: 8 + unvouchedTermsMax }), true);
    assert.equal(numbers.isFar({ ownerEpoch: 1_001 + unvouchedEpochsMax }), true);
  }
});

test("given numbers: what was given passes, what was not is refused, and nobody guesses while the lock service does not answer", async () => {
  const { given, vouched } = lockService();
  Object.assign(given, { term: 1_000_001, ownerEpoch: "2000000" });
  assert.equal(await vouched({ term: 1_000_001, ownerEpoch: 2_000_000 }), "ok");
  assert.equal(await vouched({ term: 1_000_001, ownerEpoch: most }), "badRequest");
  assert.equal(await vouched({ term: most, ownerEpoch: 2_000_000 }), "badRequest");
  given.answers = false;
  assert.equal(await vouched({ ownerEpoch: most }), "notReady");
  given.answers = true;
  given.ownerEpoch = "many";
  assert.equal(await vouched({ ownerEpoch: most }), "notReady");
});

test("given numbers: a number that is given while a read is on its way passes; all who ask meanwhile share the next read", async () => {
  const { given, vouched } = lockService();
  let answer = (): void => {};
  given.held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const first = vouched({ ownerEpoch: 500 });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(given.reads, 1);
  given.ownerEpoch = "900";
  const later = Array.from({ length: 100 }, () => vouched({ ownerEpoch: 900 }));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(given.reads, 1, "they wait for the next read");
  answer();
  assert.equal(await first, "badRequest", "500 was not given when the first read was sent");
  assert.deepEqual(new Set(await Promise.all(later)), new Set(["ok"]));
  assert.equal(given.reads, 2);
});
