import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "@stamp/ports";
import { FragmentProgress } from "./fragment-progress.ts";

const kibibyte = 1_024;

test("repair of fragments: the time left is that of the allowed rate at first, then of the rate of the episode, also when it slows down", () => {
  let nowMs = 1_000;
  const progress = new FragmentProgress({ monotonicMs: () => nowMs } as Clock, 400 * kibibyte);
  assert.equal(progress.status().fragmentEtaMs, undefined);
  progress.looked({ bytes: 100 * kibibyte, reads: 400 * kibibyte });
  assert.equal(progress.status().fragmentEtaMs, 1_000n, "four bytes are read for a byte, at the allowed rate");
  nowMs += 1_000;
  progress.made(20 * kibibyte, 80 * kibibyte);
  assert.equal(progress.status().fragmentEtaMs, 4_000n, "80 KiB are left, at 20 KiB in a second");
  nowMs += 9_000;
  progress.made(20 * kibibyte, 80 * kibibyte);
  assert.equal(progress.status().fragmentEtaMs, 15_000n, "60 KiB are left, at 4 KiB in a second");
  const { fragmentBytesWaiting, fragmentBytesDone, fragmentBytesRead, fragmentRunningMs } = progress.status();
  assert.deepEqual(
    [fragmentBytesWaiting, fragmentBytesDone, fragmentBytesRead, fragmentRunningMs],
    [BigInt(60 * kibibyte), BigInt(40 * kibibyte), BigInt(160 * kibibyte), 10_000n],
  );
});

test("repair of fragments: an episode ends when nothing is left, and the next one begins at nothing", () => {
  let nowMs = 0;
  const progress = new FragmentProgress({ monotonicMs: () => nowMs } as Clock, 1_000_000);
  // A new leader finds an attempt and ends it before its first look.
  progress.made(10, 40);
  progress.looked({ bytes: 30, reads: 120 });
  nowMs = 2_000;
  progress.made(30, 120);
  nowMs = 60_000;
  progress.looked({ bytes: 0, reads: 0 });
  const first = progress.status();
  assert.deepEqual([first.fragmentBytesDone, first.fragmentBytesRead, first.fragmentEtaMs], [40n, 160n, undefined]);
  assert.equal(first.fragmentRunningMs, 2_000n);
  progress.looked({ bytes: 5, reads: 20 });
  nowMs = 61_000;
  assert.deepEqual([progress.status().fragmentBytesDone, progress.status().fragmentRunningMs], [0n, 1_000n]);
  progress.looked({ bytes: 0, reads: 0 });
  nowMs = 70_000;
  assert.equal(progress.status().fragmentRunningMs, 1_000n, "what was lost came back");
});
