/** Pages that are written from rows as they lie are, byte for byte, what entity after entity makes of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EntitiesBytes, EntitiesJson, type JsonForm } from "@stamp/azure-rest";
import { FailureError, utf8 } from "@stamp/base";
import { type Entity, encodeKey, encodeRow, entityBytes, entitySchema, PackedEntities, packRows, unpackEntities } from "@stamp/objects";
import fc from "fast-check";
import { TextWriter } from "../turns.ts";

const text = fc.oneof(
  fc.string({ unit: "grapheme-ascii", maxLength: 40 }),
  fc.string({ unit: "binary", maxLength: 12 }).filter((value) => value.isWellFormed()),
  fc.constantFrom('"', "\\", "a\nb", "\u007f", "\u0080", "ü", "\u{1f600}", "x".repeat(70), `${"x".repeat(63)}"`, "\ufeff", "\u2028"),
);
const big = fc.oneof(
  fc.bigInt({ min: -116_444_736_000_000_000n, max: 2_534_023_007_999_999_999n }),
  fc.constantFrom(0n, -1n, 1n, 10_000n, -10_000n, 17_000_000_000_000_000n, 17_000_000_000_000_001n),
);
const value = fc.oneof(
  fc.record({ type: fc.constant("string" as const), value: text }),
  fc.record({ type: fc.constant("bool" as const), value: fc.boolean() }),
  fc.record({ type: fc.constant("int32" as const), value: fc.integer() }),
  fc.record({ type: fc.constant("int64" as const), value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
  fc.record({ type: fc.constant("double" as const), value: fc.oneof(fc.double(), fc.constantFrom(-0, 5, 1e21, Number.NaN, -Infinity)) }),
  fc.record({ type: fc.constant("DateTime" as const), value: big }),
  fc.record({ type: fc.constant("GUID" as const), value: fc.uint8Array({ minLength: 16, maxLength: 16 }) }),
  fc.record({ type: fc.constant("binary" as const), value: fc.uint8Array({ maxLength: 20 }) }),
);
const name = fc.oneof(fc.constantFrom("Name", "Data", "größe", "odata", 'q"'), text);
const entity: fc.Arbitrary<Entity> = fc.record({
  partitionKey: fc.oneof(fc.constantFrom("p", "p'ü", ""), text),
  rowKey: fc.oneof(text, fc.constantFrom("r", "r\u0000", "\u00ff")),
  timestamp: big,
  properties: fc.array(
    fc.tuple(name, value).map(([of, typed]) => ({ name: of, ...typed })),
    { maxLength: 5 },
  ),
});
const form: fc.Arbitrary<JsonForm> = fc.record({
  metadata: fc.constantFrom("none" as const, "minimal" as const),
  endpoint: fc.constant("http://host/acct/"),
  account: fc.constant("acct"),
});
const clock = { monotonicMs: () => 0, after: () => ({ cancel: () => {} }) } as never;
const unbound = { bytesMax: Number.POSITIVE_INFINITY, isEmpty: true };

/** The page somewhere in a larger buffer, as a frame has it. */
function packed(entities: readonly Entity[], offset: number): Uint8Array {
  const rows = packRows(
    entities.map(({ partitionKey, rowKey, timestamp, properties }) => ({
      key: encodeKey([["acct"], [1, "t", 1, partitionKey], [rowKey]]),
      value: encodeRow(entitySchema, { timestamp, properties }),
    })),
  );
  const buffer = new Uint8Array(offset + rows.length + 3);
  buffer.set(rows, offset);
  return buffer.subarray(offset, offset + rows.length);
}

async function written(rows: PackedEntities, how: JsonForm): Promise<string> {
  const writer = new TextWriter(clock);
  const bytes = new EntitiesBytes(how, new EntitiesJson(how, "t", []), writer.sink);
  await writer.steps(() => {
    if (!rows.next()) return false;
    bytes.add(rows);
    return true;
  });
  return Buffer.from(writer.finish().bytes).toString("utf8");
}

test("a page of any entities is written as entity after entity", async () => {
  const pages = fc.tuple(fc.array(entity, { maxLength: 6 }), fc.nat(7), form);
  await fc.assert(
    fc.asyncProperty(pages, async ([entities, offset, how]) => {
      const page = packed(entities, offset);
      const json = new EntitiesJson(how, "t", []);
      const expected = [...unpackEntities(page)].map((one) => json.entity(one)).join("");
      const rows = new PackedEntities(page, unbound);
      assert.equal(await written(rows, how), Buffer.from(utf8(expected)).toString("utf8"));
      const last = entities.at(-1);
      assert.deepEqual(rows.lastKey(), last && { partitionKey: last.partitionKey, rowKey: last.rowKey });
      const sizes = entities.map(({ partitionKey, rowKey, properties }) => entityBytes(partitionKey, rowKey, properties));
      assert.equal(
        rows.countedBytes,
        sizes.reduce((sum, size) => sum + size, 0),
      );
    }),
    { numRuns: 2_000 },
  );
});

test("a page ends before the entity that makes it too large, but not before its first one", () => {
  const entities = ["a", "b", "c"].map((rowKey) => ({ partitionKey: "p", rowKey, timestamp: 0n, properties: [] }));
  const each = entityBytes("p", "a", []);
  const counts = [0, each - 1, each, each * 2, each * 3].map((bytesMax) => {
    const of = (isEmpty: boolean) => {
      const rows = new PackedEntities(packed(entities, 0), { bytesMax, isEmpty });
      while (rows.next()) assert.ok(!rows.isCut);
      return [rows.count, rows.isCut, rows.lastKey()?.rowKey];
    };
    return [of(true), of(false)];
  });
  assert.deepEqual(counts, [
    [
      [1, true, "a"],
      [0, true, undefined],
    ],
    [
      [1, true, "a"],
      [0, true, undefined],
    ],
    [
      [1, true, "a"],
      [1, true, "a"],
    ],
    [
      [2, true, "b"],
      [2, true, "b"],
    ],
    [
      [3, false, "c"],
      [3, false, "c"],
    ],
  ]);
});

test("damaged pages are refused as entity after entity refuses them", () => {
  const page = packed(
    [
      { partitionKey: "p", rowKey: "r", timestamp: 17n, properties: [{ name: "N", type: "int32", value: 1 }] },
      { partitionKey: "p", rowKey: "s", timestamp: 18n, properties: [{ name: "T", type: "string", value: "text" }] },
    ],
    1,
  );
  const isRefused = (read: () => void): boolean => {
    try {
      read();
      return false;
    } catch (error) {
      assert.ok(error instanceof FailureError);
      return true;
    }
  };
  const readAll = (bytes: Uint8Array) => {
    const rows = new PackedEntities(bytes, unbound);
    while (rows.next());
  };
  for (let at = 0; at < page.length; at++) {
    const cut = page.slice(0, at);
    assert.equal(
      isRefused(() => readAll(cut)),
      isRefused(() => [...unpackEntities(cut)]),
      `cut at ${at}`,
    );
    for (let byte = 0; byte < 256; byte++) {
      const changed = page.slice();
      changed[at] = byte;
      assert.equal(
        isRefused(() => readAll(changed)),
        isRefused(() => [...unpackEntities(changed)]),
        `byte ${byte} at ${at}`,
      );
    }
  }
});
