import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { formatVersions, unwrap } from "@stamp/base";
import fc from "fast-check";
import { saltBytes } from "./places.ts";
import {
  decodeRow,
  encodeRow,
  type Place,
  type Property,
  type PropertyType,
  placesOfRow,
  type ScalarType,
  versionOfRow,
  withPlaces,
} from "./row.ts";

const property = <T extends PropertyType>(id: number, type: T): Property<T> => ({ id, type });
const schema = {
  flag: property(1, "bool"),
  bytes: property(2, "binary"),
  text: property(3, "string"),
  when: property(4, "DateTime"),
  ratio: property(5, "double"),
  id: property(6, "GUID"),
  small: property(7, "int32"),
  large: property(8, "int64"),
  entries: property(200, "DictionaryType"),
  places: property(201, "BlobType"),
};

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const guid = fc.uint8Array({ minLength: 16, maxLength: 16 });
const valuesOf = {
  bool: fc.boolean(),
  binary: fc.uint8Array(),
  string: fc.string({ unit: "binary" }),
  DateTime: int64,
  double: fc.double(),
  GUID: guid,
  int32: fc.integer(),
  int64,
};
/** A value of any type that a DictionaryType may hold. */
const scalar = fc.oneof(
  ...Object.entries(valuesOf).map(([type, value]) =>
    fc.record({ name: fc.string(), type: fc.constant(type as ScalarType), value: value as fc.Arbitrary<never> }, { noNullPrototype: true }),
  ),
);
const rows = fc.record(
  {
    flag: fc.boolean(),
    bytes: fc.uint8Array(),
    text: fc.string({ unit: "binary" }),
    when: int64,
    ratio: fc.double(),
    id: guid,
    small: fc.integer(),
    large: int64,
    entries: fc.array(scalar),
    places: fc.array(
      fc.record(
        {
          extentId: fc.oneof(fc.nat(2), fc.maxSafeNat()),
          offsetBytes: fc.oneof(fc.nat(99), fc.nat({ max: 2 ** 52 })),
          lengthBytes: fc.nat(99),
          cipher: fc.record(
            { salt: fc.nat(2).map((fill) => new Uint8Array(saltBytes).fill(fill)), offsetBytes: fc.maxSafeNat() },
            { noNullPrototype: true },
          ),
        },
        { requiredKeys: ["extentId", "offsetBytes", "lengthBytes"], noNullPrototype: true },
      ),
    ),
  },
  { requiredKeys: [], noNullPrototype: true },
);

test("rows: what was encoded is decoded, whatever is left out", () => {
  fc.assert(fc.property(rows, (row) => assert.deepEqual(unwrap(decodeRow(schema, encodeRow(schema, row))), row)));
});

test("rows: a reader that knows fewer ids skips the others", () => {
  const { flag, large } = schema;
  fc.assert(
    fc.property(rows, (row) => {
      const known = unwrap(decodeRow({ flag, large }, encodeRow(schema, row)));
      assert.deepEqual(known, Object.fromEntries(Object.entries(row).filter(([name]) => name === "flag" || name === "large")));
    }),
  );
});

test("rows: a known id with another type is damage, not a value", () => {
  const decoded = decodeRow({ flag: property(1, "string") }, encodeRow(schema, { flag: true }));
  assert.ok(!decoded.ok && decoded.failure.reason === "damaged");
});

const golden = new URL("../../../../tests/golden/row/v1/every-type.bin", import.meta.url);
const goldenRow = {
  flag: true,
  bytes: Uint8Array.of(0, 1, 255),
  text: "Grüße, 世界",
  when: 17_000_000_012_345_678n,
  ratio: -0.1,
  id: Uint8Array.from({ length: 16 }, (_, i) => i * 16),
  small: -7,
  large: -(2n ** 63n),
  entries: [
    { name: "color", type: "string" as const, value: "grün" },
    { name: "size", type: "int64" as const, value: 5n },
  ],
  places: [
    { extentId: 1, offsetBytes: 24, lengthBytes: 4_194_304 },
    { extentId: 1, offsetBytes: 4_194_352, lengthBytes: 4_194_304 },
    { extentId: 2 ** 40, offsetBytes: 2 ** 50, lengthBytes: 1 },
  ],
};

test("rows: the golden row is written and read as it was", () => {
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(golden, encodeRow(schema, goldenRow));
  const bytes = new Uint8Array(readFileSync(golden));
  assert.deepEqual(encodeRow(schema, goldenRow), bytes);
  assert.deepEqual(unwrap(decodeRow(schema, bytes)), goldenRow);
});

const goldenEncrypted = new URL("../../../../tests/golden/row/v2/encrypted-places.bin", import.meta.url);
const salt = Uint8Array.from({ length: saltBytes }, (_, i) => i);
const encryptedPlaces = [
  { extentId: 7, offsetBytes: 24, lengthBytes: 4_194_304, cipher: { salt, offsetBytes: 0 } },
  { extentId: 7, offsetBytes: 4_194_352, lengthBytes: 1_000, cipher: { salt, offsetBytes: 4_194_304 } },
  { extentId: 8, offsetBytes: 24, lengthBytes: 10 },
  { extentId: 8, offsetBytes: 48, lengthBytes: 99, cipher: { salt, offsetBytes: 2 ** 40 } },
  { extentId: 8, offsetBytes: 200, lengthBytes: 512, cipher: { salt: salt.toReversed(), offsetBytes: 17 } },
];

test("rows: one with encrypted places is of version 2, is written and read as it was, and no truncation of it is taken", () => {
  const row = { places: encryptedPlaces };
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(goldenEncrypted, encodeRow(schema, row));
  const bytes = new Uint8Array(readFileSync(goldenEncrypted));
  assert.deepEqual([versionOfRow(bytes), versionOfRow(encodeRow(schema, goldenRow))], [2, 1]);
  assert.deepEqual(encodeRow(schema, row), bytes);
  assert.deepEqual(unwrap(decodeRow(schema, bytes)), row);
  for (let length = 0; length < bytes.length; length++) assert.ok(!decodeRow(schema, bytes.subarray(0, length)).ok, `cut at ${length}`);
  // In a row of version 1 a place has no cipher.
  const asFirst = decodeRow(schema, Uint8Array.from([1, ...bytes.subarray(1)]));
  assert.ok(!asFirst.ok && asFirst.failure.reason === "damaged");
});

const goldenUnits = new URL("../../../../tests/golden/row/v6/places-with-units.bin", import.meta.url);
const units = { unitBytes: 65_536, writeBytes: 4_195_304 };
const pageUnits = { unitBytes: 512, writeBytes: 4_096 };
const placesWithUnits = [
  { extentId: 7, offsetBytes: 24, lengthBytes: 4_194_304, cipher: { salt, offsetBytes: 0, units } },
  { extentId: 7, offsetBytes: 4_195_400, lengthBytes: 1_000, cipher: { salt, offsetBytes: 4_194_304, units } },
  { extentId: 8, offsetBytes: 24, lengthBytes: 10 },
  { extentId: 8, offsetBytes: 48, lengthBytes: 99, cipher: { salt: salt.toReversed(), offsetBytes: 17 } },
  { extentId: 8, offsetBytes: 1_256, lengthBytes: 1_024, cipher: { salt: salt.toReversed(), offsetBytes: 1_024, units: pageUnits } },
];

test("rows: one with units is of version 6, is written and read as it was, and no truncation of it is taken", () => {
  const row = { places: placesWithUnits };
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(goldenUnits, encodeRow(schema, row));
  const bytes = new Uint8Array(readFileSync(goldenUnits));
  assert.equal(versionOfRow(bytes), 6);
  assert.deepEqual(encodeRow(schema, row), bytes);
  assert.deepEqual(unwrap(decodeRow(schema, bytes)), row);
  for (let length = 0; length < bytes.length; length++) assert.ok(!decodeRow(schema, bytes.subarray(0, length)).ok, `cut at ${length}`);
  const asBefore = decodeRow(schema, Uint8Array.from([5, ...bytes.subarray(1)]));
  assert.ok(!asBefore.ok && asBefore.failure.reason === "damaged", "in a row of version 5 a place has no units");
  const [first] = placesWithUnits;
  for (const cipher of [
    { salt, offsetBytes: 512, units },
    { salt, offsetBytes: 0, units: { ...units, unitBytes: 4_096 } },
    { salt, offsetBytes: 0, units: { ...units, writeBytes: 4_194_303 } },
    { salt, offsetBytes: 0, units: { ...units, writeBytes: 2 ** 53 - 1 } },
  ]) {
    const told = decodeRow(schema, encodeRow(schema, { places: [{ ...first, lengthBytes: 4_194_300, cipher }] as Place[] }));
    assert.ok(!told.ok && told.failure.reason === "damaged", "a part of a unit can't be proved");
  }
});

test("rows: who keeps, counts or moves bytes is told whole units with their tags", () => {
  const bytes = encodeRow(schema, { places: placesWithUnits });
  const spans = [
    { extentId: 7, offsetBytes: 24, lengthBytes: 4_194_304 + 64 * 16 },
    { extentId: 7, offsetBytes: 4_195_400, lengthBytes: 1_016 },
    { extentId: 8, offsetBytes: 24, lengthBytes: 10 },
    { extentId: 8, offsetBytes: 48, lengthBytes: 99 },
    { extentId: 8, offsetBytes: 1_256, lengthBytes: 1_056 },
  ];
  const told = unwrap(placesOfRow(bytes)).map(({ extentId, offsetBytes, lengthBytes }) => ({ extentId, offsetBytes, lengthBytes }));
  assert.deepEqual(told, spans);
  const moved = unwrap(withPlaces(bytes, ({ lengthBytes }) => ({ extentId: 99, offsetBytes: 24, lengthBytes })));
  const expected = placesWithUnits.map((place) => ({ ...place, extentId: 99, offsetBytes: 24 }));
  assert.deepEqual(unwrap(decodeRow(schema, moved)), { places: expected });
});

test("rows: a property that is since version 2 makes its row one of version 2", () => {
  const later = { ...schema, digest: { ...property(300, "binary"), since: 2 } };
  assert.equal(versionOfRow(encodeRow(later, { flag: true })), 1);
  const bytes = encodeRow(later, { flag: true, digest: salt });
  assert.equal(versionOfRow(bytes), 2);
  assert.deepEqual(unwrap(decodeRow(later, bytes)), { flag: true, digest: salt });
});

test("rows: bytes that lie elsewhere now keep their place in what was encrypted, whatever the mover says of it", () => {
  const bytes = encodeRow(schema, { places: encryptedPlaces });
  const moved = unwrap(withPlaces(bytes, ({ lengthBytes }) => ({ extentId: 99, offsetBytes: 24, lengthBytes })));
  const expected = encryptedPlaces.map((place) => ({ ...place, extentId: 99, offsetBytes: 24 }));
  assert.deepEqual(unwrap(placesOfRow(moved)), expected);
});

test("rows: every truncation of the golden row is refused, and no flipped byte throws or is overlooked", () => {
  const bytes = new Uint8Array(readFileSync(golden));
  for (let length = 0; length < bytes.length; length++) {
    const cut = decodeRow(schema, bytes.subarray(0, length));
    assert.ok(!cut.ok && cut.failure.reason === "damaged", `cut at ${length}`);
  }
  for (let at = 0; at < bytes.length; at++) {
    const flipped = Uint8Array.from(bytes);
    flipped[at] = (flipped[at] as number) ^ 0x01;
    const decoded = decodeRow(schema, flipped);
    if (decoded.ok) assert.notDeepEqual(decoded.value, goldenRow, `flip at ${at}`);
    else assert.equal(decoded.failure.reason, "damaged");
  }
});

test("rows: places are replaced one for one; all else stays, also what this reader does not know", () => {
  fc.assert(
    fc.property(rows, (row) => {
      const bytes = encodeRow(schema, row);
      const places = unwrap(placesOfRow(bytes));
      assert.deepEqual(places, row.places ?? []);
      assert.equal(unwrap(withPlaces(bytes, (place) => place)), bytes, "nothing to replace");
      const elsewhere = (place: Place): Place => (place.extentId === 1 ? { ...place, extentId: 9, offsetBytes: 77 } : place);
      const changed = unwrap(withPlaces(bytes, elsewhere));
      assert.deepEqual(Buffer.from(changed), Buffer.from(encodeRow(schema, { ...row, places: row.places?.map(elsewhere) })));
      for (let length = 0; length < bytes.length; length++) assert.ok(!placesOfRow(bytes.subarray(0, length)).ok, `${length} bytes`);
    }),
  );
});

test("rows of a later version: told as newer by all that read or change them", () => {
  const row = Uint8Array.from([formatVersions.row + 1, 0]);
  for (const told of [decodeRow({}, row), placesOfRow(row), withPlaces(row, (place) => place)])
    assert.ok(!told.ok && told.failure.reason === "newerFormat");
});
