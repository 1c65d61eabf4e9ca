/** Encryption scopes: content is written under the scope that the request, its SAS or its container names, and read without naming any. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { before, describe, test } from "node:test";
import {
  BlobClient,
  BlobSASPermissions,
  BlobServiceClient,
  type BlockBlobClient,
  type ContainerClient,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { blockId, bytes, type Clients, failure, readableUrl, sameBytes } from "./target.ts";

const mismatch = [409, "BlobCustomerSpecifiedEncryptionMismatch"];
const missing = [409, "BlobUsesCustomerSpecifiedEncryption"];
const needless = [409, "BlobDoesNotUseCustomerSpecifiedEncryption"];
const forbidden = [403, "RequestForbiddenByContainerEncryptionPolicy"];
const disabled = [403, "EncryptionScopeDisabled"];
const unknown = [400, "InvalidHeaderValue"];

async function refusalOf(work: Promise<unknown>): Promise<unknown[]> {
  const { statusCode, code } = await failure(work);
  return [statusCode, code];
}

const scopeOf = async (blob: BlobClient): Promise<unknown[]> => {
  const { isServerEncrypted, encryptionScope } = await blob.getProperties();
  return [isServerEncrypted, encryptionScope];
};

export function encryptionScopeSuite(clients: () => Clients): void {
  describe("encryption scopes", () => {
    // Scopes stay for good, and a target may have had this suite before.
    const suffix = randomUUID().slice(0, 8);
    const [one, two, off] = [`one-${suffix}`, `two-${suffix}`, `off-${suffix}`];
    before(async () => {
      for (const name of [one, two, off]) await clients().target.scopes?.create(name);
      assert.ok(clients().target.scopes, "the target has scopes");
    });

    const under = (scope: string) => ({ encryptionScope: scope });
    const containerOf = (defaultEncryptionScope: string, preventEncryptionScopeOverride: boolean): Promise<ContainerClient> =>
      clients().container({ containerEncryptionScope: { defaultEncryptionScope, preventEncryptionScopeOverride } });
    const upload = (blob: BlockBlobClient, content: Buffer | string, options = {}) =>
      blob.upload(content, Buffer.byteLength(content), options);

    test("a blob under a scope is read without naming it; answers, properties and lists name it", async () => {
      const container = await clients().container();
      for (const size of [0, 1, 16, 4_000, 300_001]) {
        const blob = container.getBlockBlobClient(`b-${size}`);
        const content = bytes(size, size + 1);
        const put = await upload(blob, content, under(one));
        assert.deepEqual([put.isServerEncrypted, put.encryptionScope], [true, one]);
        assert.deepEqual(await scopeOf(blob), [true, one]);
        if (size === 0) continue;
        sameBytes(await blob.downloadToBuffer(), content);
        if (size > 20) sameBytes(await blob.downloadToBuffer(7, 11), content.subarray(7, 18));
        const got = await blob.download();
        got.readableStreamBody?.resume();
        assert.deepEqual([got.isServerEncrypted, got._response.headers.get("x-ms-encryption-scope")], [true, one]);
      }
      const plain = container.getBlockBlobClient("plain");
      await upload(plain, "text");
      assert.deepEqual(await scopeOf(plain), [false, undefined]);
      for await (const { name, properties } of container.listBlobsFlat()) {
        const expected = name === "plain" ? [false, undefined] : [true, one];
        assert.deepEqual([properties.serverEncrypted, properties.encryptionScope], expected);
      }
      await upload(container.getBlockBlobClient("b-1"), "plain now");
      assert.deepEqual(await scopeOf(container.getBlockBlobClient("b-1")), [false, undefined]);
    });

    test("metadata and snapshots name the blob's scope or none", async () => {
      const container = await clients().container();
      const blob = container.getBlockBlobClient("b");
      await upload(blob, "text", under(one));
      assert.equal((await blob.setMetadata({ a: "1" }, under(one))).encryptionScope, one);
      const unnamed = await blob.setMetadata({ a: "2" });
      assert.deepEqual([unnamed.isServerEncrypted, unnamed.encryptionScope], [true, one]);
      assert.deepEqual(await refusalOf(blob.setMetadata({ a: "3" }, under(two))), mismatch);
      assert.deepEqual(await refusalOf(blob.createSnapshot(under(two))), mismatch);
      const { snapshot = "" } = await blob.createSnapshot(under(one));
      await blob.createSnapshot();
      await upload(blob, "other", under(two));
      assert.equal((await blob.withSnapshot(snapshot).downloadToBuffer()).toString(), "text");
      assert.deepEqual(await scopeOf(blob.withSnapshot(snapshot)), [true, one]);
      assert.equal((await blob.downloadToBuffer()).toString(), "other");
      const plain = container.getBlockBlobClient("plain");
      await upload(plain, "text");
      assert.deepEqual(await refusalOf(plain.setMetadata({ a: "1" }, under(one))), needless);
    });

    test("blocks: a list takes those of its own scope only", async () => {
      const container = await clients().container();
      const blob = container.getBlockBlobClient("b");
      const parts = [bytes(70_000, 1), bytes(33, 2)];
      const ids = [blockId(0), blockId(1)];
      const stage = (at: number, options = {}) =>
        blob.stageBlock(ids[at] as string, parts[at] as Buffer, (parts[at] as Buffer).length, options);
      assert.equal((await stage(0, under(one))).encryptionScope, one);
      await stage(1, under(two));
      assert.deepEqual(await refusalOf(blob.commitBlockList(ids, under(one))), mismatch);
      assert.deepEqual(await refusalOf(blob.commitBlockList(ids)), missing);
      await stage(1);
      assert.deepEqual(await refusalOf(blob.commitBlockList(ids, under(one))), needless);
      await stage(1, under(one));
      assert.equal((await blob.commitBlockList(ids, under(one))).encryptionScope, one);
      sameBytes(await blob.downloadToBuffer(), Buffer.concat(parts));
      sameBytes(await blob.downloadToBuffer(69_990, 20), Buffer.concat(parts).subarray(69_990, 70_010));
    });

    test("append and page blobs: writes name the blob's scope or none, and are encrypted under it", async () => {
      const container = await clients().container();
      const log = container.getAppendBlobClient("log");
      await log.create(under(one));
      const appended: Buffer[] = [];
      for (let i = 0; i < 20; i++) {
        const block = bytes(1 + ((i * 7919) % 5_000), i);
        const answer = await log.appendBlock(block, block.length, i % 2 === 0 ? under(one) : {});
        assert.deepEqual([answer.isServerEncrypted, answer.encryptionScope], [true, one]);
        appended.push(block);
      }
      assert.deepEqual(await refusalOf(log.appendBlock("x", 1, under(two))), mismatch);
      sameBytes(await log.downloadToBuffer(), Buffer.concat(appended));
      const plain = container.getAppendBlobClient("plain");
      await plain.create();
      await plain.appendBlock("x", 1);
      assert.deepEqual(await refusalOf(plain.appendBlock("x", 1, under(one))), needless);
      assert.equal((await plain.downloadToBuffer()).toString(), "x");

      const disk = container.getPageBlobClient("disk");
      const pages = Buffer.alloc(64 * 1024);
      await disk.create(pages.length, under(one));
      for (const [at, count, options] of [
        [0, 32 * 1024, under(one)],
        [1_024, 512, {}],
        [40 * 1024, 1_024, {}],
      ] as const) {
        const content = bytes(count, at + 1);
        assert.equal((await disk.uploadPages(content, at, count, options)).encryptionScope, one);
        content.copy(pages, at);
      }
      assert.deepEqual(await refusalOf(disk.uploadPages(bytes(512), 0, 512, under(two))), mismatch);
      assert.deepEqual(await refusalOf(disk.clearPages(0, 512, under(two))), mismatch);
      await disk.clearPages(2_048, 1_024);
      pages.fill(0, 2_048, 3_072);
      await disk.resize(48 * 1024);
      sameBytes(await disk.downloadToBuffer(), pages.subarray(0, 48 * 1024));
    });

    test("a container's default scope is that of every new blob; without override no other is taken", async () => {
      const open = await containerOf(one, false);
      const kept = await open.getProperties();
      assert.deepEqual([kept.defaultEncryptionScope, kept.denyEncryptionScopeOverride], [one, false]);
      const blob = open.getBlockBlobClient("b");
      assert.equal((await upload(blob, "text")).encryptionScope, one);
      assert.equal((await blob.downloadToBuffer()).toString(), "text");
      assert.equal((await upload(blob, "text", under(two))).encryptionScope, two, "another may be named");
      await blob.stageBlock(blockId(0), "block", 5);
      assert.equal((await blob.commitBlockList([blockId(0)])).encryptionScope, one);
      assert.equal((await blob.downloadToBuffer()).toString(), "block");

      const closed = await containerOf(one, true);
      const listed = [];
      for await (const { name, properties } of clients().service.listContainers({ prefix: "c-" })) {
        if (name === closed.containerName || name === open.containerName) {
          listed.push([properties.defaultEncryptionScope, properties.preventEncryptionScopeOverride]);
        }
      }
      assert.deepEqual(new Set(listed.map(String)), new Set([`${one},true`, `${one},false`]));
      const only = closed.getBlockBlobClient("b");
      assert.deepEqual(await refusalOf(upload(only, "text", under(two))), forbidden);
      assert.equal((await upload(only, "text", under(one))).encryptionScope, one);
      assert.equal((await upload(only, "text")).encryptionScope, one);
      const log = closed.getAppendBlobClient("log");
      await log.create();
      assert.equal((await log.appendBlock("x", 1)).encryptionScope, one);
      assert.deepEqual(await refusalOf(log.appendBlock("x", 1, under(two))), forbidden);

      const accounts = await containerOf("$account-encryption-key", true);
      assert.deepEqual(await refusalOf(upload(accounts.getBlockBlobClient("b"), "text", under(one))), forbidden);
      assert.equal((await upload(accounts.getBlockBlobClient("b"), "text")).encryptionScope, undefined);
      const shown = await accounts.getProperties();
      assert.deepEqual([shown.defaultEncryptionScope, shown.denyEncryptionScopeOverride], ["$account-encryption-key", true]);
    });

    test("a copy is under the scope of its request or of its container, wherever the source was", async () => {
      const plain = await clients().container();
      const scoped = await containerOf(one, false);
      const content = bytes(90_000, 5);
      const sources: BlobClient[] = [];
      for (const [name, scope, body] of [
        ["plain", undefined, content],
        ["small", undefined, Buffer.from("small")],
        ["one", one, content],
        ["two", two, content],
      ] as const) {
        const blob = plain.getBlockBlobClient(name);
        await upload(blob, body, scope === undefined ? {} : under(scope));
        sources.push(blob);
      }
      const blocks = plain.getBlockBlobClient("blocks");
      for (let i = 0; i < 3; i++) await blocks.stageBlock(blockId(i), content, content.length, under(two));
      await blocks.commitBlockList([0, 1, 2].map(blockId), under(two));
      const disk = plain.getPageBlobClient("disk");
      await disk.create(1024 * 1024, under(two));
      await disk.uploadPages(bytes(1_024, 3), 512 * 1024, 1_024);
      await disk.uploadPages(bytes(512, 4), 0, 512);
      const log = plain.getAppendBlobClient("log");
      await log.create();
      await log.appendBlock("appended", 8);
      sources.push(blocks, disk, log);
      for (const source of sources) {
        const expected = await source.downloadToBuffer();
        const url = await readableUrl(source);
        const isBlock = (await source.getProperties()).blobType === "BlockBlob";
        for (const [container, scope] of [
          [plain, undefined],
          [scoped, one],
        ] as const) {
          const copy = container.getBlobClient(`copy-${source.name}`);
          assert.equal((await (await copy.beginCopyFromURL(source.url, { intervalInMs: 20 })).pollUntilDone()).copyStatus, "success");
          sameBytes(await copy.downloadToBuffer(), expected, `${source.name} to ${scope}`);
          assert.deepEqual(await scopeOf(copy), [scope !== undefined, scope]);
          if (!isBlock) continue;
          const [synced, put, staged] = ["sync", "put", "staged"].map((how) => container.getBlockBlobClient(`${how}-${source.name}`));
          if (!synced || !put || !staged) throw new Error("three clients");
          await synced.syncCopyFromURL(url);
          await put.syncUploadFromURL(url);
          await staged.stageBlockFromURL(blockId(1), url);
          await staged.commitBlockList([blockId(1)]);
          for (const each of [synced, put, staged]) {
            sameBytes(await each.downloadToBuffer(), expected, `${each.name} to ${scope}`);
            assert.deepEqual(await scopeOf(each), [scope !== undefined, scope], each.name);
          }
          await synced.syncCopyFromURL(url, under(two));
          sameBytes(await synced.downloadToBuffer(), expected);
          assert.deepEqual(await scopeOf(synced), [true, two]);
        }
      }
      // A copy has its own bytes, or shares those of the same key: a deleted source takes none along.
      for (const source of sources) await source.delete();
      sameBytes(await scoped.getBlobClient("copy-blocks").downloadToBuffer(), Buffer.concat([content, content, content]));
    });

    test("a shared access signature for a scope writes under it, and reads as any other does", async () => {
      const container = await clients().container();
      const { accountName, accountKey } = clients().target;
      const credential = new StorageSharedKeyCredential(accountName, accountKey);
      const sasFor = (containerName: string, encryptionScope: string) =>
        generateBlobSASQueryParameters(
          {
            containerName,
            permissions: ContainerSASPermissions.parse("rwcad"),
            expiresOn: new Date(Date.now() + 3_600_000),
            encryptionScope,
          },
          credential,
        ).toString();
      const by = (to: ContainerClient, scope: string) => {
        const sas = sasFor(to.containerName, scope);
        const endpoint = `${clients().target.endpoint}/${accountName}`;
        return new BlobServiceClient(`${endpoint}?${sas}`, undefined, { retryOptions: { maxTries: 1 } }).getContainerClient(
          to.containerName,
        );
      };
      const blob = by(container, one).getBlockBlobClient("b");
      assert.equal((await upload(blob, "text")).encryptionScope, one);
      assert.equal((await blob.downloadToBuffer()).toString(), "text");
      assert.equal((await upload(blob, "text", under(one))).encryptionScope, one);
      assert.deepEqual(await refusalOf(upload(blob, "text", under(two))), unknown);
      await upload(container.getBlockBlobClient("two"), "text", under(two));
      assert.equal((await by(container, one).getBlobClient("two").downloadToBuffer()).toString(), "text");
      const log = by(container, one).getAppendBlobClient("log");
      await log.create();
      await log.appendBlock("x", 1);
      assert.deepEqual(await scopeOf(log), [true, one]);
      assert.deepEqual(await refusalOf(upload(by(await containerOf(one, true), two).getBlockBlobClient("b"), "text")), forbidden);
      // The same for one blob.
      const options = { permissions: BlobSASPermissions.parse("r"), expiresOn: new Date(Date.now() + 60_000), encryptionScope: two };
      const url = await container.getBlobClient("b").generateSasUrl(options);
      assert.equal((await new BlobClient(url).downloadToBuffer()).toString(), "text");
      const without = url.replace(`ses=${two}`, `ses=${one}`);
      assert.equal((await failure(new BlobClient(without).download())).statusCode, 403, "the scope is signed");
    });

    test("a disabled scope lets nobody read or write; enabled again, everything is there", async () => {
      const { scopes } = clients().target;
      assert.ok(scopes);
      const container = await clients().container();
      const defaulted = await containerOf(off, false);
      const blob = container.getBlockBlobClient("b");
      await upload(blob, "text", under(off));
      const log = container.getAppendBlobClient("log");
      await log.create(under(off));
      await log.appendBlock("one", 3);
      const url = await readableUrl(blob);
      await scopes.setDisabled(off, true);
      try {
        for (const [what, work] of [
          ["read", () => blob.download()],
          ["range", () => blob.download(0, 1)],
          ["empty", () => defaulted.getBlockBlobClient("e").upload("", 0)],
          ["write", () => upload(blob, "new", under(off))],
          ["default", () => upload(defaulted.getBlockBlobClient("b"), "new")],
          ["block", () => blob.stageBlock(blockId(1), "x", 1, under(off))],
          ["metadata", () => blob.setMetadata({ a: "1" })],
          ["snapshot", () => blob.createSnapshot()],
          ["append", () => log.appendBlock("two", 3)],
          ["container", () => containerOf(off, true)],
        ] as const) {
          assert.deepEqual(await refusalOf(work()), disabled, what);
        }
        assert.equal((await failure(blob.getProperties())).statusCode, 403);
        const copy = container.getBlockBlobClient("copy");
        assert.equal((await failure(copy.beginCopyFromURL(blob.url))).statusCode, 403);
        assert.equal((await failure(copy.syncUploadFromURL(url))).statusCode, 403);
        await upload(container.getBlockBlobClient("other"), "text", under(one));
        const names = [];
        for await (const { name } of container.listBlobsFlat()) names.push(name);
        assert.deepEqual(names, ["b", "log", "other"]);
      } finally {
        await scopes.setDisabled(off, false);
      }
      assert.equal((await blob.downloadToBuffer()).toString(), "text");
      await log.appendBlock("two", 3);
      assert.equal((await log.downloadToBuffer()).toString(), "onetwo");
    });

    test("what can't be: scopes that are not there, names that are none, headers where they mean nothing", async () => {
      const container = await clients().container();
      const path = `/${container.containerName}/b`;
      const put = (headers: Record<string, string>, at = path, method = "PUT") =>
        clients().raw(method, at, {
          body: method === "PUT" ? "text" : undefined,
          headers: { "x-ms-blob-type": "BlockBlob", ...headers },
        } as never);
      const scope = "x-ms-encryption-scope";
      const deny = { "x-ms-deny-encryption-scope-override": "true" };
      const made = `/c-${randomUUID()}?restype=container`;
      for (const [headers, at, code] of [
        [{ [scope]: `none-${suffix}` }, path, "InvalidHeaderValue"],
        [{ [scope]: "No_Name" }, path, "InvalidHeaderValue"],
        [{ [scope]: "$account-encryption-key" }, path, "InvalidHeaderValue"],
        [{ [scope]: one, "x-ms-version": "2019-02-02" }, path, "InvalidHeaderValue"],
        [{ [scope]: one, "x-ms-access-tier": "Cool" }, `${path}?comp=tier`, "UnsupportedHeader"],
        [{ "x-ms-default-encryption-scope": one, ...deny }, path, "UnsupportedHeader"],
        [{ "x-ms-default-encryption-scope": one }, made, "MissingRequiredHeader"],
        [deny, made, "MissingRequiredHeader"],
        [{ "x-ms-default-encryption-scope": `none-${suffix}`, ...deny }, made, "InvalidHeaderValue"],
        [{ "x-ms-default-encryption-scope": one, "x-ms-deny-encryption-scope-override": "yes" }, made, "InvalidHeaderValue"],
      ] as const) {
        const { "x-ms-blob-type": _, ...rest } = { "x-ms-blob-type": "", ...headers };
        const answer =
          at === made ? await clients().raw("PUT", at, { headers: rest as Record<string, string> }) : await put(rest as never, at);
        assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [400, code], JSON.stringify(headers));
      }
      assert.equal(await container.getBlobClient("b").exists(), false, "nothing was stored");
    });
  });
}
