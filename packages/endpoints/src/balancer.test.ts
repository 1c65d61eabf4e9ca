import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Availability } from "./availability.ts";
import { type BalancerOptions, EndpointBalancer, NoNodeAvailableError } from "./balancer.ts";
import { cpu, eventLoopDelay, usedDisk } from "./probes.ts";
import { type BalancerClock, UsageError } from "./time.ts";

/** A clock that moves when the test says so. */
class VirtualClock implements BalancerClock {
  #nowMs = 0;
  readonly #timers = new Set<{ readonly dueMs: number; readonly call: () => void }>();
  monotonicMs = (): number => this.#nowMs;
  random = (): number => 0.5;
  after(delayMs: number, call: () => void): () => void {
    const timer = { dueMs: this.#nowMs + delayMs, call };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
      const [first] = [...this.#timers].filter(({ dueMs }) => dueMs <= untilMs).sort((a, b) => a.dueMs - b.dueMs);
      if (first === undefined) break;
      this.#timers.delete(first);
      this.#nowMs = Math.max(this.#nowMs, first.dueMs);
      first.call();
    }
    this.#nowMs = untilMs;
  }
}

type State = "yes" | "no" | "error" | "throws" | "hangs";

function world(ordinal = 0, options: Partial<BalancerOptions<string>> = {}) {
  const clock = new VirtualClock();
  const states: Record<string, State> = { a: "yes", b: "yes", c: "yes" };
  const asked: string[] = [];
  const balancer = new EndpointBalancer<string>({
    nodes: ["a", "b", "c"],
    ordinal,
    clock,
    isAvailable: (node) => {
      asked.push(node);
      const state = states[node];
      if (state === "throws") throw new Error("at once");
      if (state === "error") return Promise.reject(new Error("refused"));
      if (state === "hangs") return new Promise(() => {});
      return Promise.resolve(state === "yes");
    },
    ...options,
  });
  const node = async (): Promise<string | undefined> => {
    const resolving = balancer.resolve();
    await clock.advance(0);
    const resolution = await resolving;
    return resolution.kind === "node" ? resolution.node : undefined;
  };
  return { clock, states, asked, balancer, node };
}

describe("cooperative balancing", () => {
  test("each caller begins at its own place, round the ring", async () => {
    for (const [ordinal, first] of [
      [0, "a"],
      [1, "b"],
      [2, "c"],
      [3, "a"],
      [100, "b"],
    ] as const) {
      assert.equal(await world(ordinal).node(), first);
    }
  });

  test("a no, an error, a throw and no answer in time: the next one is asked", async () => {
    for (const state of ["no", "error", "throws"] as const) {
      const { states, asked, node } = world(1);
      states.b = state;
      assert.equal(await node(), "c");
      assert.deepEqual(asked, ["b", "c"]);
    }
    const { clock, states, balancer } = world(1);
    states.b = "hangs";
    const resolving = balancer.resolve();
    await clock.advance(999);
    await clock.advance(1);
    assert.deepEqual(await resolving, { kind: "node", node: "c" });
    assert.equal(balancer.counters().nodes.b?.timeouts, 1);
  });

  test("a yes is good for the cache time; all who resolve meanwhile share one question", async () => {
    const { clock, asked, balancer, node } = world();
    const all = Promise.all(Array.from({ length: 50 }, () => balancer.resolve()));
    await clock.advance(0);
    await all;
    await clock.advance(4_999);
    assert.equal(balancer.current(), "a");
    assert.deepEqual(asked, ["a"]);
    await clock.advance(1);
    assert.equal(balancer.current(), undefined);
    await node();
    assert.deepEqual(asked, ["a", "a"]);
  });

  test("the preferred node comes back: the caller returns to it; while it hangs nobody waits for it", async () => {
    const { clock, states, node } = world();
    states.a = "no";
    assert.equal(await node(), "b");
    states.a = "hangs";
    await clock.advance(5_000);
    assert.equal(await node(), "b", "without waiting for the deadline of a");
    states.a = "yes";
    await clock.advance(5_000);
    await node();
    assert.equal(await node(), "a");
  });

  test("nobody is available: a clear outcome, with back-off; then the first yes ends it", async () => {
    const { clock, states, asked, balancer } = world();
    for (const name of ["a", "b", "c"]) states[name] = "no";
    const first = balancer.resolve();
    await clock.advance(0);
    const resolution = await first;
    assert.equal(resolution.kind, "none");
    assert.ok(resolution.kind === "none" && resolution.retryAfterMs > 0);
    for (let calls = 0; calls < 100; calls++) assert.equal((await balancer.resolve()).kind, "none");
    assert.equal(asked.length, 3, "not asked again before the back-off is over");
    await assert.rejects(
      balancer.call(
        async () => 1,
        () => true,
      ),
      NoNodeAvailableError,
    );
    states.c = "yes";
    await clock.advance(5_000);
    const again = balancer.resolve();
    await clock.advance(0);
    assert.deepEqual(await again, { kind: "node", node: "c" });
  });

  test("a node that is disabled is not used, nor asked, until its time is over", async () => {
    const { clock, asked, balancer, node } = world();
    await node();
    balancer.disableNode("a", 60_000);
    assert.equal(await node(), "b");
    for (let rounds = 0; rounds < 11; rounds++) {
      await clock.advance(5_000);
      assert.equal(await node(), "b");
    }
    assert.equal(asked.filter((name) => name === "a").length, 1);
    await clock.advance(5_000);
    await node();
    assert.equal(await node(), "a");
    assert.throws(() => balancer.disableNode("x", 1), UsageError);
  });

  test("disabled or removed while its answer is on the way: not chosen", async () => {
    for (const change of [
      (balancer: EndpointBalancer) => balancer.disableNode("a", 60_000),
      (balancer: EndpointBalancer) => balancer.setNodes(["b", "c"]),
    ]) {
      let answer: (yes: boolean) => void = () => {};
      const { clock, balancer } = world(0, {
        isAvailable: (name) => (name === "a" ? new Promise((resolve) => (answer = resolve)) : Promise.resolve(true)),
      });
      const resolving = balancer.resolve();
      await clock.advance(0);
      change(balancer);
      answer(true);
      await clock.advance(0);
      assert.deepEqual(await resolving, { kind: "node", node: "b" });
    }
  });

  test("a serving node that is disabled or removed before its answer comes is not chosen", async () => {
    for (const change of [
      (balancer: EndpointBalancer) => balancer.disableNode("b", 60_000),
      (balancer: EndpointBalancer) => balancer.setNodes(["a", "c"]),
    ]) {
      let asked = 0;
      let answer: (yes: boolean) => void = () => {};
      const { clock, balancer, node } = world(0, {
        isAvailable: (name) => {
          if (name !== "b" || asked++ === 0) return Promise.resolve(name !== "a");
          return new Promise((resolve) => (answer = resolve));
        },
      });
      assert.equal(await node(), "b");
      await clock.advance(5_000);
      const resolving = balancer.resolve();
      await clock.advance(0);
      change(balancer);
      answer(true);
      await clock.advance(0);
      assert.deepEqual(await resolving, { kind: "node", node: "c" });
    }
  });

  test("a call goes to each node at most once, also when it fails more slowly than a node rests, or nodes do not rest", async () => {
    for (const [cacheMs, workMs] of [
      [5_000, 10_000],
      [0, 0],
    ] as const) {
      const { clock, balancer } = world(0, { cacheMs });
      const tried: string[] = [];
      const calling = balancer.call(
        async (name) => {
          tried.push(name);
          await new Promise<void>((resolve) => clock.after(workMs, resolve));
          throw new Error("no answer");
        },
        () => true,
      );
      calling.catch(() => {});
      await clock.advance(60_000);
      await assert.rejects(calling, NoNodeAvailableError);
      assert.deepEqual(tried, ["a", "b", "c"]);
    }
  });

  test("nodes are added and removed at run time", async () => {
    const { clock, states, balancer, node } = world(1);
    assert.equal(await node(), "b");
    balancer.setNodes(["a", "c"]);
    assert.equal(await node(), "c");
    states.d = "yes";
    balancer.setNodes(["a", "d", "c"]);
    assert.equal(await node(), "c", "the chosen one is still there");
    await clock.advance(5_000);
    await node();
    assert.equal(await node(), "d");
    balancer.setNodes([]);
    assert.equal(await node(), undefined);
  });

  test("a call that its node fails goes to the next one, and only such a call", async () => {
    const { clock, balancer } = world();
    const tried: string[] = [];
    const calling = balancer.call(
      async (name) => {
        tried.push(name);
        if (name === "a") {
          throw new Error("connection refused");
        }
        return name;
      },
      (error) => String(error).includes("refused"),
    );
    await clock.advance(0);
    assert.equal(await calling, "b");
    assert.deepEqual(tried, ["a", "b"], "a says that it is available, and is kept from all the same");
    const failing = balancer.call(
      async (name) => {
        tried.push(name);
        throw new Error("refused");
      },
      () => true,
    );
    failing.catch(() => {});
    await clock.advance(0);
    await assert.rejects(failing, NoNodeAvailableError);
    assert.deepEqual(tried.slice(2), ["b", "c"], "at most once to each");
    await clock.advance(5_000);
    const wrong = balancer.call(
      async () => Promise.reject(new Error("bad request")),
      () => false,
    );
    wrong.catch(() => {});
    await clock.advance(0);
    await assert.rejects(wrong, /bad request/);
  });

  test("counters tell who was asked, who answered what, and who was used", async () => {
    const { states, balancer, node } = world();
    states.a = "no";
    await node();
    await node();
    const { rounds, nodes } = balancer.counters();
    assert.deepEqual(
      [rounds, nodes.a, nodes.b],
      [1, { given: 0, yes: 0, no: 1, errors: 0, timeouts: 0 }, { given: 2, yes: 1, no: 0, errors: 0, timeouts: 0 }],
    );
  });

  test("options out of range are refused", () => {
    const isAvailable = async () => true;
    for (const options of [
      { ordinal: -1 },
      { ordinal: 1.5 },
      { ordinal: 0, cacheMs: -1 },
      { ordinal: 0, deadlineMs: 0 },
      { ordinal: 0, jitter: 1 },
    ]) {
      assert.throws(() => new EndpointBalancer({ nodes: ["a"], isAvailable, ...options }), UsageError);
    }
  });
});

describe("availability of a node", () => {
  test("a criterion says no above one threshold and yes again only below the other", async () => {
    const clock = new VirtualClock();
    let value = 0;
    const criterion = { name: "queue", unit: "waiting", measure: () => value, unavailableAbove: 100, availableBelow: 50 };
    const availability = new Availability({ criteria: [criterion], clock, measureEveryMs: 250 });
    const at = async (measured: number) => {
      value = measured;
      await clock.advance(250);
      return availability.answer();
    };
    assert.deepEqual(await at(100), { available: true, reason: "" });
    assert.deepEqual(await at(101), { available: false, reason: "queue is 101 waiting (limit 100)" });
    assert.equal((await at(80)).available, false);
    assert.equal((await at(50)).available, true);
    assert.equal((await at(80)).available, true);
  });

  test("a probe that fails, or gives no number, is a no", () => {
    const broken = { name: "disk", unit: "%", unavailableAbove: 1, availableBelow: 1 };
    const throwing = new Availability({ criteria: [{ ...broken, measure: () => assert.fail("gone") }] });
    assert.match(throwing.answer().reason, /disk can't be measured: gone/);
    assert.equal(new Availability({ criteria: [{ ...broken, measure: () => Number.NaN }] }).answer().available, false);
    assert.throws(() => new Availability({ criteria: [{ ...broken, availableBelow: 2, measure: () => 0 }] }), UsageError);
  });

  test("disabled for a time: no, with the time that is left; then yes", async () => {
    const clock = new VirtualClock();
    const availability = new Availability({ clock });
    availability.disable(10_000);
    await clock.advance(4_000);
    assert.deepEqual(availability.answer(), { available: false, reason: "disabled for 6 s more" });
    await clock.advance(6_000);
    assert.equal(availability.answer().available, true);
  });

  test("the probes of this machine measure", () => {
    for (const probe of [cpu(), eventLoopDelay(), usedDisk(".")]) assert.ok(probe.measure() >= 0, probe.name);
  });
});
