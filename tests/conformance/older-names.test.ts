/** Blobs from before names in URLs were made canonical keep their names: they are read, changed and deleted by them, and by nothing else. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, test } from "node:test";
import { fromBase64, makeToken } from "@stamp/azure-rest";
import { unwrap } from "@stamp/base";
import { firstRangeOf } from "@stamp/partition-map";
import { FrontEnd, PartitionServer } from "@stamp/wire";
import { serviceSas } from "./sas-by-hand.ts";
import { accountKey, accountName, type ScriptedStamp, startScriptedStamp } from "./scripted-stamp.ts";
import { Clients } from "./target.ts";

const running: ScriptedStamp[] = [];
after(async () => {
  for (const stamp of running) await stamp.stop();
});

/** Names of before, and what they are today. */
const names = [
  ["a\\b", "a/b"],
  ["dot.", "dot"],
  ["x/../up", "up"],
  ["bell\u0007", undefined],
  ["\ue000", undefined],
] as const;

async function start() {
  const stamp = await startScriptedStamp();
  running.push(stamp);
  const clients = new Clients({ endpoint: stamp.endpoint, accountName, accountKey, stop: async () => {} });
  const server = stamp.world.transport.client("ps-1", PartitionServer);
  const execute = async (kind: object) => {
    const asked = { rangeId: firstRangeOf("Blob").rangeId, rangeVersion: 1n, operation: { kind: kind as never } };
    return unwrap(await server.execute(asked, { timeoutMs: 5_000 })).result?.kind;
  };
  const nameOf = async (container: string, blob: string) => {
    const row = await execute({ case: "getContainer", value: { account: accountName, container } });
    if (row?.case !== "container") throw new Error(`${row?.case}`);
    return { account: accountName, container, containerIncarnation: row.value.incarnation, blob };
  };
  /** As a front-end of before wrote it. */
  const putOlder = async (container: string, blob: string): Promise<void> => {
    const name = await nameOf(container, blob);
    const value = { name, metadata: {}, headers: {}, body: { inline: Buffer.from(`older ${blob}`), places: [] } };
    const put = await execute({ case: "putBlob", value });
    assert.equal(put?.case, "blob");
  };
  const stageOlder = async (container: string, blob: string, blockId: Uint8Array): Promise<void> => {
    const value = { name: await nameOf(container, blob), blockId, body: { inline: Buffer.from("block"), places: [] } };
    const staged = await execute({ case: "putBlock", value });
    assert.notEqual(staged?.case, "error");
  };
  return { stamp, clients, putOlder, stageOlder };
}

const pathOf = (container: string, name: string): string =>
  `/${container}/${[...name].map((one) => (one === "/" || one === "." ? one : encodeURIComponent(one))).join("")}`;
/** Of one segment to HTTP libraries, which resolve paths. */
const encodedPathOf = (container: string, name: string): string => `/${container}/${encodeURIComponent(name)}`;

test("an older blob is read, listed, changed, copied and deleted by its name; a blob of the canonical name is another one", async () => {
  const { clients, putOlder } = await start();
  const container = await clients.container();
  const { containerName } = container;
  const read = async (name: string): Promise<string> => {
    const answer = await clients.raw("GET", encodedPathOf(containerName, name));
    return answer.ok ? answer.text() : `${answer.status} ${answer.headers.get("x-ms-error-code")}`;
  };
  for (const [older, now] of names) {
    await putOlder(containerName, older);
    assert.equal(await read(older), `older ${older}`);
    if (now !== undefined) {
      assert.equal(await read(now), "404 BlobNotFound");
      await container.getBlockBlobClient(now).upload("new", 3);
      assert.deepEqual([await read(older), await read(now)], [`older ${older}`, "new"]);
    }
    const path = encodedPathOf(containerName, older);
    const metadata = await clients.raw("PUT", `${path}?comp=metadata`, { headers: { "x-ms-meta-a": "1" } });
    assert.equal(metadata.status, 200, older);
    const source = `${clients.target.endpoint}/${accountName}${path}`;
    for (const sas of [
      "",
      `?${serviceSas({ service: "blob", account: accountName, key: accountKey }, `${containerName}/${older}`, "r", { sr: "b" })}`,
    ]) {
      const headers = { "x-ms-copy-source": source + sas };
      assert.equal((await clients.raw("PUT", `/${containerName}/copy`, { headers })).status, 202, older);
      assert.equal(await read("copy"), `older ${older}`);
    }
    assert.equal((await clients.raw("DELETE", path)).status, 202);
    assert.equal(await read(older), now === undefined ? "400 InvalidUri" : "new");
  }
});

test("an older blob counts while anything is left of it: blocks that nobody committed, what is deleted softly", async () => {
  const { clients, putOlder, stageOlder } = await start();
  const days = { enabled: true, days: 1 };
  await clients.service.setProperties({ deleteRetentionPolicy: days });
  const container = await clients.container();
  await putOlder(container.containerName, "a\\b");
  const path = encodedPathOf(container.containerName, "a\\b");
  assert.equal((await clients.raw("DELETE", path)).status, 202);
  await container.getBlockBlobClient("a/b").upload("new", 3);
  assert.equal((await clients.raw("GET", path)).status, 404, "the deleted one, not the one of the canonical name");
  assert.equal((await clients.raw("PUT", `${path}?comp=undelete`)).status, 200);
  assert.equal(await (await clients.raw("GET", path)).text(), "older a\\b");
  await container.getBlockBlobClient("c/d").upload("new", 3);
  await stageOlder(container.containerName, "c\\d", Buffer.from("1"));
  const staged = encodedPathOf(container.containerName, "c\\d");
  const body = `<BlockList><Uncommitted>${Buffer.from("1").toString("base64")}</Uncommitted></BlockList>`;
  assert.equal((await clients.raw("PUT", `${staged}?comp=blocklist`, { body })).status, 201);
  assert.equal(await (await clients.raw("GET", staged)).text(), "block");
  assert.equal((await container.getBlobClient("c/d").downloadToBuffer()).toString(), "new");
});

test("a SAS is for one name, the older or the canonical one", async () => {
  const { clients, putOlder } = await start();
  const container = await clients.container();
  const { containerName } = container;
  await putOlder(containerName, "a\\b");
  await container.getBlockBlobClient("a/b").upload("new", 3);
  const sas = (name: string): string =>
    serviceSas({ service: "blob", account: accountName, key: accountKey }, `${containerName}/${name}`, "r", { sr: "b" });
  const get = async (path: string, of: string): Promise<string> => {
    const answer = await fetch(`${clients.target.endpoint}/${accountName}${path}?${sas(of)}`);
    return answer.ok ? answer.text() : `${answer.status} ${answer.headers.get("x-ms-error-code")}`;
  };
  const older = encodedPathOf(containerName, "a\\b");
  assert.equal(await get(older, "a\\b"), "older a\\b");
  assert.equal(await get(older, "a/b"), "403 AuthenticationFailed");
  assert.equal(await get(pathOf(containerName, "a/b"), "a/b"), "new");
  assert.equal(await get(pathOf(containerName, "a/b"), "a\\b"), "403 AuthenticationFailed");
});

test("strangers are not told of older blobs of a private container, and read those of a public one", async () => {
  const { clients, putOlder } = await start();
  const anonymous = async (path: string): Promise<string> => {
    const answer = await fetch(`${clients.target.endpoint}/${accountName}${path}`);
    return answer.ok ? answer.text() : `${answer.status} ${answer.headers.get("x-ms-error-code")}`;
  };
  const [closed, open] = [await clients.container(), await clients.container({ access: "blob" })];
  for (const { containerName } of [closed, open]) await putOlder(containerName, "bell\u0007");
  assert.equal(await anonymous(encodedPathOf(closed.containerName, "bell\u0007")), "400 InvalidUri");
  assert.equal(await anonymous(encodedPathOf(closed.containerName, "none\u0007")), "400 InvalidUri");
  assert.equal(await anonymous(encodedPathOf(open.containerName, "bell\u0007")), "older bell\u0007");
  // A made-up signature gets the string to sign of the canonical name, whether an older blob is there or not.
  await putOlder(closed.containerName, "is\\there");
  const forged = { service: "blob", account: accountName, key: Buffer.alloc(64).toString("base64") } as const;
  for (const name of ["is\\there", "not\\there"]) {
    const sas = serviceSas(forged, `${closed.containerName}/${name}`, "r", { sr: "b" });
    const answer = await fetch(`${clients.target.endpoint}/${accountName}${encodedPathOf(closed.containerName, name)}?${sas}`);
    const detail = /String to sign used was [^<]*/.exec(await answer.text())?.[0];
    assert.ok(detail?.includes(`/${closed.containerName}/${name.replace("\\", "/")}\n`), `${answer.status} ${detail}`);
  }
});

test("gRPC names no blob by a URL: a name that is not canonical is refused, an older blob is served", async () => {
  const { stamp, clients, putOlder } = await start();
  const container = await clients.container();
  const token = makeToken({ account: accountName, expiresMs: Date.now() + 60_000 }, fromBase64(accountKey) as Uint8Array, (key, message) =>
    createHmac("sha256", key).update(message).digest(),
  );
  const options = { timeoutMs: 5_000, metadata: { authorization: `Bearer ${token}` } };
  const door = stamp.world.transport.client("front-end-1", FrontEnd);
  for (const [blob] of names) {
    const of = { account: accountName, container: container.containerName, blob };
    const refused = await door.getBlobProperties(of, options);
    assert.equal(!refused.ok && refused.failure.details?.["x-ms-error-code"], "InvalidUri", blob);
    await putOlder(container.containerName, blob);
    unwrap(await door.getBlobProperties(of, options));
    unwrap(await door.deleteBlob(of, options));
  }
});
