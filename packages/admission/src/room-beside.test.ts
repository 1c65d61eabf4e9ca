/** The room for large bodies on counted time: small operations that are there and slow make it small, nothing else does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AccessKind } from "./concurrency-limit.ts";
import { RoomBeside, type SmallEnd } from "./room-beside.ts";

const options = { bytesMax: 28_000, bytesMin: 4_000, targetMs: { read: 2, write: 5 } };

interface Load {
  readonly kind: AccessKind;
  readonly tookMs: number;
  /** Time from the begin of one operation to the begin of the next, in ms. */
  readonly everyMs: number;
  readonly end?: SmallEnd;
  /** False: only the answer tells whether it is small. */
  readonly isSure?: boolean;
}

interface Room {
  readonly least: number;
  readonly last: number;
  /** In the second half of the time. */
  readonly mostLater: number;
}

/** Operations that begin from `fromMs` on until `fromMs + forMs`, and end in their time. Returns the room until then, in bytes. */
function under(room: RoomBeside, fromMs: number, forMs: number, ...loads: readonly Load[]): Room {
  const events: { readonly atMs: number; readonly run: () => void }[] = [];
  for (const { kind, tookMs, everyMs, end = "small", isSure = true } of loads) {
    for (let beginMs = fromMs; beginMs < fromMs + forMs; beginMs += everyMs) {
      let operation: ReturnType<RoomBeside["began"]>;
      events.push({ atMs: beginMs, run: () => (operation = room.began(kind, isSure, beginMs)) });
      events.push({ atMs: beginMs + tookMs, run: () => room.ended(operation, end, beginMs + tookMs) });
    }
  }
  const bytes: number[] = [];
  for (let atMs = fromMs; atMs <= fromMs + forMs; atMs += 10) events.push({ atMs, run: () => bytes.push(room.roomBytes(atMs)) });
  for (const { run } of events.toSorted((a, b) => a.atMs - b.atMs)) run();
  const mostLater = Math.max(...bytes.slice(bytes.length / 2));
  return { least: Math.min(...bytes), last: bytes.at(-1) as number, mostLater };
}

/** `atOnce` operations in flight at any time. */
const steady = (kind: AccessKind, tookMs: number, atOnce: number): Load => ({ kind, tookMs, everyMs: tookMs / atOnce });

test("room beside small operations: falls to its least within half a second while they are slow, and grows back when they end", () => {
  for (const [kind, tookMs] of [
    ["read", 3],
    ["write", 6],
  ] as const) {
    const room = new RoomBeside(options);
    assert.equal(room.roomBytes(0), 28_000);
    assert.equal(under(room, 0, 500, steady(kind, tookMs, 6)).last, 4_000, kind);
    assert.equal(under(room, 510, 2_000).last, 28_000, kind);
  }
});

test("room beside small operations: quick ones, or few slow ones, cost large bodies nothing", () => {
  for (const [load, what] of [
    [steady("read", 1.9, 16), "quick reads"],
    [steady("write", 4.8, 16), "quick writes"],
    [{ kind: "write", tookMs: 40, everyMs: 100 }, "a slow write now and then"],
    [{ kind: "read", tookMs: 400, everyMs: 5_000 }, "a very slow read, rarely"],
  ] as const) {
    assert.equal(under(new RoomBeside(options), 0, 10_000, load).least, 28_000, what);
  }
});

test("room beside small operations: slow writes count beside many quick reads", () => {
  assert.equal(under(new RoomBeside(options), 0, 1_000, steady("read", 1, 8), steady("write", 8, 4)).last, 4_000);
});

test("room beside small operations: while they take longer than an interval, one after another, the room stays at its least", () => {
  for (const isSure of [true, false]) {
    const slow = { ...steady("read", 500, 1), isSure };
    assert.equal(under(new RoomBeside(options), 0, 20_000, slow).mostLater, 4_000, `${isSure}`);
  }
});

test("room beside small operations: some that are never answered count as long as they last", () => {
  const room = new RoomBeside(options);
  const stuck = [0, 1].map(() => room.began("write", true, 0));
  assert.equal(under(room, 0, 10_000).last, 4_000);
  for (const each of stuck) room.ended(each, "cancelled", 10_000);
  assert.equal(under(room, 10_000, 2_000).last, 28_000);
});

test("room beside small operations: those that are refused at once count as late", () => {
  const quick = { kind: "write", tookMs: 1, everyMs: 2 } as const;
  assert.equal(under(new RoomBeside(options), 0, 2_000, quick).last, 28_000);
  assert.equal(under(new RoomBeside(options), 0, 2_000, quick, { ...quick, everyMs: 10, end: "refused" }).last, 4_000);
});

test("room beside small operations: reads that turn out to belong to large requests cost nothing, those that were small do", () => {
  const slow = { ...steady("read", 20, 8), isSure: false };
  const room = new RoomBeside(options);
  assert.equal(under(room, 0, 5_000, { ...slow, end: "large" }).least, 28_000);
  assert.equal(under(room, 5_100, 2_000, slow).last, 4_000);
  assert.equal(under(room, 7_200, 3_000, { ...slow, end: "large" }).last, 28_000);
});

test("room beside small operations, whatever they take: stays between its bounds", () => {
  const load = fc.record({
    kind: fc.constantFrom<AccessKind>("read", "write"),
    tookMs: fc.nat(900),
    everyMs: fc.integer({ min: 1, max: 400 }),
    end: fc.constantFrom<SmallEnd>("small", "large", "refused", "cancelled"),
    isSure: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(load, { maxLength: 4 }), (loads) => {
      const room = new RoomBeside(options);
      for (const fromMs of [0, 3_000]) {
        const { least, last } = under(room, fromMs, 1_000, ...loads);
        assert.ok(least >= options.bytesMin && last <= options.bytesMax, `${least} ${last}`);
      }
    }),
    { numRuns: 40 },
  );
});
