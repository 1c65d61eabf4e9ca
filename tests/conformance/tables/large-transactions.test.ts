/** A transaction that does not fit into one commit record, against a whole stamp in one process. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { TransactionAction } from "@azure/data-tables";
import { startStamp, threeOnDisk } from "@stamp/embedded";
import { accountKey, accountName } from "../scripted-stamp.ts";
import { all, refusal, TableClients } from "./target.ts";

const stamp = await startStamp(threeOnDisk);
after(() => stamp.stop());
const endpoint = new URL(stamp.endpoints.table).origin;
const clients = new TableClients({ endpoint, accountName, accountKey, stop: () => stamp.stop() });

test("a transaction of nearly 4 MiB is done, whether its entities are few and large or many and small", async () => {
  const table = await clients.table();
  const bodyBytesMax = 4 * 1024 * 1024;
  const inserts = (entities: number, properties: number, text: string): TransactionAction[] =>
    Array.from({ length: entities }, (_, at) => {
      const values = Object.fromEntries(Array.from({ length: properties }, (_, i) => [`p${i}`, text]));
      return ["create", { partitionKey: `${entities}`, rowKey: `${at}`, ...values }];
    });
  // A character of three bytes is two to the service's limits; 5 × 8 × 32,000 of them are 3.66 MiB.
  for (const [entities, properties, text] of [
    [5, 8, "€".repeat(32_000)],
    [100, 250, "x".repeat(145)],
  ] as const) {
    const bytes = entities * properties * (Buffer.byteLength(text) + 9);
    assert.ok(bytes > 0.9 * bodyBytesMax && bytes < bodyBytesMax, `${bytes} bytes`);
    await table.submitTransaction(inserts(entities, properties, text));
    const filter = { queryOptions: { filter: `PartitionKey eq '${entities}'`, select: ["RowKey"] } };
    assert.equal((await all(table.listEntities(filter))).length, entities);
  }
});

test("a transaction whose rows exceed a commit record is 413, and nothing of it is applied; in parts it is done", async () => {
  const table = await clients.table();
  const rowKeys = ["1", "2", "3", "4", "5"];
  // 15 properties of 64 KiB: nearly the 1 MiB of an entity. Merges are small, what they write is not.
  const large = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`bytes${i}`, new Uint8Array(64 * 1024).fill(i)]));
  for (const rowKey of rowKeys) await table.createEntity({ partitionKey: "p", rowKey, ...large });
  const merges = (keys: readonly string[]) =>
    keys.map((rowKey): TransactionAction => ["update", { partitionKey: "p", rowKey, merged: true }, "Merge"]);
  const inserted: TransactionAction = ["create", { partitionKey: "p", rowKey: "new" }];
  assert.equal(await refusal(table.submitTransaction([inserted, ...merges(rowKeys)])), "413 0:ContentLengthExceeded");
  const select = { queryOptions: { select: ["RowKey", "merged"] } };
  assert.deepEqual(
    (await all(table.listEntities(select))).map(({ merged }) => merged === true),
    [false, false, false, false, false],
  );
  await table.submitTransaction([inserted, ...merges(rowKeys.slice(0, 4))]);
  assert.deepEqual(
    (await all(table.listEntities(select))).map(({ merged }) => merged === true),
    [true, true, true, true, false, false],
  );
});
