/** Pins of an upload in progress: renewed while it goes on, right before the commit, and not after it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ok, type RuleName, refused, rulesWithout } from "@stamp/base";
import type { Route } from "@stamp/objects";
import type { World } from "@stamp/ports";
import { NodeRandom } from "@stamp/ports-node";
import type { Place } from "@stamp/wire";
import { UploadPins } from "./upload-pins.ts";

const termMs = 6_000;
const route: Route = { table: "Blob", key: new Uint8Array([1]) };
const placeIn = (extentId: bigint): Place => ({ extentId, offsetBytes: 0n, lengthBytes: 5 }) as Place;

/** Time that only the test moves. */
class TestTime {
  nowMs = 0;
  readonly #timers = new Set<{ readonly atMs: number; readonly run: () => void }>();

  readonly clock = {
    monotonicMs: (): number => this.nowMs,
    after: (ms: number, run: () => void) => {
      const timer = { atMs: this.nowMs + ms, run };
      this.#timers.add(timer);
      return { cancel: () => this.#timers.delete(timer) };
    },
  };

  async sleep(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    for (;;) {
      const [next] = [...this.#timers].sort((a, b) => a.atMs - b.atMs);
      if (next === undefined || next.atMs > endMs) break;
      this.nowMs = next.atMs;
      this.#timers.delete(next);
      next.run();
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    this.nowMs = endMs;
  }
}

interface Asked {
  readonly atMs: number;
  readonly extentIds: readonly bigint[];
}

async function withPins(
  work: (pins: UploadPins, asked: Asked[], time: TestTime) => Promise<void>,
  answer: () => Outcome<readonly bigint[]> = () => ok([]),
  without: readonly RuleName[] = [],
): Promise<void> {
  const time = new TestTime();
  const asked: Asked[] = [];
  const logger = { warn: () => {} };
  const world = { clock: time.clock, random: new NodeRandom(), rules: rulesWithout(...without), logger } as unknown as World;
  const pins = new UploadPins(world, route, async (to, extentIds) => {
    assert.equal(to, route);
    asked.push({ atMs: time.nowMs, extentIds });
    return answer();
  });
  await work(pins, asked, time);
}

test("upload pins: every extent of an upload is renewed several times a term, until it is dropped", async () => {
  await withPins(async (pins, asked, time) => {
    pins.add([placeIn(1n)], termMs);
    await time.sleep(termMs / 12);
    assert.equal(asked.length, 0, "a short upload asks nobody");
    pins.add([placeIn(2n), placeIn(2n)], termMs);
    await time.sleep(2 * termMs);
    assert.ok(asked.length >= 8, `${asked.length} renewals in two terms`);
    for (const [i, { atMs, extentIds }] of asked.entries()) {
      assert.deepEqual(extentIds, [1n, 2n]);
      assert.ok(atMs - (asked[i - 1]?.atMs ?? 0) < termMs / 2, "far less than a term after the one before");
    }
    pins.drop();
    const before = asked.length;
    await time.sleep(2 * termMs);
    assert.equal(asked.length, before);
  });
});

test("upload pins: before the commit everything is renewed once more, unless it was just now; without the rule nothing is", async () => {
  await withPins(async (pins, asked, time) => {
    pins.add([placeIn(1n)], termMs);
    await pins.close();
    assert.equal(asked.length, 0);
    await time.sleep(termMs);
    assert.equal(asked.length, 0, "closed");
  });
  await withPins(
    async (pins, asked, time) => {
      pins.add([placeIn(1n)], termMs);
      await time.sleep(termMs / 2);
      const failed = asked.length;
      await pins.close();
      assert.equal(asked.length, failed + 1, "what failed so far is tried once more");
    },
    () => refused("unavailable", "notReady", "nobody serves it"),
  );
  await withPins(
    async (pins, asked, time) => {
      pins.add([placeIn(1n)], termMs);
      await time.sleep(2 * termMs);
      await pins.close();
      assert.equal(asked.length, 0);
    },
    undefined,
    ["pinsRenewed"],
  );
});

test("upload pins: an extent that is gone is told; a server that does not say its term is asked nothing", async () => {
  await withPins(
    async (pins, _, time) => {
      pins.add([placeIn(1n)], termMs);
      assert.equal(pins.goneExtentId, undefined);
      await time.sleep(termMs);
      assert.equal(pins.goneExtentId, 1n);
    },
    () => ok([1n]),
  );
  await withPins(async (pins, asked, time) => {
    pins.add([placeIn(1n)], 0);
    await time.sleep(2 * termMs);
    await pins.close();
    assert.equal(asked.length, 0);
  });
});
