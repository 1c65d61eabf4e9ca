/** Customer-provided keys, against scripted neighbours and a whole stamp in one process; and what lies on its disks afterwards. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeToken } from "@stamp/azure-rest";
import { extentId, type Failure, FailureError, unwrap } from "@stamp/base";
import { startStamp, threeOnDisk } from "@stamp/embedded";
import { encodeFrameHeader, extentContentOffset, frameHeaderBytes } from "@stamp/extent";
import { unitTagBytes } from "@stamp/objects";
import type { LogFields, Logger } from "@stamp/ports";
import { NodeDigest, serveHttp } from "@stamp/ports-node";
import { FrontEnd } from "@stamp/wire";
import { testCertificate } from "./certificate.ts";
import { customerKey, customerKeySuite, headersOf, SecureClients, type SecureTarget } from "./customer-keys.ts";
import { accountKey, accountName, startScriptedStamp } from "./scripted-stamp.ts";
import { bytes, Clients } from "./target.ts";

customerKeySuite("scripted neighbours", async () => {
  const certificate = await testCertificate();
  const stamp = await startScriptedStamp();
  const listener = await serveHttp(stamp.frontEnd.blob, { listen: "127.0.0.1:0", tls: certificate.tls });
  const stop = async (): Promise<void> => {
    await listener.close(100);
    await stamp.stop();
    certificate.remove();
  };
  return { endpoint: `https://${listener.address}`, accountName, accountKey, ca: certificate.ca, stop };
});

const embedded = async (options: Parameters<typeof startStamp>[0] = {}): Promise<SecureTarget> => {
  const certificate = await testCertificate();
  const stamp = await startStamp({ ...threeOnDisk, ...options, tls: certificate.tls });
  const stop = async (): Promise<void> => {
    await stamp.stop();
    certificate.remove();
  };
  return { endpoint: new URL(stamp.endpoints.blob).origin, accountName, accountKey, ca: certificate.ca, stop };
};

customerKeySuite("embedded stamp", embedded);

/** Every line, also those of debugging; bytes in hexadecimal. */
function collectingLogger(lines: string[], more: LogFields = {}): Logger {
  const add = (message: string, fields: LogFields = {}): void => {
    const hex = (_: string, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value);
    const big = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : hex(_, value));
    lines.push(`${message} ${JSON.stringify({ ...more, ...fields }, big)}`);
  };
  return { debug: add, info: add, warn: add, error: add, child: (fields) => collectingLogger(lines, { ...more, ...fields }) };
}

test("customer-provided keys, after a restart: content is there, and neither it nor the key is in a file or a log line", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-keys-"));
  const lines: string[] = [];
  const key = customerKey("restart");
  const keyBytes = Buffer.from(key.encryptionKey, "base64");
  const [plainMark, secretMark] = [bytes(48, 71), bytes(48, 72)];
  // Small content lies in rows, large content in extents.
  const large = (mark: Buffer): Buffer => Buffer.concat([bytes(100_000, 3), mark, bytes(100_000, 4)]);
  try {
    const first = await embedded({ dataDir: folder, logger: collectingLogger(lines) });
    const clients = new SecureClients(first);
    const container = await clients.container();
    const path = `/${container.containerName}`;
    for (const [name, content] of [
      ["small", secretMark],
      ["large", large(secretMark)],
    ] as const) {
      await container.getBlockBlobClient(name).upload(content, content.length, { customerProvidedKey: key });
    }
    await container.getBlockBlobClient("open").upload(plainMark, plainMark.length);
    await container.getBlockBlobClient("open-large").upload(large(plainMark), large(plainMark).length);
    // Twice the same bytes at the same place are never stored the same.
    const disk = container.getPageBlobClient("disk");
    await disk.create(1024, { customerProvidedKey: key });
    const page = Buffer.alloc(512, secretMark);
    for (let i = 0; i < 2; i++) await disk.uploadPages(page, 0, 512, { customerProvidedKey: key });
    assert.equal((await clients.raw("GET", `${path}/small`, { ...headersOf(key), "x-ms-encryption-key-sha256": "" })).status, 400);
    assert.equal((await clients.raw("PUT", `${path}/none?comp=block&blockid=!`, headersOf(key), "x")).status, 400);
    await first.stop();

    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    const stored = Buffer.concat(files.map((each) => readFileSync(join(each.parentPath, each.name))));
    assert.ok(stored.includes(plainMark), "bytes without a key are found, so the search would find others");
    const digest = Buffer.from(key.encryptionKeySha256, "base64");
    assert.ok(stored.includes(digest), "the digest of the key is stored");
    for (const secret of [secretMark, keyBytes, Buffer.from(key.encryptionKey), Buffer.from(keyBytes.toString("hex"))]) {
      assert.ok(!stored.includes(secret), `stored: ${secret.toString("hex")}`);
    }
    assert.ok(
      lines.some((line) => line.startsWith("request ") && line.includes("/small")),
      "requests are logged",
    );
    for (const secret of [key.encryptionKey, keyBytes.toString("hex"), encodeURIComponent(key.encryptionKey)]) {
      assert.deepEqual(
        lines.filter((line) => line.includes(secret)),
        [],
      );
    }

    const second = await embedded({ dataDir: folder });
    try {
      const again = new SecureClients(second).service.getContainerClient(container.containerName);
      const options = { customerProvidedKey: key };
      assert.deepEqual(await again.getBlobClient("small").downloadToBuffer(0, 0, options), secretMark);
      assert.deepEqual(
        await again.getBlobClient("large").downloadToBuffer(99_000, 2_000, options),
        large(secretMark).subarray(99_000, 101_000),
      );
      assert.deepEqual(await again.getBlobClient("disk").downloadToBuffer(0, 512, options), page);
    } finally {
      await second.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Flips a bit of byte `flippedAt` of every stored block of this length, and has all checksums fit. Returns the number of changed blocks. */
function flipBits(folder: string, payloadBytes: number, flippedAt: number): number {
  const digest = new NodeDigest();
  const crc32c = (bytes: Uint8Array, before?: number) => digest.crc32c(bytes, before);
  let flipped = 0;
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(({ name }) => name.endsWith(".extent"));
  for (const file of files) {
    const path = join(file.parentPath, file.name);
    const extent = new Uint8Array(readFileSync(path));
    const search = Buffer.from(extent.buffer);
    for (let at = search.indexOf("SBLK"); at >= 0; at = search.indexOf("SBLK", at + 1)) {
      if (new DataView(extent.buffer).getUint32(at + 8, true) !== payloadBytes) continue;
      const headerBytes = frameHeaderBytes(payloadBytes);
      const payload = extent.subarray(at + headerBytes, at + headerBytes + payloadBytes);
      payload[flippedAt] = (payload[flippedAt] as number) ^ 1;
      extent.set(encodeFrameHeader(crc32c, extentId(Number.parseInt(file.name, 16)), at - extentContentOffset, payload), at);
      flipped++;
    }
    writeFileSync(path, extent);
  }
  return flipped;
}

test("customer-provided keys: a bit that was flipped on the disks, with checksums that fit, is found before a byte of its unit is served", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-keys-"));
  const key = customerKey("flipped");
  const options = { customerProvidedKey: key };
  const content = bytes(200_048, 5);
  const storedBytes = content.length + 4 * unitTagBytes;
  const page = bytes(65_536, 6);
  try {
    const first = await embedded({ dataDir: folder });
    const container = await new SecureClients(first).container();
    await container.getBlockBlobClient("large").upload(content, content.length, options);
    const disk = container.getPageBlobClient("disk");
    await disk.create(page.length, options);
    await disk.uploadPages(page, 0, page.length, options);
    await first.stop();
    // A start brings what is in the journals alone into the extent files.
    await (await embedded({ dataDir: folder })).stop();
    assert.ok(flipBits(folder, storedBytes, 70_000) > 0, "the block was found on the disks");
    assert.ok(flipBits(folder, page.length + 128 * unitTagBytes, 10_000) > 0, "the pages were found on the disks");

    const second = await embedded({ dataDir: folder });
    try {
      const again = new SecureClients(second).service.getContainerClient(container.containerName);
      const read = (name: string, from: number, count: number) => again.getBlobClient(name).downloadToBuffer(from, count, options);
      // Byte 70,000 of what is stored is byte 69,984 of the content, in the second of four units.
      assert.deepEqual(await read("large", 0, 65_536), content.subarray(0, 65_536));
      assert.deepEqual(await read("large", 131_072, 68_976), content.subarray(131_072));
      for (const [from, count] of [
        [65_536, 10],
        [0, 200_048],
        [131_000, 100],
      ] as const)
        await assert.rejects(read("large", from, count), `from ${from}`);
      // A page and its tag are 528 bytes: the flipped one is page 18, and all others are served.
      const flippedBytes = 18 * 512;
      assert.deepEqual(await read("disk", 0, flippedBytes), page.subarray(0, flippedBytes));
      assert.deepEqual(await read("disk", flippedBytes + 512, 1_024), page.subarray(flippedBytes + 512, flippedBytes + 1_536));
      await assert.rejects(read("disk", flippedBytes, 512), "the flipped page");
    } finally {
      await second.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("customer-provided keys and gRPC: a call has no key, and the digest of one does not open a blob", async () => {
  const certificate = await testCertificate();
  const stamp = await startScriptedStamp();
  const listener = await serveHttp(stamp.frontEnd.blob, { listen: "127.0.0.1:0", tls: certificate.tls });
  try {
    const target = { endpoint: `https://${listener.address}`, accountName, accountKey, ca: certificate.ca, stop: async () => {} };
    const container = await new SecureClients(target).container();
    const key = customerKey();
    for (const [name, options] of [
      ["secret", { customerProvidedKey: key }],
      ["open", {}],
    ] as const) {
      await container.getBlockBlobClient(name).upload("text", 4, { ...options, metadata: { a: name } });
    }
    const hmac = (secret: Uint8Array, message: Uint8Array) => createHmac("sha256", secret).update(message).digest();
    const token = makeToken({ account: accountName, expiresMs: Date.now() + 60_000 }, Buffer.from(accountKey, "base64"), hmac);
    const options = { timeoutMs: 5_000, metadata: { authorization: `Bearer ${token}` } };
    const door = stamp.world.transport.client("front-end-1", FrontEnd);
    const of = { account: accountName, container: container.containerName };
    const page = unwrap(await door.listBlobs(of, options));
    const listed = page.entries.map(
      ({ kind }) => kind.case === "blob" && [kind.value.name, kind.value.metadata, kind.value.encryptionKeySha256],
    );
    const encryptionKeySha256 = new Uint8Array(Buffer.from(key.encryptionKeySha256, "base64"));
    assert.deepEqual(listed, [
      ["open", { a: "open" }, undefined],
      ["secret", {}, encryptionKeySha256],
    ]);
    const codeOf = (answer: { readonly ok: boolean; readonly failure?: Failure }) =>
      answer.ok || answer.failure?.details?.["x-ms-error-code"];
    const secret = { ...of, blob: "secret" };
    const byDigest = { ...secret, conditions: { encryptionKeySha256 } };
    assert.equal(codeOf(await door.getBlobProperties(secret, options)), "BlobUsesCustomerSpecifiedEncryption");
    assert.equal(codeOf(await door.getBlobProperties(byDigest, options)), "InvalidInput");
    assert.equal(codeOf(await door.deleteBlob(byDigest, options)), "InvalidInput");
    const put = async function* () {
      yield byDigest;
    };
    assert.equal(codeOf(await door.putBlob(put(), options)), "InvalidInput");
    for (const [asked, code] of [
      [secret, "BlobUsesCustomerSpecifiedEncryption"],
      [byDigest, "InvalidInput"],
    ] as const) {
      const read = (async () => {
        for await (const _ of door.getBlob(asked, options)) assert.fail("a message of a blob under a key");
      })();
      await assert.rejects(read, (error) => error instanceof FailureError && error.failure.details?.["x-ms-error-code"] === code);
    }
  } finally {
    await listener.close(100);
    await stamp.stop();
    certificate.remove();
  }
});

test("customer-provided keys over HTTP: refused before anything is stored, also where only the digest came", async () => {
  const stamp = await startScriptedStamp();
  try {
    const target = { endpoint: stamp.endpoint, accountName, accountKey, stop: async () => {} };
    const clients = new Clients(target);
    const container = await clients.container();
    const headers: Record<string, string> = { "x-ms-blob-type": "BlockBlob", ...headersOf(customerKey()) };
    const path = `/${container.containerName}/b`;
    const put = await clients.raw("PUT", path, { body: "text", headers });
    assert.deepEqual([put.status, put.headers.get("x-ms-error-code")], [400, "InvalidHeaderValue"]);
    const { "x-ms-encryption-key": _, ...digestOnly } = headers;
    assert.equal((await clients.raw("PUT", path, { body: "text", headers: digestOnly })).status, 400);
    assert.equal(await container.getBlobClient("b").exists(), false);
  } finally {
    await stamp.stop();
  }
});
