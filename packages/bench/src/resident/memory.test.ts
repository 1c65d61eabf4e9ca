/** Rows, load and chart of `stamp bench resident`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { chartOf } from "./chart.ts";
import { memoryOf, rowsOf, type Sample } from "./memory.ts";
import { orderOf, shares } from "./mixed.ts";

const of = (rss: number) => new Map([["a", { rss, pss: rss / 2 }]]);

test("resident: quarters, peak and growth of a process come from its samples; a process that was away has no row", () => {
  const samples: Sample[] = Array.from({ length: 12 }, (_, i) => ({ atS: (i + 1) * 10, of: of(i < 8 ? 100 + i : 200) }));
  const [row, ...others] = rowsOf(of(90), samples, of(150));
  assert.equal(others.length, 0);
  assert.deepEqual(row?.quarters, [102, 105, 200, 200]);
  assert.equal(row?.peak, 200);
  assert.ok(Math.abs((row?.growth ?? 0) - 200 / 105.5) < 1e-9);
  const away = samples.with(3, { atS: 40, of: new Map() });
  assert.deepEqual(rowsOf(of(90), away, of(150)), []);
});

test("resident: the load takes each operation as often as its share says, and equal ones are apart", () => {
  const order = orderOf(shares);
  for (const [name, count] of shares) assert.equal(order.filter((one) => one === name).length, count);
  assert.notEqual(order[0], order[1]);
});

test("resident: this process has memory, a process that is not there has none; a chart has a line for each name", () => {
  const own = memoryOf(process.pid);
  assert.ok(own !== undefined && own.rss > 10 && own.pss <= own.rss);
  assert.equal(memoryOf(2 ** 30), undefined);
  const samples: Sample[] = [1, 2].map((atS) => ({ atS, of: new Map([...of(50 * atS), ["b", { rss: 10, pss: 5 }] as const]) }));
  assert.equal(chartOf(samples).match(/<polyline/g)?.length, 2);
});
