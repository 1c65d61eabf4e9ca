/** Bytes go before the rows that refer to them: once, in bounded pieces, with pins that are renewed, and again where they are gone. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, equalBytes, FailureError, type Outcome, ok, Prng, refused, unwrap, utf8 } from "@stamp/base";
import { blobSchema, encodeRow, type Place, placesOfRow } from "@stamp/objects";
import { sleep } from "@stamp/ports";
import type { StoredData } from "@stamp/range-partition";
import { Simulation } from "@stamp/virtual-time";
import { ByteGate } from "./byte-gate.ts";
import { CopiedPlaces, placeAtPeer } from "./copied-places.ts";
import { DataCopier, type DataLink, rowAtPeer } from "./data-copier.ts";

const name = utf8("n");
const place = (extentId: number, offsetBytes: number, lengthBytes: number): Place => ({ extentId, offsetBytes, lengthBytes });
const rowOf = (...places: Place[]): Uint8Array => Uint8Array.from(encodeRow(blobSchema, { places }));

/** Each byte of this stamp says where it is. */
const byteAt = (extentId: number, offsetBytes: number): number => (extentId * 31 + offsetBytes * 7) % 251;

class Bench {
  readonly sim = new Simulation({ seed: 1, rules: allRules });
  readonly world = this.sim.world("sender");
  /** Extents of the other stamp; each write is one of its own. */
  readonly there = new Map<number, Uint8Array>();
  #next = 1_000;
  readonly gone = new Set<number>();
  readonly pinned: number[][] = [];
  reads = 0;
  heldBytes = 0;
  heldBytesMax = 0;
  pinTermMs = 60_000;
  writeMs = 10;
  failWrites = 0;

  readonly data: StoredData = {
    appendedBytes: 0,
    sealedExtents: [],
    lists: (extentId) => !this.gone.has(extentId),
    read: (places) => this.#read(places),
  };

  readonly link: DataLink = {
    writeData: async (_name, payload): Promise<Outcome<{ place: Place; pinTermMs: number }>> => {
      this.heldBytes += payload.length;
      this.heldBytesMax = Math.max(this.heldBytesMax, this.heldBytes);
      await sleep(this.world.clock, this.writeMs);
      this.heldBytes -= payload.length;
      if (this.failWrites-- > 0) return refused("unavailable", "connectFailed", "cut");
      const extentId = this.#next++;
      this.there.set(extentId, Uint8Array.from(payload));
      return ok({ place: place(extentId, 0, payload.length), pinTermMs: this.pinTermMs });
    },
    pinData: async (_name, extentIds) => {
      this.pinned.push([...extentIds]);
      return ok(extentIds.filter((extentId) => !this.there.has(extentId)));
    },
  };

  async *#read(places: readonly Place[]): AsyncGenerator<Uint8Array> {
    this.reads++;
    for (const { extentId, offsetBytes, lengthBytes } of places) {
      if (this.gone.has(extentId)) throw new FailureError(refused("notFound", "unknownExtent", `extent ${extentId}`).failure);
      yield Uint8Array.from({ length: lengthBytes }, (_, i) => byteAt(extentId, offsetBytes + i));
    }
  }

  /** Every place of the row has the bytes of the row here. */
  judge(row: Uint8Array, mapped: Uint8Array): void {
    const [from, to] = [unwrap(placesOfRow(row)), unwrap(placesOfRow(mapped))];
    assert.equal(to.length, from.length);
    for (const [i, { extentId, offsetBytes, lengthBytes }] of from.entries()) {
      const at = to[i] as Place;
      const expected = Uint8Array.from({ length: lengthBytes }, (_, b) => byteAt(extentId, offsetBytes + b));
      const bytes = this.there.get(at.extentId)?.subarray(at.offsetBytes, at.offsetBytes + at.lengthBytes);
      assert.ok(bytes !== undefined && equalBytes(bytes, expected), `place ${i}`);
    }
  }
}

const stop = (): { readonly signal: AbortSignal } => ({ signal: new AbortController().signal });

async function onBench(work: (bench: Bench, copier: DataCopier) => Promise<void>): Promise<void> {
  const bench = new Bench();
  const copier = new DataCopier(bench.world, bench.data, bench.link, { gate: new ByteGate(4_000), pieceBytesMax: 1_000 });
  await bench.sim.run(() => work(bench, copier));
}

test("bytes before rows: each byte goes once, in pieces; parts of what went, and a second row, cost nothing", () =>
  onBench(async (bench, copier) => {
    const rows = [rowOf(place(1, 100, 700), place(1, 900, 700), place(2, 0, 50)), rowOf(place(1, 100, 700))];
    const copied = await copier.copy(name, rows, stop());
    assert.ok(copied.ok);
    for (const row of rows) bench.judge(row, rowAtPeer(row, copied.value));
    assert.deepEqual([copier.copiedBytes, bench.there.size], [1_450, 2]);
    const part = rowOf(place(1, 150, 20), place(1, 1_000, 600), place(2, 49, 1));
    const again = await copier.copy(name, [part], stop());
    assert.ok(again.ok);
    bench.judge(part, rowAtPeer(part, again.value));
    assert.equal(copier.copiedBytes, 1_450);
    // Another PartitionName may be in another range there.
    const other = await copier.copy(utf8("m"), [part], stop());
    assert.ok(other.ok && copier.copiedBytes === 1_450 + 621);
    bench.judge(part, rowAtPeer(part, other.value));
  }));

test("bytes before rows: places that overlap and lie in one another, in any order, are all found", () =>
  onBench(async (bench, copier) => {
    const prng = new Prng(7);
    for (let round = 0; round < 200; round++) {
      const next = (below: number): number => prng.below(below);
      const row = rowOf(...Array.from({ length: 1 + next(12) }, () => place(1 + next(2), next(400), 1 + next(300))));
      const copied = await copier.copy(name, [row], stop());
      assert.ok(copied.ok);
      bench.judge(row, rowAtPeer(row, copied.value));
    }
  }));

test("bytes before rows: what went stays known over a failure, and goes again when the other stamp has refused it", () =>
  onBench(async (bench, copier) => {
    const row = rowOf(...Array.from({ length: 10 }, (_, i) => place(1, i * 1_000, 900)));
    await copier.copy(name, [rowOf(place(1, 0, 900), place(1, 1_000, 900))], stop());
    bench.failWrites = 1;
    const failed = await copier.copy(name, [row], stop());
    assert.ok(!failed.ok && "failure" in failed && failed.failure.reason === "connectFailed");
    const copied = await copier.copy(name, [row], stop());
    assert.ok(copied.ok);
    assert.equal(copier.copiedBytes, 9_000);
    bench.there.clear();
    copier.forget(copied.value.extentIds);
    const again = await copier.copy(name, [row], stop());
    assert.ok(again.ok);
    bench.judge(row, rowAtPeer(row, again.value));
    assert.equal(copier.copiedBytes, 18_000);
  }));

test("bytes before rows: a blob of many pieces holds one piece, many blobs hold the gate's bound, and a rate is kept by all of them", () =>
  onBench(async (bench, copier) => {
    const { clock } = bench.world;
    const rows = Array.from({ length: 20 }, (_, n) => rowOf(...Array.from({ length: 20 }, (_, i) => place(n + 1, i * 1_000, 900))));
    await copier.copy(name, rows.slice(0, 1), stop());
    assert.equal(bench.heldBytesMax, 900);
    await Promise.all(rows.slice(1, 10).map((row, n) => copier.copy(utf8(`${n}`), [row], stop())));
    assert.equal(bench.heldBytesMax, 3_600);
    const beganMs = clock.monotonicMs();
    const slow = { ...stop(), bytesPerSecondMax: 18_000 };
    await Promise.all(rows.slice(10).map((row, n) => copier.copy(utf8(`${n}`), [row], slow)));
    const tookMs = clock.monotonicMs() - beganMs;
    assert.ok(tookMs > 9_500 && tookMs < 11_000, `${tookMs} ms for ${10 * 18_000} bytes`);
  }));

test("bytes before rows: the pins of a large blob are renewed while it is on its way; what is gone all the same goes again", () =>
  onBench(async (bench, copier) => {
    bench.pinTermMs = 6_000;
    bench.writeMs = 400;
    const row = rowOf(...Array.from({ length: 12 }, (_, i) => place(1, i * 1_000, 900)));
    const copied = await copier.copy(name, [row], stop());
    assert.ok(copied.ok);
    assert.ok(bench.pinned.length >= 3, `${bench.pinned.length} renewals in 4,800 ms`);
    assert.ok((bench.pinned.at(-1)?.length ?? 0) >= 9, "all extents of the batch");
    const second = rowOf(...Array.from({ length: 12 }, (_, i) => place(2, i * 1_000, 900)));
    const later = copier.copy(name, [second], stop());
    await sleep(bench.world.clock, 500);
    bench.there.delete(1_012);
    const failed = await later;
    assert.ok(!failed.ok && "failure" in failed && failed.failure.reason === "badPlace", JSON.stringify(failed));
    const again = await copier.copy(name, [second], stop());
    assert.ok(again.ok);
    bench.judge(second, rowAtPeer(second, again.value));
  }));

test("bytes before rows: bytes whose extent has left this stamp's blob data are told; a read that fails meanwhile is only a failure", () =>
  onBench(async (bench, copier) => {
    bench.gone.add(7);
    const told = await copier.copy(name, [rowOf(place(1, 0, 10), place(7, 0, 10))], stop());
    assert.ok(!told.ok && "gone" in told && told.gone.extentId === 7);
    bench.data.lists = () => true;
    const failed = await copier.copy(name, [rowOf(place(7, 0, 10))], stop());
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
