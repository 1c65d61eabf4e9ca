/** Conversions that are made from descriptors give what conversions by name do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescField, type DescMessage, ScalarType, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import * as wire from "./index.ts";
import { initByName, plainByName } from "./plain-by-name.ts";

const isMessage = (value: unknown): value is DescMessage => (value as { kind?: string } | undefined)?.kind === "message";
const schemas = (Object.values(wire) as readonly unknown[]).filter(isMessage);
const holdsOneof = (schema: DescMessage): boolean =>
  schema.oneofs.length > 0 ||
  schema.fields.some((field) => field.message !== undefined && field.message !== schema && holdsOneof(field.message));

const scalars: Partial<Record<ScalarType, fc.Arbitrary<unknown>>> = {
  [ScalarType.BOOL]: fc.boolean(),
  [ScalarType.DOUBLE]: fc.double(),
  [ScalarType.STRING]: fc.string({ maxLength: 5 }),
  [ScalarType.BYTES]: fc.uint8Array({ maxLength: 5 }),
};

/** Values of a field; 64-bit numbers as `long` makes them of safe integers. */
function valueOfField(field: DescField, depth: number, long: (value: number) => unknown): fc.Arbitrary<unknown> {
  const one = (): fc.Arbitrary<unknown> => {
    if (field.message !== undefined) return depth > 2 ? fc.constant({}) : valueOfType(field.message, depth + 1, long);
    if (field.scalar === undefined) return fc.nat(5);
    return scalars[field.scalar] ?? (wire64.has(field.scalar) ? fc.oneof(fc.nat(9), fc.maxSafeNat()).map(long) : fc.nat());
  };
  if (field.fieldKind === "list") return fc.array(one(), { maxLength: 3 });
  if (field.fieldKind === "map")
    return fc.dictionary(fc.oneof(fc.string({ maxLength: 3 }), fc.constantFrom("__proto__", "case")), one(), { maxKeys: 3 });
  return one();
}

const wire64: ReadonlySet<ScalarType> = new Set([ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64]);

function valueOfType(schema: DescMessage, depth: number, long: (value: number) => unknown): fc.Arbitrary<object> {
  const members = schema.members.map((member) => {
    if (member.kind === "field") return [member.localName, valueOfField(member, depth, long)] as const;
    const cases = member.fields.map((field) => valueOfField(field, depth, long).map((value) => ({ case: field.localName, value })));
    return [member.localName, fc.oneof(fc.constant({ case: undefined }), ...cases)] as const;
  });
  return fc.record(Object.fromEntries(members), { requiredKeys: [] });
}

test("plain values: every message becomes what it does by name", () => {
  for (const schema of schemas) {
    fc.assert(
      fc.property(valueOfType(schema, 0, BigInt), (init) => {
        const message = create(schema, init as never);
        assert.deepEqual(wire.plainOf(message), plainByName(message));
      }),
      { numRuns: 15 },
    );
  }
});

test("plain values: a number that is no safe integer is refused", () => {
  const page = create(wire.ContainerPageSchema, { containers: [{ lastModifiedMs: 2n ** 60n }] });
  assert.throws(() => wire.plainOf(page), /out of range/);
});

test("inits: every type without a oneof is written as it is by name, absent and undefined fields too", () => {
  for (const schema of schemas.filter((each) => !holdsOneof(each))) {
    fc.assert(
      fc.property(
        valueOfType(schema, 0, (value) => value),
        fc.nat(20),
        (value, at) => {
          const name = schema.fields[at % Math.max(schema.fields.length, 1)]?.localName;
          const given = name === undefined ? value : { ...value, [name]: undefined, unknownName: 5 };
          const written = toBinary(schema, create(schema, wire.initOf(schema, given)));
          assert.deepEqual(written, toBinary(schema, create(schema, initByName(schema, given) as never)));
        },
      ),
      { numRuns: 6 },
    );
  }
});
