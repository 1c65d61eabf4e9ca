/** Compiled codecs write and read what protobuf-es does, for every message there is; what they leave to it is exactly as before. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DescField, DescMessage, DescOneof } from "@bufbuild/protobuf";
import { create, fromBinary, type Message, ScalarType, toBinary } from "@bufbuild/protobuf";
import * as wire from "@stamp/wire";
import fc from "fast-check";
import { codecOf, preparedToBuffer } from "../grpc/message-codec.ts";
import { compiledCodec } from "./compiled-codec.ts";
import { referencedFromBytes } from "./wire-format.ts";

const isMessage = (value: unknown): value is DescMessage => (value as { kind?: string } | undefined)?.kind === "message";
const schemas: readonly DescMessage[] = (Object.values(wire) as readonly unknown[]).filter(isMessage);

const text = fc.oneof(
  fc.string({ maxLength: 8 }),
  fc.string({ unit: "grapheme", maxLength: 150 }),
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.string({ minLength: 60, maxLength: 300 }),
  fc.constantFrom("", "\ufeffmark", "\ud800", "€".repeat(43)),
);
/** Bytes that a message does not copy, and those that are one byte too short for that. */
const large = fc.constantFrom(new Uint8Array(referencedFromBytes).fill(7), new Uint8Array(referencedFromBytes - 1).fill(8));
const bytes = fc.oneof({ weight: 9, arbitrary: fc.uint8Array({ maxLength: 200 }) }, { weight: 1, arbitrary: large });
const bigs = (min: bigint, max: bigint): fc.Arbitrary<bigint> =>
  fc.oneof(fc.bigInt(-1n, 300n), fc.bigInt(min, max)).map((n) => (n < min ? min : n));

const scalars: Partial<Record<ScalarType, fc.Arbitrary<unknown>>> = {
  [ScalarType.UINT32]: fc.oneof(fc.nat(300), fc.nat(0xffff_ffff)),
  [ScalarType.INT32]: fc.oneof(fc.integer({ min: -2, max: 200 }), fc.integer()),
  [ScalarType.SINT32]: fc.integer(),
  [ScalarType.UINT64]: fc.oneof(bigs(0n, 2n ** 53n), bigs(0n, 2n ** 64n - 1n)),
  [ScalarType.INT64]: fc.oneof(bigs(0n, 2n ** 53n), bigs(-(2n ** 63n), 2n ** 63n - 1n)),
  [ScalarType.SINT64]: fc.oneof(bigs(-(2n ** 53n), 2n ** 53n), bigs(-(2n ** 63n), 2n ** 63n - 1n)),
  [ScalarType.BOOL]: fc.boolean(),
  [ScalarType.DOUBLE]: fc.double(),
  [ScalarType.STRING]: text,
  [ScalarType.BYTES]: bytes,
};

type Valued = Pick<DescField, "message" | "enum"> & { readonly scalar?: ScalarType | undefined };

function anyOf(field: Valued, depth: number): fc.Arbitrary<unknown> {
  if (field.message !== undefined) return depth > 3 ? fc.constant({}) : initOf(field.message, depth + 1);
  if (field.enum !== undefined) return fc.nat(6);
  return scalars[field.scalar as ScalarType] as fc.Arbitrary<unknown>;
}

function fieldOf(field: DescField, depth: number): fc.Arbitrary<unknown> {
  const value = anyOf(field as Valued, depth);
  if (field.fieldKind === "list") return fc.array(value, { maxLength: depth > 1 ? 1 : 3 });
  if (field.fieldKind === "map") return fc.dictionary(fc.oneof(text, fc.constant("__proto__")), value, { maxKeys: 2 });
  return value;
}

const oneofOf = (oneof: DescOneof, depth: number): fc.Arbitrary<unknown> =>
  fc.oneof(
    fc.constant({ case: undefined }),
    ...oneof.fields.map((field) => fieldOf(field, depth).map((value) => ({ case: field.localName, value }))),
  );

/** An init: any fields of it. */
function initOf(schema: DescMessage, depth = 0): fc.Arbitrary<object> {
  const members = schema.members.map((member) => [
    member.localName,
    member.kind === "oneof" ? oneofOf(member, depth) : fieldOf(member, depth),
  ]);
  return fc.record(Object.fromEntries(members), { requiredKeys: [] });
}

const kept = (schema: DescMessage, given: Uint8Array): Message => fromBinary(schema, new Uint8Array(given));

/** Messages with types that are not ours: answered seldom, to people. */
const left: ReadonlySet<string> = new Set(["stamp.v1.GetStatusResponse"]);

test("compiled codec: no type of message is left to protobuf-es but those that are known", () => {
  const without = schemas.filter((schema) => compiledCodec(schema) === undefined).map(({ typeName }) => typeName);
  assert.deepEqual(new Set(without), left);
  assert.ok(schemas.length > 300);
});

/** Decodes bytes to a message, or says that they are malformed. */
function outcomeOf(decode: () => Message): Message | "malformed" {
  try {
    return decode();
  } catch {
    return "malformed";
  }
}

for (const schema of schemas.filter(({ typeName }) => !left.has(typeName))) {
  test(`compiled codec: ${schema.typeName} is written and read as protobuf-es does`, () => {
    const codec = codecOf(schema);
    fc.assert(
      fc.property(initOf(schema), fc.nat(60), (init, lost) => {
        const expected = toBinary(schema, create(schema, init as never));
        const written = preparedToBuffer(codec.prepare(init));
        assert.equal(Buffer.compare(written, Buffer.from(expected)), 0);
        assert.deepEqual(codec.decode(Buffer.from(expected)), kept(schema, expected));
        const short = expected.subarray(0, Math.max(0, expected.length - lost));
        assert.deepEqual(
          outcomeOf(() => codec.decode(short)),
          outcomeOf(() => kept(schema, short)),
        );
        // A message as it is, not only what one is made of.
        assert.equal(Buffer.compare(preparedToBuffer(codec.prepare(kept(schema, expected))), Buffer.from(expected)), 0);
      }),
      { numRuns: 30 },
    );
  });
}

const damaged = (schema: DescMessage): fc.Arbitrary<Uint8Array> =>
  fc
    .tuple(initOf(schema), fc.array(fc.tuple(fc.nat(4_000), fc.nat(255)), { maxLength: 3 }), fc.nat(4_000), bytes)
    .map(([init, changes, length, behind]) => {
      const good = Buffer.concat([toBinary(schema, create(schema, init as never)), behind]);
      for (const [at, value] of changes) if (good.length > 0) good[at % good.length] = value;
      return new Uint8Array(good.subarray(0, length));
    });

for (const schema of [wire.ExecuteRequestSchema, wire.ExecuteResponseSchema, wire.AppendRequestSchema, wire.ReadPlacesRequestSchema]) {
  test(`compiled codec: changed, cut and unknown bytes of ${schema.typeName} are what they are to protobuf-es`, () => {
    const codec = codecOf(schema);
    fc.assert(
      fc.property(damaged(schema), (given) => {
        const expected = outcomeOf(() => kept(schema, given));
        assert.deepEqual(
          outcomeOf(() => codec.decode(given)),
          expected,
        );
        if (expected === "malformed") return;
        // Unknown fields are written again, as before.
        assert.deepEqual(kept(schema, preparedToBuffer(codec.prepare(expected))), expected);
      }),
      { numRuns: 2_000 },
    );
  });
}

const numbersOf: Readonly<Record<string, readonly [DescMessage, (value: bigint) => object, fc.Arbitrary<bigint>]>> = {
  uint64: [wire.ReplicateRequestSchema, (extentId) => ({ extentId }), fc.bigInt(0n, 2n ** 64n - 1n)],
  sint64: [wire.EntitySchema, (timestamp) => ({ timestamp }), fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)],
};

for (const [type, [schema, initOf, numbers]] of Object.entries(numbersOf)) {
  test(`compiled codec: no ${type} is left to protobuf-es`, () => {
    const codec = compiledCodec(schema);
    assert.ok(codec);
    const limits = [0, 7, 31, 32, 52, 53, 54, 63, 64].flatMap((bits) => [-1n, 0n, 1n].map((more) => 2n ** BigInt(bits) + more));
    const edges = [...limits, ...limits.map((n) => -n)].filter((n) =>
      type === "uint64" ? n >= 0n && n < 2n ** 64n : n === BigInt.asIntN(64, n),
    );
    fc.assert(
      fc.property(fc.oneof(fc.constantFrom(...edges), numbers), (value) => {
        const init = create(schema, initOf(value) as never);
        const expected = toBinary(schema, init);
        const written = codec.encode(init)?.own;
        assert.ok(written);
        assert.equal(Buffer.compare(written, expected), 0);
        assert.deepEqual(codec.decode(written), kept(schema, expected));
      }),
      { numRuns: 500 },
    );
  });
}

test("compiled codec: a number of more than 64 bits is what it is to protobuf-es", () => {
  for (const last of [0x01, 0x02, 0x03, 0x7f, 0x80]) {
    const given = Uint8Array.from([0x10, ...Array.from({ length: 9 }, () => 0xff), last]);
    assert.deepEqual(
      outcomeOf(() => codecOf(wire.EntitySchema).decode(given)),
      outcomeOf(() => kept(wire.EntitySchema, given)),
    );
  }
});

test("compiled codec: values of the wrong type are refused as before", () => {
  for (const wrong of [{ extentId: 5 }, { extentId: -1n }, { extentId: 1n << 64n }, { payload: "text" }, { extentId: "nonsense" }]) {
    assert.throws(() => preparedToBuffer(codecOf(wire.ReplicateRequestSchema).prepare({ ...wrong, checksum: -1 })));
  }
  assert.throws(() => codecOf(wire.ExecuteRequestSchema).prepare({ rangeVersion: -1n }));
});

test("compiled codec: a message is not changed by the next one, however large that is", () => {
  const codec = codecOf(wire.ExecuteRequestSchema);
  const init = (size: number) => ({ rangeId: "r".repeat(size), rangeVersion: BigInt(size) });
  const first = codec.prepare(init(40));
  const before = Buffer.from(preparedToBuffer(first));
  for (const size of [3, 70_000, 3_000_000, 1]) {
    const again = preparedToBuffer(codec.prepare(init(size)));
    assert.deepEqual(codec.decode(again), create(wire.ExecuteRequestSchema, init(size)));
  }
  assert.equal(Buffer.compare(preparedToBuffer(first), before), 0);
});

test("compiled codec: large bytes inside of messages are the caller's own, and the bytes around them are as before", () => {
  const codec = codecOf(wire.ExecuteResponseSchema);
  const sized = fc.integer({ min: 0, max: 3 }).chain((at) => fc.nat(200).map((more) => ([0, 127, 16_300, 2_097_000][at] as number) + more));
  fc.assert(
    fc.property(sized, fc.string({ maxLength: 200 }), (size, partitionKey) => {
      const rows = new Uint8Array(size).fill(3);
      const last = { partitionKey, rowKey: "r" };
      const page = { case: "entities", value: { rows, more: true, last, rowsRead: 4 } } as const;
      const init = { result: { kind: { case: "table", value: { kind: page } } } } as const;
      const prepared = codec.prepare(init);
      const expected = toBinary(wire.ExecuteResponseSchema, create(wire.ExecuteResponseSchema, init));
      assert.equal(Buffer.compare(preparedToBuffer(prepared), Buffer.from(expected)), 0);
      assert.equal(prepared.sizeBytes, expected.length);
      assert.deepEqual(
        prepared.references.map((reference) => reference.bytes),
        size >= referencedFromBytes ? [rows] : [],
      );
      if (size >= referencedFromBytes) assert.equal(prepared.references[0]?.bytes.buffer, rows.buffer);
    }),
    { numRuns: 60 },
  );
});

test("compiled codec: large bytes that are a small part of their buffer are copied", () => {
  const codec = codecOf(wire.GetKeysResponseSchema);
  const valueIn = (bufferBytes: number): Uint8Array => new Uint8Array(bufferBytes).subarray(5, 5 + referencedFromBytes).fill(4);
  const entry = { key: "k", version: 3n };
  assert.equal(codec.prepare({ entries: [{ ...entry, value: valueIn(4 * referencedFromBytes) }] }).references.length, 1);
  const copied = codec.prepare({ entries: [{ ...entry, value: valueIn(4 * referencedFromBytes + 1) }] });
  assert.deepEqual([copied.references.length, copied.sizeBytes > referencedFromBytes], [0, true]);
});
