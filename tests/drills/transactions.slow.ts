/**
 * Transactions of 50 entities while every partition server of a real cluster is killed: each is whole or absent, whoever looks and
 * whenever, and what was acknowledged is there.
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { TableClient, type TransactionAction } from "@azure/data-tables";
import { startOwn } from "@stamp/drills";

const writers = 4;
const entityCount = 50;
const workMs = 20_000;
const healMs = 60_000;

const target = await startOwn({}, false);
after(() => target.close());
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
const table = TableClient.fromConnectionString(target.connectionString, "Transactions", options);
await table.createTable();

/** The write that all entities of the partition are of; 0 for none of them. */
async function look(partitionKey: string): Promise<number> {
  const writes = new Set<number>();
  let count = 0;
  for await (const { write } of table.listEntities<{ write: number }>({ queryOptions: { filter: `PartitionKey eq '${partitionKey}'` } })) {
    writes.add(write);
    count++;
  }
  assert.ok(count === 0 || count === entityCount, `${partitionKey}: ${count} entities of a transaction of ${entityCount}`);
  assert.ok(writes.size <= 1, `${partitionKey}: writes ${[...writes]} in one page`);
  return [...writes][0] ?? 0;
}

test("a transaction is whole or absent while partition servers are killed", async () => {
  const acknowledged = new Map<string, number>();
  const untilMs = performance.now() + workMs;
  const names = Array.from({ length: writers }, (_, i) => `p${i}`);
  const write = async (partitionKey: string): Promise<void> => {
    for (let number = 1; performance.now() < untilMs; number++) {
      const actions = Array.from(
        { length: entityCount },
        (_, i): TransactionAction => ["upsert", { partitionKey, rowKey: String(i), write: number, text: "x".repeat(200) }, "Replace"],
      );
      // Refused, or unknown: the next one has another number.
      await table.submitTransaction(actions).then(
        () => acknowledged.set(partitionKey, number),
        () => undefined,
      );
    }
  };
  const read = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      for (const name of names) {
        const atLeast = acknowledged.get(name) ?? 0;
        const seen = await look(name).catch((error: unknown) => {
          if (error instanceof assert.AssertionError) throw error;
          return atLeast;
        });
        assert.ok(seen >= atLeast, `${name}: write ${seen} is seen after ${atLeast} was acknowledged`);
      }
    }
  };
  const kill = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, workMs / 3));
    const { processes } = await target.status();
    for (const { name } of processes.filter((each) => each.name.startsWith("partition-server"))) {
      await target.ask({ do: "signal", name, signal: "SIGKILL" });
    }
  };
  await Promise.all([...names.map(write), read(), kill()]);
  assert.equal(acknowledged.size, writers);
  for (const name of names) {
    for (const endMs = performance.now() + healMs; ; ) {
      try {
        assert.ok((await look(name)) >= (acknowledged.get(name) ?? 0), `${name} has lost what was acknowledged`);
        break;
      } catch (error) {
        if (error instanceof assert.AssertionError || performance.now() > endMs) throw error;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  }
});
