/** How the HTTP server reads request heads: the forms of targets, and where a request ends. Over raw connections. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import type { HttpHandler } from "@stamp/ports";
import { serveHttp } from "./http-server.ts";

async function started(t: TestContext, handler: HttpHandler): Promise<number> {
  const listener = await serveHttp(handler, { listen: "127.0.0.1:0" });
  t.after(() => listener.close(0));
  return Number(listener.address.slice(listener.address.lastIndexOf(":") + 1));
}

/** Sends raw bytes and returns everything that comes until the server closes. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  socket.write(text);
  await once(socket, "close");
  return received;
}

test("http: an absolute-form target is seen as path and host; other targets come as they are", async (t) => {
  const port = await started(t, async ({ target, headers }) => ({
    status: 200,
    headers: {},
    body: Buffer.from(`${headers.host} ${target}`),
  }));
  for (const [target, seen] of [
    ["/a?b", "h /a?b"],
    ["http://other:1/a%20b?c=%2F", "other:1 /a%20b?c=%2F"],
    ["HTTPS://other", "other /"],
    ["http://u:p@other/a", "h http://u:p@other/a"],
  ] as const) {
    const text = await raw(port, `GET ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
    assert.ok(text.endsWith(`\r\n\r\n${seen}`), text);
  }
  assert.match(
    await raw(port, "GET http://other/ HTTP/1.1\r\nConnection: close\r\n\r\n"),
    /^HTTP\/1\.1 400 /,
    "the Host header has to be there all the same",
  );
});

test("http: bodies of GET, HEAD and DELETE that nobody reads are dropped, and never read as the next request", async (t) => {
  const seen: string[] = [];
  const port = await started(t, async ({ method, target }) => {
    seen.push(`${method} ${target}`);
    return { status: 200, headers: {} };
  });
  const hidden = "DELETE /hidden HTTP/1.1\r\nHost: h\r\n\r\n";
  const counted = `Content-Length: ${hidden.length}\r\n\r\n${hidden}`;
  const chunked = `Transfer-Encoding: chunked\r\n\r\n${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
  for (const method of ["GET", "HEAD", "DELETE"]) {
    for (const body of [counted, chunked]) {
      seen.length = 0;
      const request = `${method} /first HTTP/1.1\r\nHost: h\r\n${body}`;
      const answers = await raw(port, `${request}GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
      // How much follows is not known of a body in chunks: the connection ends with its answer.
      assert.deepEqual(seen, body === counted ? [`${method} /first`, "GET /last"] : [`${method} /first`]);
      assert.equal(answers.split("HTTP/1.1 200").length, seen.length + 1, answers);
    }
  }
});
