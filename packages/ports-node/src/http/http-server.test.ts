/** The HTTP door over real sockets: requests, answers, bodies and keep-alive. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { FailureError } from "@stamp/base";
import { serveHttp } from "./http-server.ts";
import { ask, closed, raw, readBody, started } from "./testing/http-client.ts";

test("http: a request reaches its handler as it came, the answer goes out as given", async (t) => {
  let seen: unknown;
  const port = await started(t, async (given) => {
    seen = [given.method, given.target, given.headers["x-ms-meta-a"], given.headers["x-twice"], given.secure, given.remoteAddress];
    const body = await readBody(given.body);
    return {
      status: 201,
      headers: { ETag: '"0x1"', "x-ms-Meta-Name": "v", "Set-Cookie": ["a=1", "b=2"] },
      body: Buffer.concat([body, Buffer.from("!")]),
    };
  });
  const answer = await ask(port, { method: "PUT", path: "/a%20b?x=%2F&y", headers: { "x-ms-meta-a": "1" }, body: Buffer.from("hello") });
  assert.deepEqual(seen, ["PUT", "/a%20b?x=%2F&y", "1", undefined, false, "127.0.0.1"]);
  assert.equal(answer.status, 201);
  assert.equal(answer.body.toString(), "hello!");
  assert.equal(answer.headers["content-length"], "6");
  assert.ok(answer.rawHeaders.includes("x-ms-Meta-Name"), "the name's case is kept");
  assert.deepEqual(answer.headers["set-cookie"], ["a=1", "b=2"]);
  const text = await raw(port, "GET /x HTTP/1.1\r\nHost: h\r\nx-twice: 1\r\nX-Twice: 2\r\nConnection: close\r\n\r\n");
  assert.match(text, /^HTTP\/1.1 201 /);
  assert.equal((seen as unknown[])[3], "1, 2");
});

test("http: the status line says the reason of the answer, or what HTTP has for its status", async (t) => {
  const port = await started(t, async ({ target }) => ({
    status: 404,
    headers: {},
    ...(target === "/why" ? { reason: "It does not exist." } : {}),
  }));
  const told = (target: string) => raw(port, `GET ${target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`);
  assert.match(await told("/why"), /^HTTP\/1\.1 404 It does not exist\.\r\n/);
  assert.match(await told("/"), /^HTTP\/1\.1 404 Not Found\r\n/);
});

test("http: large bodies stream both ways, chunked and with a length, each at the pace of its reader", async (t) => {
  const size = 24 * 1024 * 1024;
  let made = 0;
  const port = await started(t, async (given) => {
    if (given.method === "PUT") {
      let bytes = 0;
      for await (const chunk of given.body) {
        assert.ok(chunk.length <= 1024 * 1024);
        bytes += chunk.length;
      }
      return { status: 200, headers: {}, body: Buffer.from(String(bytes)) };
    }
    const body = async function* (): AsyncIterable<Uint8Array> {
      for (made = 0; made < size; made += 65_536) yield new Uint8Array(65_536);
    };
    return { status: 200, headers: given.target === "/length" ? { "Content-Length": String(size) } : {}, body: body() };
  });
  assert.equal((await ask(port, { method: "PUT", body: Buffer.alloc(size) })).body.toString(), String(size));
  assert.equal((await ask(port, { path: "/length" })).body.length, size);
  const chunked = await ask(port, { path: "/chunked" });
  assert.equal(chunked.body.length, size);
  assert.equal(chunked.headers["transfer-encoding"], "chunked");
  // A reader that does not read holds the maker back.
  const socket = connect(port, "127.0.0.1");
  socket.write("GET /length HTTP/1.1\r\nHost: h\r\n\r\n");
  await once(socket, "readable");
  let before = -1;
  while (made !== before) {
    before = made;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.ok(made < size, "the whole body was made for a reader that does not read");
  socket.destroy();
});

test("http: HEAD and 304 have no body but keep their headers, and the connection goes on", async (t) => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  let returned = false;
  const port = await started(t, async (given) => {
    if (given.target === "/304") return { status: 304, headers: { ETag: "x" } };
    const body = async function* (): AsyncIterable<Uint8Array> {
      try {
        yield new Uint8Array(10);
      } finally {
        returned = true;
      }
    };
    const iterable = body();
    return { status: 200, headers: { "Content-Length": "10" }, body: iterable };
  });
  const head = await ask(port, { method: "HEAD", agent });
  assert.deepEqual([head.status, head.headers["content-length"], head.body.length], [200, "10", 0]);
  assert.equal((await ask(port, { path: "/304", agent })).status, 304);
  assert.equal((await ask(port, { agent })).body.length, 10);
  assert.equal(returned, true);
});

test("http: 100-continue is sent when the handler starts to read, and not when it refuses", async (t) => {
  const port = await started(t, async (given) => {
    if (given.target === "/refuse") return { status: 403, headers: {} };
    return { status: 200, headers: {}, body: await readBody(given.body) };
  });
  const send = (path: string): Promise<{ continued: boolean; status: number }> =>
    new Promise((resolve, reject) => {
      let continued = false;
      const outgoing = request({
        host: "127.0.0.1",
        port,
        agent: false,
        method: "PUT",
        path,
        headers: { Expect: "100-continue", "Content-Length": "3" },
      });
      outgoing.on("continue", () => {
        continued = true;
        outgoing.end("abc");
      });
      outgoing.on("response", (incoming) => {
        incoming.resume();
        incoming.on("end", () => resolve({ continued, status: incoming.statusCode ?? 0 }));
      });
      outgoing.on("error", reject);
      outgoing.flushHeaders();
    });
  assert.deepEqual(await send("/read"), { continued: true, status: 200 });
  assert.deepEqual(await send("/refuse"), { continued: false, status: 403 });
});

test("http: a refused upload is drained when it is small, and the connection serves the next request", async (t) => {
  const port = await started(t, async (given) => (given.method === "PUT" ? { status: 403, headers: {} } : { status: 200, headers: {} }));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  let sockets = 0;
  agent.on("free", (socket: Socket) => {
    if (socket.listenerCount("mark") === 0) {
      sockets += 1;
      socket.on("mark", () => {});
    }
  });
  for (let i = 0; i < 5; i++) {
    assert.equal((await ask(port, { method: "PUT", agent, body: Buffer.alloc(3 * 1024 * 1024) })).status, 403);
    assert.equal((await ask(port, { agent })).status, 200);
  }
  assert.equal(sockets, 1, "one connection served all");
});

test("http: a refused upload that is large gets its answer and the connection is closed", async (t) => {
  const port = await started(t, async () => ({ status: 403, headers: {}, body: Buffer.from("no") }), {
    drainBytesMax: 1024 * 1024,
    drainTimeoutMs: 300,
  });
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString();
  });
  socket.write(`PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: ${100 * 1024 * 1024}\r\n\r\nabc`);
  await closed(socket);
  assert.match(received, /^HTTP\/1.1 403 [\s\S]*Connection: close[\s\S]*no$/i);
});

test("http: a body shorter than announced throws in its reader; the next connection is served", async (t) => {
  let error: unknown;
  const port = await started(t, async (given) => {
    try {
      await readBody(given.body);
    } catch (thrown) {
      error = thrown;
    }
    return { status: 200, headers: {} };
  });
  const socket = connect(port, "127.0.0.1");
  socket.write("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  while (error === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(error instanceof FailureError && error.failure.reason === "connectionLost", String(error));
  assert.equal((await ask(port, {})).status, 200);
});

test("http: the handler sees its client leave, and its body is returned", async (t) => {
  let aborted = false;
  let returned = false;
  const port = await started(t, async (given) => {
    given.signal.addEventListener("abort", () => {
      aborted = true;
    });
    const body = async function* (): AsyncIterable<Uint8Array> {
      try {
        for (;;) yield new Uint8Array(65_536);
      } finally {
        returned = true;
      }
    };
    return { status: 200, headers: {}, body: body() };
  });
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  await once(socket, "data");
  socket.destroy();
  for (let i = 0; i < 6_000 && !(aborted && returned); i++) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual([aborted, returned], [true, true]);
});

test("http: a body that fails or has another length than announced breaks the connection, so that nobody takes it for whole", async (t) => {
  const port = await started(t, async (given) => {
    const body = async function* (): AsyncIterable<Uint8Array> {
      yield new Uint8Array(10);
      if (given.target === "/fails") throw new Error("on purpose");
    };
    return {
      status: 200,
      headers: given.target === "/fails" ? {} : { "Content-Length": given.target === "/longer" ? "5" : "20" },
      body: body(),
    };
  });
  for (const path of ["/fails", "/longer", "/shorter"]) await assert.rejects(ask(port, { path }), path);
});

test("http: a request with thousands of headers reaches its handler with all of them", async (t) => {
  const port = await started(t, async ({ headers }) => ({ status: 200, headers: { "If-Match": headers["if-match"] ?? "dropped" } }));
  const many = Array.from({ length: 5_000 }, (_, i) => `a${i}: b\r\n`).join("");
  const answer = await raw(port, `GET / HTTP/1.1\r\nHost: h\r\n${many}If-Match: kept\r\nConnection: close\r\n\r\n`);
  assert.match(answer, /\r\nIf-Match: kept\r\n/);
});

test("http: a port that is taken is a failure that says so", async (t) => {
  const port = await started(t, async () => ({ status: 200, headers: {} }));
  await assert.rejects(
    serveHttp(async () => ({ status: 200, headers: {} }), { listen: `127.0.0.1:${port}` }),
    (error: unknown) => error instanceof FailureError && /taken/.test(error.message),
  );
});
