import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import { frameBytes } from "@stamp/extent";
import fc from "fast-check";
import { AppendWindow, type PendingAppend, placesOf, type WindowEffect } from "./append-window.ts";

const limits = { extentTargetBytes: 4_000, inFlightBytesMax: 1_500, inFlightAppendsMax: 5 };

/**
 * The rest of the stamp, as the model has it: a primary that takes appends only at its end and acknowledges a prefix of them, fails or
 * is silent at any point, and a stream manager that seals anywhere from the acknowledged length to the end.
 */
class Model {
  readonly prng: Prng;
  readonly window: AppendWindow<number>;
  nextExtent = 1;
  extent = { id: 0, records: [] as { item: number; offset: number; end: number }[], committed: 0, broken: false };
  /** Content of sealed extents, below the sealed length. */
  readonly sealed: { item: number; extentId: number; offset: number }[] = [];
  readonly settled: { item: number; extentId: number; offset: number }[] = [];
  readonly rejected = new Map<number, "no" | "unknown">();
  wire: { extentId: number; offset: number; append: PendingAppend<number> }[] = [];
  change: number | undefined;
  /** Refusals on their way back. */
  refusals: { extentId: number; item: number; reason: "overloaded" | "offsetGap" | "diskFull" }[] = [];
  /** Appends that a primary refused. */
  readonly heard: number[] = [];
  /** Extents that a pause was asked for. */
  readonly paused: number[] = [];

  /** True if disks are full now and then. */
  readonly #fills: boolean;

  constructor(seed: number, fills = false) {
    this.#fills = fills;
    this.prng = new Prng(seed);
    // Half of them begin with an extent that is open already.
    if (this.prng.chance(0.5)) this.extent.id = this.nextExtent++;
    this.window = new AppendWindow(limits, 0, this.extent.id === 0 ? undefined : this.extent.id);
  }

  take(effects: readonly WindowEffect<number>[]): void {
    for (const effect of effects) {
      if (effect.kind === "send") this.wire.push({ extentId: effect.extentId, offset: effect.offsetBytes, append: effect.append });
      else if (effect.kind === "change") {
        assert.equal(this.change, undefined, "one change at a time");
        this.change = effect.extentId;
        if (effect.complete) {
          assert.equal(this.extent.records.at(-1)?.end, this.extent.committed, "nothing is behind what is acknowledged");
          assert.ok(!this.wire.some((message) => message.extentId === effect.extentId), "and nothing is on its way");
        }
      } else if (effect.kind === "ahead") {
        assert.equal(effect.extentId, this.extent.id);
      } else if (effect.kind === "pause") {
        assert.ok(!this.paused.includes(effect.extentId), "one pause at a time");
        this.paused.push(effect.extentId);
      } else if (effect.kind === "settle") {
        const place = effect.places[0];
        assert.ok(place);
        const offset = place.offsetBytes - (placesOf(0, 0, [place.lengthBytes])[0]?.offsetBytes as number);
        this.settled.push({ item: effect.append.item, extentId: place.extentId, offset });
      } else this.rejected.set(effect.append.item, effect.failure.applied);
    }
  }

  deliver(): void {
    // Messages of one lane arrive in order or not at all.
    const message = this.wire.shift();
    if (message === undefined) return;
    if (this.prng.chance(0.05)) this.wire = [];
    const { extent } = this;
    if (message.extentId !== extent.id || extent.broken) return;
    const end = extent.records.at(-1)?.end ?? 0;
    const full = this.#fills && this.prng.chance(0.2);
    const reason = message.offset !== end ? "offsetGap" : full ? "diskFull" : this.prng.chance(0.1) ? "overloaded" : undefined;
    if (reason !== undefined) {
      if (this.prng.chance(0.95)) this.refusals.push({ extentId: extent.id, item: message.append.item, reason });
      return;
    }
    extent.records.push({ item: message.append.item, offset: end, end: end + message.append.extentBytes });
  }

  acknowledge(): void {
    const { extent } = this;
    const next = extent.records.find((record) => record.end > extent.committed);
    if (next === undefined) return;
    extent.committed = next.end;
    if (this.prng.chance(0.8)) this.take(this.window.acknowledged(extent.id, next.end));
  }

  seal(): void {
    if (this.change === undefined) return;
    const { extent } = this;
    assert.equal(this.change, extent.id);
    const possible = extent.records.filter((record) => record.end > extent.committed);
    const kept = this.prng.below(possible.length + 1);
    const length = kept === 0 ? extent.committed : (possible[kept - 1]?.end as number);
    for (const record of extent.records)
      if (record.end <= length) this.sealed.push({ item: record.item, extentId: extent.id, offset: record.offset });
    const old = extent.id;
    this.extent = { id: this.nextExtent++, records: [], committed: 0, broken: false };
    this.change = undefined;
    this.take(this.window.changed(old, length, this.extent.id));
  }

  #hear(extentId: number, item: number, reason: "overloaded" | "offsetGap" | "diskFull"): void {
    const { window } = this;
    if (this.#fills) this.heard.push(item);
    if (window.openExtentId !== extentId) {
      if (reason !== "overloaded") window.notTaken(extentId, item);
    } else if (reason === "diskFull") {
      this.take(window.failed(extentId));
      window.notTaken(extentId, item);
    } else this.take(window.refused(extentId, item, reason));
  }

  step(): void {
    const dice = this.prng.below(15);
    if (dice === 12 || dice === 13) {
      const refusal = this.refusals.shift();
      if (refusal !== undefined) this.#hear(refusal.extentId, refusal.item, refusal.reason);
    } else if (dice === 11 && this.#fills && this.change !== undefined) {
      const failure = { code: "resourceExhausted", reason: "noPlacement", message: "all disks are full", applied: "no" } as const;
      this.take(this.window.withdrawUndone(failure, (item) => item % 2 === 0));
    } else if (dice === 11 && this.heard.length > 0) {
      // The deadline of its caller is over.
      const item = this.heard.shift() as number;
      if (this.window.withdraw(item)) this.rejected.set(item, "no");
    } else if (dice === 14) {
      const paused = this.paused.shift();
      if (paused !== undefined) this.take(this.window.resume(paused));
    } else if (dice < 4) this.deliver();
    else if (dice < 8) this.acknowledge();
    else if (dice === 8) this.seal();
    else if (dice === 9 && this.prng.chance(0.3)) this.extent.broken = true;
    else if (dice === 10 && this.prng.chance(0.3)) this.take(this.window.failed(this.extent.id));
  }
}

test("append window: what is taken back while disks are full is in no extent, and all else is there once and in order", () => {
  let takenBack = 0;
  fc.assert(
    fc.property(fc.integer(), fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 60 }), (seed, lengths) => {
      const model = new Model(seed, true);
      lengths.forEach((length, item) => {
        model.take(model.window.submit(item, [length]));
        for (let i = model.prng.below(6); i > 0; i--) model.step();
      });
      for (let i = 0; i < 20_000 && model.window.pending > 0; i++) {
        model.step();
        if (i % 50 === 49) model.take(model.window.failed(model.extent.id));
        if (model.change !== undefined && i % 10 === 0) model.seal();
      }
      assert.deepEqual([model.window.pending, model.window.inFlightBytes, model.window.waitingBytes], [0, 0, 0]);
      takenBack += model.rejected.size;
      const kept = lengths.map((_, item) => item).filter((item) => !model.rejected.has(item));
      assert.ok([...model.rejected.values()].every((applied) => applied === "no"));
      const stored = [...model.sealed.map(({ item }) => item), ...model.extent.records.map(({ item }) => item)];
      assert.deepEqual(
        model.settled.map(({ item }) => item),
        kept,
      );
      assert.deepEqual(stored, kept);
    }),
    { numRuns: 500 },
  );
  assert.ok(takenBack > 500, `${takenBack}`);
});

test("append window: with primaries that fail anywhere nothing is lost, nothing is there twice, order is kept", () => {
  fc.assert(
    fc.property(fc.integer(), fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 60 }), (seed, lengths) => {
      const model = new Model(seed);
      lengths.forEach((length, item) => {
        model.take(model.window.submit(item, [length]));
        for (let i = model.prng.below(6); i > 0; i--) model.step();
      });
      for (let i = 0; i < 20_000 && model.window.pending > 0; i++) {
        model.step();
        // A silent primary is found out by the timeout of an append.
        if (i % 50 === 49) model.take(model.window.failed(model.extent.id));
        if (model.change !== undefined && i % 10 === 0) model.seal();
      }
      assert.equal(model.window.pending, 0);
      assert.deepEqual(
        model.settled.map(({ item }) => item),
        lengths.map((_, item) => item),
      );
      const open = model.extent.records.map(({ item, offset }) => ({ item, extentId: model.extent.id, offset }));
      const stored = [...model.sealed, ...open];
      // Every settled append is where it was said to be, and in no other sealed place.
      for (const settled of model.settled) {
        assert.deepEqual(
          stored.filter(({ item }) => item === settled.item),
          [settled],
        );
      }
      assert.deepEqual(
        stored.map(({ item }) => item),
        lengths.map((_, item) => item),
      );
    }),
    { numRuns: 500 },
  );
});

test("append window: expected offsets have no gaps and an extent is left when it is full, after what is in flight", () => {
  const window = new AppendWindow<number>({ extentTargetBytes: 250, inFlightBytesMax: 10_000, inFlightAppendsMax: 10 }, 7);
  assert.deepEqual(window.submit(0, [80]), [{ kind: "change", extentId: 7, complete: false }]);
  assert.deepEqual(window.submit(1, [80]), []);
  const sends = window.changed(7, 55, 8);
  assert.deepEqual(
    sends.map((effect) => (effect.kind === "send" ? effect.offsetBytes : effect.kind)),
    [0, "ahead", frameBytes(80)],
  );
  assert.deepEqual(window.submit(2, [80]), [], "full: waits for what is in flight");
  assert.equal(window.acknowledged(8, frameBytes(80)).length, 1);
  const last = window.acknowledged(8, 2 * frameBytes(80));
  assert.deepEqual(
    last.map(({ kind }) => kind),
    ["settle", "change"],
  );
  assert.equal(window.committedBytes, 2 * frameBytes(80));
});

test("append window: an overloaded primary keeps its extent: what it refused is sent again at the same offsets when all is answered", () => {
  const window = new AppendWindow<number>({ extentTargetBytes: 4_000, inFlightBytesMax: 10_000, inFlightAppendsMax: 10 }, 0);
  const one = frameBytes(80);
  window.submit(0, [80]);
  window.changed(0, 0, 1);
  window.submit(1, [80]);
  window.submit(2, [80]);
  assert.deepEqual(window.refused(1, 1, "overloaded"), [], "0 may still be acknowledged, 2 is not answered");
  assert.deepEqual(window.submit(3, [80]), [], "nothing is sent meanwhile");
  assert.equal(window.withdraw(1), false, "others follow it in the extent");
  assert.deepEqual(window.refused(1, 2, "offsetGap"), []);
  const drained = window.acknowledged(1, one);
  assert.deepEqual(
    drained.map(({ kind }) => kind),
    ["settle", "pause"],
  );
  assert.equal(window.withdraw(3), true);
  assert.deepEqual(
    window.resume(1).map((effect) => effect.kind === "send" && [effect.append.item, effect.extentId, effect.offsetBytes]),
    [
      [1, 1, one],
      [2, 1, 2 * one],
    ],
  );
  assert.deepEqual(window.resume(1), [], "once");
  assert.deepEqual(
    window.refused(1, 2, "offsetGap").map(({ kind }) => kind),
    ["change"],
    "a gap that no overload explains is a failure",
  );
});

test("append window: what the primary will never take is rejected when all in flight is answered, and what is behind it moves up", () => {
  const window = new AppendWindow<number>({ extentTargetBytes: 4_000, inFlightBytesMax: 10_000, inFlightAppendsMax: 10 }, 0);
  const failure = { code: "invalidArgument", reason: "messageTooLarge", message: "", applied: "no" } as const;
  const one = frameBytes(80);
  window.submit(0, [80]);
  window.changed(0, 0, 1);
  window.submit(1, [90]);
  window.submit(2, [80]);
  assert.deepEqual(window.refusedForEver(1, 1, failure), []);
  assert.deepEqual(window.refused(1, 2, "offsetGap"), []);
  assert.deepEqual(
    window
      .acknowledged(1, one)
      .map((effect) => (effect.kind === "send" ? [effect.append.item, effect.offsetBytes] : "append" in effect && effect.append.item)),
    [0, 1, [2, one]],
  );
  assert.deepEqual(window.failed(1, { item: 2, failure }), [{ kind: "change", extentId: 1, complete: false }]);
  assert.deepEqual(
    window.changed(1, one, 2).map(({ kind }) => kind),
    ["reject"],
  );
  assert.equal(window.pending, 0);
});

test("append window: after a fence what was sent is unknown, what was not did not happen", () => {
  const window = new AppendWindow<number>({ extentTargetBytes: 4_000, inFlightBytesMax: 10_000, inFlightAppendsMax: 1 }, 0);
  window.submit(0, [10]);
  window.changed(0, 0, 1);
  window.submit(1, [10]);
  const failure = { code: "failedPrecondition", reason: "staleOwnerEpoch", message: "", applied: "no" } as const;
  assert.deepEqual(
    window.end(failure).map((effect) => effect.kind === "reject" && [effect.append.item, effect.failure.applied]),
    [
      [0, "unknown"],
      [1, "no"],
    ],
  );
  assert.deepEqual(
    window.submit(2, [10]).map((effect) => effect.kind === "reject" && effect.failure.reason),
    ["staleOwnerEpoch"],
  );
});

test("append window: a sealed length below what was acknowledged ends the stream as data loss", () => {
  const window = new AppendWindow<number>(limits, 0);
  window.submit(0, [10]);
  window.changed(0, 0, 1);
  window.acknowledged(1, frameBytes(10));
  window.failed(1);
  window.changed(1, 0, 2);
  assert.equal(window.ended?.reason, "damaged");
});

test("append window: bounded in flight, and only what was never sent can be withdrawn", () => {
  const window = new AppendWindow<number>({ extentTargetBytes: 4_000, inFlightBytesMax: 250, inFlightAppendsMax: 10 }, 0);
  window.paced(0, limits.inFlightBytesMax);
  for (let i = 0; i < 5; i++) window.submit(i, [80]);
  assert.equal(window.changed(0, 0, 1).filter(({ kind }) => kind === "send").length, 2);
  assert.ok(window.inFlightBytes <= 250);
  assert.equal(window.withdraw(1), false);
  assert.equal(window.withdraw(3), true);
  assert.deepEqual(
    window.acknowledged(1, 2 * frameBytes(80)).map((effect) => ("append" in effect ? effect.append.item : undefined)),
    [0, 1, 2, 4],
  );
});

test("an append window shrinks while appends come close to their deadline, lets one through, and grows again up to its limit", () => {
  const window = new AppendWindow<number>({ extentTargetBytes: 1_000_000, inFlightBytesMax: 16_000, inFlightAppendsMax: 100 }, 0);
  window.submit(0, [900]);
  window.changed(0, 0, 1);
  const fill = (): number => {
    for (let item = 1; item <= 40; item++) window.submit(item, [900]);
    return window.inFlightBytes;
  };
  const one = frameBytes(900);
  assert.equal(fill(), Math.floor(4_000 / one) * one);
  for (let i = 0; i < 10; i++) window.paced(0.6, one);
  assert.equal(window.allowedBytes, 1_000);
  for (let i = 0; i < 10; i++) window.paced(0.4, one);
  assert.equal(window.allowedBytes, 1_000);
  window.acknowledged(1, Math.floor(4_000 / one) * one);
  assert.equal(window.inFlightBytes, one, "one at a time");
  window.paced(1, one);
  for (let i = 0; i < 30; i++) window.paced(0.1, one);
  assert.equal(window.allowedBytes, 16_000);
  window.acknowledged(1, Math.floor(4_000 / one) * one + one);
  assert.equal(window.inFlightBytes, Math.floor(16_000 / one) * one);
});
