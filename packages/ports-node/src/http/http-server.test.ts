/** The HTTP door over real sockets: bodies, keep-alive, clients that misbehave. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:http";
import type { Socket } from "node:net";
import { connect } from "node:net";
import type { TestContext } from "node:test";
import { test } from "node:test";
import { FailureError } from "@stamp/base";
import type { HttpHandler, HttpRefusal } from "@stamp/ports";
import type { HttpLimits } from "./http-limits.ts";
import { serveHttp } from "./http-server.ts";

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(":") + 1));

async function started(t: TestContext, handler: HttpHandler, limits: Partial<HttpLimits> = {}): Promise<number> {
  const listener = await serveHttp(handler, { listen: "127.0.0.1:0", limits });
  t.after(() => listener.close(0));
  return portOf(listener.address);
}

function ask(
  port: number,
  options: { method?: string; path?: string; headers?: Record<string, string>; agent?: Agent; body?: Buffer },
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { body, ...rest } = options;
    const outgoing = request({ host: "127.0.0.1", port, agent: false, ...rest }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () =>
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          rawHeaders: incoming.rawHeaders,
          body: Buffer.concat(chunks),
        }),
      );
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Like `once`, which rejects when the peer resets the connection first. */
const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once("close", () => resolve()));

/** Sends raw bytes and gives all that comes until the server closes. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  socket.write(text);
  await closed(socket);
  return received;
}

const readBody = async (body: AsyncIterable<Uint8Array>): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks);
};

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

test("http: noise, headers that are too large, and a handler with a bug get their status; the server lives", async (t) => {
  const port = await started(t, async (given) => {
    if (given.target === "/bug") throw new Error("on purpose");
    return { status: 200, headers: {} };
  });
  assert.match(await raw(port, "\x00\x01noise\r\n\r\n"), /^HTTP\/1.1 400 /);
  assert.match(await raw(port, "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n"), /^HTTP\/1.1 400 /);
  assert.match(await raw(port, `GET / HTTP/1.1\r\nHost: h\r\nX: ${"y".repeat(100_000)}\r\n\r\n`), /^HTTP\/1.1 431 /);
  assert.equal((await ask(port, { path: "/bug" })).status, 500);
  assert.equal((await ask(port, {})).status, 200);
});

test("http: what is no request is told to the handler with what is wrong with it, and answered in its words", async (t) => {
  const handler: HttpHandler = Object.assign(async () => ({ status: 200, headers: {} }), {
    refused: (why: HttpRefusal) => ({ status: 400, headers: { Why: why, Twice: ["1", "2"] }, body: Buffer.from(`<${why}>`) }),
  });
  const port = await started(t, handler, { headerTimeoutMs: 300 });
  const host = "HTTP/1.1\r\nHost: h\r\n";
  const cases: [string, HttpRefusal][] = [
    ["\x00\x01noise\r\n\r\n", "verb"],
    ["CONNECT other:1 HTTP/1.1\r\nHost: other:1\r\n\r\n", "verb"],
    [`GET /\x01 ${host}\r\n`, "target"],
    [`GET / ${host}A b: c\r\n\r\n`, "header"],
    [`GET / ${host}A: b\x01\r\n\r\n`, "header"],
    [`GET / ${host}Content-Length: x\r\n\r\n`, "contentLength"],
    [`GET / ${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, "contentLength"],
    [`GET / ${host}Transfer-Encoding: chunked, chunked, x\r\n\r\n`, "transferEncoding"],
    [`GET / ${host}X: ${"y".repeat(100_000)}\r\n\r\n`, "headersTooLarge"],
    [`GET /${"y".repeat(100_000)} ${host}\r\n`, "headersTooLarge"],
    ["GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "hostMissing"],
    [`GET / ${host}Expect: cake\r\nConnection: close\r\n\r\n`, "expectation"],
    ["GET / HTTQ/1.1\r\nHost: h\r\n\r\n", "malformed"],
    [`GET / ${host}`, "late"],
  ];
  for (const [sent, why] of cases) {
    const answer = await raw(port, sent);
    assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/, sent.slice(0, 60));
    assert.match(answer, new RegExp(`\r\nWhy: ${why}\r\nTwice: 1\r\nTwice: 2\r\n`), sent.slice(0, 60));
    assert.match(answer, /\r\nConnection: close\r\n/, sent.slice(0, 60));
    assert.ok(answer.endsWith(`\r\n\r\n<${why}>`), sent.slice(0, 60));
  }
});

test("http: a request with thousands of headers reaches its handler with all of them", async (t) => {
  const port = await started(t, async ({ headers }) => ({ status: 200, headers: { "If-Match": headers["if-match"] ?? "dropped" } }));
  const many = Array.from({ length: 5_000 }, (_, i) => `a${i}: b\r\n`).join("");
  const answer = await raw(port, `GET / HTTP/1.1\r\nHost: h\r\n${many}If-Match: kept\r\nConnection: close\r\n\r\n`);
  assert.match(answer, /\r\nIf-Match: kept\r\n/);
});

test("http: a client that never finishes its header is told so and dropped", async (t) => {
  const port = await started(t, async () => ({ status: 200, headers: {} }), { headerTimeoutMs: 150 });
  assert.match(await raw(port, "GET / HTTP/1.1\r\nHost: h\r\n"), /^HTTP\/1.1 408 /);
});

test("http: connections beyond an address's limit end its own idle ones, oldest first; those that are served go on", async (t) => {
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const port = await started(
    t,
    async (given) => {
      if (given.target === "/held") await held;
      return { status: 200, headers: {} };
    },
    { connectionsPerAddressMax: 10 },
  );
  const busy = Promise.all([1, 2, 3].map(() => ask(port, { path: "/held" })));
  await new Promise((resolve) => setTimeout(resolve, 50));
  const ended: number[] = [];
  const sockets: Socket[] = [];
  for (let i = 0; i < 17; i++) {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.on("close", () => ended.push(i));
    sockets.push(socket);
    await once(socket, "connect");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  while (ended.length < 10) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(
    ended.toSorted((a, b) => a - b),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  );
  release();
  assert.deepEqual(
    (await busy).map(({ status }) => status),
    [200, 200, 200],
  );
  assert.equal((await ask(port, {})).status, 200);
  for (const socket of sockets) socket.destroy();
});

test("http: when all places are taken by one address, another one is served", async (t) => {
  const port = await started(t, async () => ({ status: 200, headers: {} }), { connectionsMax: 20 });
  const sockets = Array.from({ length: 30 }, () => connect({ port, host: "127.0.0.1", localAddress: "127.0.0.2" }).on("error", () => {}));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  assert.equal((await ask(port, {})).status, 200);
  for (const socket of sockets) socket.destroy();
});

test("http: a port that is taken is a failure that says so", async (t) => {
  const port = await started(t, async () => ({ status: 200, headers: {} }));
  await assert.rejects(
    serveHttp(async () => ({ status: 200, headers: {} }), { listen: `127.0.0.1:${port}` }),
    (error: unknown) => error instanceof FailureError && /taken/.test(error.message),
  );
});

/** Statuses and bodies of what a server sent on one connection. */
const answersIn = (text: string): string[] =>
  text.split(/(?=HTTP\/1\.1 \d)/).map((one) => `${one.slice(9, 12)} ${one.slice(one.indexOf("\r\n\r\n") + 4)}`.trim());

test("http: bytes after the announced body are the next request, and get their 400 after the answer to the first", async (t) => {
  const gate: { open?: () => void } = {};
  const port = await started(t, async (given) => {
    const body = await readBody(given.body);
    if (given.target === "/late") await new Promise<void>((resolve) => (gate.open = resolve));
    return { status: 201, headers: {}, body };
  });
  const put = (path: string, body: string, length = 3): string =>
    `PUT ${path} HTTP/1.1\r\nHost: h\r\nContent-Length: ${length}\r\n\r\n${body}`;
  for (let i = 0; i < 20; i++) {
    assert.deepEqual(answersIn(await raw(port, put("/", "abcdef"))), ["201 abc", "400"]);
    assert.deepEqual(answersIn(await raw(port, put("/", "abc") + put("/", "xyz\u0000\u0001"))), ["201 abc", "201 xyz", "400"]);
  }
  for (const noise of ["more than it said", "CONNECT other:1 HTTP/1.1\r\nHost: other:1\r\n\r\n", "x".repeat(200_000)]) {
    gate.open = () => assert.fail("opened twice");
    const all = raw(port, put("/", "abc") + put("/late", "xyz") + noise);
    const opened = gate.open;
    while (gate.open === opened) await new Promise((resolve) => setTimeout(resolve, 5));
    gate.open();
    assert.deepEqual(answersIn(await all), ["201 abc", "201 xyz", "400"], noise.slice(0, 20));
  }
});

test("http: noise that comes in pieces, before and after the answer, is answered once", async (t) => {
  const port = await started(t, async (given) => ({ status: 201, headers: {}, body: await readBody(given.body) }));
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  const closed = once(socket, "close");
  socket.write("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
  for (let i = 0; i < 5 && socket.writable; i++) {
    socket.write("noise");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await closed;
  assert.deepEqual(answersIn(received), ["201 abc", "400"]);
});

test("http: a body that breaks its own encoding gets 400 in its turn, and its reader is told", async (t) => {
  let thrown: unknown;
  let broken = (): void => {};
  const seen = new Promise<void>((resolve) => {
    broken = resolve;
  });
  const port = await started(t, async (given) => {
    const body = await readBody(given.body).catch((error: unknown) => {
      thrown = error;
      broken();
      throw error;
    });
    return { status: 201, headers: {}, body };
  });
  const first = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
  const text = await raw(port, `${first}PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n`);
  assert.deepEqual(answersIn(text), ["201 abc", "400"]);
  await seen;
  assert.ok(thrown instanceof FailureError && thrown.failure.reason === "connectionLost", String(thrown));
});

test("http: many connections that come at once are accepted several in a turn of the event loop", {
  skip: process.platform !== "linux",
}, async (t) => {
  const port = await started(t, async () => ({ status: 200, headers: {} }));
  const count = 96;
  const sockets = Array.from({ length: count }, () => connect(port, "127.0.0.1"));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  let answered = 0;
  for (const socket of sockets) {
    socket.once("data", () => answered++);
    socket.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  }
  let turns = 0;
  for (; answered < count; turns++) {
    await new Promise((resolve) => setImmediate(resolve));
    const untilMs = performance.now() + 2;
    while (performance.now() < untilMs);
  }
  assert.ok(turns < 0.75 * count, `${count} connections took ${turns} turns`);
});

/** Asks, does `step` every 50 ms, and gives all that comes until the server closes. */
async function slowly(port: number, head: string, step: (socket: Socket) => void): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  socket.write(head);
  const timer = setInterval(() => socket.writable && step(socket), 50);
  await closed(socket);
  clearInterval(timer);
  return received;
}

const slowLimits = { leastBytesPerSecond: 1_000, leastRateWindowMs: 300 };

test("http: a body that comes more slowly than the least rate fails in its reader, and its connection ends with the answer", async (t) => {
  let thrown: unknown;
  const port = await started(
    t,
    async (given) => {
      try {
        await readBody(given.body);
      } catch (error) {
        thrown = error;
        return { status: 408, headers: {} };
      }
      return { status: 201, headers: {} };
    },
    { ...slowLimits, drainTimeoutMs: 200 },
  );
  const head = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
  const received = await slowly(port, head, (socket) => socket.write("x"));
  assert.match(received, /^HTTP\/1.1 408 [\s\S]*Connection: close/);
  assert.ok(thrown instanceof FailureError && thrown.failure.details?.slow === "client" && thrown.failure.applied === "no");
});

test("http: a body that comes at more than the least rate is taken, however long it takes, and a slow handler ends nobody", async (t) => {
  const port = await started(
    t,
    async (given) => {
      await new Promise((resolve) => setTimeout(resolve, 700));
      const body = await readBody(given.body);
      await new Promise((resolve) => setTimeout(resolve, 700));
      return { status: 201, headers: {}, body: Buffer.from(String(body.length)) };
    },
    slowLimits,
  );
  let left = 8_000;
  const head = "PUT / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 8000\r\n\r\n";
  const received = await slowly(port, head, (socket) => {
    if (left > 0) socket.write("x".repeat(200));
    left -= 200;
  });
  assert.match(received, /^HTTP\/1.1 201 [\s\S]*8000$/);
});

test("http: a client that does not take its answer is ended, streamed or whole, and the answer is let go", async (t) => {
  let returned = 0;
  const port = await started(
    t,
    async (given) => {
      if (given.target === "/whole") return { status: 200, headers: {}, body: new Uint8Array(64 * 1024 * 1024) };
      const body = async function* (): AsyncIterable<Uint8Array> {
        try {
          for (;;) yield new Uint8Array(65_536);
        } finally {
          returned++;
        }
      };
      return { status: 200, headers: {}, body: body() };
    },
    { leastBytesPerSecond: 1_000_000_000, leastRateWindowMs: 200 },
  );
  for (const path of ["/streamed", "/whole"]) {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(`GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    let received = 0;
    socket.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    await closed(socket);
    assert.ok(received < 64 * 1024 * 1024, path);
  }
  assert.equal(returned, 1);
});

test("HTTP door: heads that do not end are bounded together; who holds little, or has a request served, stays", async (t) => {
  const served = Promise.withResolvers<void>();
  const handler: HttpHandler = async (exchange) => {
    if (exchange.target === "/slow") await served.promise;
    return { status: 200, headers: {} };
  };
  const port = await started(t, handler, { headBytesMax: 100_000 });
  const open = async (text: string): Promise<{ socket: Socket; ended: () => boolean }> => {
    const socket = connect(port, "127.0.0.1");
    let ended = false;
    socket
      .on("error", () => {})
      .on("close", () => {
        ended = true;
      });
    socket.resume();
    t.after(() => socket.destroy());
    await new Promise<void>((resolve) => socket.write(text, () => resolve()));
    return { socket, ended: () => ended };
  };
  const busy = await open(`GET /slow HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(40_000)}\r\n\r\n`);
  const small = await open("GET / HTTP/1.1\r\nHost: a\r\n");
  const large = await Promise.all(Array.from({ length: 8 }, () => open(`GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(50_000)}`)));
  const ended = (): number => large.filter((one) => one.ended()).length;
  for (let tries = 0; ended() < 7; tries++) {
    assert.ok(tries < 2_400, `${ended()} of 8 were ended`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  assert.deepEqual([ended(), busy.ended(), small.ended()], [7, false, false]);
  served.resolve();
});
