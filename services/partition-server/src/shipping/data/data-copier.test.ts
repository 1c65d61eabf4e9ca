/** Bytes go before the rows that refer to them: once, in bounded pieces, with pins that are renewed, and again where they are gone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng, utf8 } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { ByteGate, ByteGates } from "./byte-gate.ts";
import { CopiedPlaces, PlacesBudget, placeAtPeer } from "./copied-places.ts";
import { DataCopier, rowAtPeer } from "./data-copier.ts";
import { name, onBench, place, rowOf } from "./testing/bench.ts";

test("bytes before rows: each byte goes once, in pieces; parts of what went, and a second row, cost nothing", () =>
  onBench(async (bench, copy, copier) => {
    const rows = [rowOf(place(1, 100, 700), place(1, 900, 700), place(2, 0, 50)), rowOf(place(1, 100, 700))];
    const copied = await copy(name, rows);
    assert.ok(copied.ok);
    for (const row of rows) bench.judge(row, rowAtPeer(row, copied.value));
    assert.deepEqual([copier.copiedBytes, bench.there.size], [1_450, 2]);
    const part = rowOf(place(1, 150, 20), place(1, 1_000, 600), place(2, 49, 1));
    const again = await copy(name, [part]);
    assert.ok(again.ok);
    bench.judge(part, rowAtPeer(part, again.value));
    assert.equal(copier.copiedBytes, 1_450);
    // Another PartitionName may be in another range there.
    const other = await copy(utf8("m"), [part]);
    assert.ok(other.ok && copier.copiedBytes === 1_450 + 621);
    bench.judge(part, rowAtPeer(part, other.value));
  }));

test("bytes before rows: places that overlap and lie in one another, in any order, are all found", () =>
  onBench(async (bench, copy) => {
    const prng = new Prng(7);
    for (let round = 0; round < 200; round++) {
      const next = (below: number): number => prng.below(below);
      const row = rowOf(...Array.from({ length: 1 + next(12) }, () => place(1 + next(2), next(400), 1 + next(300))));
      const copied = await copy(name, [row]);
      assert.ok(copied.ok);
      bench.judge(row, rowAtPeer(row, copied.value));
    }
  }));

test("bytes before rows: what went stays known over a failure, and goes again when the other stamp has refused it", () =>
  onBench(async (bench, copy, copier) => {
    const row = rowOf(...Array.from({ length: 10 }, (_, i) => place(1, i * 1_000, 900)));
    await copy(name, [rowOf(place(1, 0, 900), place(1, 1_000, 900))]);
    bench.failWrites = 1;
    const failed = await copy(name, [row]);
    assert.ok(!failed.ok && "failure" in failed && failed.failure.reason === "connectFailed");
    const copied = await copy(name, [row]);
    assert.ok(copied.ok);
    assert.equal(copier.copiedBytes, 9_000);
    bench.there.clear();
    copier.forget(copied.value.extentIds);
    const again = await copy(name, [row]);
    assert.ok(again.ok);
    bench.judge(row, rowAtPeer(row, again.value));
    assert.equal(copier.copiedBytes, 18_000);
  }));

test("bytes before rows: a blob of many pieces holds one piece, many blobs hold the gate's bound, and a rate is kept by all of them", () =>
  onBench(async (bench, copy) => {
    const { clock } = bench.world;
    const rows = Array.from({ length: 20 }, (_, n) => rowOf(...Array.from({ length: 20 }, (_, i) => place(n + 1, i * 1_000, 900))));
    await copy(name, rows.slice(0, 1));
    assert.equal(bench.heldBytesMax, 900);
    await Promise.all(rows.slice(1, 10).map((row, n) => copy(utf8(`${n}`), [row])));
    assert.equal(bench.heldBytesMax, 3_600);
    const beganMs = clock.monotonicMs();
    const slow = { bytesPerSecondMax: 18_000 };
    await Promise.all(rows.slice(10).map((row, n) => copy(utf8(`${n}`), [row], slow)));
    const tookMs = clock.monotonicMs() - beganMs;
    assert.ok(tookMs > 9_500 && tookMs < 11_000, `${tookMs} ms for ${10 * 18_000} bytes`);
  }));

test("bytes before rows: the pins of a large blob are renewed while it is on its way; what is gone all the same goes again", () =>
  onBench(async (bench, copy) => {
    bench.pinTermMs = 6_000;
    bench.writeMs = 400;
    const row = rowOf(...Array.from({ length: 12 }, (_, i) => place(1, i * 1_000, 900)));
    const copied = await copy(name, [row]);
    assert.ok(copied.ok);
    assert.ok(bench.pinned.length >= 3, `${bench.pinned.length} renewals in 4,800 ms`);
    assert.ok((bench.pinned.at(-1)?.length ?? 0) >= 9, "all extents of the batch");
    const second = rowOf(...Array.from({ length: 12 }, (_, i) => place(2, i * 1_000, 900)));
    const later = copy(name, [second]);
    await sleep(bench.world.clock, 500);
    bench.there.delete(1_012);
    const failed = await later;
    assert.ok(!failed.ok && "failure" in failed && failed.failure.reason === "badPlace", JSON.stringify(failed));
    const again = await copy(name, [second]);
    assert.ok(again.ok);
    bench.judge(second, rowAtPeer(second, again.value));
  }));

test("bytes before rows: a name that goes in pieces and is overwritten meanwhile is read anew, and only what changed goes again", () =>
  onBench(
    async (bench, copy, copier) => {
      /** One piece: ten places of one extent. */
      const piece = (extentId: number) => rowOf(...Array.from({ length: 10 }, (_, i) => place(extentId, i * 100, 90)));
      const pieces = Array.from({ length: 8 }, (_, n) => n + 1);
      let rounds = 0;
      // In each round the primary collects the bytes of a later piece before they are read, because it was overwritten.
      for (let gone = 4; gone < 8; gone++, rounds++) {
        bench.gone.add(pieces[gone] ?? 0);
        for (const extentId of pieces) {
          const copied = await copy(name, [piece(extentId)], { isPiece: true });
          if (!copied.ok && "gone" in copied) break;
          assert.ok(copied.ok);
        }
        pieces[gone] = 100 + gone;
        // Other names go meanwhile, and more than are remembered of them.
        for (let i = 0; i < 4; i++) await copy(utf8(`other${i}`), [rowOf(place(200, i * 100, 90))]);
      }
      for (const extentId of pieces) {
        const copied = await copy(name, [piece(extentId)], { isPiece: true });
        assert.ok(copied.ok);
        bench.judge(piece(extentId), rowAtPeer(piece(extentId), copied.value));
      }
      assert.equal(copier.copiedBytes, 8 * 900 + rounds * 4 * 90);
      // A refusal makes it forget these bytes, too.
      const last = await copy(name, [piece(1)], { isPiece: true });
      assert.ok(last.ok);
      copier.forget(last.value.extentIds);
      assert.ok((await copy(name, [piece(1)], { isPiece: true })).ok);
      assert.equal(copier.copiedBytes, 9 * 900 + rounds * 4 * 90);
    },
    { placesMax: 4 },
  ));

test("bytes before rows: two names that go in pieces at once do not make each other forget", () =>
  onBench(
    async (bench, copy, copier) => {
      const names = [utf8("first"), utf8("second")];
      for (const round of [1, 2]) {
        for (const extentId of [1, 2, 3, 4]) {
          for (const [i, own] of names.entries()) {
            const row = rowOf(place(10 * i + extentId, 0, 100));
            const copied = await copy(own, [row], { isPiece: true });
            assert.ok(copied.ok, `round ${round}`);
            bench.judge(row, rowAtPeer(row, copied.value));
          }
        }
      }
      assert.equal(copier.copiedBytes, 8 * 100);
    },
    { placesMax: 1 },
  ));

test("bytes before rows: copiers of a server remember no more than its bound together, and nothing when they have ended", () => {
  const places = new PlacesBudget(8);
  return onBench(
    async (bench, copy, copier) => {
      const other = new DataCopier(bench.world, bench.data, bench.link, { gate: new ByteGate(4_000), places });
      const { signal } = new AbortController();
      const row = (extentId: number) => rowOf(place(extentId, 0, 100));
      for (let extentId = 1; extentId <= 6; extentId++) assert.ok((await copy(name, [row(extentId)])).ok);
      for (let extentId = 11; extentId <= 16; extentId++) {
        const hold = other.hold();
        assert.ok((await other.copy(name, [row(extentId)], { signal, hold })).ok);
        await hold.end();
        assert.ok(places.count <= 8, `${places.count} places`);
      }
      assert.equal(places.count, 6, "who copied last remembers");
      assert.ok((await copy(name, [row(1)])).ok);
      assert.equal(copier.copiedBytes, 7 * 100, "the other one has forgotten, and copies again");
      other.end();
      assert.equal(places.count, 1);
      copier.end();
      assert.equal(places.count, 0);
    },
    { places },
  );
});

test("bytes before rows: bytes whose extent has left this stamp's blob data are told; a read that fails meanwhile is only a failure", () =>
  onBench(async (bench, copy) => {
    bench.gone.add(7);
    const told = await copy(name, [rowOf(place(1, 0, 10), place(7, 0, 10))]);
    assert.ok(!told.ok && "gone" in told && told.gone.extentId === 7);
    bench.data.lists = () => true;
    const failed = await copy(name, [rowOf(place(7, 0, 10))]);
    assert.ok(!failed.ok && "failure" in failed && failed.failure.reason === "unknownExtent");
  }));

test("copied places: the extents that were used last are remembered, up to the bound", () => {
  const known = new CopiedPlaces(4);
  const add = (extentId: number, offset: number) =>
    known.add({ name: "n", from: place(extentId, offset, 10), to: place(90 + extentId, 0, 10) });
  for (let extentId = 1; extentId <= 4; extentId++) add(extentId, 0);
  assert.ok(known.find("n", place(1, 2, 5)));
  add(5, 0);
  add(5, 20);
  assert.equal(known.count, 4);
  assert.deepEqual(
    [1, 2, 3, 4, 5].map((extentId) => known.find("n", place(extentId, 0, 10)) !== undefined),
    [true, false, false, true, true],
  );
  assert.equal(known.find("n", place(5, 9, 2)), undefined, "a place that only begins in what was copied");
  const found = known.find("n", place(5, 22, 3));
  assert.ok(found);
  assert.deepEqual(placeAtPeer(place(5, 22, 3), found), place(95, 2, 3));
  known.forget(new Set([91]));
  assert.equal(known.find("n", place(1, 0, 10)), undefined);
});

test("copied places: one extent with more places than the bound forgets a part of them, never the last one", () => {
  const known = new CopiedPlaces(8);
  const prng = new Prng(3);
  for (let i = 0; i < 1_000; i++) {
    const from = place(1, prng.below(5_000) * 10, 10);
    known.add({ name: "n", from, to: place(91, 0, 10) });
    assert.ok(known.count <= 8, `${known.count} places`);
    assert.ok(known.find("n", from), `place ${i}`);
  }
  known.add({ name: "n", from: place(2, 0, 10), to: place(92, 0, 10) });
  assert.ok(known.count <= 8 && known.find("n", place(2, 0, 10)));
});

test("bytes on their way: a copy that is given up leaves its place in the queue, and what waits behind it goes", async () => {
  const gate = new ByteGate(100);
  const [stopped, going] = [new AbortController(), new AbortController()];
  assert.equal(await gate.take(80, going.signal), true);
  const large = gate.take(90, stopped.signal);
  const small = gate.take(20, going.signal);
  stopped.abort();
  assert.deepEqual(await Promise.all([large, small]), [false, true]);
  assert.equal(await gate.take(1, stopped.signal), false);
  gate.give(80);
  gate.give(20);
  assert.equal(await gate.take(1_000, going.signal), true, "a copy that is larger than the bound goes alone");
  const last = gate.take(1, going.signal);
  gate.give(1_000);
  assert.equal(await last, true);
});

test("bytes on their way: a stamp that does not answer holds the room of its own copies only", async () => {
  const gates = new ByteGates(100);
  const { signal } = new AbortController();
  assert.equal(await gates.to("silent").take(100, signal), true);
  assert.equal(await gates.to("other").take(100, signal), true);
  let isTaken = false;
  const waiting = gates.to("silent").take(1, signal);
  void waiting.then(() => {
    isTaken = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isTaken, false);
  gates.to("silent").give(100);
  assert.equal(await waiting, true);
});
