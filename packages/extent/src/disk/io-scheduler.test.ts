/** The disk's order of work, on a disk of which the test decides how long each operation takes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, Prng, type Rules, rulesWithout } from "@stamp/base";
import fc from "fast-check";
import { defaultIoLimits, type IoClass, type IoEffect, type IoOperation, IoScheduler } from "./io-scheduler.ts";

interface Served {
  readonly name: string;
  readonly class: IoClass;
  readonly arrivedMs: number;
  startedMs: number | undefined;
  refused: "late" | "full" | undefined;
}

/** A disk with one arm: what is in hand is served one after another, in the order `choose` gives. */
class OneArm {
  readonly scheduler: IoScheduler<Served>;
  nowMs = 0;
  readonly all: Served[] = [];
  #hand: { readonly operation: IoOperation<Served>; readonly leftMs: number }[] = [];
  #armFreeMs = 0;
  readonly #done = new Set<Served>();
  readonly #tookMs: (bytes: number) => number;
  readonly #choose: (count: number) => number;

  constructor(rules: Rules, tookMs: (bytes: number) => number, choose: (count: number) => number = () => 0) {
    this.scheduler = new IoScheduler(rules);
    this.#tookMs = tookMs;
    this.#choose = choose;
  }

  submit(name: string, ioClass: IoClass, bytes: number, deadlineMs = Number.POSITIVE_INFINITY): Served {
    const item: Served = { name, class: ioClass, arrivedMs: this.nowMs, startedMs: undefined, refused: undefined };
    this.all.push(item);
    this.#take(this.scheduler.submit({ class: ioClass, bytes, deadlineMs, item }, this.nowMs));
    return item;
  }

  #take(effects: readonly IoEffect<Served>[]): void {
    for (const effect of effects) {
      const { item } = effect.operation;
      if (effect.kind === "refuse") item.refused = effect.why;
      else {
        item.startedMs = this.nowMs;
        if (this.#hand.length === 0) this.#armFreeMs = this.nowMs;
        this.#hand.push({ operation: effect.operation, leftMs: this.#tookMs(effect.operation.bytes) });
      }
    }
  }

  unserved(): Served[] {
    return this.all.filter((each) => !this.#done.has(each));
  }

  /** Time goes on to `untilMs`. */
  run(untilMs: number): void {
    for (;;) {
      const at = this.#hand.length === 0 ? -1 : this.#choose(this.#hand.length);
      const next = this.#hand[at];
      if (next === undefined || this.#armFreeMs + next.leftMs > untilMs) break;
      this.#hand.splice(at, 1);
      this.#done.add(next.operation.item);
      this.#armFreeMs += next.leftMs;
      this.nowMs = Math.max(this.nowMs, this.#armFreeMs);
      this.#take(this.scheduler.finished(next.operation, this.nowMs));
    }
    this.nowMs = untilMs;
    this.#take(this.scheduler.advance(untilMs));
  }
}

test("I/O scheduler: no operation of any class starves on a slow disk, whatever comes, even when the disk favours newcomers", () => {
  const ioClasses: readonly IoClass[] = ["journal", "append", "read", "repair", "scrub"];
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 31 }), fc.integer({ min: 5, max: 120 }), (seed, slowMs) => {
      const prng = new Prng(seed);
      // It always serves the newest of what it has in hand: without a bound, the oldest would wait for ever.
      const disk = new OneArm(
        allRules,
        () => slowMs * (0.5 + prng.float()),
        (count) => count - 1,
      );
      // The load is as much as the disk can do, and at times more.
      for (let i = 0; i < 300; i++) {
        disk.submit(`${i}`, prng.pick(ioClasses.filter((each) => each !== "journal" || prng.chance(0.3))), prng.below(4096));
        disk.run(disk.nowMs + slowMs * 2 * prng.float());
      }
      const backlog = disk.all.filter((each) => each.startedMs === undefined).length;
      disk.run(disk.nowMs + (backlog + 20) * 2 * slowMs);
      for (const each of disk.all) assert.ok(each.startedMs !== undefined, `${each.class} ${each.name} never started`);
      // Nobody waits much longer than the work that was there before it, yielding included.
      for (const each of disk.all) {
        const before = disk.all.filter((other) => other.arrivedMs <= each.arrivedMs && (other.startedMs ?? 0) >= each.arrivedMs).length;
        const waitedMs = (each.startedMs ?? 0) - each.arrivedMs;
        const boundMs = 5 * defaultIoLimits.overdueMs + (before + 40) * 2 * slowMs;
        assert.ok(waitedMs <= boundMs, `${each.class} waited ${waitedMs} of at most ${boundMs}`);
      }
      const { atStart, classes } = disk.scheduler.figures;
      const { expectedMsMax, overdueMs } = defaultIoLimits;
      assert.ok(atStart.expectedMsMax <= expectedMsMax && atStart.oldestMsMax <= overdueMs, JSON.stringify(atStart));
      for (const name of ioClasses) {
        const own = disk.all.filter((each) => each.class === name);
        const waits = own.map((each) => (each.startedMs ?? 0) - each.arrivedMs);
        assert.equal(classes[name].started, own.length);
        assert.equal(classes[name].waitedMsMax, Math.max(0, ...waits));
      }
    }),
    { numRuns: 60, examples: [[144974869, 10]] },
  );
});

test("I/O scheduler: with the bound switched off a disk that favours newcomers starves the oldest", () => {
  const waits = (rules: Rules): number => {
    const disk = new OneArm(
      rules,
      () => 20,
      (count) => count - 1,
    );
    // Two at once at first, then one for each that can be done.
    for (let i = 0; i < 2; i++) disk.submit(`first ${i}`, "read", 1);
    for (let i = 0; i < 500; i++) {
      disk.submit(`${i}`, "read", 1);
      disk.run(disk.nowMs + 20);
    }
    const { oldestMsMax } = disk.scheduler.figures.atStart;
    assert.equal(oldestMsMax > defaultIoLimits.overdueMs, !rules.on("diskWorkBounded"), `${oldestMsMax}`);
    return disk.nowMs - Math.min(...disk.unserved().map((each) => each.arrivedMs));
  };
  assert.ok(waits(allRules) < 2_000, `${waits(allRules)}`);
  assert.ok(waits(rulesWithout("diskWorkBounded")) > 9_000, `${waits(rulesWithout("diskWorkBounded"))}`);
});

test("I/O scheduler: nothing is started while the work in hand is expected to take over 100 ms, or one takes over 200 ms", () => {
  const scheduler = new IoScheduler<string>(allRules);
  const started = (effects: readonly IoEffect<string>[]): string[] =>
    effects.filter((each) => each.kind === "start").map((each) => each.operation.item);
  const submit = (name: string, atMs: number) =>
    scheduler.submit({ class: "read", bytes: 0, deadlineMs: Number.POSITIVE_INFINITY, item: name }, atMs);
  // Learns that an operation takes 40 ms.
  for (let i = 0; i < 100; i++) {
    const [effect] = submit("warm", i * 1_000);
    scheduler.finished(effect?.operation as IoOperation<string>, i * 1_000 + 40);
  }
  const nowMs = 1_000_000;
  const first = submit("a", nowMs);
  assert.deepEqual(started(first), ["a"]);
  assert.deepEqual(started(submit("b", nowMs)), ["b"]);
  assert.deepEqual(started(submit("c", nowMs)), ["c"], "80 ms are in hand");
  assert.deepEqual(started(submit("d", nowMs)), [], "120 ms are in hand");
  const operation = (first[0] as IoEffect<string>).operation;
  assert.deepEqual(started(scheduler.finished(operation, nowMs + 40)), ["d"]);
  assert.deepEqual(started(scheduler.advance(nowMs + 150)), []);
  const fast = new IoScheduler<string>(allRules);
  const [hung] = fast.submit({ class: "read", bytes: 0, deadlineMs: Number.POSITIVE_INFINITY, item: "hung" }, 0);
  const late = { class: "read", bytes: 0, deadlineMs: Number.POSITIVE_INFINITY, item: "late" } as const;
  assert.deepEqual(started(fast.submit({ ...late, item: "soon" }, 100)), ["soon"]);
  assert.deepEqual(started(fast.submit(late, 201)), [], "one has been in hand for over 200 ms");
  assert.deepEqual(started(fast.submit({ ...late, class: "journal", item: "journal" }, 201)), ["journal"], "the journal goes on");
  assert.deepEqual(started(fast.finished(hung?.operation as IoOperation<string>, 260)), ["late"]);
  assert.deepEqual(scheduler.figures.heldBack, { expected: 1, overdue: 0, hands: 0 });
  assert.deepEqual(fast.figures.heldBack, { expected: 0, overdue: 1, hands: 0 });
});

test("I/O scheduler: repair and scrub yield to clients, scrub to repair, each with one in hand", () => {
  const order: string[] = [];
  const disk = new OneArm(allRules, () => 30);
  // Learns the disk's pace, so that 100 ms are three operations.
  for (let i = 0; i < 200; i++) disk.submit("warm", "read", 0);
  disk.run(20_000);
  const from = disk.all.length;
  for (const name of ["scrub", "scrub", "repair", "repair", "read", "append", "read", "append", "read", "read"] as const) {
    disk.submit(name, name, 0);
  }
  disk.run(20_190);
  for (const each of disk.all.slice(from).filter((one) => one.startedMs !== undefined)) order.push(each.class);
  const started = disk.all.slice(from).filter((each) => each.startedMs !== undefined);
  started.sort((a, b) => (a.startedMs ?? 0) - (b.startedMs ?? 0));
  const last = started.findLastIndex((each) => each.class === "read" || each.class === "append");
  // One scrub and one repair went while nothing else was there; the others only after the clients' operations.
  assert.equal(started.slice(0, last).filter((each) => each.class === "scrub").length, 1, order.join());
  assert.equal(started.slice(0, last).filter((each) => each.class === "repair").length, 1, order.join());
  disk.run(30_000);
  assert.ok(disk.all.every((each) => each.startedMs !== undefined));
});

test("I/O scheduler: a read that would miss its deadline is refused at once; with nothing in hand it is always tried", () => {
  const slow = (rules: Rules): OneArm => {
    const disk = new OneArm(rules, () => 50);
    for (let i = 0; i < 100; i++) disk.submit("warm", "append", 0);
    disk.run(10_000);
    return disk;
  };
  const disk = slow(allRules);
  assert.equal(disk.submit("alone", "read", 0, disk.nowMs + 10).refused, undefined);
  const behind = disk.submit("behind", "read", 0, disk.nowMs + 60);
  assert.equal(behind.refused, "late");
  assert.equal(disk.submit("patient", "read", 0, disk.nowMs + 1_000).refused, undefined);
  disk.run(disk.nowMs + 500);
  assert.equal(disk.submit("over", "read", 0, disk.nowMs - 1).refused, "late");
  const off = slow(rulesWithout("lateReadsRefused"));
  off.submit("alone", "read", 0);
  assert.equal(off.submit("behind", "read", 0, off.nowMs + 60).refused, undefined);
});

test("I/O scheduler: what waited until its deadline is dropped, and the queue is bounded", () => {
  const scheduler = new IoScheduler<number>(allRules, { ...defaultIoLimits, inHandMax: 1, queuedMax: 3 });
  const submit = (item: number, deadlineMs: number) => scheduler.submit({ class: "append", bytes: 0, deadlineMs, item }, 0);
  submit(0, 1_000);
  for (let i = 1; i <= 3; i++) assert.deepEqual(submit(i, i * 100), []);
  assert.deepEqual(
    submit(4, 1_000).map((each) => each.kind === "refuse" && each.why),
    ["full"],
  );
  assert.equal(scheduler.nextDeadlineMs, 100);
  assert.deepEqual(
    scheduler.advance(150).map((each) => [each.kind, each.operation.item]),
    [["refuse", 1]],
  );
  assert.equal(scheduler.queued, 2);
});
