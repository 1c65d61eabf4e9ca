/** Rows of blobs go to the other stamp with their bytes: what a part refers to is there when the part is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, refused, unwrap, utf8 } from "@stamp/base";
import { placesOfRow } from "@stamp/objects";
import { sleep } from "@stamp/ports";
import type { RangePartition, Row, SeedPart } from "@stamp/range-partition";
import { BlobLink } from "./blob-link.ts";
import { ByteGate } from "./byte-gate.ts";
import { PlacesBudget } from "./copied-places.ts";
import { name, onBench, place, rowOf } from "./testing/bench.ts";

test("seeding of blobs: the bytes of the first names of a part are still there when the last ones are copied, and when the rows arrive", () =>
  onBench(async (bench) => {
    bench.pinTermMs = 6_000;
    bench.writeMs = 2_000;
    const rows: Row[] = Array.from({ length: 96 }, (_, n) => [utf8(`n${String(n).padStart(2, "0")}`), rowOf(place(n + 1, 0, 500))]);
    const part: SeedPart = { epoch: 1, sequence: 5, lastTicket: 5, low: utf8("n"), high: utf8("o"), rows };
    let calls = 0;
    const link = {
      ...bench.link,
      ship: async () => ok(),
      seed: async ({ rows: shipped }: SeedPart) => {
        calls++;
        await sleep(bench.world.clock, 8_000);
        bench.collect();
        const places = shipped.flatMap(([, value]) => unwrap(placesOfRow(value)));
        assert.equal(places.length, 96);
        return places.every(({ extentId }) => bench.there.has(extentId)) ? ok() : refused("aborted", "badPlace", "gone");
      },
    };
    const partition = { data: bench.data } as unknown as RangePartition;
    const options = {
      gate: new ByteGate(100_000),
      places: new PlacesBudget(1_000),
      epoch: 1,
      nameOf: (key: Uint8Array) => key,
      seedBytesPerSecondMax: 10_000,
    };
    const blobs = new BlobLink(bench.world, partition, link, options);
    const seeded = await blobs.seed(part, { timeoutMs: 1_000, signal: new AbortController().signal });
    assert.ok(seeded.ok, JSON.stringify(seeded));
    assert.equal(calls, 1);
    const pinned = bench.pinned.length;
    await sleep(bench.world.clock, 30_000);
    assert.equal(bench.pinned.length, pinned, "nothing is pinned any more when the rows are there");
  }));

test("shipping of blobs: what was copied before and is about to leave there costs no copy, unless the other stamp refuses the row", () =>
  onBench(async (bench) => {
    bench.pinTermMs = 6_000;
    bench.writeMs = 2_000;
    const [first, second] = [
      rowOf(place(1, 0, 500)),
      rowOf(place(1, 0, 500), ...Array.from({ length: 3 }, (_, i) => place(2 + i, 0, 900_000))),
    ];
    /** Extents that a collector has disowned there. */
    const leaving = new Set<number>();
    let refuses = false;
    const link = {
      ...bench.link,
      pinData: async (_name: Uint8Array, extentIds: readonly number[]) => ok(extentIds.filter((extentId) => leaving.has(extentId))),
      ship: async () => {
        await sleep(bench.world.clock, 2_500);
        return refuses ? refused("aborted", "badPlace", "disowned") : ok();
      },
      seed: async () => ok(),
    };
    const partition = { data: bench.data } as unknown as RangePartition;
    const options = {
      gate: new ByteGate(4_000_000),
      places: new PlacesBudget(1_000),
      epoch: 1,
      nameOf: (key: Uint8Array) => key,
      seedBytesPerSecondMax: 1e9,
    };
    const blobs = new BlobLink(bench.world, partition, link, options);
    const limits = { timeoutMs: 1_000, signal: new AbortController().signal };
    const ship = (value: Uint8Array, sequence: number) =>
      blobs.ship({ epoch: 1, name, commits: [{ sequence, lastTicket: sequence, writes: [{ kind: "put", key: name, value }] }] }, limits);
    assert.ok((await ship(first, 1)).ok);
    leaving.add(1_000);
    assert.ok((await ship(second, 2)).ok);
    assert.equal(blobs.copiedBytes, 500 + 2_700_000);
    // The row there does not have these bytes after all: only they go again.
    refuses = true;
    assert.ok(!(await ship(rowOf(place(1, 0, 500), place(9, 0, 10)), 3)).ok);
    refuses = false;
    assert.ok((await ship(rowOf(place(1, 0, 500), place(9, 0, 10)), 3)).ok);
    assert.equal(blobs.copiedBytes, 500 + 2_700_000 + 10 + 500);
  }));

test("seeding of blobs: places of a name that goes in pieces are remembered until its last piece is there", () =>
  onBench(async (bench) => {
    let refuses = true;
    const seed = async () => (refuses ? refused("unavailable", "connectFailed", "cut") : ok());
    const link = { ...bench.link, ship: async () => ok(), seed };
    const partition = { data: bench.data } as unknown as RangePartition;
    const places = new PlacesBudget(1_000);
    const bounds = { gate: new ByteGate(100_000), places, seedBytesPerSecondMax: 1e9 };
    const blobs = new BlobLink(bench.world, partition, link, { ...bounds, epoch: 1, nameOf: (key: Uint8Array) => key });
    const piece = async (n: number): Promise<boolean> => {
      const rows: Row[] = [[utf8(`n${n}`), rowOf(...Array.from({ length: 10 }, (_, i) => place(n, i * 200, 100)))]];
      const part = { epoch: 1, sequence: 5, lastTicket: 5, low: utf8(`n${n}`), high: utf8(`n${n + 1}`), rows };
      const seeded = await blobs.seed(
        { ...part, piece: { name, isLast: n === 3 } },
        { timeoutMs: 1_000, signal: new AbortController().signal },
      );
      return seeded.ok;
    };
    assert.equal(await piece(3), false);
    assert.equal(places.count, 2 * 10, "the last piece is not there: its places stay");
    refuses = false;
    for (const n of [1, 2]) assert.ok(await piece(n));
    assert.equal(places.count, 2 * 30, "among all places, and as those of the name");
    assert.ok(await piece(3));
    assert.equal(places.count, 30);
    assert.equal(blobs.copiedBytes, 30 * 100);
    blobs.end();
    assert.equal(places.count, 0);
  }));
