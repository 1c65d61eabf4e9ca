import { strict as assert } from "node:assert";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { TableClient } from "@azure/data-tables";
import { BlobServiceClient } from "@azure/storage-blob";
import { QueueServiceClient } from "@azure/storage-queue";
import { startStamp } from "./start-stamp.ts";
import type { Stamp } from "./types.ts";

/** A folder with an init file and its seeds, which is removed behind `work`. */
async function withFolder(init: unknown, work: (path: string, folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "stamp-init-"));
  const path = join(folder, "init.json");
  try {
    mkdirSync(join(folder, "site", "deep"), { recursive: true });
    writeFileSync(join(folder, "site", "index.html"), "<p>hello");
    writeFileSync(join(folder, "site", "deep", "a b.bin"), Buffer.alloc(300_000, 7));
    const entity = (row: number): string =>
      `{"PartitionKey":"p","RowKey":"${row}","Big@odata.type":"Edm.Int64","Big":"9007199254740993","Share":1.0}`;
    writeFileSync(join(folder, "people.jsonl"), `${entity(1)}\n\n${entity(2)}`);
    writeFileSync(join(folder, "jobs.jsonl"), '"one"\n"two & <b>"\n');
    writeFileSync(path, typeof init === "string" ? init : JSON.stringify(init));
    await work(path, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const site = {
  name: "site",
  publicAccess: "blob",
  metadata: { team: "web" },
  files: "site",
  prefix: "v1/",
  contentTypes: { ".html": "text/html" },
  policies: [{ id: "read", permissions: "r", expiresOn: "2030-01-01T00:00:00Z" }],
};
const whole = {
  accounts: [
    {
      name: "devstoreaccount1",
      cors: { blob: [{ allowedOrigins: ["https://example.org"], allowedMethods: ["GET"] }] },
      containers: [site],
      tables: [{ name: "People", entities: "people.jsonl" }],
      queues: [{ name: "jobs", metadata: { kind: "k" }, messages: "jobs.jsonl" }],
    },
    { name: "acme", keys: ["c2VjcmV0LWtleS1vZi1hY21lLWZvci10ZXN0cw=="], containers: [{ name: "theirs" }] },
  ],
};

const blobs = (connectionString: string): BlobServiceClient => BlobServiceClient.fromConnectionString(connectionString);

const people = (stamp: Stamp): TableClient =>
  TableClient.fromConnectionString(stamp.connectionString, "People", { allowInsecureConnection: true });

/** Takes the messages of the queue out, with its metadata checked. */
async function messagesIn(stamp: Stamp): Promise<string[]> {
  const queue = QueueServiceClient.fromConnectionString(stamp.connectionString).getQueueClient("jobs");
  assert.deepEqual((await queue.getProperties()).metadata, { kind: "k" });
  const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32 });
  for (const { messageId, popReceipt } of receivedMessageItems) await queue.deleteMessage(messageId, popReceipt);
  return receivedMessageItems.map(({ messageText }) => messageText).sort();
}

test("init, a file with everything: it is there when the stamp serves, and again after a reset", async () => {
  await withFolder(whole, async (path) => {
    await using stamp = await startStamp({ init: path });
    const service = blobs(stamp.connectionString);
    const container = service.getContainerClient("site");
    for (const turn of ["start", "reset"]) {
      const names: string[] = [];
      for await (const { name } of container.listBlobsFlat()) names.push(name);
      assert.deepEqual(names, ["v1/deep/a b.bin", "v1/index.html"], turn);
      assert.equal((await container.getBlobClient("v1/index.html").getProperties()).contentType, "text/html");
      assert.deepEqual(await container.getBlobClient("v1/deep/a b.bin").downloadToBuffer(), Buffer.alloc(300_000, 7));
      assert.deepEqual((await container.getProperties()).metadata, { team: "web" });
      const { signedIdentifiers, blobPublicAccess } = await container.getAccessPolicy();
      assert.deepEqual([blobPublicAccess, signedIdentifiers.map(({ id }) => id)], ["blob", ["read"]]);
      assert.equal((await service.getProperties()).cors?.[0]?.allowedOrigins, "https://example.org");
      assert.deepEqual(await messagesIn(stamp), ["one", "two & <b>"]);
      const { rowKey, Big, Share } = (await people(stamp).getEntity("p", "2")) as Record<string, unknown>;
      assert.deepEqual([rowKey, Big, Share], ["2", 9007199254740993n, 1]);
      await stamp.reset();
    }
    // A reader without any key sees what is public.
    assert.equal(await (await fetch(`${stamp.endpoints.blob}/site/v1/index.html`)).text(), "<p>hello");
  });
});

test("init, a folder that was made before: what clients changed stays, what they removed comes back, messages do not", async () => {
  await withFolder(whole, async (path, folder) => {
    const dataDir = join(folder, "data");
    {
      await using stamp = await startStamp({ init: path, dataDir });
      const container = blobs(stamp.connectionString).getContainerClient("site");
      await container.getBlockBlobClient("v1/index.html").upload("changed", 7);
      await container.deleteBlob("v1/deep/a b.bin");
      await container.setAccessPolicy(undefined, [{ id: "own", accessPolicy: { permissions: "w" } }]);
      await container.setMetadata({ team: "other" });
      await people(stamp).upsertEntity({ partitionKey: "p", rowKey: "1", Own: true }, "Replace");
      assert.equal((await messagesIn(stamp)).length, 2);
    }
    await using stamp = await startStamp({ init: path, dataDir });
    const container = blobs(stamp.connectionString).getContainerClient("site");
    const index = await container.getBlobClient("v1/index.html").downloadToBuffer();
    assert.equal(index.toString(), "changed");
    assert.equal(await container.getBlobClient("v1/deep/a b.bin").exists(), true);
    assert.deepEqual(
      (await container.getAccessPolicy()).signedIdentifiers.map(({ id }) => id),
      ["own"],
    );
    assert.deepEqual((await container.getProperties()).metadata, { team: "other" });
    assert.equal((await people(stamp).getEntity("p", "1")).Own, true);
    assert.deepEqual(await messagesIn(stamp), []);
  });
});

test("init, overwrite: what differs is as the file says again, and what is the same is not written", async () => {
  await withFolder({ accounts: [{ name: "devstoreaccount1", containers: [{ ...site, overwrite: true }] }] }, async (path, folder) => {
    const dataDir = join(folder, "data");
    let etag: string | undefined;
    {
      await using stamp = await startStamp({ init: path, dataDir });
      const container = blobs(stamp.connectionString).getContainerClient("site");
      await container.getBlockBlobClient("v1/index.html").upload("changed", 7);
      await container.setAccessPolicy(undefined, []);
      etag = (await container.getBlobClient("v1/deep/a b.bin").getProperties()).etag;
    }
    await using stamp = await startStamp({ init: path, dataDir });
    const container = blobs(stamp.connectionString).getContainerClient("site");
    assert.equal((await container.getBlobClient("v1/index.html").downloadToBuffer()).toString(), "<p>hello");
    assert.equal((await container.getBlobClient("v1/deep/a b.bin").getProperties()).etag, etag);
    assert.deepEqual(
      (await container.getAccessPolicy()).signedIdentifiers.map(({ id }) => id),
      ["read"],
    );
  });
});

test("init, mistakes: each is told with its file, line and column, or its path, and nothing is left", async () => {
  const refused = (init: unknown, message: RegExp): Promise<void> =>
    withFolder(init, (path) => assert.rejects(startStamp({ init: path }), message));
  await refused('{\n  "accounts": [x]\n}', /init\.json:2:16: not JSON/);
  await refused('{\n  "accounts": [{\n    "name": "UPPER" }]\n}', /init\.json:3:5: accounts\.0\.name: no name of an account/);
  await refused('{ "accounts": [{ "name": "acme", "bloobs": [] }] }', /init\.json:1:34: accounts\.0\.bloobs: no such key/);
  const missing = { accounts: [{ name: "acme", containers: [{ name: "abc", files: "nowhere" }] }] };
  await refused(missing, /init\.json:1:\d+: accounts\.0\.containers\.0\.files: there is no folder .*nowhere/);
  const twice = { accounts: [{ name: "acme", queues: [{ name: "abc" }, { name: "abc" }] }] };
  await refused(twice, /accounts\.0\.queues: abc stands there twice/);
  await withFolder({ accounts: [{ name: "acme", tables: [{ name: "People", entities: "bad.jsonl" }] }] }, async (path, folder) => {
    writeFileSync(join(folder, "bad.jsonl"), '{"PartitionKey":"p","RowKey":"1"}\n{"PartitionKey":"p"}\n');
    await assert.rejects(startStamp({ init: path }), /bad\.jsonl:2: an entity has texts PartitionKey and RowKey/);
  });
  const climbing = { accounts: [{ name: "acme", containers: [{ name: "abc", files: "seeds" }] }] };
  for (const name of ["..\\outside", "a\\..\\b"])
    await withFolder(climbing, async (path, folder) => {
      mkdirSync(join(folder, "seeds"));
      writeFileSync(join(folder, "seeds", name), "x");
      await assert.rejects(startStamp({ init: path }), /files: .*seeds has a file named ".*", which leads out of the folder/);
    });
  await refused(
    { accounts: [{ name: "acme", containers: [{ name: "abc", prefix: "..\\" }] }] },
    /prefix: no "\." or "\.\." between slashes/,
  );
  await assert.rejects(startStamp({ init: { accounts: [{ name: "x" }] } }), /"init"\.accounts\.0\.name: no name of an account/);
});

test("init, what the stamp refuses: the start fails with the place in the seed data and what the service said", async () => {
  await withFolder(
    { accounts: [{ name: "devstoreaccount1", tables: [{ name: "People", entities: "bad.jsonl" }] }] },
    async (path, folder) => {
      writeFileSync(join(folder, "bad.jsonl"), '{"PartitionKey":"p","RowKey":"1","N@odata.type":"Edm.Int32","N":"x"}\n');
      await assert.rejects(startStamp({ init: path }), /init\.json: .*bad\.jsonl:1: table of devstoreaccount1: POST \/People: 400 /);
    },
  );
});
