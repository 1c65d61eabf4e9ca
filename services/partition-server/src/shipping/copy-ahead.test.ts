/** Versions of a copy that its primary never made. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, featureLevel } from "@stamp/base";
import type { World } from "@stamp/ports";
import { aheadOf } from "./copy-ahead.ts";

const world = { rules: allRules, clock: { wallMs: () => 1_795_824_000_000 } } as unknown as World;
const range = { rangeId: "blob-1", lineage: { log: 0, store: 0n }, followers: { lastSequence: 100 } } as unknown as Parameters<
  typeof aheadOf
>[1];
const ahead = (epoch: number, number: number) => aheadOf(world, range, { epoch, lineage: 0, number }, { epoch: 5, level: featureLevel });

test("copy ahead: rows of a role epoch that the copy does not follow are told, as no lineage stands above them", () => {
  const { failure, above } = ahead(1_000_000_000, 1) ?? {};
  assert.match(String(failure?.failure.message), /rows of role epoch 1000000000, and follows 5: give the copy up/);
  assert.equal(above, undefined);
});

test("copy ahead: a commit that the log has not reached begins a lineage, and one that it has is nothing", () => {
  assert.equal(ahead(5, 101)?.above, 0);
  assert.deepEqual([ahead(5, 100), ahead(4, 1_000_000)], [undefined, undefined]);
});
