/** Requests that a client sends ahead on one connection of the HTTP door, without waiting for answers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { HttpHandler, HttpResponse } from "@stamp/ports";
import type { HttpLimits } from "./http-limits.ts";
import { serveHttp } from "./http-server.ts";

const closed = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once("close", () => resolve()));

async function started(t: TestContext, handler: HttpHandler, limits: Partial<HttpLimits> = {}): Promise<number> {
  const listener = await serveHttp(handler, { listen: "127.0.0.1:0", limits: { pipelinedMax: 4, ...limits } });
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

test("http: whatever is sent ahead, the first requests get their answers, in order, also when these take long", async (t) => {
  for (const [count, answered] of [
    [40, "at once"],
    [200_000, "at once"],
    [200_000, "when all was sent"],
  ] as const) {
    const go = Promise.withResolvers<void>();
    const asked: string[] = [];
    const port = await started(t, async ({ target }) => {
      asked.push(target);
      await go.promise;
      return { status: 200, headers: { "Content-Length": String(target.length) }, body: Buffer.from(target) };
    });
    const socket = connect(port, "127.0.0.1");
    let received = "";
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
    });
    const ended = once(socket, "end");
    socket.on("error", () => {});
    // Goes on while the answers come: what the server has not read when it closes must not reset the connection.
    const sent = (async () => {
      for (let i = 0; i < count && socket.writable; i++) if (!socket.write(getOf(`/${i}`))) await new Promise(setImmediate);
    })();
    while (asked.length < 4) await new Promise(setImmediate);
    if (answered !== "at once") await sent;
    go.resolve();
    await Promise.all([ended, sent]);
    assert.deepEqual(
      received.match(/HTTP\/1\.1 \d+|\/\d+$|(?<=\n)\/\d/gm)?.join(" "),
      "HTTP/1.1 200 /0 HTTP/1.1 200 /1 HTTP/1.1 200 /2 HTTP/1.1 200 /3 HTTP/1.1 503",
    );
    assert.deepEqual(asked, ["/0", "/1", "/2", "/3"]);
  }
});

test("http: requests that are not served are bounded over all connections", async (t) => {
  const go = Promise.withResolvers<void>();
  t.after(() => go.resolve());
  const handler: HttpHandler = async () => {
    await go.promise;
    return { status: 200, headers: { "Content-Length": "0" } };
  };
  const port = await started(t, handler, { ignoredMax: 100 });
  const sends = (count: number): Socket => {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    t.after(() => socket.destroy());
    socket.resume().write(Array.from({ length: count }, () => getOf("/")).join(""));
    return socket;
  };
  await closed(sends(200));
  // The connection that ended gave back what it held.
  const held = sends(60);
  await closed(sends(200));
  assert.equal(held.destroyed, false);
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

test("http: an answer sent ahead that ends its connection, or breaks off, does so in its turn", async (t) => {
  const broken: Readonly<Record<string, () => HttpResponse>> = {
    ends: () => ({ status: 503, headers: {}, endsConnection: true }),
    breaks: () => ({
      status: 200,
      headers: { "Content-Length": "10" },
      body: (async function* () {
        yield Buffer.from("abc");
        throw new Error("the store is gone");
      })(),
    }),
  };
  for (const [name, answer] of Object.entries(broken)) {
    const answered = Promise.withResolvers<void>();
    const port = await started(t, async ({ target }) => {
      if (target === "/broken") return answer();
      // Behind the answer of the second, which the server has had for a turn of the loop then.
      if (target === "/third") setImmediate(() => answered.resolve());
      else await answered.promise;
      return { status: 200, headers: {}, body: Buffer.from(target) };
    });
    const text = await raw(port, `${getOf("/first")}${getOf("/broken")}${getOf("/third")}`);
    assert.match(text, /^HTTP\/1\.1 200 [\s\S]*\/first/, name);
    assert.doesNotMatch(text, /third/, name);
    assert.equal(text.includes("abc"), name === "breaks", name);
  }
});
