/** Bounds of the HTTP door: connections, heads that do not end, and clients that send or take too slowly. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { FailureError } from "@stamp/base";
import type { HttpHandler } from "@stamp/ports";
import { ask, closed, raw, readBody, started } from "./testing/http-client.ts";

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
