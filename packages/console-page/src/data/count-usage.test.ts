import assert from "node:assert/strict";
import { test } from "node:test";
import { usageOfContainers } from "./count-usage.ts";
import type { ContainerRow } from "./data-model.ts";

const container = (name: string): ContainerRow => ({ name, modifiedMs: null, publicAccess: "", lease: "", metadata: [] });
const part = { blobs: 2, bytes: 10, kept: 1, keptBytes: 3 };

test("usage: pages of containers and of their entries are added up, and each page is shown", async () => {
  const data = {
    containers: async (_account: string, after: string) =>
      after === "" ? { items: [container("a"), container("b")], next: "more" } : { items: [container("c")], next: null },
    usage: async (_account: string, name: string, after: string) => ({ ...part, next: name === "b" && after === "" ? "2" : null }),
  };
  const shown: string[] = [];
  for await (const rows of usageOfContainers(data, "acme", new AbortController().signal))
    shown.push(rows.map((row) => `${row.container} ${row.blobs} ${row.bytes} ${row.kept} ${row.keptBytes}`).join(", "));
  assert.deepEqual(shown, ["a 2 10 1 3", "a 2 10 1 3, b 2 10 1 3", "a 2 10 1 3, b 4 20 2 6", "a 2 10 1 3, b 4 20 2 6, c 2 10 1 3"]);
});

test("usage: after the view was left nothing more is asked", async () => {
  const left = new AbortController();
  let asked = 0;
  const data = {
    containers: async () => ({ items: [container("a"), container("b")], next: "more" }),
    usage: async () => {
      asked++;
      return { ...part, next: "more" };
    },
  };
  for await (const _ of usageOfContainers(data, "acme", left.signal)) left.abort();
  assert.equal(asked, 1);
});
