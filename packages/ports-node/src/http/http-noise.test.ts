/** Bytes that are no request, or no body: who is told, with which status, and what the connection does next. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { FailureError } from "@stamp/base";
import type { HttpHandler, HttpRefusal } from "@stamp/ports";
import { answersIn, ask, raw, readBody, started } from "./testing/http-client.ts";

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
    refused: (why: HttpRefusal) => ({
      status: 400,
      reason: `no: ${why}`,
      headers: { Why: why, Twice: ["1", "2"] },
      body: Buffer.from(`<${why}>`),
    }),
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
    assert.ok(answer.startsWith(`HTTP/1.1 400 no: ${why}\r\n`), sent.slice(0, 60));
    assert.match(answer, new RegExp(`\r\nWhy: ${why}\r\nTwice: 1\r\nTwice: 2\r\n`), sent.slice(0, 60));
    assert.match(answer, /\r\nConnection: close\r\n/, sent.slice(0, 60));
    assert.ok(answer.endsWith(`\r\n\r\n<${why}>`), sent.slice(0, 60));
  }
});

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
