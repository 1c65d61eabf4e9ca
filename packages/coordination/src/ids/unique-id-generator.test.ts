import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CorruptCounterError, RetriesExhaustedError, UsageError } from "../errors.ts";
import { refusal } from "../testing/lease-service.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { OptimisticSyncStore } from "./optimistic-sync-store.ts";
import { UniqueIdGenerator } from "./unique-id-generator.ts";

type Fault = "read fails" | "write fails" | "write lost" | "answer lost" | undefined;

/** A counter with versions, on virtual time, whose requests take some time and may fail. */
function counter(clock: VirtualClock, initial?: string, fault: () => Fault = () => undefined) {
  let data = initial;
  let version = 0;
  const state = { writes: 0, refused: 0, value: () => data };
  const way = () => new Promise<void>((resolve) => clock.after(1 + clock.random() * 20, resolve));
  const store: OptimisticSyncStore = {
    name: "blob ids/orders",
    getData: async () => {
      if (fault() === "read fails") throw refusal(503, "ServerBusy");
      await way();
      return { data, version: data === undefined ? undefined : String(version) };
    },
    tryOptimisticWrite: async (text, condition) => {
      const drawn = fault();
      if (drawn === "write fails") throw refusal(500, "InternalError");
      await way();
      if (drawn === "write lost") return await new Promise<never>(() => {});
      if (condition !== (data === undefined ? undefined : String(version))) {
        state.refused++;
        return false;
      }
      data = text;
      version++;
      state.writes++;
      if (drawn === "answer lost") return await new Promise<never>(() => {});
      return true;
    },
  };
  return { store, state };
}

describe("unique ids", () => {
  test("many processes under faults: no number twice, none goes back within a process, a new counter is created once", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const clock = new VirtualClock(seed);
      const faults: readonly Fault[] = ["read fails", "write fails", "write lost", "answer lost"];
      const { store } = counter(clock, undefined, () => (clock.random() < 0.2 ? faults[Math.floor(clock.random() * 4)] : undefined));
      const seen = new Set<bigint>();
      const processes = Array.from({ length: 6 }, async (_, index) => {
        const generator = new UniqueIdGenerator(store, { rangeSize: 7, maxRetries: 100, clock, prefetchShare: index % 2 ? 0.5 : 0 });
        let last = -1n;
        for (let round = 0; round < 12; round++) {
          const ids = await Promise.all(Array.from({ length: 5 }, () => generator.nextId()));
          for (const id of ids) {
            assert.ok(!seen.has(id), `seed ${seed}: ${id} twice`);
            assert.ok(id > last, `seed ${seed}: ${id} after ${last}`);
            seen.add(id);
            last = id;
          }
        }
      });
      await clock.until(Promise.all(processes), 3_600_000, 5_000);
      assert.equal(seen.size, 6 * 12 * 5);
    }
  });

  test("a hundred callers wait for one reservation", async () => {
    const clock = new VirtualClock();
    const { store, state } = counter(clock, "500");
    const generator = new UniqueIdGenerator(store, { clock, prefetchShare: 0 });
    const ids = await clock.until(Promise.all(Array.from({ length: 100 }, () => generator.nextId())));
    assert.deepEqual([ids[0], ids[99], state.writes], [500n, 599n, 1]);
  });

  test("the next range is there before the last one runs out", async () => {
    const clock = new VirtualClock();
    const { store, state } = counter(clock, "0");
    const generator = new UniqueIdGenerator(store, { rangeSize: 100, prefetchShare: 0.2, clock });
    await clock.until(generator.nextId());
    for (let taken = 1; taken < 80; taken++) assert.notEqual(generator.tryNextId(), undefined);
    await clock.advance(1_000);
    assert.equal(state.writes, 2);
    for (let taken = 80; taken < 180; taken++) assert.equal(generator.tryNextId(), BigInt(taken));
  });

  test("a failed prefetch is not told; the call that needs the range tries again", async () => {
    const clock = new VirtualClock();
    let failing = false;
    const { store } = counter(clock, "0", () => (failing ? "write fails" : undefined));
    const generator = new UniqueIdGenerator(store, { rangeSize: 10, maxRetries: 1, clock });
    await clock.until(generator.nextId());
    failing = true;
    for (let taken = 1; taken < 10; taken++) generator.tryNextId();
    await clock.advance(60_000);
    await assert.rejects(clock.until(generator.nextId()), RetriesExhaustedError);
    failing = false;
    assert.equal(await clock.until(generator.nextId()), 10n);
  });

  test("content that is no number: the error names the blob and quotes the content", async () => {
    for (const content of ["", "12x", "-5", "1.5", "9223372036854775808", "0x10"]) {
      const clock = new VirtualClock();
      const { store, state } = counter(clock, content);
      const taking = new UniqueIdGenerator(store, { clock }).nextId();
      await assert.rejects(
        clock.until(taking),
        (error) => error instanceof CorruptCounterError && error.message.includes(`blob ids/orders holds ${JSON.stringify(content)}`),
      );
      assert.equal(state.writes, 0);
    }
  });

  test("beyond 2^53 numbers stay exact; at the end of Int64 the error says so", async () => {
    const clock = new VirtualClock();
    const generator = new UniqueIdGenerator(counter(clock, "9007199254740993").store, { rangeSize: 2, clock });
    assert.equal(await clock.until(generator.nextId()), 9007199254740993n);
    const last = new UniqueIdGenerator(counter(clock, String(2n ** 63n - 10n)).store, { clock });
    await assert.rejects(clock.until(last.nextId()), CorruptCounterError);
  });

  test("other writers are always first: the attempts end, and the error says what to change", async () => {
    const clock = new VirtualClock();
    const { store } = counter(clock, "0");
    const beaten = { ...store, tryOptimisticWrite: async () => false };
    const taking = new UniqueIdGenerator(beaten, { maxRetries: 3, clock }).nextId();
    await assert.rejects(
      clock.until(taking),
      (error) => error instanceof RetriesExhaustedError && /after 4 attempts.*larger rangeSize/.test(error.message),
    );
  });

  test("refused for good: told at once, and the next call asks again", async () => {
    const clock = new VirtualClock();
    let asked = 0;
    const store = { ...counter(clock).store, getData: async () => Promise.reject(refusal(403, `AuthorizationFailure${asked++}`)) };
    const generator = new UniqueIdGenerator(store, { clock });
    await assert.rejects(clock.until(generator.nextId()), /AuthorizationFailure0/);
    await assert.rejects(clock.until(generator.nextId()), /AuthorizationFailure1/);
  });

  test("options out of range are refused", () => {
    const { store } = counter(new VirtualClock());
    for (const options of [
      { rangeSize: 0 },
      { rangeSize: 1.5 },
      { maxRetries: -1 },
      { firstId: -1n },
      { prefetchShare: 2 },
      { requestTimeoutMs: 0 },
    ]) {
      assert.throws(() => new UniqueIdGenerator(store, options), UsageError);
    }
  });
});
