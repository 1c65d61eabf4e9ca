/** What the SDK does not show of the front-end: queries over several ranges, and the gRPC door. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, test } from "node:test";
import { fromBase64, makeToken } from "@stamp/azure-rest";
import { unwrap } from "@stamp/base";
import { encodeKey } from "@stamp/objects";
import { FrontEnd } from "@stamp/wire";
import { accountKey, accountName, type ScriptedOptions, type ScriptedStamp, startScriptedStamp } from "../scripted-stamp.ts";
import { all, TableClients } from "./target.ts";

const stamps: ScriptedStamp[] = [];
after(async () => {
  for (const stamp of stamps) await stamp.stop();
});

async function start(options: ScriptedOptions = {}) {
  const stamp = await startScriptedStamp(options);
  stamps.push(stamp);
  return { stamp, clients: new TableClients({ endpoint: stamp.tableEndpoint, accountName, accountKey, stop: async () => {} }) };
}

test("a query goes over all ranges that it needs, in order, and pages end where they may", async () => {
  // The first table of a stamp has a low incarnation: keys of any PartitionKey between two of these lie in different ranges.
  const at = (...name: (string | number)[]) => encodeKey([[accountName], name]);
  const splitEntitiesAt = [at(0, "t02"), at(1, "t01"), at(1, "t01", 1, "c"), at(1, "t01", 2, "c"), at(1, "t01", 3, "c"), at(1, "t02")];
  const { clients } = await start({ splitEntitiesAt });
  for (const name of ["t01", "t02", "t03"]) await clients.tables.createTable(name);
  const table = clients.client("t01");
  const keys = ["a", "b", "c", "d"].flatMap((partitionKey) => ["1", "2", "3"].map((rowKey) => ({ partitionKey, rowKey })));
  for (const key of keys) await table.createEntity(key);
  const namesOf = (entities: readonly { partitionKey?: string; rowKey?: string }[]) =>
    entities.map((one) => `${one.partitionKey}${one.rowKey}`).join(" ");
  const everything = namesOf(keys);
  assert.equal(namesOf(await all(table.listEntities())), everything);
  for (const maxPageSize of [1, 2, 5, 6, 7, 12]) {
    const found: { partitionKey?: string; rowKey?: string }[] = [];
    for await (const page of table.listEntities().byPage({ maxPageSize })) {
      assert.ok(page.length <= maxPageSize);
      found.push(...page);
    }
    assert.equal(namesOf(found), everything, `pages of ${maxPageSize}`);
  }
  const some = await all(
    table.listEntities({ queryOptions: { filter: "(PartitionKey eq 'a' and RowKey eq '3') or PartitionKey eq 'd'" } }),
  );
  assert.equal(namesOf(some), "a3 d1 d2 d3");
  const listed: string[] = [];
  for await (const page of clients.tables.listTables().byPage({ maxPageSize: 2 })) listed.push(...page.map(({ name }) => name ?? ""));
  assert.deepEqual(listed, ["t01", "t02", "t03"]);
});

test("the gRPC door inserts, gets and queries entities, for the holder of a token", async () => {
  const { stamp, clients } = await start();
  const hmac = (key: Uint8Array, message: Uint8Array) => createHmac("sha256", key).update(message).digest();
  const token = makeToken({ account: accountName, expiresMs: Date.now() + 60_000 }, fromBase64(accountKey) as Uint8Array, hmac);
  const options = { timeoutMs: 5000, metadata: { authorization: `Bearer ${token}` } };
  const door = stamp.world.transport.client("front-end-1", FrontEnd);
  const of = { account: accountName, table: "Words" };
  unwrap(await door.createTable(of, options));
  const property = (name: string, kind: { case: "text"; value: string } | { case: "int64"; value: bigint }) => ({ name, value: { kind } });
  const key = { partitionKey: "p", rowKey: "1" };
  const properties = [property("word", { case: "text", value: "grün" }), property("n", { case: "int64", value: 5n })];
  const made = unwrap(await door.insertEntity({ ...of, key, properties }, options));
  const seen = await clients.client("Words").getEntity("p", "1");
  assert.deepEqual([seen.etag, seen.word, seen.n], [made.etag, "grün", 5n]);
  const found = unwrap(await door.getEntity({ ...of, key, select: ["n"] }, options));
  assert.deepEqual([found.timestamp, found.properties.map(({ name }) => name)], [made.timestamp, ["n"]]);
  for (const rowKey of ["2", "3"]) unwrap(await door.insertEntity({ ...of, key: { partitionKey: "p", rowKey } }, options));
  const page = unwrap(await door.queryEntities({ ...of, filter: "PartitionKey eq 'p'", maxResults: 2 }, options));
  assert.deepEqual([page.entities.length, page.next?.rowKey], [2, "2"]);
  const next = page.next ? { after: page.next } : {};
  const rest = unwrap(await door.queryEntities({ ...of, filter: "PartitionKey eq 'p'", ...next }, options));
  assert.deepEqual([rest.entities.map((entity) => entity.key?.rowKey), rest.next], [["3"], undefined]);
  const refusals = [
    [await door.insertEntity({ ...of, key, properties }, options), "EntityAlreadyExists"],
    [await door.insertEntity({ ...of, key: { partitionKey: "a/b", rowKey: "" } }, options), "OutOfRangeInput"],
    [
      await door.insertEntity({ ...of, key, properties: [{ name: "a-b", value: { kind: { case: "text", value: "" } } }] }, options),
      "PropertyNameInvalid",
    ],
    [await door.insertEntity({ ...of, key, properties: [...properties, ...properties] }, options), "DuplicatePropertiesSpecified"],
    [await door.insertEntity(of, options), "PropertiesNeedValue"],
    [await door.getEntity({ ...of, key: { partitionKey: "p", rowKey: "none" } }, options), "ResourceNotFound"],
    [await door.getEntity({ ...of, table: "Nothing", key }, options), "TableNotFound"],
    [await door.queryEntities({ ...of, filter: "a eq" }, options), "InvalidInput"],
    [await door.createTable({ ...of, table: "1" }, options), "InvalidResourceName"],
  ] as const;
  for (const [answer, code] of refusals) assert.equal(answer.ok ? "ok" : answer.failure.details?.["x-ms-error-code"], code);
  const stranger = await door.getEntity({ ...of, key }, { timeoutMs: 5000, metadata: {} });
  assert.ok(!stranger.ok && stranger.failure.code === "unauthenticated");
});
