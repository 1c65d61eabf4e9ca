/** A row cursor gives what decodeRow gives, and refuses what it refuses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError } from "@stamp/base";
import fc from "fast-check";
import { decodeRow, encodeRow, msOfDateTime, type Property, type RowOf } from "./row.ts";
import { RowCursor } from "./row-cursor.ts";

const schema: {
  readonly name: Property<"string">;
  readonly word: Property<"string">;
  readonly bytes: Property<"binary">;
  readonly when: Property<"DateTime">;
  readonly flag: Property<"bool">;
  readonly small: Property<"int32">;
  readonly large: Property<"int64">;
  readonly id: Property<"GUID">;
  readonly entries: Property<"DictionaryType">;
} = {
  name: { id: 1, type: "string" },
  word: { id: 2, type: "string" },
  bytes: { id: 5, type: "binary" },
  when: { id: 9, type: "DateTime" },
  flag: { id: 20, type: "bool" },
  small: { id: 21, type: "int32" },
  large: { id: 130, type: "int64", since: 2 },
  id: { id: 131, type: "GUID" },
  entries: { id: 200, type: "DictionaryType" },
};
/** Another release's: one property more, one less. */
const later = {
  ...schema,
  added: { id: 300, type: "string" } as Property<"string">,
  inside: { id: 6, type: "double" } as Property<"double">,
};

const big = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -(2n ** 54n), max: 2n ** 54n }),
  fc.constantFrom(0n, -1n, 1n, 9_999n, 10_000n, -9_999n, -10_000n, 2n ** 32n, -(2n ** 32n), 2n ** 63n - 1n, -(2n ** 63n)),
);
const word = fc.oneof(fc.constantFrom("", "text/plain", "text/plaim", "Hot", "\ufeffHot", "x".repeat(41)), fc.string({ unit: "binary" }));
const text = word.filter((value) => value.isWellFormed());
const rows = fc.record(
  {
    name: text,
    word: text,
    bytes: fc.uint8Array({ maxLength: 20 }),
    when: big,
    flag: fc.boolean(),
    small: fc.integer(),
    large: big,
    id: fc.uint8Array({ minLength: 16, maxLength: 16 }),
    entries: fc.array(fc.record({ name: text, type: fc.constant("string" as const), value: text }), { maxLength: 3 }),
    added: text,
    inside: fc.double(),
  },
  { requiredKeys: [] },
);

const cursor = new RowCursor(schema);
const copyOf = (view: Uint8Array | undefined): Uint8Array | undefined => view && new Uint8Array(view);
const readAll = (row: RowCursor) => ({
  name: row.text(schema.name),
  word: row.word(schema.word),
  bytes: copyOf(row.bytes(schema.bytes)),
  when: row.ms(schema.when),
  ticks: row.ticks(schema.when),
  flag: row.flag(schema.flag),
  small: row.int32(schema.small),
  large: row.int64(schema.large),
  id: copyOf(row.guid(schema.id)),
  entries: row.dictionary(schema.entries),
});
const expectedOf = (row: RowOf<typeof schema>): ReturnType<typeof readAll> => ({
  name: row.name,
  word: row.word,
  bytes: row.bytes,
  when: row.when === undefined ? undefined : msOfDateTime(row.when),
  ticks: row.when,
  flag: row.flag ?? false,
  small: row.small,
  large: Number(row.large ?? 0n),
  id: row.id,
  entries: row.entries,
});

/** Returns the result of reading, or the reason of its refusal. */
function outcomeOf(bytes: Uint8Array): unknown {
  try {
    return cursor.read(bytes, readAll);
  } catch (error) {
    assert.ok(error instanceof FailureError, String(error));
    return error.failure.reason;
  }
}

function expected(bytes: Uint8Array): unknown {
  const row = decodeRow(schema, bytes);
  return row.ok ? expectedOf(row.value) : row.failure.reason;
}

test("row cursor: every row is read as decodeRow reads it, whatever was read before", () => {
  fc.assert(
    fc.property(rows, (row) => {
      const bytes = encodeRow(later, row);
      assert.deepEqual(outcomeOf(bytes), expected(bytes));
      assert.deepEqual(outcomeOf(Buffer.from(bytes)), outcomeOf(bytes));
    }),
    { numRuns: 1_000 },
  );
});

test("row cursor: changed, cut and continued rows are refused as decodeRow refuses them", () => {
  const changes = fc.array(fc.tuple(fc.nat(300), fc.nat(255)), { maxLength: 3 });
  fc.assert(
    fc.property(rows, changes, fc.nat(300), fc.uint8Array({ maxLength: 3 }), (row, changed, length, behind) => {
      const bytes = new Uint8Array(Buffer.concat([encodeRow(schema, row), behind])).slice(0, 1 + length);
      for (const [at, value] of changed) bytes[at % bytes.length] = value;
      assert.deepEqual(outcomeOf(bytes), expected(bytes));
    }),
    { numRuns: 5_000 },
  );
});
