/**
 * `stamp up --stamps 2`: two stamps and a location service of real processes, by the commands that a person types
 * (docs/guides/geo.md), up to a planned failover of an account.
 */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";
import { BlobServiceClient } from "@azure/storage-blob";
import { type TwoStamps, untilCopy } from "../testing/two-stamps.ts";

const account = "moved";

export async function commandsWork(_t: TestContext, two: TwoStamps): Promise<void> {
  const { portBase, said, stamp, ok } = two;
  const connections = [...said.matchAll(/AccountName=(\w+)\S+/g)];
  assert.deepEqual(
    connections.map(([, name]) => name),
    ["devstoreaccount1", "devstoreaccount2"],
  );
  for (const [connection] of connections) {
    const text = `DefaultEndpointsProtocol=http;${connection}`;
    await BlobServiceClient.fromConnectionString(text).createContainer("of-this-stamp");
    assert.equal((await BlobServiceClient.fromConnectionString(text).listContainers().next()).value?.name, "of-this-stamp");
  }
  const listed = JSON.parse(await ok("location", "stamps", "--json")) as { name: string; location: string; answers: boolean }[];
  assert.deepEqual(
    listed.map(({ name, location, answers }) => [name, location, answers]),
    [
      ["north-1", "north", true],
      ["south-1", "south", true],
    ],
  );
  const made = JSON.parse(await ok("account", "create", account, "--location", "north", "--geo", "south", "--json"));
  assert.deepEqual([made.stamp, made.location, made.keys.length], ["north-1", "north", 2]);
  const copied = await untilCopy(two, account, "a complete copy", ({ kind, seeded }) => kind === "" && seeded);
  assert.deepEqual([copied.stamp, copied.secondary, copied.state], ["north-1", "south-1", "protected"]);
  const forced = await stamp("geo", "failover", account, "--forced");
  assert.equal(forced.code, 1, forced.output);
  assert.match(forced.output, /accept-loss/);
  const credential = new AzureNamedKeyCredential(account, made.keys[0]);
  const retryOptions = { maxRetries: 60, retryDelayInMs: 200, maxRetryDelayInMs: 1_000 };
  const tableAt = (port: number): TableClient =>
    new TableClient(`http://127.0.0.1:${port}/${account}`, "kept", credential, { allowInsecureConnection: true, retryOptions });
  const [north, south] = [tableAt(portBase + 2), tableAt(portBase + 302)];
  await north.createTable();
  for (let i = 0; i < 20; i++) await north.createEntity({ partitionKey: "p", rowKey: String(i) });
  const moved = JSON.parse(await ok("geo", "failover", account, "--planned", "--to", "south-1", "--json"));
  assert.deepEqual([moved.stamp, moved.secondary], ["south-1", "north-1"]);
  await south.createEntity({ partitionKey: "p", rowKey: "after" });
  const rows: string[] = [];
  for await (const { rowKey } of south.listEntities()) rows.push(rowKey as string);
  assert.deepEqual(rows.sort(), [...Array.from({ length: 20 }, (_, i) => String(i)), "after"].sort());
  const noRetry = new TableClient(`http://127.0.0.1:${portBase + 2}/${account}`, "kept", credential, {
    allowInsecureConnection: true,
    retryOptions: { maxRetries: 0 },
  });
  await assert.rejects(noRetry.createEntity({ partitionKey: "p", rowKey: "late" }), { statusCode: 503 });
  const status = JSON.parse(await ok("status", "--json"));
  assert.deepEqual([status.stamps.map(({ ready }: { ready: boolean }) => ready), status.locationService.ready], [[true, true], true]);
  const health = JSON.parse((await stamp("health", "--json")).output);
  assert.deepEqual([health.stamps.map(({ name }: { name: string }) => name), health.locationService.ready], [["north-1", "south-1"], true]);
  const one = await stamp("stream", "list");
  assert.deepEqual(one.code, 2);
  assert.match(one.output, /has several stamps: name one/);
  assert.match((await stamp("up", "-d", "--stamps", "3")).output, /has 2 stamps; another number needs a folder of its own/);
}

/** Comes last. */
export async function resetDeletesAll(_t: TestContext, { data, stamp, ok }: TwoStamps): Promise<void> {
  await ok("down");
  const stopped = await stamp("reset");
  assert.match(stopped.output, /say --yes/);
  await ok("reset", "--yes");
  assert.deepEqual(
    [existsSync(join(data, "north-1")), existsSync(join(data, "location")), existsSync(join(data, "stamps.json"))],
    [false, false, false],
  );
}
