/** What a stamp serves of an account, by the account's role at the stamp: under its own name and under its `-secondary` name, by all doors. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, test } from "node:test";
import { AzureNamedKeyCredential, TableServiceClient } from "@azure/data-tables";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { StorageSharedKeyCredential as QueueCredential, QueueServiceClient } from "@azure/storage-queue";
import { fromBase64, makeToken } from "@stamp/azure-rest";
import { unwrap } from "@stamp/base";
import { type AccountRole, encodeRole } from "@stamp/geo";
import { firstRangeOf } from "@stamp/partition-map";
import { executeFields, FrontEnd, PartitionServer } from "@stamp/wire";
import { accountKey, accountName, type ScriptedStamp, secondKey, startScriptedStamp } from "./scripted-stamp.ts";
import { Clients, failure, readableUrl } from "./target.ts";

const running: ScriptedStamp[] = [];
after(async () => {
  for (const stamp of running) await stamp.stop();
});

const secondary = `${accountName}-secondary`;
const obeyed = { operation: 3, phase: 1 };
const roleOf = (role: AccountRole["role"]): string => encodeRole({ role, epoch: 2, obeyed, peer: "south-1" });

/** A stamp with one container and one blob, whose front-end reads the account's row for every request. */
async function start(accountCacheMs = 1) {
  const stamp = await startScriptedStamp({ frontEnd: { accountCacheMs } });
  running.push(stamp);
  const target = { endpoint: stamp.endpoint, accountName, accountKey, stop: async () => {} };
  const clients = new Clients(target);
  const container = await clients.container();
  await container.getBlockBlobClient("b").upload("content", 7);
  const { rangeId } = firstRangeOf("Account");
  /** `keyless`: the row of a copy that has just begun. */
  const setRole = async (geoRole: string, { keyless = false } = {}): Promise<void> => {
    const put = { case: "putAccount", value: { account: { name: accountName, geoRole }, expectedGeoRole: "" } } as const;
    const fields = executeFields({ kind: keyless ? put : { case: "changeAccount", value: { account: accountName, geoRole } } });
    const client = stamp.world.transport.client("ps-1", PartitionServer);
    assert.equal(unwrap(await client.execute({ rangeId, rangeVersion: 1n, ...fields }, { timeoutMs: 5_000 })).result?.kind.case, "account");
    await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const path = `/${container.containerName}/b`;
  return { stamp, clients, container, path, setRole };
}

/** A client of the account under another name: its signature is over the account's own. */
const clientOf = (stamp: ScriptedStamp, name: string, key = accountKey): BlobServiceClient =>
  new BlobServiceClient(`${stamp.endpoint}/${name}`, new StorageSharedKeyCredential(accountName, key), { retryOptions: { maxTries: 1 } });

async function told(work: Promise<unknown>): Promise<readonly [number | undefined, string | undefined]> {
  try {
    await work;
    return [200, undefined];
  } catch (error) {
    const { statusCode, code } = error as { statusCode?: number; code?: string };
    return [statusCode, code];
  }
}

test("roles: a copy is read under the -secondary name, with the keys and SAS of the account, and never under the account's own", async () => {
  const { stamp, container, setRole } = await start();
  const { containerName } = container;
  const url = await readableUrl(container.getBlobClient("b"));
  await setRole(roleOf("secondary"));
  for (const key of [accountKey, secondKey]) {
    const copy = clientOf(stamp, secondary, key).getContainerClient(containerName);
    assert.equal((await copy.getBlobClient("b").downloadToBuffer()).toString(), "content");
    assert.deepEqual((await copy.listBlobsFlat().next()).value?.name, "b");
  }
  const bySas = url.replace(`/${accountName}/`, `/${secondary}/`);
  assert.equal(await (await fetch(bySas)).text(), "content", "a SAS is signed over the account's own name");
  const wrong = clientOf(stamp, secondary, Buffer.alloc(64, 9).toString("base64"));
  assert.deepEqual(await told(wrong.getContainerClient(containerName).getProperties()), [403, "AuthenticationFailed"]);
  const primary = clientOf(stamp, accountName).getContainerClient(containerName);
  assert.deepEqual(await told(primary.getProperties()), [503, "ServerBusy"]);
  assert.deepEqual(await told(primary.getBlockBlobClient("b").upload("other", 5)), [503, "ServerBusy"]);
  const answer = await fetch(url);
  assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
});

test("roles: a write at the -secondary name is 403 InsufficientAccountPermissions, whatever the operation", async () => {
  const { stamp, container, setRole } = await start();
  await setRole(roleOf("secondary"));
  const service = clientOf(stamp, secondary);
  const copy = service.getContainerClient(container.containerName);
  const refused = [403, "InsufficientAccountPermissions"];
  assert.deepEqual(await told(copy.getBlockBlobClient("b").upload("other", 5)), refused);
  assert.deepEqual(await told(copy.getBlobClient("b").delete()), refused);
  assert.deepEqual(await told(copy.getBlobClient("b").setMetadata({ a: "b" })), refused);
  assert.deepEqual(await told(copy.getBlobClient("b").createSnapshot()), refused);
  assert.deepEqual(await told(copy.delete()), refused);
  assert.deepEqual(await told(service.getContainerClient("another").create()), refused);
  assert.deepEqual(await told(service.setProperties({ cors: [] })), refused);
  const error = await failure(copy.getBlobClient("b").delete());
  assert.match(error.message, /Write operations are not allowed/);
  await setRole("");
  assert.equal((await container.getBlobClient("b").downloadToBuffer()).toString(), "content", "nothing was changed");
});

test("roles: while an account is drained, reads go on and writes are 503 with Retry-After", async () => {
  const { stamp, container, path, clients, setRole } = await start();
  await setRole(roleOf("drained"));
  assert.equal((await container.getBlobClient("b").downloadToBuffer()).toString(), "content");
  assert.deepEqual(await told(container.getBlockBlobClient("b").upload("other", 5)), [503, "ServerBusy"]);
  const answer = await clients.raw("PUT", path, { headers: { "x-ms-blob-type": "BlockBlob" }, body: "other" });
  assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"]);
  assert.deepEqual(await told(clientOf(stamp, secondary).getContainerClient(container.containerName).getProperties()), [503, "ServerBusy"]);
  await setRole(roleOf("primary"));
  await container.getBlockBlobClient("b").upload("other", 5);
  assert.deepEqual(await told(clientOf(stamp, secondary).getProperties()), [503, "ServerBusy"], "the copy is at the other stamp");
  await setRole("");
  assert.deepEqual(await told(clientOf(stamp, secondary).getProperties()), [403, "InsufficientAccountPermissions"], "there is no copy");
});

test("roles: what is not complete is served to nobody, and an account that was removed is not here", async () => {
  const { stamp, container, setRole } = await start();
  await setRole(roleOf("unseeded"));
  const copy = clientOf(stamp, secondary).getContainerClient(container.containerName);
  assert.deepEqual(await told(copy.getProperties()), [503, "ServerBusy"]);
  assert.deepEqual(await told(copy.getBlobClient("b").delete()), [403, "InsufficientAccountPermissions"]);
  assert.deepEqual(await told(container.getProperties()), [503, "ServerBusy"]);
  await setRole(roleOf("removed"));
  await new Promise((resolve) => setTimeout(resolve, 210));
  assert.deepEqual(await told(container.getProperties()), [400, "InvalidUri"]);
});

test("roles: queues, tables and gRPC ask for the role as blobs do", async () => {
  const { stamp, setRole } = await start();
  const origin = (service: "queue" | "table"): string => (service === "queue" ? stamp.queueEndpoint : stamp.tableEndpoint);
  const queues = (name: string) =>
    new QueueServiceClient(`${origin("queue")}/${name}`, new QueueCredential(accountName, accountKey), { retryOptions: { maxTries: 1 } });
  const tables = (name: string) =>
    new TableServiceClient(`${origin("table")}/${name}`, new AzureNamedKeyCredential(accountName, accountKey), {
      allowInsecureConnection: true,
      retryOptions: { maxRetries: 0 },
    });
  await queues(accountName).getQueueClient("jobs").create();
  await queues(accountName).getQueueClient("jobs").sendMessage("m");
  const hmac = (key: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", key).update(message).digest();
  const token = makeToken({ account: accountName, expiresMs: Date.now() + 60_000 }, fromBase64(accountKey) as Uint8Array, hmac);
  const options = { timeoutMs: 5_000, metadata: { authorization: `Bearer ${token}` } };
  const grpc = stamp.world.transport.client("front-end-1", FrontEnd);
  const listed = async () => {
    const answer = await grpc.listContainers({ account: accountName }, options);
    return answer.ok ? "ok" : [answer.failure.code, answer.failure.details?.["x-ms-error-code"]];
  };
  const made = async () => {
    const answer = await grpc.createContainer({ account: accountName, container: "made" }, options);
    return answer.ok ? "ok" : [answer.failure.code, answer.failure.details?.["x-ms-error-code"]];
  };
  assert.equal(await listed(), "ok");
  await setRole(roleOf("drained"));
  assert.equal(await listed(), "ok");
  assert.deepEqual(await made(), ["unavailable", "ServerBusy"]);
  await setRole(roleOf("secondary"));
  assert.deepEqual(await listed(), ["unavailable", "ServerBusy"]);
  assert.deepEqual(await made(), ["unavailable", "ServerBusy"]);
  const refused = [403, "InsufficientAccountPermissions"];
  const jobs = queues(secondary).getQueueClient("jobs");
  assert.deepEqual(await told(jobs.sendMessage("m")), refused);
  assert.deepEqual(await told(jobs.receiveMessages()), refused, "it would hide the message");
  assert.deepEqual(
    (await jobs.peekMessages()).peekedMessageItems.map(({ messageText }) => messageText),
    ["m"],
  );
  assert.equal((await told(tables(secondary).createTable("made")))[0], 403);
  assert.deepEqual((await tables(secondary).listTables().next()).done, true);
  assert.deepEqual(await told(queues(accountName).getQueueClient("jobs").peekMessages()), [503, "ServerBusy"]);
});

test("roles: a write that began at the primary is not acknowledged when the account has another one by then", async () => {
  const { container, clients, path, setRole } = await start(60_000);
  await container.getBlobClient("b").getProperties();
  let sent: (chunk: Buffer | null) => void = () => {};
  const stream = new ReadableStream({
    start(controller) {
      sent = (chunk) => (chunk === null ? controller.close() : controller.enqueue(chunk));
    },
  });
  const length = 200_000;
  const headers = { "x-ms-blob-type": "BlockBlob", "content-length": String(length) };
  const answered = clients.raw("PUT", path, { headers, stream });
  sent(Buffer.alloc(1_000));
  await new Promise((resolve) => setTimeout(resolve, 100));
  await setRole(roleOf("drained"));
  // The row says what it says from now on; what the front-end has read before ends with its term.
  await new Promise((resolve) => setTimeout(resolve, 5_100));
  sent(Buffer.alloc(length - 1_000));
  sent(null);
  const answer = await answered;
  assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [503, "ServerBusy"]);
});

test("roles: a copy whose keys have not come yet says that it is being filled, and not that the signature is wrong", async () => {
  const { stamp, container, setRole } = await start();
  await setRole(roleOf("unseeded"), { keyless: true });
  const copy = clientOf(stamp, secondary);
  assert.deepEqual(await told(copy.getContainerClient(container.containerName).getProperties()), [503, "ServerBusy"]);
  assert.deepEqual(await told(copy.getStatistics()), [503, "ServerBusy"]);
});
