/** Several writers of one entity. Optimistic is the service's own way: update, merge and delete ask for If-Match. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TransactionAction } from "@azure/data-tables";
import { refused, untilNotRefused, type World } from "./clients.ts";

interface Customer {
  email: string;
  visits: number;
}
const key = { partitionKey: "customers", rowKey: "c1" } as const;

export function entityScenarios(world: () => World): void {
  describe("entities", () => {
    test("optimistic: who read before another wrote is refused 412, reads again and writes", async () => {
      const table = await world().table();
      await table.createEntity({ ...key, email: "old@contoso.org" });
      const mine = await table.getEntity<Customer>(key.partitionKey, key.rowKey);
      await table.updateEntity({ ...key, email: "third@contoso.org" }, "Merge");
      const update = (etag: string) => table.updateEntity({ ...key, email: "mine@contoso.org" }, "Replace", { etag });
      assert.equal(await refused(update(mine.etag)), 412);
      const again = await table.getEntity<Customer>(key.partitionKey, key.rowKey);
      assert.equal(again.email, "third@contoso.org");
      await update(again.etag);
      assert.equal((await table.getEntity<Customer>(key.partitionKey, key.rowKey)).email, "mine@contoso.org");
    });

    test("optimistic: of ten who add one to a counter, none is lost", async () => {
      const table = await world().table();
      await table.createEntity({ ...key, visits: 0 });
      const addOne = () =>
        untilNotRefused(412, async () => {
          const { visits, etag } = await table.getEntity<Customer>(key.partitionKey, key.rowKey);
          await table.updateEntity({ ...key, visits: visits + 1 }, "Merge", { etag });
        });
      await Promise.all(Array.from({ length: 10 }, addOne));
      assert.equal((await table.getEntity<Customer>(key.partitionKey, key.rowKey)).visits, 10);
    });

    test("optimistic: of several who insert one entity, one succeeds; the others are told 409", async () => {
      const table = await world().table();
      const outcomes = await Promise.allSettled(Array.from({ length: 5 }, (_, visits) => table.createEntity({ ...key, visits })));
      const refusals = outcomes.filter((outcome) => outcome.status === "rejected").map(({ reason }) => reason.statusCode);
      assert.deepEqual(refusals, [409, 409, 409, 409]);
    });

    test("optimistic: money moves between two entities in transactions, and none is made or lost", async () => {
      const table = await world().table();
      const accounts = ["a", "b"];
      for (const rowKey of accounts) await table.createEntity({ partitionKey: "p", rowKey, money: 100 });
      const move = (from: string, to: string, amount: number) =>
        untilNotRefused(412, async () => {
          const [payer, payee] = await Promise.all([from, to].map((rowKey) => table.getEntity<{ money: number }>("p", rowKey)));
          const change = (rowKey: string, of: typeof payer, by: number): TransactionAction => [
            "update",
            { partitionKey: "p", rowKey, money: (of?.money ?? 0) + by },
            "Merge",
            { etag: of?.etag ?? "" },
          ];
          await table.submitTransaction([change(from, payer, -amount), change(to, payee, amount)]);
        });
      await Promise.all(Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? move("a", "b", i + 1) : move("b", "a", i))));
      const money = await Promise.all(accounts.map((rowKey) => table.getEntity<{ money: number }>("p", rowKey)));
      // a pays 1, 3, 5, 7 and gets 1, 3, 5, 7.
      assert.deepEqual(
        money.map((one) => one.money),
        [100, 100],
      );
    });

    test("forced: If-Match: * writes over whatever is there, and needs that something is", async () => {
      const table = await world().table();
      assert.equal(await refused(table.updateEntity({ ...key, visits: 1 }, "Replace", { etag: "*" })), 404);
      await table.createEntity({ ...key, visits: 1 });
      await table.updateEntity({ ...key, visits: 2 }, "Replace", { etag: "*" });
      assert.equal((await table.getEntity<Customer>(key.partitionKey, key.rowKey)).visits, 2);
      await table.deleteEntity(key.partitionKey, key.rowKey, { etag: "*" });
    });

    test("pessimistic: tables have no lease; writers agree on a blob and take its lease first", async () => {
      const table = await world().table();
      const guard = await world().blob("guard");
      await table.createEntity({ ...key, visits: 0 });
      const addOne = async (): Promise<void> => {
        const lease = guard.getBlobLeaseClient();
        await untilNotRefused(409, () => lease.acquireLease(30));
        const { visits } = await table.getEntity<Customer>(key.partitionKey, key.rowKey);
        await table.upsertEntity({ ...key, visits: visits + 1 });
        await lease.releaseLease();
      };
      await Promise.all(Array.from({ length: 6 }, addOne));
      assert.equal((await table.getEntity<Customer>(key.partitionKey, key.rowKey)).visits, 6);
    });

    test("last writer wins: insert-or-replace and insert-or-merge check nothing", async () => {
      const table = await world().table();
      await Promise.all(
        Array.from({ length: 8 }, (_, visits) => table.upsertEntity({ ...key, visits, email: `${visits}@contoso.org` }, "Replace")),
      );
      const { visits, email } = await table.getEntity<Customer>(key.partitionKey, key.rowKey);
      assert.equal(email, `${visits}@contoso.org`);
      await table.upsertEntity({ ...key, visits: 99 }, "Merge");
      const merged = await table.getEntity<Customer>(key.partitionKey, key.rowKey);
      assert.deepEqual([merged.visits, merged.email], [99, email]);
    });
  });
}
