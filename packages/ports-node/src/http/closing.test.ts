/** A door that closes ends its kept connections with their next answer. */
import assert from "node:assert/strict";
import { Agent, get } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { serveHttp } from "./http-server.ts";

test("http: a door that closes ends a kept connection with its answer, so that a busy client does not keep it open", async (t) => {
  let served = 0;
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const listener = await serveHttp(
    async ({ target }) => {
      served++;
      if (target !== "/slow") return { status: 200, headers: {} };
      begun.resolve();
      await goOn.promise;
      return { status: 200, headers: {}, body: Buffer.from("whole") };
    },
    { listen: "127.0.0.1:0" },
  );
  const [host, port] = listener.address.split(":");
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const ask = (path: string): Promise<string> =>
    new Promise((resolve) => {
      const request = get({ host, port, path, agent }, async (answer) => {
        const text = (await answer.toArray()).join("");
        resolve(`${answer.statusCode} ${answer.headers.connection} ${text}`);
      });
      request.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
    });
  assert.equal(await ask("/"), "200 keep-alive ");
  const slow = ask("/slow");
  await begun.promise;
  const closed = listener.close(60_000);
  goOn.resolve();
  assert.equal(await slow, "200 close whole");
  assert.equal(await ask("/"), "ECONNREFUSED", "the kept connection is not used again");
  assert.equal(await closed, 0);
  assert.equal(served, 2);
});

test("http: a door that closes answers all requests that were sent ahead; the last answer ends the connection", async () => {
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  let waiting = 0;
  const listener = await serveHttp(
    async ({ target }) => {
      if (++waiting === 3) begun.resolve();
      await goOn.promise;
      return { status: 200, headers: {}, body: Buffer.from(`answer to ${target};`) };
    },
    { listen: "127.0.0.1:0" },
  );
  const [host, port] = listener.address.split(":");
  const socket = connect(Number(port), host);
  socket.write(["/1", "/2", "/3"].map((target) => `GET ${target} HTTP/1.1\r\nHost: h\r\n\r\n`).join(""));
  await begun.promise;
  const closed = listener.close(60_000);
  goOn.resolve();
  const text = (await socket.toArray()).join("");
  assert.deepEqual(text.match(/answer to [^;]+|Connection: close/g), ["answer to /1", "answer to /2", "Connection: close", "answer to /3"]);
  assert.equal(await closed, 0);
});
