/** Tests carriage returns in texts of messages, over the SDK. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { accountDoors } from "./doors.ts";
import { withReturns } from "./returns.ts";

test("archive: carriage returns of messages are read and written, by each client of a queue", async (context) => {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    if (request.method === "POST") bodies.push(await text(request));
    const message =
      "<MessageId>1</MessageId><InsertionTime>Sun, 29 Nov 2026 10:00:00 GMT</InsertionTime><ExpirationTime>Sun, 29 Nov 2026 10:00:00 GMT</ExpirationTime>";
    const taken = "<PopReceipt>1</PopReceipt><TimeNextVisible>Sun, 29 Nov 2026 10:00:00 GMT</TimeNextVisible>";
    const own = request.method === "POST" ? taken : "<DequeueCount>0</DequeueCount><MessageText>a&#xD;&#13;b &amp;#xD;</MessageText>";
    response.writeHead(request.method === "POST" ? 201 : 200, { "content-type": "application/xml" });
    response.end(`<QueueMessagesList><QueueMessage>${message}${own}</QueueMessage></QueueMessagesList>`);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme`;
  const { queues } = accountDoors({ account: "acme", key: "QQ==", urls: { blob: at, queue: at, table: at } });
  for (const name of ["jobs", "others"]) {
    const queue = queues.getQueueClient(name);
    await queue.sendMessage("a\r\nb");
    assert.match(bodies.pop() ?? "", /<MessageText>a&#xD;\nb<\/MessageText>/);
    const [message] = (await queue.peekMessages()).peekedMessageItems;
    assert.equal(withReturns(message?.messageText ?? ""), "a\r\rb &#xD;");
  }
});
