import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { measure } from "./measure.ts";

/** Looks for more requests, 20 ms apart, before a test gives up. */
const looksMax = 3_000;

/** Answers each request with 201 after 10 ms. */
async function startServer() {
  let requests = 0;
  const server = createServer((request, response) => {
    requests++;
    request.resume().once("end", () => setTimeout(() => response.writeHead(201).end(), 10));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/account`;
  const connectionString = `AccountName=account;AccountKey=a2V5;BlobEndpoint=${url};QueueEndpoint=${url};TableEndpoint=${url}`;
  return {
    target: { connectionString, pids: new Map<string, number>() },
    requests: () => requests,
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

test("measure: what runs beside it begins after it and is over before it", async () => {
  const { target, requests, stop } = await startServer();
  try {
    let isOver = false;
    // It would end after a few requests.
    const measured = await measure(target, { scenario: "put 1 KiB", clients: 1 }, 0.01, "test", async () => {
      const enough = requests() + 50;
      for (let looks = 0; requests() < enough && looks < looksMax; looks++) await new Promise((passed) => setTimeout(passed, 20));
      isOver = requests() >= enough;
    });
    assert.ok(isOver && measured.operations >= 48, `${measured.operations} operations`);
    const alone = await measure(target, { scenario: "put 1 KiB", clients: 1 }, 0.01, "test");
    assert.ok(alone.operations >= 1 && alone.failed === 0);
    const failing = measure(target, { scenario: "put 1 KiB", clients: 1 }, 0.01, "test", () => Promise.reject(new Error("beside")));
    await assert.rejects(failing, /beside/);
  } finally {
    stop();
  }
});
