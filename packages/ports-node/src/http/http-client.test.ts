/** HTTP out: what is answered, what may be connected to, and servers that are late, leave, or send elsewhere. */
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createTcpServer, type Socket } from "node:net";
import { after, test } from "node:test";
import { concatBytes, FailureError, unwrap } from "@stamp/base";
import type { OutgoingOptions } from "@stamp/ports";
import { NodeHttpClient, type NodeHttpClientOptions } from "./http-client.ts";

const closers: (() => void)[] = [];
after(() => {
  for (const close of closers) close();
});

function clientOf(options: NodeHttpClientOptions = {}): NodeHttpClient {
  const client = new NodeHttpClient(options);
  closers.push(() => client.close());
  return client;
}

async function serve(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

const everywhere: OutgoingOptions = { timeoutMs: 20_000, bodyTimeoutMs: 20_000, idleTimeoutMs: 20_000, mayConnectTo: () => true };
const get = (port: number, hostname = "127.0.0.1") => ({
  method: "GET" as const,
  secure: false,
  hostname,
  port,
  target: "/a?b=%2F",
  headers: {},
});
async function whole(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return new TextDecoder().decode(concatBytes(chunks));
}
const loopback = [{ address: "127.0.0.1", family: 4 }];

test("HTTP client: target and headers go out as they are, and nothing else but Host", async () => {
  const port = await serve((message, response) => {
    response.setHeader("ETag", '"e"').end(JSON.stringify([message.method, message.url, message.headers]));
  });
  const answer = unwrap(await clientOf().request({ ...get(port), headers: { range: "bytes=0-1" } }, everywhere));
  assert.deepEqual([answer.status, answer.headers.etag], [200, '"e"']);
  const [method, url, headers] = JSON.parse(await whole(answer.body)) as [string, string, Record<string, string>];
  assert.deepEqual([method, url], ["GET", "/a?b=%2F"]);
  assert.deepEqual(Object.keys(headers).sort(), ["connection", "host", "range"]);
});

test("HTTP client: a redirect is an answer, and is not followed", async () => {
  let asked = 0;
  const port = await serve((_message, response) => {
    asked++;
    response.writeHead(302, { Location: "http://127.0.0.1:1/" }).end();
  });
  const answer = unwrap(await clientOf().request(get(port), everywhere));
  await whole(answer.body);
  assert.deepEqual([answer.status, answer.headers.location, asked], [302, "http://127.0.0.1:1/", 1]);
});

test("HTTP client: an address that is not allowed is never connected to, by itself or by a name", async () => {
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const asked: string[] = [];
  const nowhere = {
    ...everywhere,
    mayConnectTo: (address: string) => {
      asked.push(address);
      return false;
    },
  };
  const client = clientOf({ lookup: async () => loopback });
  for (const hostname of ["127.0.0.1", "some.example"]) {
    const refusedOne = await client.request(get(port, hostname), nowhere);
    assert.ok(!refusedOne.ok);
    assert.deepEqual([refusedOne.failure.code, refusedOne.failure.reason], ["permissionDenied", "unauthorized"]);
  }
  assert.deepEqual(asked, ["127.0.0.1", "127.0.0.1"]);
  assert.equal(connections, 0);
});

test("HTTP client: of a name's addresses only those that are allowed are connected to, and it is looked up once for both", async () => {
  const port = await serve((_message, response) => response.end("hello"));
  let lookups = 0;
  const rebinding = async () =>
    lookups++ === 0 ? [{ address: "127.0.0.2", family: 4 }, ...loopback] : [{ address: "127.0.0.3", family: 4 }];
  const client = clientOf({ lookup: rebinding });
  const answer = unwrap(
    await client.request(get(port, "some.example"), { ...everywhere, mayConnectTo: (address) => address === "127.0.0.1" }),
  );
  assert.equal(await whole(answer.body), "hello");
  assert.equal(lookups, 1);
});

test("HTTP client: the address that a connection came to is looked at again", async () => {
  let received = 0;
  const port = await serve((_message, response) => {
    received++;
    response.end();
  });
  let asked = 0;
  // Allowed when it is looked up, not allowed when it is connected.
  const answer = await clientOf({ lookup: async () => loopback }).request(get(port, "some.example"), {
    ...everywhere,
    mayConnectTo: () => asked++ === 0,
  });
  assert.ok(!answer.ok);
  assert.equal(answer.failure.reason, "unauthorized");
  assert.equal(asked, 2);
  assert.equal(received, 0);
});

test("HTTP client: nobody there, a name without address, an answer that never comes", async () => {
  const silent: Socket[] = [];
  const server = createTcpServer((socket) => silent.push(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const late = await clientOf().request(get(port), { ...everywhere, timeoutMs: 50 });
  assert.ok(!late.ok && late.failure.reason === "timeout");
  for (const socket of silent) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
  const gone = await clientOf().request(get(port), everywhere);
  assert.ok(!gone.ok && gone.failure.reason === "connectFailed");
  const failing = async () => {
    throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
  };
  const unknown = await clientOf({ lookup: failing }).request(get(port, "some.example"), everywhere);
  assert.ok(!unknown.ok && unknown.failure.reason === "connectFailed");
  const aborted = await clientOf().request(get(port), { ...everywhere, signal: AbortSignal.abort() });
  assert.ok(!aborted.ok && aborted.failure.reason === "cancelled");
});

test("HTTP client: a body that breaks off, stalls or takes too long is a failure, not a short body", async () => {
  const port = await serve((message, response) => {
    response.writeHead(200, { "Content-Length": "10" });
    response.write("12345");
    if (message.url === "/break") setTimeout(() => response.destroy(), 20);
  });
  const read = async (target: string, options: Partial<OutgoingOptions>) => {
    const answer = unwrap(await clientOf().request({ ...get(port), target }, { ...everywhere, ...options }));
    return whole(answer.body);
  };
  const isBroken = (error: unknown): boolean => error instanceof FailureError && error.failure.reason === "connectionLost";
  await assert.rejects(read("/break", {}), isBroken);
  await assert.rejects(read("/stall", { idleTimeoutMs: 50 }), isBroken);
  await assert.rejects(read("/long", { bodyTimeoutMs: 50 }), isBroken);
  const leaving = new AbortController();
  const answer = unwrap(await clientOf().request({ ...get(port), target: "/abort" }, { ...everywhere, signal: leaving.signal }));
  leaving.abort();
  await assert.rejects(whole(answer.body), isBroken);
});

test("HTTP client: a body that is left ends its connection", async () => {
  let left: () => void = () => {};
  const closed = new Promise<void>((resolve) => {
    left = resolve;
  });
  const port = await serve((_message, response) => {
    response.on("close", left);
    response.writeHead(200, { "Content-Length": "100000000" }).write("x");
  });
  const answer = unwrap(await clientOf().request(get(port), everywhere));
  await answer.body.next();
  await answer.body.return?.();
  await closed;
});

test("HTTP client: what can't be a request is refused, and throws nothing", async () => {
  const answer = await clientOf().request({ ...get(1), target: "/ä b" }, everywhere);
  assert.ok(!answer.ok && answer.failure.code === "invalidArgument");
});
