/** Bodies that came with their heads are there at once; others are read piece by piece. Over raw connections. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { HttpHandler } from "@stamp/ports";
import { serveHttp } from "./http-server.ts";

interface Connected {
  readonly socket: Socket;
  readonly received: () => string;
}

/** A connection to a server with this handler. */
async function connected(t: TestContext, handler: HttpHandler): Promise<Connected> {
  const listener = await serveHttp(handler, { listen: "127.0.0.1:0" });
  const socket = connect(Number(listener.address.slice(listener.address.lastIndexOf(":") + 1)), "127.0.0.1");
  socket.setNoDelay(true);
  socket.on("error", () => {});
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  t.after(async () => {
    socket.destroy();
    await listener.close(0);
  });
  return { socket, received: () => received };
}

/** The server answers whether the body was there at once, and what it is. */
const started = (t: TestContext): Promise<Connected> =>
  connected(t, async (request) => {
    const now = await request.smallBody?.();
    const pieces: Uint8Array[] = [];
    if (now === undefined) for await (const piece of request.body) pieces.push(piece);
    const text = now === undefined ? `later ${Buffer.concat(pieces).length}` : `now ${Buffer.from(now).toString("latin1").slice(0, 20)}`;
    return { status: 200, headers: {}, body: Buffer.from(`<${text}>`) };
  });

/** Sends a body of `bytes`; returns the length that the handler got, which asks for the body when all of it has come. */
async function lengthOf(t: TestContext, bytes: number, send: (socket: Socket, all: string) => Promise<void>): Promise<string> {
  const { socket, received } = await connected(t, async (request) => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const now = await request.smallBody?.();
    let length = now?.length ?? 0;
    if (now === undefined) for await (const piece of request.body) length += piece.length;
    return { status: 200, headers: {}, body: Buffer.from(`<${length}>`) };
  });
  await send(socket, head(bytes) + "x".repeat(bytes));
  await until(() => found(received()).length === 1);
  return found(received()).join();
}

const head = (bytes: number, more = ""): string => `PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: ${bytes}\r\n${more}\r\n`;

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
}

const found = (text: string): string[] => [...text.matchAll(/<([^>]*)>/g)].map(([, one]) => one as string);

test("http: a body that comes with its head is there at once, and the connection goes on", async (t) => {
  const { socket, received } = await started(t);
  for (const [body, answers] of [
    ["first", 1],
    ["second", 2],
    ["", 3],
  ] as const) {
    socket.write(head(body.length) + body);
    await until(() => found(received()).length === answers);
  }
  assert.deepEqual(found(received()), ["now first", "now second", "now "]);
});

test("http: a body that comes later, is long, or waits for 100 Continue is read piece by piece", async (t) => {
  const { socket, received } = await started(t);
  socket.write(`${head(6)}lat`);
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.write("est");
  await until(() => found(received()).length === 1);
  const long = "x".repeat(65 * 1024);
  socket.write(head(long.length) + long);
  await until(() => found(received()).length === 2);
  socket.write(head(2, "Expect: 100-continue\r\n"));
  await until(() => received().includes("100 Continue"));
  socket.write("ab");
  await until(() => found(received()).length === 3);
  assert.deepEqual(found(received()), ["later 6", `later ${long.length}`, "later 2"]);
  socket.end();
  await once(socket, "close");
});

test("http: a small body that came in several reads is whole", async (t) => {
  const inOne = async (socket: Socket, all: string): Promise<void> => void socket.write(all);
  for (const bytes of [65_300, 65_500, 65_536, 65_537]) assert.equal(await lengthOf(t, bytes, inOne), String(bytes));
  const inTwo = async (socket: Socket, all: string): Promise<void> => {
    socket.write(all.slice(0, -2_000));
    await new Promise((resolve) => setTimeout(resolve, 30));
    socket.write(all.slice(-2_000));
  };
  for (const bytes of [2_001, 3_000, 40_000]) assert.equal(await lengthOf(t, bytes, inTwo), String(bytes));
});
