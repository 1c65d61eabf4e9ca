/** Customer-provided keys, with the real SDK over HTTPS: what is written under a key is read under that key, and under no other. */
import assert from "node:assert/strict";
import { createHash, createHmac, randomBytes, randomUUID } from "node:crypto";
import { request } from "node:https";
import { after, before, describe, test } from "node:test";
import {
  type BlobClient,
  BlobServiceClient,
  type ContainerClient,
  type CpkInfo,
  type RestError,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { fromBase64, signRequest } from "@stamp/azure-rest";
import { blockId, bytes, failure, readableUrl } from "./target.ts";

export interface SecureTarget {
  /** Without the account: https://127.0.0.1:10000 */
  readonly endpoint: string;
  readonly accountName: string;
  /** Base64. */
  readonly accountKey: string;
  /** Authority of its certificate, in PEM. */
  readonly ca: string;
  stop(): Promise<void>;
}

export function customerKey(seed?: string): Required<CpkInfo> {
  const key = seed === undefined ? randomBytes(32) : createHash("sha256").update(seed).digest();
  const encryptionKeySha256 = createHash("sha256").update(key).digest("base64");
  return { encryptionKey: key.toString("base64"), encryptionKeySha256, encryptionAlgorithm: "AES256" };
}

export const headersOf = (key: CpkInfo, prefix = "x-ms-encryption") => ({
  [`${prefix}-key`]: key.encryptionKey ?? "",
  [`${prefix}-key-sha256`]: key.encryptionKeySha256 ?? "",
  [`${prefix}-algorithm`]: "AES256",
});

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export class SecureClients {
  readonly target: SecureTarget;
  readonly service: BlobServiceClient;

  constructor(target: SecureTarget) {
    this.target = target;
    const { endpoint, accountName, accountKey, ca } = target;
    const credential = new StorageSharedKeyCredential(accountName, accountKey);
    const options = { retryOptions: { maxTries: 1 }, tlsOptions: { ca } };
    this.service = new BlobServiceClient(`${endpoint}/${accountName}`, credential, options);
  }

  async container(): Promise<ContainerClient> {
    const client = this.service.getContainerClient(`c-${randomUUID()}`);
    await client.create();
    return client;
  }

  /** A signed request as given. `path` begins behind the account. */
  raw(method: string, path: string, given: Record<string, string>, body = ""): Promise<RawAnswer> {
    const { endpoint, accountName, accountKey, ca } = this.target;
    const target = `/${accountName}${path}`;
    const said = { "content-length": String(Buffer.byteLength(body)), ...given };
    const hmac = (key: Uint8Array, message: Uint8Array) => createHmac("sha256", key).update(message).digest();
    const key = fromBase64(accountKey) as Uint8Array;
    const headers = signRequest({ service: "blob", method, target, headers: said }, accountName, key, Date.now(), hmac);
    return new Promise((resolve, reject) => {
      request(`${endpoint}${target}`, { method, headers, ca, agent: false }, (answer) => {
        let text = "";
        answer.on("data", (chunk) => (text += chunk));
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text }));
      })
        .on("error", reject)
        .end(body);
    });
  }
}

const codeOf = ({ statusCode, code }: RestError): unknown[] => [statusCode, code];
const missing = [409, "BlobUsesCustomerSpecifiedEncryption"];
const needless = [409, "BlobDoesNotUseCustomerSpecifiedEncryption"];
const mismatch = [409, "BlobCustomerSpecifiedEncryptionMismatch"];

const readRange = (blob: BlobClient, at: number, count: number, customerProvidedKey: CpkInfo): Promise<Buffer> =>
  blob.downloadToBuffer(at, count, { customerProvidedKey });

export function customerKeySuite(what: string, open: () => Promise<SecureTarget>): void {
  describe(`customer-provided keys: ${what}`, () => {
    let target: SecureTarget;
    let clients: SecureClients;
    before(async () => {
      target = await open();
      clients = new SecureClients(target);
    });
    after(async () => target?.stop());

    test("a blob is read under its key: whole, in ranges, its properties; without the key and under another it is 409", async () => {
      const container = await clients.container();
      const key = customerKey();
      const other = customerKey();
      for (const size of [0, 1, 15, 16, 17, 4_000, 300_001]) {
        const blob = container.getBlockBlobClient(`b-${size}`);
        const content = bytes(size, size + 1);
        const put = await blob.upload(content, size, { customerProvidedKey: key, metadata: { a: "1" } });
        assert.deepEqual([put.isServerEncrypted, put.encryptionKeySha256], [true, key.encryptionKeySha256]);
        assert.deepEqual(Buffer.from(put.contentMD5 ?? []), createHash("md5").update(content).digest(), "of what was sent");
        const properties = await blob.getProperties({ customerProvidedKey: key });
        assert.deepEqual([properties.isServerEncrypted, properties.encryptionKeySha256], [true, key.encryptionKeySha256]);
        assert.deepEqual(properties.metadata, { a: "1" });
        if (size > 0) assert.deepEqual(await readRange(blob, 0, size, key), content);
        for (const [at, count] of [
          [0, 1],
          [size - 1, 1],
          [7, 100],
          [16, 16],
          [131_071, 3],
        ] as const) {
          if (at < 0 || at + count > size) continue;
          assert.deepEqual(await readRange(blob, at, count, key), content.subarray(at, at + count), `${count} from ${at} of ${size}`);
        }
        const wrong = { customerProvidedKey: other };
        for (const [asked, expected] of [
          [{}, missing],
          [wrong, mismatch],
        ] as const) {
          assert.deepEqual(codeOf(await failure(blob.download(0, undefined, asked))), expected);
          assert.equal((await failure(blob.getProperties(asked))).statusCode, 409);
          assert.deepEqual(codeOf(await failure(blob.setMetadata({ a: "2" }, asked))), expected);
          assert.deepEqual(codeOf(await failure(blob.createSnapshot(asked))), expected);
        }
      }
      const plain = container.getBlockBlobClient("plain");
      await plain.upload("text", 4);
      assert.deepEqual(codeOf(await failure(plain.download(0, undefined, { customerProvidedKey: key }))), needless);
      assert.deepEqual(codeOf(await failure(plain.setMetadata({ a: "2" }, { customerProvidedKey: key }))), needless);
      assert.deepEqual(codeOf(await failure(plain.createSnapshot({ customerProvidedKey: key }))), needless);
    });

    test("what does not touch content or metadata needs no key: tags, tier, lease, headers, list, deletion", async () => {
      const container = await clients.container();
      const customerProvidedKey = customerKey();
      const blob = container.getBlockBlobClient("b");
      await blob.upload("text", 4, { customerProvidedKey, tags: { t: "1" }, metadata: { secret: "m" } });
      assert.deepEqual((await blob.getTags()).tags, { t: "1" });
      await blob.setTags({ t: "2" });
      await blob.setAccessTier("Cool");
      await blob.setHTTPHeaders({ blobContentType: "text/x" });
      const lease = blob.getBlobLeaseClient();
      await lease.acquireLease(-1);
      await lease.releaseLease();
      assert.equal((await blob.getProperties({ customerProvidedKey })).contentType, "text/x");
      for await (const listed of container.listBlobsFlat({ includeMetadata: true, includeTags: true })) {
        const { serverEncrypted, customerProvidedKeySha256 } = listed.properties;
        assert.deepEqual([serverEncrypted, customerProvidedKeySha256], [true, customerProvidedKey.encryptionKeySha256]);
        assert.equal(listed.metadata?.secret, undefined);
        assert.deepEqual(listed.tags, { t: "2" });
      }
      const list = await clients.raw("GET", `/${container.containerName}?restype=container&comp=list&include=metadata`, {});
      assert.match(list.body, /<Metadata Encrypted="true" \/>/);
      assert.equal((await blob.downloadToBuffer(0, 4, { customerProvidedKey })).toString(), "text");
      await blob.delete();
    });

    test("snapshots and replaced content have their own keys", async () => {
      const container = await clients.container();
      const [first, second] = [customerKey(), customerKey()];
      const blob = container.getBlockBlobClient("b");
      await blob.upload("one", 3, { customerProvidedKey: first });
      const { snapshot = "" } = await blob.createSnapshot({ customerProvidedKey: first });
      await blob.upload("two", 3, { customerProvidedKey: second });
      const kept = blob.withSnapshot(snapshot);
      assert.equal((await kept.downloadToBuffer(0, 3, { customerProvidedKey: first })).toString(), "one");
      assert.deepEqual(codeOf(await failure(kept.download(0, undefined, { customerProvidedKey: second }))), mismatch);
      assert.equal((await blob.downloadToBuffer(0, 3, { customerProvidedKey: second })).toString(), "two");
      await blob.upload("open", 4);
      assert.equal((await blob.downloadToBuffer()).toString(), "open");
      assert.equal((await kept.downloadToBuffer(0, 3, { customerProvidedKey: first })).toString(), "one");
    });

    test("blocks: a list takes those of its own key only; staged again, a block has the last key", async () => {
      const container = await clients.container();
      const [key, other] = [customerKey(), customerKey()];
      const blob = container.getBlockBlobClient("b");
      const parts = [bytes(70_000, 1), bytes(33, 2), bytes(100_000, 3)];
      const stage = (at: number, customerProvidedKey?: CpkInfo) =>
        blob.stageBlock(blockId(at), parts[at] as Buffer, (parts[at] as Buffer).length, {
          ...(customerProvidedKey && { customerProvidedKey }),
        });
      const ids = parts.map((_, at) => blockId(at));
      await stage(0, key);
      await stage(1, other);
      await stage(2);
      const commit = (list: string[], customerProvidedKey?: CpkInfo) =>
        blob.commitBlockList(list, { ...(customerProvidedKey && { customerProvidedKey }) });
      assert.deepEqual(codeOf(await failure(commit(ids, key))), mismatch);
      assert.deepEqual(codeOf(await failure(commit(ids))), missing);
      assert.deepEqual(codeOf(await failure(commit([blockId(2)], key))), needless);
      await stage(1, key);
      await stage(2, key);
      const committed = await commit(ids, key);
      assert.deepEqual([committed.isServerEncrypted, committed.encryptionKeySha256], [true, key.encryptionKeySha256]);
      const content = Buffer.concat(parts);
      assert.deepEqual(await readRange(blob, 0, content.length, key), content);
      assert.deepEqual(await readRange(blob, 69_990, 60, key), content.subarray(69_990, 70_050));
      const list = await blob.getBlockList("committed");
      assert.deepEqual(
        list.committedBlocks?.map(({ size }) => size),
        parts.map(({ length }) => length),
      );
      // Committed blocks stay under the key they have; all new ones may be under a new key.
      await stage(0, other);
      assert.deepEqual(codeOf(await failure(commit(ids, other))), mismatch);
      await stage(0, key);
      await commit([ids[1] as string, ids[0] as string], key);
      assert.deepEqual(
        await blob.downloadToBuffer(0, 0, { customerProvidedKey: key }),
        Buffer.concat([parts[1] as Buffer, parts[0] as Buffer]),
      );
      await stage(2, other);
      await commit([ids[2] as string], other);
      assert.deepEqual(await blob.downloadToBuffer(0, 0, { customerProvidedKey: other }), parts[2]);
    });

    test("append and page blobs: every write under the key of the blob, read at any place", async () => {
      const container = await clients.container();
      const [key, other] = [customerKey(), customerKey()];
      const log = container.getAppendBlobClient("log");
      await log.create({ customerProvidedKey: key });
      assert.deepEqual(codeOf(await failure(log.appendBlock("x", 1))), missing);
      assert.deepEqual(codeOf(await failure(log.appendBlock("x", 1, { customerProvidedKey: other }))), mismatch);
      const appended: Buffer[] = [];
      for (let i = 0; i < 40; i++) {
        const block = bytes(1 + ((i * 7919) % 5_000), i);
        await log.appendBlock(block, block.length, { customerProvidedKey: key });
        appended.push(block);
      }
      const all = Buffer.concat(appended);
      assert.deepEqual(await readRange(log, 0, all.length, key), all);
      assert.deepEqual(await readRange(log, 5_000, 10_000, key), all.subarray(5_000, 15_000));
      await log.seal();

      const disk = container.getPageBlobClient("disk");
      const pages = Buffer.alloc(1024 * 1024);
      await disk.create(pages.length, { customerProvidedKey: key });
      assert.deepEqual(codeOf(await failure(disk.uploadPages(bytes(512), 0, 512))), missing);
      assert.deepEqual(codeOf(await failure(disk.clearPages(0, 512))), missing);
      const write = async (at: number, count: number, seed: number): Promise<void> => {
        const content = bytes(count, seed);
        await disk.uploadPages(content, at, count, { customerProvidedKey: key });
        content.copy(pages, at);
      };
      await write(0, 700 * 512, 1);
      await write(262_144 - 1024, 2048, 2);
      await write(512, 512, 3);
      await write(512, 512, 3);
      await write(900 * 512, 1024, 4);
      await disk.clearPages(10 * 512, 5 * 512, { customerProvidedKey: key });
      pages.fill(0, 10 * 512, 15 * 512);
      const { snapshot = "" } = await disk.createSnapshot({ customerProvidedKey: key });
      const before = Buffer.from(pages);
      await write(20 * 512, 512, 5);
      assert.deepEqual(await readRange(disk, 0, pages.length, key), pages);
      assert.deepEqual(await readRange(disk, 500, 5_000, key), pages.subarray(500, 5_500));
      assert.deepEqual(await readRange(disk.withSnapshot(snapshot), 0, before.length, key), before);
      await disk.resize(512 * 1024);
      assert.deepEqual(await readRange(disk, 0, 512 * 1024, key), pages.subarray(0, 512 * 1024));
    });

    test("copies: a source under a key is copied by who brings its key, under a key of its own or none; Copy Blob can't", async () => {
      const container = await clients.container();
      const [key, other] = [customerKey(), customerKey()];
      const source = container.getBlockBlobClient("source");
      const content = bytes(40_000, 9);
      await source.upload(content, content.length, { customerProvidedKey: key });
      const url = await readableUrl(source);
      const refused = await failure(container.getBlobClient("copy").beginCopyFromURL(url));
      assert.deepEqual(codeOf(refused), [409, "CannotVerifyCopySource"]);
      assert.match(refused.message, /encrypted with customer specified encryption, but it was not provided/);
      assert.deepEqual(codeOf(await failure(container.getBlobClient("copy").syncCopyFromURL(url))), [409, "CannotVerifyCopySource"]);
      const to = `/${container.containerName}`;
      const fromUrl = { "x-ms-blob-type": "BlockBlob", "x-ms-copy-source": url };
      const withKey = headersOf(key, "x-ms-source-encryption");
      assert.equal((await clients.raw("PUT", `${to}/open`, { ...fromUrl, ...withKey })).status, 201);
      assert.deepEqual(await container.getBlobClient("open").downloadToBuffer(), content);
      const again = await clients.raw("PUT", `${to}/again`, { ...fromUrl, ...withKey, ...headersOf(other) });
      assert.deepEqual([again.status, again.headers["x-ms-encryption-key-sha256"]], [201, other.encryptionKeySha256]);
      assert.deepEqual(await readRange(container.getBlobClient("again"), 0, content.length, other), content);
      const wrong = await clients.raw("PUT", `${to}/wrong`, { ...fromUrl, ...headersOf(other, "x-ms-source-encryption") });
      assert.deepEqual([wrong.status, wrong.headers["x-ms-error-code"]], [409, "CannotVerifyCopySource"]);
      const blocks = container.getBlockBlobClient("blocks");
      await blocks.stageBlockFromURL(blockId(0), await readableUrl(container.getBlobClient("open")), 100, 1_000, {
        customerProvidedKey: key,
      });
      const block = { "x-ms-copy-source": url, "x-ms-source-range": "bytes=5-104", ...withKey, ...headersOf(key) };
      const staged = await clients.raw("PUT", `${to}/blocks?comp=block&blockid=${encodeURIComponent(blockId(1))}`, block);
      assert.equal(staged.status, 201, staged.body);
      await blocks.commitBlockList([blockId(0), blockId(1)], { customerProvidedKey: key });
      const expected = Buffer.concat([content.subarray(100, 1_100), content.subarray(5, 105)]);
      assert.deepEqual(await readRange(blocks, 0, expected.length, key), expected);
      // A copy over a blob under a key replaces it.
      await source.upload("plain", 5);
      const copied = await container.getBlobClient("again").beginCopyFromURL(await readableUrl(source));
      await copied.pollUntilDone();
      assert.equal((await container.getBlobClient("again").downloadToBuffer()).toString(), "plain");
    });

    test("a key is refused that is half, malformed or not its digest's, and where an operation has none; no answer repeats it", async () => {
      const container = await clients.container();
      const key = customerKey();
      const path = `/${container.containerName}/b`;
      const whole = headersOf(key);
      const put = (headers: Record<string, string>) => clients.raw("PUT", path, { "x-ms-blob-type": "BlockBlob", ...headers }, "text");
      const without = (name: string) => Object.fromEntries(Object.entries(whole).filter(([each]) => each !== name));
      for (const [headers, code, name] of [
        [without("x-ms-encryption-key"), "MissingRequiredHeader", "x-ms-encryption-key"],
        [without("x-ms-encryption-key-sha256"), "MissingRequiredHeader", "x-ms-encryption-key-sha256"],
        [without("x-ms-encryption-algorithm"), "MissingRequiredHeader", "x-ms-encryption-algorithm"],
        [{ ...whole, "x-ms-encryption-algorithm": "AES128" }, "InvalidHeaderValue", "x-ms-encryption-algorithm"],
        [{ ...whole, "x-ms-encryption-key": `${key.encryptionKey.slice(0, 22)}==` }, "InvalidHeaderValue", "x-ms-encryption-key"],
        [{ ...whole, "x-ms-encryption-key": "no base64" }, "InvalidHeaderValue", "x-ms-encryption-key"],
        [{ ...whole, "x-ms-encryption-key": customerKey().encryptionKey }, "InvalidHeaderValue", "x-ms-encryption-key-sha256"],
        [{ ...whole, "x-ms-version": "2018-11-09" }, "InvalidHeaderValue", "x-ms-encryption-key"],
        [{ ...whole, "x-ms-encryption-key": "" }, "InvalidHeaderValue", "x-ms-encryption-key"],
      ] as const) {
        const answer = await put(headers);
        const named = /<HeaderName>([^<]*)/.exec(answer.body)?.[1];
        assert.deepEqual([answer.status, answer.headers["x-ms-error-code"], named], [400, code, name]);
        assert.ok(!answer.body.includes(key.encryptionKey.slice(0, 20)), answer.body);
      }
      // The answer to a wrong signature shows what was signed.
      const stranger = new SecureClients({ ...target, accountKey: Buffer.alloc(64).toString("base64") });
      const secret = { ...headersOf(key, "x-ms-source-encryption"), "x-ms-copy-source-authorization": `Bearer ${key.encryptionKey}` };
      const source = { "x-ms-copy-source": `${target.endpoint}${path}?sig=${key.encryptionKey}` };
      const unsigned = await stranger.raw("PUT", path, { "x-ms-blob-type": "BlockBlob", ...whole, ...secret, ...source });
      assert.deepEqual([unsigned.status, unsigned.headers["x-ms-error-code"]], [403, "AuthenticationFailed"]);
      assert.ok(unsigned.body.includes("x-ms-encryption-key:REDACTED"), unsigned.body);
      assert.ok(!unsigned.body.includes(key.encryptionKey.slice(0, 20)), unsigned.body);
      assert.equal((await clients.raw("HEAD", path, {})).status, 404, "nothing was stored");
      const algorithm = { "x-ms-encryption-algorithm": "AES256" };
      assert.equal((await put(algorithm)).headers["x-ms-request-server-encrypted"], "false");
      assert.equal((await clients.raw("GET", path, algorithm)).body, "text");
      assert.equal((await put(whole)).status, 201);
      const read = without("x-ms-encryption-algorithm");
      assert.equal((await clients.raw("GET", path, read)).body, "text", "a read may leave out the algorithm");
      const copy = { "x-ms-copy-source": `${target.endpoint}/${target.accountName}${path}` };
      for (const [method, at, headers] of [
        ["DELETE", path, whole],
        ["PUT", `${path}?comp=tier`, { ...whole, "x-ms-access-tier": "Cool" }],
        ["GET", `${path}?comp=blocklist`, whole],
        ["PUT", `${path}-2`, { ...whole, ...copy }],
        ["PUT", `${path}-2`, { ...headersOf(key, "x-ms-source-encryption"), ...copy }],
        ["GET", path, headersOf(key, "x-ms-source-encryption")],
      ] as const) {
        const answer = await clients.raw(method, at, headers);
        assert.deepEqual([answer.status, answer.headers["x-ms-error-code"]], [400, "UnsupportedHeader"], `${method} ${at}`);
      }
    });
  });
}
