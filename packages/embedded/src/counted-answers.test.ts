import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { BlobServiceClient, ContainerSASPermissions } from "@azure/storage-blob";
import { startStamp } from "./index.ts";

const blobs = 900;
/** Metadata of each blob, in bytes. */
const metadataBytes = 7 * 1024;

test("a list that its client does not read counts as bytes of downloads until the client is gone", { timeout: 60_000 }, async () => {
  const stamp = await startStamp();
  try {
    const container = BlobServiceClient.fromConnectionString(stamp.connectionString).getContainerClient("listed");
    await container.create();
    const metadata = { a: "x".repeat(metadataBytes) };
    for (let at = 0; at < blobs; at += 30) {
      await Promise.all(Array.from({ length: 30 }, (_, i) => container.getBlockBlobClient(`b${at + i}`).upload("", 0, { metadata })));
    }
    const heldBytes = (): number =>
      Number(/^stamp_front_end_download_buffer_bytes(?:\{[^}]*\})? (\d+)$/m.exec(Object.values(stamp.metrics()).join(""))?.[1]);
    assert.equal(heldBytes(), 0);

    const expiresOn = new Date(Date.now() + 3_600_000);
    const url = new URL(await container.generateSasUrl({ permissions: ContainerSASPermissions.parse("l"), expiresOn }));
    const socket = connect(Number(url.port), url.hostname);
    socket.on("error", () => {});
    socket.pause();
    socket.write(`GET ${url.pathname}${url.search}&restype=container&comp=list&include=metadata HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
    const until = async (holds: () => boolean): Promise<void> => {
      while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    await until(() => heldBytes() > blobs * metadataBytes);
    socket.destroy();
    await until(() => heldBytes() === 0);

    // A client that reads gets all of it.
    let read = 0;
    for await (const page of container.listBlobsFlat({ includeMetadata: true }).byPage()) read += page.segment.blobItems.length;
    assert.equal(read, blobs);
    await until(() => heldBytes() === 0);
  } finally {
    await stamp.stop();
  }
});
