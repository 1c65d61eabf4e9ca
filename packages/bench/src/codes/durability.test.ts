/** The formula of durability, and the table of the guide that it makes. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { durability, durabilityTable } from "./durability.ts";

test("durability: the formula, by hand, for three replicas and for the code whose fourth loss may be borne", () => {
  const rows = new Map(durability(0.02, [1]).map((row) => [row.name, row]));
  const t = 1 / 8_766;
  const near = (got: number | undefined, expected: number): void =>
    assert.ok(Math.abs((got ?? 0) / expected - 1) < 1e-9, `${got} ${expected}`);
  near(rows.get("3 replicas")?.lostInYear[0], 0.02 ** 3 * t ** 2 * 3 * 2 * 1);
  near(rows.get("rs-4-2")?.lostInYear[0], 0.02 ** 3 * t ** 2 * 6 * 5 * 4);
  // 252 of the 1,820 losses of four fragments can't be decoded by any code of this shape.
  near(rows.get("lrc-12-2-2")?.lostInYear[0], (252 / 1_820) * 0.02 ** 4 * t ** 3 * 16 * 15 * 14 * 13);
  assert.equal(rows.get("lrc-12-2-2")?.readForOne, (14 * 6 + 2 * 12) / 16);
});

test("durability: the guide has this table", () => {
  const guide = readFileSync(new URL("../../../../docs/guides/erasure-coding.md", import.meta.url), "utf8");
  assert.ok(guide.includes(durabilityTable(0.02, [0.25, 1, 24])), durabilityTable(0.02, [0.25, 1, 24]));
});
