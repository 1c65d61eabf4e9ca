/** Files of entities are sent in parts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FileEntity } from "./entity-file.ts";
import { type Imported, importEntities } from "./import-entities.ts";

const into = { account: "a", table: "t", replace: false };

async function* entitiesOf(count: number, characters = 0): AsyncGenerator<FileEntity> {
  const properties = [{ name: "n", type: "String", value: "x".repeat(characters) }];
  for (let line = 1; line <= count; line++) yield { line, partitionKey: "p", rowKey: String(line), properties };
}

async function all(sums: AsyncIterable<Imported>): Promise<Imported[]> {
  const got: Imported[] = [];
  for await (const sum of sums) got.push(sum);
  return got;
}

const sourceOf = (sizes: number[], failAt = -1) => ({
  change: async (_what: string, { entities }: Readonly<Record<string, unknown>>) => {
    if (sizes.length === failAt) throw new Error("refused");
    sizes.push((entities as readonly unknown[]).length);
    return { number: sizes.at(-1), kept: 1 };
  },
});

test("import of entities: parts of 500, or of a million characters, and sums after each", async () => {
  const sizes: number[] = [];
  const { signal } = new AbortController();
  const sums = await all(importEntities(sourceOf(sizes), into, entitiesOf(1_001), signal));
  assert.deepEqual(sizes, [500, 500, 1]);
  assert.deepEqual(sums.at(-1), { written: 1_001, kept: 3 });
  sizes.length = 0;
  await all(importEntities(sourceOf(sizes), into, entitiesOf(5, 400_000), signal));
  assert.deepEqual(sizes, [2, 2, 1]);
});

test("import of entities: a part that fails ends it with its lines, and an end is obeyed before the next part", async () => {
  const sizes: number[] = [];
  const ended = new AbortController();
  await assert.rejects(
    all(importEntities(sourceOf(sizes, 1), into, entitiesOf(1_001), ended.signal)),
    /^Error: lines 501 to 1000: refused$/,
  );
  const sums = importEntities(sourceOf(sizes), into, entitiesOf(1_001), ended.signal);
  await sums.next();
  ended.abort();
  await assert.rejects(sums.next());
  assert.deepEqual(sizes, [500, 500]);
});
