/** Encryption scopes: what lies on the disks and in the log, customers' keys beside them, two accounts, and the gRPC door. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { fromBase64, makeToken } from "@stamp/azure-rest";
import { FailureError, unwrap } from "@stamp/base";
import { startStamp, threeOnDisk } from "@stamp/embedded";
import { FrontEnd } from "@stamp/wire";
import { testCertificate } from "./certificate.ts";
import { customerKey, SecureClients } from "./customer-keys.ts";
import { accountKey, accountName, startScriptedStamp } from "./scripted-stamp.ts";
import { bytes, Clients, failure, sameBytes } from "./target.ts";

const under = { encryptionScope: "tenant-1" };

test("encryption scopes, after a restart: content is there, and it is in no file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-scopes-"));
  const [plainMark, secretMark] = [bytes(48, 71), bytes(48, 72)];
  const large = (mark: Buffer): Buffer => Buffer.concat([bytes(100_000, 3), mark, bytes(100_000, 4)]);
  try {
    const first = await startStamp({ dataDir: folder, replicas: 3 });
    await first.createEncryptionScope(under.encryptionScope);
    const container = BlobServiceClient.fromConnectionString(first.connectionString).getContainerClient("kept");
    await container.create();
    for (const [name, content] of [
      ["small", secretMark],
      ["large", large(secretMark)],
    ] as const) {
      await container.getBlockBlobClient(name).upload(content, content.length, under);
    }
    await container.getBlockBlobClient("open").upload(plainMark, plainMark.length);
    await first.stop();
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    const stored = Buffer.concat(files.map((each) => readFileSync(join(each.parentPath, each.name))));
    assert.ok(stored.includes(plainMark), "bytes without a scope are found, so the search would find others");
    assert.ok(stored.includes(Buffer.from(under.encryptionScope)), "the scope's name is stored");
    assert.ok(!stored.includes(secretMark), "content under a scope");

    const second = await startStamp({ dataDir: folder });
    try {
      const again = BlobServiceClient.fromConnectionString(second.connectionString).getContainerClient("kept");
      sameBytes(await again.getBlobClient("small").downloadToBuffer(), secretMark);
      sameBytes(await again.getBlobClient("large").downloadToBuffer(99_000, 2_000), large(secretMark).subarray(99_000, 101_000));
      await second.setEncryptionScopeState(under.encryptionScope, { disabled: true });
      assert.equal((await failure(again.getBlobClient("small").download())).statusCode, 403);
      await assert.rejects(second.createEncryptionScope(under.encryptionScope), FailureError, "it is there");
    } finally {
      await second.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("encryption scopes and keys of customers: one or the other, and neither beside the scope that a container imposes", async () => {
  const certificate = await testCertificate();
  const stamp = await startStamp({ ...threeOnDisk, tls: certificate.tls });
  try {
    await stamp.createEncryptionScope(under.encryptionScope);
    const target = { endpoint: new URL(stamp.endpoints.blob).origin, accountName, accountKey, ca: certificate.ca, stop: stamp.stop };
    const { service } = new SecureClients(target);
    const customerProvidedKey = customerKey();
    const open = service.getContainerClient("open");
    await open.create({
      containerEncryptionScope: { defaultEncryptionScope: under.encryptionScope, preventEncryptionScopeOverride: false },
    });
    const blob = open.getBlockBlobClient("b");
    const both = await failure(blob.upload("text", 4, { customerProvidedKey, ...under }));
    assert.deepEqual([both.statusCode, both.code], [400, "InvalidHeaderValue"]);
    await blob.upload("text", 4, { customerProvidedKey });
    assert.equal((await blob.downloadToBuffer(0, 4, { customerProvidedKey })).toString(), "text");
    assert.equal((await failure(blob.download())).code, "BlobUsesCustomerSpecifiedEncryption");
    assert.equal((await failure(blob.createSnapshot(under))).code, "BlobCustomerSpecifiedEncryptionMismatch");
    await blob.upload("text", 4);
    assert.equal((await failure(blob.download(0, 4, { customerProvidedKey }))).code, "BlobCustomerSpecifiedEncryptionMismatch");
    const closed = service.getContainerClient("closed");
    await closed.create({
      containerEncryptionScope: { defaultEncryptionScope: under.encryptionScope, preventEncryptionScopeOverride: true },
    });
    const refused = await failure(closed.getBlockBlobClient("b").upload("text", 4, { customerProvidedKey }));
    assert.deepEqual([refused.statusCode, refused.code], [403, "RequestForbiddenByContainerEncryptionPolicy"]);
  } finally {
    await stamp.stop();
    certificate.remove();
  }
});

test("encryption scopes of two accounts have two keys under one name: a copy from one to the other is encrypted anew", async () => {
  const stamp = await startScriptedStamp();
  try {
    await stamp.addAccount("another1");
    for (const name of [accountName, "another1"]) await stamp.scopesOf(name).create(under.encryptionScope);
    const serviceOf = (name: string) =>
      new BlobServiceClient(`${stamp.endpoint}/${name}`, new StorageSharedKeyCredential(name, accountKey), {
        retryOptions: { maxTries: 1 },
      });
    const from = serviceOf(accountName).getContainerClient("from");
    await from.create({ access: "blob" });
    const to = serviceOf("another1").getContainerClient("target");
    await to.create({ containerEncryptionScope: { defaultEncryptionScope: under.encryptionScope, preventEncryptionScopeOverride: true } });
    const content = bytes(50_000, 8);
    await from.getBlockBlobClient("b").upload(content, content.length, under);
    const copy = to.getBlobClient("copy");
    assert.equal(
      (await (await copy.beginCopyFromURL(from.getBlobClient("b").url, { intervalInMs: 20 })).pollUntilDone()).copyStatus,
      "success",
    );
    sameBytes(await copy.downloadToBuffer(), content);
    assert.equal((await copy.getProperties()).encryptionScope, under.encryptionScope);
    const synced = to.getBlobClient("synced");
    await synced.syncCopyFromURL(from.getBlobClient("b").url);
    sameBytes(await synced.downloadToBuffer(), content);
  } finally {
    await stamp.stop();
  }
});

test("encryption scopes: a copy whose bytes move to another place is encrypted anew, under one scope or two", async () => {
  const stamp = await startScriptedStamp();
  try {
    const clients = new Clients({ endpoint: stamp.endpoint, accountName, accountKey, stop: () => stamp.stop() });
    await stamp.scopes.create(under.encryptionScope);
    const containerEncryptionScope = { defaultEncryptionScope: under.encryptionScope, preventEncryptionScopeOverride: false };
    const container = await clients.container({ containerEncryptionScope });
    const plain = await clients.container();
    const source = container.getBlockBlobClient("source");
    const content = bytes(300_000, 6);
    await source.upload(content, content.length);
    const before = new Set(stamp.data.extents.keys());
    stamp.data.mayReferTo = (extentId) => !before.has(extentId) && stamp.data.extents.has(extentId);
    for (const to of [container, plain]) {
      const copy = to.getBlockBlobClient("copy");
      assert.equal((await (await copy.beginCopyFromURL(source.url, { intervalInMs: 20 })).pollUntilDone()).copyStatus, "success");
      sameBytes(await copy.downloadToBuffer(), content);
    }
    const moved = [...stamp.data.extents].filter(([extentId]) => !before.has(extentId)).map(([, held]) => Buffer.from(held));
    const open = moved.filter((held) => held.includes(content.subarray(1_000, 1_100)));
    assert.equal(open.length, 1, "the copy without a scope is plain, the other one is not");
  } finally {
    await stamp.stop();
  }
});

test("encryption scopes: the gRPC door writes under a container's scope and reads without naming it", async () => {
  const stamp = await startScriptedStamp();
  try {
    const clients = new Clients({ endpoint: stamp.endpoint, accountName, accountKey, stop: () => stamp.stop() });
    await stamp.scopes.create(under.encryptionScope);
    const containerEncryptionScope = { defaultEncryptionScope: under.encryptionScope, preventEncryptionScopeOverride: true };
    const container = await clients.container({ containerEncryptionScope });
    const hmac = (key: Uint8Array, message: Uint8Array) => createHmac("sha256", key).update(message).digest();
    const token = makeToken({ account: accountName, expiresMs: Date.now() + 60_000 }, fromBase64(accountKey) as Uint8Array, hmac);
    const options = { timeoutMs: 5000, metadata: { authorization: `Bearer ${token}` } };
    const door = stamp.world.transport.client("front-end-1", FrontEnd);
    const of = { account: accountName, container: container.containerName, blob: "g" };
    const content = bytes(200_000, 4);
    async function* messages() {
      yield { ...of, conditions: { ifNoneMatch: "*" }, payload: content };
    }
    assert.equal(unwrap(await door.putBlob(messages(), options)).encryptionScope, under.encryptionScope);
    assert.ok(![...stamp.data.extents.values()].some((held) => Buffer.from(held).includes(content.subarray(0, 100))));
    assert.equal((await door.putBlob(messages(), options)).ok, false, "the caller's conditions count");
    async function* naming() {
      yield { ...of, blob: "named", conditions: { encryptionScope: "none-such" } };
    }
    const named = await door.putBlob(naming(), options);
    assert.ok(!named.ok && named.failure.details?.["x-ms-error-code"] === "InvalidInput", "a call names no scope");
    sameBytes(await container.getBlobClient("g").downloadToBuffer(), content);
    const read = async (): Promise<Buffer> => {
      const chunks: Uint8Array[] = [];
      for await (const message of door.getBlob({ ...of, startBytes: 10n }, options)) chunks.push(message.payload);
      return Buffer.concat(chunks);
    };
    sameBytes(await read(), content.subarray(10));
    await stamp.scopes.setDisabled(under.encryptionScope, true);
    await assert.rejects(read(), (error) => error instanceof FailureError && error.failure.code === "permissionDenied");
    const properties = await door.getBlobProperties(of, options);
    assert.ok(!properties.ok && properties.failure.code === "permissionDenied");
    const write = await door.putBlob(messages(), options);
    assert.ok(!write.ok && write.failure.code === "permissionDenied");
  } finally {
    await stamp.stop();
  }
});
