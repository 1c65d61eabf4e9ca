import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { LeaseLostError, UnhealthyLeaderError, UsageError } from "../errors.ts";
import { type Fault, LeaseService, refusal } from "../testing/lease-service.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { BlobDistributedMutex, type HeldMutex } from "./blob-distributed-mutex.ts";
import { LeaderElector } from "./leader-elector.ts";

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));

function one(fault?: (request: string) => Fault) {
  const clock = new VirtualClock();
  const service = new LeaseService(clock);
  const process = clock.process();
  const errors: string[] = [];
  const options = { clock: process, leaseSeconds: 15, onError: (error: unknown, during: string) => errors.push(`${during}: ${error}`) };
  const mutex = new BlobDistributedMutex(service.store(process, fault), { ...options, name: "a" });
  return { clock, service, process, mutex, errors, options };
}

describe("mutex over a lease", () => {
  test("a task under the mutex: its value is returned, the lease is renewed meanwhile and released after it", async () => {
    const { clock, service, mutex } = one();
    const running = mutex.runTaskWhenMutexAcquired(async (_, held) => {
      await new Promise<void>((resolve) => clock.after(60_000, resolve));
      held.assertHeld();
      return held.fencingToken;
    });
    assert.equal(await clock.until(running), 1n);
    assert.equal(service.leased, false);
    assert.ok(service.served.renew >= 10, `${service.served.renew} renewals`);
  });

  test("a claim gets no answer while renewals do: it is repeated, and the task runs", async () => {
    for (const fault of ["cut", "answer lost"] as const) {
      let claims = 0;
      const { clock, mutex, errors } = one((request) => (request === "claim" && claims++ === 0 ? fault : undefined));
      const token = await clock.until(
        mutex.runTaskWhenMutexAcquired(async (_, held) => held.fencingToken),
        60_000,
      );
      assert.equal(token, fault === "cut" ? 1n : 2n);
      assert.match(errors.join(), /^claim: TimeoutError/);
    }
  });

  test("one renewal fails, or two: the task goes on", async () => {
    let renewals = 0;
    const { clock, mutex, errors } = one((request) =>
      request === "renew" && renewals++ % 3 < 2 ? (renewals % 2 ? "busy" : "cut") : undefined,
    );
    const running = mutex.runTaskWhenMutexAcquired(async (signal) => {
      await Promise.race([aborted(signal), new Promise<void>((resolve) => clock.after(120_000, resolve))]);
      return "whole";
    });
    assert.equal(await clock.until(running), "whole");
    assert.ok(errors.length >= 5, String(errors.length));
  });

  test("no renewal is answered: the signal comes before the lease could be given to another, whatever is still under way", async () => {
    for (const fault of ["cut", "answer lost", "busy"] as const) {
      const { clock, service, mutex } = one((request) => (request === "renew" ? fault : undefined));
      let atMs = -1;
      let freeAtMs = -1;
      const caller = new AbortController();
      const running = mutex.runTaskWhenMutexAcquired((signal) => {
        const begunMs = clock.monotonicMs();
        signal.addEventListener("abort", () => {
          atMs = clock.monotonicMs() - begunMs;
          freeAtMs = service.leased ? 1 : 0;
          caller.abort(new Error("stop"));
        });
        return aborted(signal);
      }, caller.signal);
      await assert.rejects(clock.until(running), /stop/);
      assert.ok(atMs >= 13_000 && atMs <= 13_500, `${fault}: after ${atMs} ms`);
      assert.equal(freeAtMs, 1, `${fault}: the lease had ended at the service before the task was told`);
    }
  });

  test("an answer proves the loss: the signal comes at once, and the task runs again when the mutex is free", async () => {
    const { clock, service, mutex } = one();
    const tokens: bigint[] = [];
    const reasons: unknown[] = [];
    const running = mutex.runTaskWhenMutexAcquired(async (signal, held) => {
      tokens.push(held.fencingToken);
      if (tokens.length === 2) return "second";
      service.break();
      await aborted(signal).catch((reason) => reasons.push(reason));
      return "first";
    });
    assert.equal(await clock.until(running, 60_000), "second");
    assert.deepEqual(tokens, [1n, 2n]);
    assert.ok(reasons[0] instanceof LeaseLostError);
    assert.match(String(reasons[0]), /leases\/test is lost: LeaseIdMismatch/);
  });

  test("the task throws, and the release fails too: the task's error is what the caller gets", async () => {
    for (const fault of ["busy", "cut", undefined] as const) {
      const { clock, service, mutex } = one((request) => (request === "release" ? fault : undefined));
      const running = mutex.runTaskWhenMutexAcquired(async () => {
        if (fault === undefined) service.break();
        throw new Error("of the task");
      });
      await assert.rejects(clock.until(running), /of the task/);
    }
  });

  test("the task throws after the lease was lost: its own error is not hidden", async () => {
    const { clock, service, mutex } = one();
    const running = mutex.runTaskWhenMutexAcquired(async (signal) => {
      service.break();
      await aborted(signal).catch(() => {});
      throw new Error("clean-up failed");
    });
    await assert.rejects(clock.until(running), /clean-up failed/);
  });

  test("aborted while the answer to the acquisition is under way: the blob is leased to nobody", async () => {
    for (const fault of [undefined, "answer lost"] as const) {
      const clock = new VirtualClock();
      const service = new LeaseService(clock);
      const process = clock.process();
      const slow = service.store(
        process,
        (request) => (request === "acquire" ? fault : undefined),
        () => 500,
      );
      const caller = new AbortController();
      const mutex = new BlobDistributedMutex(slow, { clock: process, leaseSeconds: 60 });
      let ran = false;
      const running = mutex.runTaskWhenMutexAcquired(async () => {
        ran = true;
      }, caller.signal);
      running.catch(() => {});
      await clock.advance(700);
      assert.equal(service.leased, true);
      caller.abort(new Error("changed my mind"));
      await assert.rejects(clock.until(running, 30_000), /changed my mind/);
      assert.equal(service.leased, false);
      assert.equal(ran, false);
    }
  });

  test("an acquisition whose answer was lost is found again, not waited out", async () => {
    let asked = 0;
    const { clock, mutex } = one((request) => (request === "acquire" && asked++ === 0 ? "answer lost" : undefined));
    const running = mutex.runTaskWhenMutexAcquired(async () => clock.monotonicMs());
    assert.ok((await clock.until(running)) < 10_000);
  });

  test("refused for good: the caller gets the error at once", async () => {
    const clock = new VirtualClock();
    const process = clock.process();
    const store = new LeaseService(clock).store(process);
    const refused = { ...store, acquire: async () => Promise.reject(refusal(403, "AuthorizationFailure")) };
    await assert.rejects(
      clock.until(new BlobDistributedMutex(refused, { clock: process }).runTaskWhenMutexAcquired(async () => 1)),
      /AuthorizationFailure/,
    );
  });

  test("options out of range say what to give", () => {
    const store = new LeaseService(new VirtualClock()).store(new VirtualClock().process());
    const make = (options: object) => () => new BlobDistributedMutex(store, options);
    assert.throws(make({ leaseSeconds: 5 }), (error) => error instanceof UsageError && /15 to 60/.test(error.message));
    assert.throws(make({ leaseSeconds: 61 }), UsageError);
    assert.throws(make({ acquireEveryMs: -1 }), UsageError);
    assert.throws(make({ marginMs: 14_000, leaseSeconds: 15 }), UsageError);
    assert.throws(make({ name: "" }), UsageError);
  });
});

describe("leader election", () => {
  test("five candidates under cuts, lost answers, pauses and breaks: one leader at a time, tokens rise", async () => {
    for (let seed = 1; seed <= 5; seed++) await election(seed);
  });

  test("a hung leader is found out by its health check; another leads, the hung one can not write", async () => {
    const clock = new VirtualClock();
    const service = new LeaseService(clock);
    const caller = new AbortController();
    const led: string[] = [];
    let reason: unknown;
    const electors = ["a", "b"].map((name) => {
      const process = clock.process();
      const isHealthy = async () => led[0] !== name || led.length > 1;
      return new LeaderElector(service.store(process), { clock: process, name, leaseSeconds: 15, isHealthy, healthCheckEveryMs: 1_000 });
    });
    const held: HeldMutex[] = [];
    for (const elector of electors) {
      elector.on("lost", (event) => {
        reason ??= event.reason;
      });
      void elector.run((_, mutex) => {
        led.push(elector.name);
        held.push(mutex);
        // Never settles before the caller ends it: a task that hangs.
        return aborted(caller.signal);
      }, caller.signal);
    }
    await clock.advance(60_000);
    assert.equal(led.length, 2, String(led));
    assert.notEqual(led[0], led[1]);
    assert.throws(() => held[0]?.assertHeld(), LeaseLostError);
    assert.ok(held[0]?.signal.reason instanceof UnhealthyLeaderError);
    held[1]?.assertHeld();
    assert.deepEqual(await electors[0]?.leader(), { leader: led[1], fencingToken: 2n, held: true });
    caller.abort(new Error("end"));
    await clock.advance(60_000);
    assert.ok(reason !== undefined);
    assert.equal(service.leased, false);
  });

  test("run twice at once is refused", async () => {
    const clock = new VirtualClock();
    const process = clock.process();
    const elector = new LeaderElector(new LeaseService(clock).store(process), { clock: process });
    const caller = new AbortController();
    const first = elector.run(async (signal) => aborted(signal), caller.signal);
    await assert.rejects(
      elector.run(async () => {}, caller.signal),
      UsageError,
    );
    caller.abort();
    await clock.until(first);
  });
});

/** Eight minutes of five candidates. Checks after each 250 ms. */
async function election(seed: number): Promise<void> {
  const clock = new VirtualClock(seed);
  const service = new LeaseService(clock);
  const caller = new AbortController();
  const active = new Map<string, HeldMutex>();
  const tokens: bigint[] = [];
  /** After a break the old leader learns of it with its next renewal: two may lead until then, and the token tells them apart. */
  let breakSettledMs = 0;
  const candidates = ["a", "b", "c", "d", "e"].map((name) => {
    const process = clock.process();
    let cut = false;
    const fault = (): Fault => {
      if (cut) return "cut";
      const draw = clock.random();
      return draw < 0.02 ? "cut" : draw < 0.05 ? "answer lost" : draw < 0.08 ? "busy" : undefined;
    };
    const store = service.store(process, fault, () => clock.random() * 50);
    const elector = new LeaderElector(store, { clock: process, name, leaseSeconds: 15, acquireEveryMs: 2_000 });
    const run = elector.run(async (signal, mutex) => {
      tokens.push(mutex.fencingToken);
      active.set(name, mutex);
      try {
        for (;;) {
          await new Promise<void>((resolve) => process.after(100, resolve));
          signal.throwIfAborted();
        }
      } finally {
        active.delete(name);
      }
    }, caller.signal);
    const cutOff = (on: boolean): void => {
      cut = on;
    };
    return { name, process, elector, run, cutOff };
  });
  for (let passedMs = 0; passedMs < 8 * 60_000; passedMs += 250) {
    await clock.advance(250);
    // A paused one can't be told; one that runs has been told by now if it does not lead.
    const leading = candidates.filter(({ name, process }) => active.has(name) && !process.paused && !active.get(name)?.signal.aborted);
    const unbroken = clock.monotonicMs() > breakSettledMs;
    assert.ok(leading.length <= 1 || !unbroken, `seed ${seed}: ${leading.map(({ name }) => name)} lead at once`);
    const certain = candidates.filter(({ elector }) => elector.isLeader);
    assert.ok(certain.length <= 1 || !unbroken, `seed ${seed}: more than one is certain to lead`);
    const draw = clock.random();
    const chosen = candidates[Math.floor(clock.random() * candidates.length)];
    if (draw < 0.01) {
      chosen?.process.pause();
      clock.after(clock.random() * 40_000, () => chosen?.process.resume());
    } else if (draw < 0.015) {
      chosen?.cutOff(true);
      clock.after(clock.random() * 40_000, () => chosen?.cutOff(false));
    } else if (draw < 0.017) {
      service.break();
      breakSettledMs = clock.monotonicMs() + 15_000;
    }
  }
  for (const { process } of candidates) process.resume();
  caller.abort(new Error("end"));
  await clock.advance(60_000);
  assert.deepEqual(
    tokens,
    [...tokens].sort((a, b) => Number(a - b)),
    `seed ${seed}: tokens do not rise`,
  );
  assert.equal(new Set(tokens).size, tokens.length, `seed ${seed}: a token was given twice`);
  assert.ok(tokens.length > 5, `seed ${seed}: ${tokens.length} leaderships`);
}
