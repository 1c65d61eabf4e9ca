/** Tests imports into an account that does not take all of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EntityRefused } from "../entity-door.ts";
import { type EntityJson, noCounts, type Step } from "../items.ts";
import { applySteps } from "./apply.ts";
import type { ImportTarget } from "./target.ts";

function target(put: (table: string, entities: readonly EntityJson[]) => Promise<void>) {
  const told: string[] = [];
  const doors = { entities: { put } } as unknown as ImportTarget["doors"];
  const leftOut = (what: string, why: string): void => void told.push(`${what}: ${why}`);
  const makes = async (): Promise<boolean> => true;
  return { told, target: { doors, counts: noCounts(), merge: false, again: false, makes, leftOut } satisfies ImportTarget };
}

const entity = (RowKey: string): EntityJson => ({ PartitionKey: "p", RowKey });
async function* steps(): AsyncGenerator<Step, void, undefined> {
  yield { item: { kind: "entities", table: "People", entities: ["1", "bad", "2"].map(entity) }, next: {} };
}

test("import: of a transaction that is refused the other entities come, and the refused one is told", async () => {
  const put: unknown[] = [];
  const { told, target: to } = target(async (_table, entities) => {
    if (entities.some(({ RowKey }) => RowKey === "bad"))
      throw new EntityRefused(400, "table People refuses entities: 400 PropertyValueTooLarge");
    put.push(...entities.map(({ RowKey }) => RowKey));
  });
  await applySteps(to, steps(), async () => {});
  assert.deepEqual(put, ["1", "2"]);
  assert.equal(to.counts.entities, 2);
  assert.deepEqual(told, ['entity ["p","bad"] of table People: table People refuses entities: 400 PropertyValueTooLarge']);
});

test("import: a key that is refused ends it, and no entity is taken for one that can't be taken", async () => {
  const { told, target: to } = target(async () => {
    throw new EntityRefused(403, "AuthenticationFailed");
  });
  await assert.rejects(
    applySteps(to, steps(), async () => {}),
    /AuthenticationFailed/,
  );
  assert.deepEqual(told, []);
});
