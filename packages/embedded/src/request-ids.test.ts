/** The id of a client's request in the log lines of every role that worked for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import type { LogFields, Logger } from "@stamp/ports";
import { startStamp, threeOnDisk } from "./index.ts";

interface Line extends LogFields {
  readonly message: string;
  readonly name?: string;
  readonly requestId?: string;
  readonly call?: string;
}

/** Keeps every line, with the fields of its logger. */
function keeping(lines: Line[], own: LogFields = {}): Logger {
  const keep = (message: string, fields: LogFields = {}): void => void lines.push({ ...own, ...fields, message });
  return { debug: keep, info: keep, warn: keep, error: keep, child: (fields) => keeping(lines, { ...own, ...fields }) };
}

/** Returns role and work of the lines about the request, in alphabetical order. */
const worked = (lines: readonly Line[], requestId: string | undefined): string[] =>
  lines
    .filter((line) => requestId !== undefined && line.requestId?.split(",").includes(requestId))
    .map(({ name = "", message, call }) => `${name.replace(/-\d+$/, "")} ${call ?? message}`)
    .sort();

test("request ids: front-end, partition server and all three extent nodes name the request in their log", async (t) => {
  const lines: Line[] = [];
  const stamp = await startStamp({ ...threeOnDisk, logger: keeping(lines) });
  t.after(() => stamp.stop());
  const container = BlobServiceClient.fromConnectionString(stamp.connectionString).getContainerClient("ids");
  await container.create();
  const small = await container.getBlockBlobClient("small").upload("small", 5);
  const written = ["extent-node append", "extent-node replicate", "extent-node replicate"];
  assert.deepEqual(worked(lines, small.requestId), [...written, "front-end request", "partition-server operation"]);

  const content = Buffer.alloc(100_000, "large ");
  const large = container.getBlockBlobClient("large");
  const put = await large.upload(content, content.length);
  // The bytes first, then the row that refers to them.
  assert.deepEqual(worked(lines, put.requestId), [...written, ...written, "front-end request", "partition-server operation"].sort());
  const got = await large.download();
  for await (const _ of got.readableStreamBody ?? []) {
    // All of it is read.
  }
  assert.deepEqual(worked(lines, got.requestId), ["extent-node read", "front-end request", "partition-server operation"]);
});

test("request ids: an append for several requests names all of them", async (t) => {
  const lines: Line[] = [];
  const stamp = await startStamp({ ...threeOnDisk, logger: keeping(lines) });
  t.after(() => stamp.stop());
  const container = BlobServiceClient.fromConnectionString(stamp.connectionString).getContainerClient("ids");
  await container.create();
  const puts = await Promise.all(Array.from({ length: 12 }, (_, at) => container.getBlockBlobClient(`${at}`).upload("small", 5)));
  const appends = lines.filter(({ call }) => call === "append");
  assert.ok(appends.length < 12, "some are committed together");
  for (const { requestId } of puts) assert.ok(worked(lines, requestId).includes("extent-node append"), `${requestId}`);
});
