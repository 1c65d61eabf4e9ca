/** Requests over HTTP, as `stamp.v1.Requests` tells them to an operator. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BlobServiceClient,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { unwrap } from "@stamp/base";
import { type EndedRequest, Requests } from "@stamp/wire";
import { accountKey, accountName, startScriptedStamp } from "./scripted-stamp.ts";

const all = { account: "", operation: "", statusMin: 0, statusMax: 0, tookMinMs: 0 };

test("requests are told as they end, refused ones too, without their signatures; and counted by accounts that exist", async (t) => {
  const stamp = await startScriptedStamp();
  t.after(() => stamp.stop());
  const door = stamp.world.transport.client("front-end-1", Requests);
  const stopped = new AbortController();
  const told: EndedRequest[] = [];
  const registered = Promise.withResolvers<void>();
  const following = (async () => {
    for await (const { requests } of door.follow(all, { timeoutMs: 60_000, signal: stopped.signal })) {
      registered.resolve();
      told.push(...requests);
      if (told.length >= 3) return;
    }
  })();
  await Promise.race([registered.promise, following]);
  const credential = new StorageSharedKeyCredential(accountName, accountKey);
  const container = new BlobServiceClient(`${stamp.endpoint}/${accountName}`, credential).getContainerClient("traced");
  await container.create();
  const sas = generateBlobSASQueryParameters(
    { containerName: "traced", permissions: ContainerSASPermissions.parse("r"), expiresOn: new Date(Date.now() + 3_600_000) },
    credential,
  );
  assert.equal((await fetch(`${container.url}/missing?${sas}`)).status, 404);
  assert.notEqual((await fetch(`${stamp.endpoint}/nobody/c/b`)).status, 200);
  await following;
  stopped.abort();
  const [create, read, foreign] = told;
  assert.deepEqual(
    [create?.service, create?.account, create?.operation, create?.method, create?.status, create?.errorCode],
    ["blob", accountName, "CreateContainer", "PUT", 201, ""],
  );
  assert.deepEqual([read?.operation, read?.status, read?.errorCode], ["GetBlob", 404, "BlobNotFound"]);
  assert.match(read?.target ?? "", /missing\?.*sig=REDACTED/);
  assert.ok((read?.tookMs ?? -1) >= 0 && read?.requestId !== "" && read?.remoteAddress !== "");
  assert.deepEqual([foreign?.account, foreign?.operation], ["nobody", ""]);
  // Counts as one, whatever its two parts end with.
  const { subResponses } = await container.getBlobBatchClient().deleteBlobs([`${container.url}/a`, `${container.url}/b`], credential);
  assert.deepEqual(
    subResponses.map(({ status }) => status),
    [404, 404],
  );
  const { accounts } = unwrap(await door.countByAccount({}, { timeoutMs: 5_000 }));
  assert.deepEqual(
    accounts.map(({ account, requests, clientErrors, serverErrors }) => [account, requests, clientErrors, serverErrors]),
    [[accountName, 3n, 1n, 0n]],
  );
});
