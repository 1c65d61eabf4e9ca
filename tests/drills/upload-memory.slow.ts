/**
 * 2 GiB with the real SDK, in blocks of 8 MiB, 4 in parallel, into a cluster that has just started: bytes pass through, no process keeps
 * more than 150 MiB of them (docs/design/processes.md).
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { startOwn } from "@stamp/drills";
import { watchResidents } from "./resident.ts";

const mebibyte = 1024 * 1024;
const blockBytes = 8 * mebibyte;
const blockCount = 256;
const parallel = 4;
const growthMebibytesMax = 150;

const target = await startOwn({}, false);
after(() => target.close());

/** Its content differs from block to block. */
function fill(buffer: Buffer, block: number): Buffer {
  for (let at = 0; at < buffer.length; at += 4096) buffer.writeUInt32BE(block * 4096 + at / 4096, at);
  return buffer;
}

test("2 GiB in blocks raise no process by more than 150 MiB", async () => {
  const container = BlobServiceClient.fromConnectionString(target.connectionString).getContainerClient("upload-memory");
  await container.create();
  const client = container.getBlockBlobClient("big");
  const residents = await watchResidents(target);
  const idOf = (block: number): string => Buffer.from(String(block).padStart(6, "0")).toString("base64");
  const startMs = performance.now();
  let next = 0;
  const worker = async (): Promise<void> => {
    const buffer = Buffer.alloc(blockBytes, "the quick brown fox; ");
    for (let block = next++; block < blockCount; block = next++) await client.stageBlock(idOf(block), fill(buffer, block), blockBytes);
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  await client.commitBlockList(Array.from({ length: blockCount }, (_, block) => idOf(block)));
  const seconds = (performance.now() - startMs) / 1000;
  await residents.stop();

  const expected = createHash("md5");
  const buffer = Buffer.alloc(blockBytes, "the quick brown fox; ");
  for (let block = 0; block < blockCount; block++) expected.update(fill(buffer, block));
  const actual = createHash("md5");
  const { readableStreamBody } = await client.download(0, undefined, { maxRetryRequests: 5 });
  assert.ok(readableStreamBody);
  for await (const chunk of readableStreamBody) actual.update(chunk as Buffer);
  assert.equal(actual.digest("hex"), expected.digest("hex"));

  const growth = [...residents.largest].map(([name, size]) => ({ name, mebibytes: size - (residents.first.get(name) ?? 0) }));
  const figures = growth.map(({ name, mebibytes }) => `${name} +${mebibytes}`).join(", ");
  console.log(`uploaded in ${seconds.toFixed(1)} s; resident size, MiB: ${figures}`);
  for (const { name, mebibytes } of growth) assert.ok(mebibytes <= growthMebibytesMax, `${name} grew by ${mebibytes} MiB`);
});
