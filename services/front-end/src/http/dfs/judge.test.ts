import assert from "node:assert/strict";
import { test } from "node:test";
import type { OnPath } from "./exchange.ts";
import { mayListAll, mayRemoveBelow } from "./judge.ts";

/** A request that lists judge, on directories that are all open to it, or none. */
function judged(isOpen: boolean): { exchange: OnPath; seen: { reads: number; atOnceMax: number } } {
  const seen = { reads: 0, atOnceMax: 0 };
  let atOnce = 0;
  const execute = async () => {
    seen.reads++;
    seen.atOnceMax = Math.max(seen.atOnceMax, ++atOnce);
    await Promise.resolve();
    atOnce--;
    return { ok: true, value: {} };
  };
  const objects = { execute, located: () => ({}) };
  const access = { judged: { id: "me", groups: new Set(), superuser: isOpen } };
  return { exchange: { objects, access, target: { account: "a" }, limits: () => ({}) } as unknown as OnPath, seen };
}

const row = { name: "f" } as Parameters<typeof mayListAll>[1];
const ids = Array.from({ length: 1_000 }, (_, index) => String(index));

test("judge, many directories: their access control is read in slices, and no further than the first that is closed", async () => {
  const open = judged(true);
  assert.equal((await mayListAll(open.exchange, row, ids)).ok, true);
  assert.deepEqual(open.seen, { reads: 1_000, atOnceMax: 64 });
  const closed = judged(false);
  assert.equal((await mayListAll(closed.exchange, row, ids)).ok, false);
  assert.deepEqual(closed.seen, { reads: 64, atOnceMax: 64 });
});

test("judge, the client of a recursive deletion goes away: the walk below the directory ends", async () => {
  const { exchange } = judged(true);
  const client = new AbortController();
  let pages = 0;
  const run = async () => {
    pages++;
    if (pages === 3) client.abort();
    return { ok: true, value: { entries: [], continuation: new Uint8Array(1), opened: [] } };
  };
  const limits = () => ({ deadlineMs: 1_000, signal: client.signal });
  const objects = { ...exchange.objects, parts: { trees: { run } } };
  const walking = { ...exchange, objects, limits } as unknown as OnPath;
  const may = await mayRemoveBelow(walking, { ...row, incarnation: 1n }, { kind: "directory", id: "d", name: "d" }, ["d"]);
  assert.deepEqual([may.ok, pages], [false, 3]);
});
