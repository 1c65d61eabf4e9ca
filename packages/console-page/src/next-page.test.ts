import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "./model.ts";
import { nextPage } from "./next-page.ts";

const pages: Readonly<Record<string, Page<number>>> = {
  "": { items: [], next: "a" },
  a: { items: [], next: "b" },
  b: { items: [1], next: "c" },
  c: { items: [], next: null },
};

test("pages: empty ones in between are passed over, and the last one ends the list", async () => {
  const asked: string[] = [];
  const load = async (after: string): Promise<Page<number>> => {
    asked.push(after);
    return pages[after] ?? assert.fail();
  };
  assert.deepEqual(await nextPage(load, "", () => true), { items: [1], next: "c" });
  assert.deepEqual(await nextPage(load, "c", () => true), { items: [], next: null });
  assert.deepEqual(asked, ["", "a", "b", "c"]);
  await nextPage(load, "", () => false);
  assert.deepEqual(asked.slice(4), [""]);
});
