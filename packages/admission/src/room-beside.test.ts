/** The room for large bodies on counted time: small operations that are there and slow make it small, nothing else does. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Kind } from "./concurrency-limit.ts";
import { RoomBeside } from "./room-beside.ts";

const options = { bytesMax: 28_000, bytesMin: 2_000, targetMs: { read: 2, write: 5 } };

/** Small operations of one kind for `forMs`, each of `tookMs`, `atOnce` of them at any time on average. Returns the room at the end. */
function after(room: RoomBeside, fromMs: number, forMs: number, kind: Kind, tookMs: number, atOnce: number): number {
  const everyMs = tookMs / atOnce;
  for (let atMs = fromMs; atMs < fromMs + forMs; atMs += everyMs) room.ended(kind, tookMs, atMs);
  return room.roomBytes(fromMs + forMs);
}

test("room beside small operations: falls to its least within half a second while they are slow, and grows back when they end", () => {
  for (const [kind, tookMs] of [
    ["read", 3],
    ["write", 6],
  ] as const) {
    const room = new RoomBeside(options);
    assert.equal(room.roomBytes(0), 28_000);
    assert.equal(after(room, 0, 500, kind, tookMs, 4), 2_000, kind);
    for (let atMs = 500; atMs <= 2_500; atMs += 50) room.roomBytes(atMs);
    assert.equal(room.roomBytes(2_500), 28_000, kind);
  }
});

test("room beside small operations: quick ones, or few slow ones, cost large bodies nothing", () => {
  for (const [kind, tookMs, atOnce, what] of [
    ["read", 2, 16, "quick reads"],
    ["write", 5, 16, "quick writes"],
    ["write", 40, 0.4, "a slow write now and then"],
  ] as const) {
    const room = new RoomBeside(options);
    assert.equal(after(room, 0, 3_000, kind, tookMs, atOnce), 28_000, what);
  }
});

test("room beside small operations: slow writes count beside many quick reads", () => {
  const room = new RoomBeside(options);
  for (let atMs = 0; atMs < 500; atMs++) {
    for (let i = 0; i < 8; i++) room.ended("read", 1, atMs);
    if (atMs % 2 === 0) room.ended("write", 8, atMs);
  }
  assert.equal(room.roomBytes(500), 2_000);
});

test("room beside small operations, whatever they take: stays between its bounds", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ passMs: fc.nat(400), kind: fc.constantFrom<Kind>("read", "write"), tookMs: fc.nat(50) }), { maxLength: 200 }),
      (operations) => {
        const room = new RoomBeside(options);
        let nowMs = 0;
        for (const { passMs, kind, tookMs } of operations) {
          nowMs += passMs;
          room.ended(kind, tookMs, nowMs);
          const bytes = room.roomBytes(nowMs);
          assert.ok(bytes >= options.bytesMin && bytes <= options.bytesMax, String(bytes));
        }
      },
    ),
  );
});
