/**
 * A large upload with the real SDK: blocks of 100 MiB, 8 in parallel, while an extent node is killed and the front-end is restarted. It
 * completes by the SDK's own retries, reads back with the same hash, and no process outgrows its bound.
 *
 * STAMP_BIG_UPLOAD_GIB says how large it is: 1 unless told otherwise, so that three copies and their journals fit on small disks.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { startOwn } from "@stamp/drills";
import { watchResidents } from "./resident.ts";

const mebibyte = 1024 * 1024;
const blockBytes = 100 * mebibyte;
const parallel = 8;
const sizeBytes = Math.round(Number(process.env.STAMP_BIG_UPLOAD_GIB ?? "1") * 1024) * mebibyte;
/** Of any process. Heap, buffers under the budgets of its configuration, and what the allocator keeps (docs/design/processes.md). */
const residentBytesMax = 768 * mebibyte;

const target = await startOwn({}, false);
after(() => target.close());

/** Chunks of a block that differ from block to block and from chunk to chunk. */
const pattern = Buffer.alloc(mebibyte, "the quick brown fox jumps over the lazy dog; ");
function* chunksOf(block: number, lengthBytes: number): Generator<Buffer> {
  for (let at = 0; at < lengthBytes; at += mebibyte) {
    const chunk = Buffer.from(pattern.subarray(0, Math.min(mebibyte, lengthBytes - at)));
    chunk.writeDoubleBE(block, 0);
    chunk.writeDoubleBE(at, 8);
    yield chunk;
  }
}

async function nameOf(role: string): Promise<string> {
  const found = (await target.status()).processes.filter(({ name }) => name.startsWith(role)).at(-1);
  assert.ok(found, role);
  return found.name;
}

/** The supervisor starts it again. */
async function kill(role: string): Promise<void> {
  const name = await nameOf(role);
  console.log(`kill -9 ${name}`);
  await target.ask({ do: "signal", name, signal: "SIGKILL" });
}

async function restart(role: string): Promise<void> {
  const name = await nameOf(role);
  console.log(`restart of ${name}`);
  await target.ask({ do: "hold", name });
  await target.ask({ do: "start", name });
}

test(`${sizeBytes / mebibyte} MiB in blocks of 100 MiB survive an extent node and a front-end`, async (t) => {
  const service = BlobServiceClient.fromConnectionString(target.connectionString);
  const container = service.getContainerClient("big-upload");
  await container.create();
  const client = container.getBlockBlobClient("big");
  const lengths: number[] = [];
  for (let left = sizeBytes; left > 0; left -= blockBytes) lengths.push(Math.min(left, blockBytes));
  const idOf = (block: number): string => Buffer.from(String(block).padStart(6, "0")).toString("base64");

  const residents = await watchResidents(target);
  // Else a failure is told only when the time of the file is over.
  t.after(() => residents.stop());
  let done = 0;
  const faults = [
    { at: Math.floor(lengths.length / 4), run: () => kill("extent-node") },
    { at: Math.floor(lengths.length / 2), run: () => restart("front-end") },
    { at: Math.floor((lengths.length * 3) / 4), run: () => kill("front-end") },
  ];
  const startMs = performance.now();
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let block = next++; block < lengths.length; block = next++) {
      const length = lengths[block] as number;
      await client.stageBlock(idOf(block), () => Readable.from(chunksOf(block, length), { objectMode: false }), length);
      done++;
      const due = faults[0];
      if (due && done >= due.at) {
        faults.shift();
        await due.run();
      }
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  await client.commitBlockList(lengths.map((_, block) => idOf(block)));
  const uploadedMs = performance.now() - startMs;
  assert.equal(faults.length, 0, "every fault came");

  const expected = createHash("md5");
  for (const [block, length] of lengths.entries()) for (const chunk of chunksOf(block, length)) expected.update(chunk);
  const actual = createHash("md5");
  const readStartMs = performance.now();
  const { readableStreamBody } = await client.download(0, undefined, { maxRetryRequests: 5 });
  assert.ok(readableStreamBody);
  for await (const chunk of readableStreamBody) actual.update(chunk as Buffer);
  const readMs = performance.now() - readStartMs;
  await residents.stop();
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  console.log(`uploaded in ${seconds(uploadedMs)} s, read back in ${seconds(readMs)} s`);
  console.log(`largest resident size, MiB: ${[...residents.largest].map(([name, size]) => `${name} ${size}`).join(", ")}`);
  assert.equal(actual.digest("hex"), expected.digest("hex"));
  for (const [name, size] of residents.largest) assert.ok(size * mebibyte <= residentBytesMax, `${name} took ${size} MiB`);
});
