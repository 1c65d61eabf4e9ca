/**
 * A front-end is killed in the middle of an asynchronous copy on a real cluster. The copy is a row of its destination: after a minute without
 * its copier another front-end, which is asked about it, goes on with the next part, and the copy completes with the same bytes.
 *
 * The source is elsewhere and stops inside of its third part until the front-end is dead, so the kill is in the middle, always.
 */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { startOwn } from "@stamp/drills";

const mebibyte = 1024 * 1024;
const totalBytes = 40 * mebibyte;
const partBytes = 8 * mebibyte;
const takenOverWithinMs = 180_000;

const content = Buffer.alloc(totalBytes);
for (let at = 0; at < totalBytes; at += 4096) content.writeUInt32BE(at / 4096, at);

let stopped = true;
const held: ServerResponse[] = [];
const asked: string[] = [];
const source = createServer((message, response) => {
  response.setHeader("ETag", '"of-the-source"');
  if (message.method === "HEAD") return response.setHeader("Content-Length", String(totalBytes)).end();
  const [start = 0, last = 0] =
    /bytes=(\d+)-(\d+)/
      .exec(message.headers.range ?? "")
      ?.slice(1)
      .map(Number) ?? [];
  asked.push(`${start / mebibyte} MiB`);
  const part = content.subarray(start, last + 1);
  response.writeHead(206, { "Content-Range": `bytes ${start}-${last}/${totalBytes}`, "Content-Length": part.length });
  if (!stopped || start < 2 * partBytes) return response.end(part);
  held.push(response);
  return response.write(part.subarray(0, mebibyte));
});
await new Promise<void>((resolve) => source.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${(source.address() as AddressInfo).port}/file?sig=secret`;

const target = await startOwn({ frontEnds: 2, copySources: ["http://127.0.0.1:*"] }, false);
after(async () => {
  await target.close();
  source.close();
  source.closeAllConnections();
});

/** The second front-end serves on the first one's port + 10. */
function clientOf(frontEnd: number) {
  const moved = target.connectionString.replace(
    /(BlobEndpoint=http:\/\/[^:]+:)(\d+)/,
    (_, host, port) => `${host}${Number(port) + 10 * (frontEnd - 1)}`,
  );
  return BlobServiceClient.fromConnectionString(moved).getContainerClient("copies").getBlockBlobClient("copied");
}
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test("a copy whose front-end is killed is taken over by another one and completes", async () => {
  const [first, second] = [clientOf(1), clientOf(2)];
  await BlobServiceClient.fromConnectionString(target.connectionString).createContainer("copies");
  await first.beginCopyFromURL(url);
  while (held.length === 0) await pause(20);
  const before = await second.getProperties();
  assert.deepEqual([before.copyStatus, before.copyProgress], ["pending", `${2 * partBytes}/${totalBytes}`]);
  assert.doesNotMatch(before.copySource ?? "", /secret/);

  await target.ask({ do: "hold", name: "front-end-1" });
  await target.ask({ do: "signal", name: "front-end-1", signal: "SIGKILL" });
  stopped = false;
  const killedMs = performance.now();
  for (;;) {
    const { copyStatus, copyId } = await second.getProperties();
    assert.equal(copyId, before.copyId);
    if (copyStatus === "success") break;
    assert.equal(copyStatus, "pending");
    assert.ok(performance.now() - killedMs < takenOverWithinMs, "it is taken over");
    await pause(500);
  }
  console.log(
    `taken over and done ${((performance.now() - killedMs) / 1000).toFixed(1)} s after the kill; asked for parts at ${asked.join(", ")}`,
  );
  assert.ok(content.equals(await second.downloadToBuffer()));
  assert.deepEqual(
    asked.slice(0, 4),
    ["0 MiB", "8 MiB", "16 MiB", "16 MiB"],
    "it goes on with the part that was under way, not from the start",
  );
});
