/** A table against a model of it: a map of entities, to which a transaction is applied whole or not at all. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { TestTable } from "../testing/table.ts";
import { type EntityAction, entityActions, type LocatedTable } from "./operation.ts";

interface Change {
  readonly action: EntityAction;
  readonly rowKey: string;
  readonly properties: Readonly<Record<string, number>>;
  /** State that the change expects: the present one, one that is gone, or any. */
  readonly expects: "now" | "gone" | "any";
}

interface Held {
  readonly timestamp: bigint;
  readonly properties: ReadonlyMap<string, number>;
}

const names = fc.constantFrom("a", "b", "c");
const change: fc.Arbitrary<Change> = fc.record({
  action: fc.constantFrom(...entityActions),
  rowKey: fc.constantFrom("1", "2", "3"),
  properties: fc.dictionary(names, fc.integer({ min: 0, max: 9 }), { maxKeys: 3 }),
  expects: fc.constantFrom("now" as const, "now" as const, "gone" as const, "any" as const, "any" as const),
});
const step = fc.record({
  partitionKey: fc.constantFrom("p", "q"),
  changes: fc.array(change, { minLength: 1, maxLength: 4 }),
  /** Step of the clock before the change, in milliseconds. */
  clockMs: fc.integer({ min: -5_000, max: 5_000 }),
});

/** Returns the model's answer: index and code of the first change that can't be done. */
function refusalOf(model: ReadonlyMap<string, Held>, partitionKey: string, changes: readonly Change[]): string | undefined {
  const seen = new Set<string>();
  for (const [index, { action, rowKey, expects }] of changes.entries()) {
    const held = model.get(`${partitionKey}/${rowKey}`);
    if (seen.has(rowKey)) return `${index}:InvalidDuplicateRow`;
    seen.add(rowKey);
    if (action === "insert" && held) return `${index}:EntityAlreadyExists`;
    if (action === "insert" || action === "insertOrReplace" || action === "insertOrMerge") continue;
    if (!held) return `${index}:ResourceNotFound`;
    if (expects === "gone") return `${index}:UpdateConditionNotSatisfied`;
  }
  return undefined;
}

test("a table answers as its model does, and holds what the model holds after every transaction", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
      const rows = new TestTable();
      const table: LocatedTable = { account: "acct", table: "t", incarnation: 1 };
      const model = new Map<string, Held>();
      for (const { partitionKey, changes, clockMs } of steps) {
        rows.wallMs += clockMs;
        const asked = changes.map(({ action, rowKey, properties, expects }) => {
          const now = model.get(`${partitionKey}/${rowKey}`)?.timestamp;
          return {
            action,
            rowKey,
            properties: Object.entries(properties).map(([name, value]) => ({ name, type: "int32", value }) as const),
            ifTimestamp: expects === "any" ? undefined : expects === "now" ? now : (now ?? 0n) + 1n,
          };
        });
        const result = rows.run({ case: "table", value: { case: "changeEntities", value: { table, partitionKey, changes: asked } } });
        const expected = refusalOf(model, partitionKey, changes);
        if (result.case === "error") assert.equal(`${result.value.details.index}:${result.value.code}`, expected);
        else {
          assert.ok(expected === undefined && result.case === "table" && result.value.case === "changed");
          for (const [index, { action, rowKey, properties }] of changes.entries()) {
            const key = `${partitionKey}/${rowKey}`;
            const before = model.get(key);
            const timestamp = result.value.value.timestamps[index] as bigint;
            if (action === "delete") {
              model.delete(key);
              continue;
            }
            assert.ok(before === undefined || timestamp > before.timestamp);
            const merges = action === "merge" || action === "insertOrMerge";
            model.set(key, {
              timestamp,
              properties: new Map([...(merges ? (before?.properties ?? []) : []), ...Object.entries(properties)]),
            });
          }
        }
        const page = rows.run({
          case: "table",
          value: { case: "queryEntities", value: { table, filter: [], select: [], entitiesMax: 1_000 } },
        });
        assert.ok(page.case === "table" && page.value.case === "entities");
        const held = page.value.value.entities.map((entity) => [
          `${entity.partitionKey}/${entity.rowKey}`,
          entity.timestamp,
          entity.properties.map(({ name, value }) => `${name}=${value}`).sort(),
        ]);
        const kept = [...model]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, { timestamp, properties }]) => [key, timestamp, [...properties].map(([name, value]) => `${name}=${value}`).sort()]);
        assert.deepEqual(held, kept);
      }
    }),
    { numRuns: 300 },
  );
});
