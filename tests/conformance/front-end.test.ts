/** What is the front-end's own: keys and binds, both doors, lists over ranges, extents that vanish, limits. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, test } from "node:test";
import { fromBase64, makeToken, newestVersion } from "@stamp/azure-rest";
import { allRules, refused, unwrap } from "@stamp/base";
import { routeOf } from "@stamp/objects";
import { firstRangeOf } from "@stamp/partition-map";
import { FrontEnd, PartitionServer } from "@stamp/wire";
import { testIssuer } from "./issuer.ts";
import { accountKey, accountName, type ScriptedOptions, type ScriptedStamp, secondKey, startScriptedStamp } from "./scripted-stamp.ts";
import { bytes, Clients, failure } from "./target.ts";

const running: ScriptedStamp[] = [];
after(async () => {
  for (const stamp of running) await stamp.stop();
});

async function start(options: ScriptedOptions = {}): Promise<{ stamp: ScriptedStamp; clients: Clients }> {
  const stamp = await startScriptedStamp(options);
  running.push(stamp);
  const target = { endpoint: stamp.endpoint, accountName, accountKey, stop: async () => {} };
  return { stamp, clients: new Clients(target) };
}

const hmac = (key: Uint8Array, message: Uint8Array): Uint8Array => createHmac("sha256", key).update(message).digest();

test("the well-known key is refused where others can connect, another key of the account is not", async () => {
  const { clients } = await start({ frontEnd: { blobListen: "0.0.0.0:10000" } });
  const error = await failure(clients.container());
  assert.equal(error.statusCode, 403);
  await clients.serviceWith(secondKey).getContainerClient("with-second").create();
  const allowed = await start({ frontEnd: { blobListen: "0.0.0.0:10000", allowDevelopmentAccount: true } });
  await allowed.clients.container();
});

test("strictVersions: a version that is newer than every known one is 400, not the newest known one", async () => {
  const { clients } = await start({ frontEnd: { strictVersions: true } });
  const told = async (version: string) => {
    const answer = await clients.raw("GET", "?comp=list", { headers: { "x-ms-version": version } });
    return [answer.status, answer.headers.get("x-ms-error-code")];
  };
  assert.deepEqual(await told("2099-01-01"), [400, "InvalidHeaderValue"]);
  assert.deepEqual(await told(newestVersion), [200, null]);
});

test("lists go on over the ranges of a table: every blob once, pages full, prefixes once", async () => {
  const split = (blob: string) => {
    const name = { account: accountName, container: "fixed", containerIncarnation: 1, blob };
    return routeOf(allRules, { case: "deleteBlob", value: { name } }).key;
  };
  const { clients } = await start({ splitAt: [split("f"), split("m/3"), split("t")] });
  const container = clients.service.getContainerClient("fixed");
  await container.create();
  const names = ["a", "b", "e", "f", "g", "m/1", "m/2", "m/3", "m/4", "s", "t", "z"];
  for (const name of names) await container.getBlockBlobClient(name).upload("x", 1);
  for (const maxPageSize of [1, 2, 3, 5, 100]) {
    const seen: string[] = [];
    for await (const page of container.listBlobsFlat().byPage({ maxPageSize })) {
      assert.ok(page.segment.blobItems.length <= maxPageSize);
      seen.push(...page.segment.blobItems.map((blob) => blob.name));
    }
    assert.deepEqual(seen, names, `pages of ${maxPageSize}`);
  }
  for (const maxPageSize of [1, 2, 3, 5, 6, 100]) {
    const prefixes: string[] = [];
    for await (const page of container.listBlobsByHierarchy("/").byPage({ maxPageSize })) {
      prefixes.push(...(page.segment.blobPrefixes ?? []).map((prefix) => prefix.name));
    }
    assert.deepEqual(prefixes, ["m/"], `pages of ${maxPageSize}`);
  }
  assert.equal((await container.getBlockBlobClient("m/3").downloadToBuffer()).toString(), "x");
});

test("a node that refuses for a while delays a download; bytes that are gone break it, and are never others", async () => {
  const { stamp, clients } = await start({ frontEnd: { requestTimeoutMs: 2000 } });
  const client = (await clients.container()).getBlockBlobClient("b");
  const content = bytes(3_000_000, 9);
  await client.upload(content, content.length);
  let refusals = 3;
  stamp.data.onRead = () => (refusals-- > 0 ? refused("unavailable", "extentStale", "not yet") : undefined);
  assert.ok(content.equals(await client.downloadToBuffer()));
  stamp.data.onRead = (extentId) => (extentId === 3 ? refused("notFound", "unknownExtent", "gone") : undefined);
  const answer = await clients.raw("GET", new URL(client.url).pathname.slice(accountName.length + 1));
  assert.equal(answer.status, 200);
  await assert.rejects(answer.arrayBuffer());
});

test("the gRPC door does the same, for the holder of a token", async () => {
  const { stamp, clients } = await start();
  const container = await clients.container();
  const { containerName } = container;
  const token = makeToken({ account: accountName, expiresMs: Date.now() + 60_000 }, fromBase64(accountKey) as Uint8Array, hmac);
  const options = { timeoutMs: 5000, metadata: { authorization: `Bearer ${token}` } };
  const door = stamp.world.transport.client("front-end-1", FrontEnd);
  const of = { account: accountName, container: containerName };
  const content = bytes(2_500_000, 4);
  async function* messages() {
    yield { ...of, blob: "g", metadata: { k: "v" }, payload: content.subarray(0, 1_000_000) };
    yield { payload: content.subarray(1_000_000, 2_000_000) };
    yield { payload: content.subarray(2_000_000) };
  }
  const put = unwrap(await door.putBlob(messages(), options));
  assert.equal(put.contentLengthBytes, BigInt(content.length));
  assert.ok(content.equals(await container.getBlockBlobClient("g").downloadToBuffer()));
  const chunks: Uint8Array[] = [];
  for await (const message of door.getBlob({ ...of, blob: "g", startBytes: 10n, endBytes: 2_000_010n }, options))
    chunks.push(message.payload);
  assert.ok(content.subarray(10, 2_000_010).equals(Buffer.concat(chunks)));
  assert.deepEqual(unwrap(await door.getBlobProperties({ ...of, blob: "g" }, options)).metadata, { k: "v" });
  const page = unwrap(await door.listBlobs(of, options));
  assert.equal(page.entries.length, 1);
  const missing = await door.getBlobProperties({ ...of, blob: "none" }, options);
  assert.ok(!missing.ok);
  assert.equal(missing.failure.code, "notFound");
  assert.equal(missing.failure.details?.["x-ms-error-code"], "BlobNotFound");
  unwrap(await door.deleteBlob({ ...of, blob: "g" }, options));
  for (const metadata of [{}, { authorization: "Bearer nonsense" }, { authorization: `Bearer ${token}x` }]) {
    const refusedCall = await door.listBlobs(of, { timeoutMs: 5000, metadata });
    assert.ok(!refusedCall.ok);
    assert.equal(refusedCall.failure.code, "unauthenticated");
  }
  const other = await door.listBlobs({ ...of, account: "another" }, options);
  assert.ok(!other.ok);
  assert.equal(other.failure.code, "permissionDenied");
});

test("more requests than are allowed are 503 ServerBusy, and the others are served", async () => {
  const { stamp, clients } = await start({ frontEnd: { requestsMax: 4, accountShareMax: 1 } });
  const container = await clients.container();
  const client = container.getBlockBlobClient("b");
  const content = bytes(2_000_000);
  await client.upload(content, content.length);
  const path = new URL(client.url).pathname.slice(accountName.length + 1);
  let release = (): void => {};
  const held = new Promise<undefined>((resolve) => {
    release = () => resolve(undefined);
  });
  stamp.data.onRead = () => held;
  let refused = 0;
  const waiting = Array.from({ length: 12 }, async () => {
    const answer = await clients.raw("GET", path);
    if (answer.status === 503) refused++;
    return answer;
  });
  // The four that are let in wait for their content; the others are answered meanwhile.
  for (let tries = 0; refused < 8 && tries < 400; tries++) await new Promise((resolve) => setTimeout(resolve, 25));
  release();
  const answers = await Promise.all(waiting);
  assert.equal(answers.filter((answer) => answer.status === 200).length, 4);
  for (const answer of answers) {
    if (answer.status === 200) assert.ok(content.equals(Buffer.from(await answer.arrayBuffer())));
    else assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [503, "ServerBusy"]);
  }
  assert.ok(content.equals(Buffer.from(await (await clients.raw("GET", path)).arrayBuffer())));
  const facts = stamp.frontEnd.status.facts as { downloadBytes: number; uploadBytes: number };
  assert.deepEqual([facts.downloadBytes, facts.uploadBytes], [0, 0]);
});

test("a rotated key works with the next request, the one before ends when the account is read again; the other key always works", async () => {
  const { stamp, clients } = await start({ frontEnd: { accountCacheMs: 60_000 } });
  const container = await clients.container();
  const fresh = Buffer.alloc(64, 5).toString("base64");
  const change = { account: accountName, keys: [fresh, secondKey], expectedKeys: [accountKey, secondKey] };
  const operation = { kind: { case: "changeAccount" as const, value: change } };
  const { rangeId } = firstRangeOf("Account");
  const changed = unwrap(
    await stamp.world.transport.client("ps-1", PartitionServer).execute({ rangeId, rangeVersion: 1n, operation }, { timeoutMs: 5000 }),
  );
  assert.equal(changed.result?.kind.case, "account");
  // The account is held for a minute, and read again for a signature that does not fit at most every 200 ms.
  await new Promise((resolve) => setTimeout(resolve, 210));
  await clients.serviceWith(fresh).getContainerClient(container.containerName).getProperties();
  const error = await failure(clients.serviceWith(accountKey).getContainerClient(container.containerName).getProperties());
  assert.deepEqual([error.statusCode, error.code], [403, "AuthenticationFailed"]);
  await clients.serviceWith(secondKey).getContainerClient(container.containerName).getProperties();
});

test("a share of the Files service is no container by gRPC, whatever is asked of it", async () => {
  const { stamp } = await start();
  const of = { account: accountName, container: "~share" };
  const route = { rangeId: firstRangeOf("Blob").rangeId, rangeVersion: 1n };
  const operation = { kind: { case: "createContainer" as const, value: of } };
  const made = await stamp.world.transport.client("ps-1", PartitionServer).execute({ ...route, operation }, { timeoutMs: 5_000 });
  assert.equal(unwrap(made).result?.kind.case, "container");
  const token = makeToken({ account: accountName, expiresMs: Date.now() + 60_000 }, fromBase64(accountKey) as Uint8Array, hmac);
  const options = { timeoutMs: 5_000, metadata: { authorization: `Bearer ${token}` } };
  const door = stamp.world.transport.client("front-end-1", FrontEnd);
  async function* stray() {
    yield { ...of, blob: "stray", payload: bytes(1, 1) };
  }
  const answers = {
    list: await door.listBlobs(of, options),
    properties: await door.getBlobProperties({ ...of, blob: "id" }, options),
    put: await door.putBlob(stray(), options),
    deleteBlob: await door.deleteBlob({ ...of, blob: "id" }, options),
    deleteContainer: await door.deleteContainer(of, options),
  };
  for (const [call, answer] of Object.entries(answers))
    assert.equal(answer.ok ? "ok" : answer.failure.details?.["x-ms-error-code"], "ContainerNotFound", call);
  assert.deepEqual(unwrap(await door.listContainers({ account: accountName, prefix: "~" }, options)).containers, []);
});

test("a role of one service is none in another; a configured role is one in all", async () => {
  const issuer = await testIssuer();
  const { stamp } = await start({ frontEnd: issuer.settings });
  const list = async (endpoint: string, role: string): Promise<number> => {
    const authorization = `Bearer ${await issuer.token({ oid: "someone", roles: [role] })}`;
    return (await fetch(`${endpoint}/${accountName}?comp=list`, { headers: { authorization, "x-ms-version": "2025-01-05" } })).status;
  };
  const of = async (role: string): Promise<number[]> => [await list(stamp.endpoint, role), await list(stamp.queueEndpoint, role)];
  assert.deepEqual(await of("Storage Blob Data Owner"), [200, 403]);
  assert.deepEqual(await of("Storage Queue Data Reader"), [403, 200]);
  assert.deepEqual(await of("readers"), [200, 200]);
  assert.deepEqual(await of("constructor"), [403, 403]);
  issuer.remove();
});
