import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, ok } from "@stamp/base";
import { type Entity, encodeKey, encodeRow, entitySchema, packRows } from "@stamp/objects";
import type { World } from "@stamp/ports";
import type { Router } from "../routing/router.ts";
import { pageBytesMax, Tables } from "./tables.ts";

const table = { account: "acct", table: "t", incarnation: 1 };
const question = { table, filter: [], select: [], after: undefined, entitiesMax: 1_000 };
const entity = (rowKey: string, text: string) => ({
  key: { partitionKey: "p", rowKey },
  timestamp: 0n,
  properties: [{ name: "text", value: { kind: { case: "text", value: text } } }],
});
const none = new Uint8Array(0);

/** A partition server whose every go takes `goMs`, looks at one more key and has no end. */
function start(goMs: number, found: (go: number) => readonly object[], rowsOf: (go: number) => Uint8Array = () => none) {
  let nowMs = 1_000;
  let goes = 0;
  const world = { clock: { monotonicMs: () => nowMs }, rules: allRules } as unknown as World;
  const ask = async () => {
    nowMs += goMs;
    goes++;
    const page = {
      entities: found(goes),
      rows: rowsOf(goes),
      last: { partitionKey: "p", rowKey: String(goes).padStart(4, "0") },
      more: true,
      rangeEnded: false,
    };
    const result = { case: "table", value: { kind: { case: "entities", value: page } } };
    return ok({ result, range: { high: new Uint8Array(0) } });
  };
  const tables = new Tables(world, { ask } as unknown as Router, { requestTimeoutMs: 60_000 });
  const query = async () => {
    const entities: Entity[] = [];
    let storedBytes = 0;
    const page = await tables.query(question, { deadlineMs: 60_000 }, async (some, bytes) => {
      entities.push(...some);
      storedBytes += bytes;
    });
    return page.ok ? { ok: true as const, value: { ...page.value, entities, storedBytes } } : page;
  };
  return { query, goes: () => goes };
}

test("a query that finds nothing ends its page after 5 seconds, with the place where it goes on", async () => {
  const { query, goes } = start(1_000, () => []);
  const page = await query();
  assert.ok(page.ok);
  assert.equal(goes(), 5);
  assert.deepEqual([page.value.entities, page.value.next], [[], { partitionKey: "p", rowKey: "0005" }]);
});

test("a page ends before the entity that would make it larger than 4 MiB, and goes on with that one", async () => {
  const text = "x".repeat(Math.floor(pageBytesMax / 2 / 4));
  const { query } = start(1, (go) => [entity(String(go).padStart(4, "0"), text)]);
  const page = await query();
  assert.ok(page.ok);
  const { entities, next } = page.value;
  assert.deepEqual(next, { partitionKey: "p", rowKey: entities.at(-1)?.rowKey });
  assert.equal(entities.length, 3);
});

test("a page of packed rows ends where one of messages does", async () => {
  const text = "x".repeat(Math.floor(pageBytesMax / 2 / 4));
  const packed = (go: number) =>
    packRows([
      {
        key: encodeKey([["acct"], [1, "t", 1, "p"], [String(go).padStart(4, "0")]]),
        value: encodeRow(entitySchema, { timestamp: 0n, properties: [{ name: "text", type: "string", value: text }] }),
      },
    ]);
  const { query } = start(1, () => [], packed);
  const page = await query();
  assert.ok(page.ok);
  const { entities, next, storedBytes } = page.value;
  assert.deepEqual(next, { partitionKey: "p", rowKey: entities.at(-1)?.rowKey });
  assert.deepEqual(
    [entities.length, entities[0]],
    [3, { partitionKey: "p", rowKey: "0001", timestamp: 0n, properties: [{ name: "text", type: "string", value: text }] }],
  );
  assert.ok(storedBytes > 3 * text.length);
});
