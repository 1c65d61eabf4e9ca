import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeatMap } from "../../model.ts";
import { cellAfter, drawnAt, mostIn, shadeOf, widthOf } from "./shades.ts";

const band = { table: "Blob", lowKey: "", highKey: "", firstRange: "blob-1", lastRange: "blob-1", ranges: 1 };
/** Two bands; nobody was asked in the second of three half minutes. */
const map: HeatMap = {
  columnMs: 30_000,
  columns: [60_000, 120_000],
  bands: [
    { ...band, loads: [1, null] },
    { ...band, loads: [0, 40] },
  ],
};

test("heat map: a time at which nobody was asked keeps its place", () => {
  assert.equal(widthOf(map), 3);
  assert.deepEqual(drawnAt(map), [0, 2]);
  assert.equal(widthOf({ ...map, columns: [] }), 0);
});

test("heat map: the busiest is the darkest, and an idle range is seen beside it", () => {
  assert.equal(mostIn(map), 40);
  assert.equal(shadeOf(40, 40), 1);
  assert.ok(shadeOf(0, 40) > 0 && shadeOf(1, 40) > shadeOf(0, 40));
  assert.ok(shadeOf(0, 0) > 0, "a stamp without any load");
});

test("heat map: arrow keys lead from cell to cell and not out of the map", () => {
  assert.deepEqual(cellAfter("ArrowDown", { band: 0, column: 2 }, map), { band: 1, column: 2 });
  assert.deepEqual(cellAfter("ArrowDown", { band: 1, column: 2 }, map), { band: 1, column: 2 });
  assert.deepEqual(cellAfter("ArrowRight", { band: 0, column: 2 }, map), { band: 0, column: 2 });
  assert.deepEqual(cellAfter("ArrowLeft", { band: 0, column: 2 }, map), { band: 0, column: 1 });
  assert.equal(cellAfter("Tab", { band: 0, column: 0 }, map), undefined);
});
