/** Requests that a client sends ahead on one connection of the HTTP door, without waiting for answers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { HttpHandler } from "@stamp/ports";
import { serveHttp } from "./http-server.ts";

const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once("close", () => resolve()));

async function started(t: TestContext, handler: HttpHandler): Promise<number> {
  const listener = await serveHttp(handler, { listen: "127.0.0.1:0", limits: { pipelinedMax: 4 } });
  t.after(() => listener.close(0));
  return Number(listener.address.split(":")[1]);
}

/** Sends text and returns all that comes until the server closes. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  socket.write(text);
  await closed(socket);
  return received;
}

const getOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

test("http: requests sent ahead on one connection are served up to a bound; the next is told so in its turn, and ends the connection", async (t) => {
  const asked: string[] = [];
  let inProgress = 0;
  let most = 0;
  const port = await started(t, async ({ target }) => {
    asked.push(target);
    most = Math.max(most, ++inProgress);
    await new Promise((resolve) => setTimeout(resolve, 20));
    inProgress--;
    return { status: 200, headers: { "Content-Length": "1" }, body: Buffer.from(target.slice(-1)) };
  });
  const few = await raw(
    port,
    `${[1, 2, 3, 4].map((i) => getOf(`/${i}`)).join("")}${getOf("/5").replace("Host", "Connection: close\r\nHost")}`,
  );
  assert.deepEqual(few.match(/HTTP\/1\.1 \d+/g), [..."2222"].map(() => "HTTP/1.1 200").concat("HTTP/1.1 503"), "five at once are too many");
  assert.match(few, /503[\s\S]*Connection: close/);
  assert.deepEqual(asked.splice(0), ["/1", "/2", "/3", "/4"]);
  const many = await raw(port, Array.from({ length: 8 }, (_, i) => getOf(`/${i}`)).join(""));
  assert.deepEqual(many.match(/HTTP\/1\.1 \d+/g), [..."2222"].map(() => "HTTP/1.1 200").concat("HTTP/1.1 503"));
  assert.equal(asked.splice(0).length, 4);
  const thousands = connect(port, "127.0.0.1").on("error", () => {});
  thousands.write(Array.from({ length: 5_000 }, () => getOf("/")).join(""));
  thousands.resume();
  await new Promise((resolve) => thousands.once("close", resolve));
  assert.equal(asked.splice(0).length, 4, "who sends thousands ahead gets no further");
  assert.equal(most, 4);
});

test("http: thousands of requests sent ahead of an answer that takes long end the connection before that answer", async (t) => {
  const answer = Promise.withResolvers<void>();
  t.after(() => answer.resolve());
  const handler: HttpHandler = async () => {
    await answer.promise;
    return { status: 200, headers: { "Content-Length": "0" } };
  };
  const port = await started(t, handler);
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  t.after(() => socket.destroy());
  socket.resume().write(Array.from({ length: 5_000 }, () => getOf("/")).join(""));
  await closed(socket);
});

test("http: a client that waits for some of its answers goes on sending ahead", async (t) => {
  const port = await started(t, async () => ({ status: 200, headers: { "Content-Length": "0" } }));
  const socket = connect(port, "127.0.0.1");
  t.after(() => socket.destroy());
  let answers = 0;
  socket.on("data", (chunk: Buffer) => {
    answers += chunk.toString("latin1").match(/HTTP\/1\.1 200/g)?.length ?? 0;
    while (sent < answers + 3 && sent < 50) send();
  });
  let sent = 0;
  const send = (): void => {
    sent++;
    socket.write(getOf("/"));
  };
  for (let i = 0; i < 3; i++) send();
  while (answers < 50) await once(socket, "data");
});
