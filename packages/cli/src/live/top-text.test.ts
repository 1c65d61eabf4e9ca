import assert from "node:assert/strict";
import { test } from "node:test";
import { snapshotOf } from "../console/snapshot.ts";
import { healthy } from "../health/testing/healthy.ts";
import { type AccountCounts, accountLoads, topText } from "./top-text.ts";

const counts = (requests: number, clientErrors = 0, serverErrors = 0, tookMs = 0): AccountCounts => ({
  requests,
  clientErrors,
  serverErrors,
  tookMs,
});
const at = (atMs: number, byFrontEnd: Readonly<Record<string, Readonly<Record<string, AccountCounts>>>>) => ({
  atMs,
  byFrontEnd: new Map(Object.entries(byFrontEnd).map(([name, accounts]) => [name, new Map(Object.entries(accounts))])),
});

test("top: the load of an account is that of all front-ends between two looks, the busiest first", () => {
  const before = at(1_000, {
    one: { acme: counts(10, 1, 0, 100), idle: counts(5) },
    two: { acme: counts(90, 0, 0, 10) },
    gone: { acme: counts(1) },
  });
  const now = at(3_000, {
    one: { acme: counts(20, 3, 2, 200), idle: counts(5), late: counts(40, 0, 0, 80) },
    // Started again.
    two: { acme: counts(6, 0, 0, 60) },
    first: { acme: counts(1_000_000) },
  });
  assert.deepEqual(accountLoads(before, now), [
    { account: "late", requestsPerSecond: 20, clientErrorsPerSecond: 0, serverErrorsPerSecond: 0, meanMs: 2 },
    { account: "acme", requestsPerSecond: 8, clientErrorsPerSecond: 1, serverErrorsPerSecond: 1, meanMs: 10 },
  ]);
  assert.equal(accountLoads(undefined, now), undefined);
});

test("top: a front-end that started anew and has had more requests since gives no rate below 0", () => {
  const before = at(0, { one: { acme: counts(10, 8, 2, 5_000) } });
  assert.deepEqual(accountLoads(before, at(1_000, { one: { acme: counts(20, 0, 3, 40) } })), [
    { account: "acme", requestsPerSecond: 20, clientErrorsPerSecond: 0, serverErrorsPerSecond: 3, meanMs: 2 },
  ]);
});

const { snapshot } = snapshotOf(healthy, undefined);
const range = (number: number) => ({
  id: `blob-${number}`,
  table: "Blob",
  lowKey: number === 1 ? "" : `acme/c\u001b[2J\n${number}`,
  highKey: "",
  server: "partition-server-1",
  loaded: true,
  ownerEpoch: 1,
  change: "",
  readsPerSecond: number,
  writesPerSecond: null,
  throttledPerSecond: null,
  latencyMs: null,
  pending: null,
  rowBytes: null,
});
const accounts = [{ account: "acme", requestsPerSecond: 12.3, clientErrorsPerSecond: 0, serverErrorsPerSecond: 0, meanMs: 4 }];
const ranges = Array.from({ length: 100 }, (_, index) => range(index + 1));

test("top: shows no more lines than there is room for, the busiest of each list, and says how many there are", () => {
  for (const rows of [1, 5, 12, 24, 50]) {
    const lines = topText({ snapshot, ranges, accounts }, rows).split("\n");
    assert.ok(lines.length <= Math.max(rows, 3), `${lines.length} lines of ${rows}`);
  }
  const text = topText({ snapshot, ranges, accounts }, 24);
  assert.match(text, /^12:00:00 UTC {2}.*healthy/);
  assert.match(text, /\nRanges: \d+ of 100, the busiest\n/);
  assert.match(text, /\nblob-100 +100\/s +- +partition-server-1 /);
  assert.match(text, /\nacme +12\/s +0\.0\/s +0\.0\/s +4\.0 ms/);
  assert.ok(!text.includes("\u001b"), "keys are text");
});

test("top: shows what does not serve first, whom it waits for, and that accounts are not counted yet", () => {
  const processes = snapshot.processes.map((each, index) =>
    index === 3 ? { ...each, ready: false, state: "starting", waitingFor: ["stream-manager"] } : each,
  );
  const text = topText({ snapshot: { ...snapshot, processes }, ranges: [], accounts: undefined }, Number.POSITIVE_INFINITY);
  assert.match(text, new RegExp(`\nPROCESS .*\n${processes[3]?.name} +starting, waits for stream-manager `));
  assert.match(text, /\nAccounts\ncounted from the next look on\n/);
});
