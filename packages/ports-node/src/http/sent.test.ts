/** Answers whose memory is used again: the handler is told when nobody looks at their bytes any more, and not before. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { serveHttp } from "./http-server.ts";

const bodyBytes = 8 * 1024 * 1024;
const pieceBytes = 256 * 1024;

/** Serves bodies that are overwritten as soon as they are said to be sent, whole or in pieces; `/whole` and `/pieces`. */
async function start(t: TestContext) {
  let told = 0;
  const listener = await serveHttp(
    async ({ target }) => {
      const bytes = new Uint8Array(bodyBytes).fill(7);
      const sent = (): void => {
        told++;
        bytes.fill(9);
      };
      const pieces = async function* (): AsyncGenerator<Uint8Array> {
        for (let at = 0; at < bodyBytes; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
      };
      const headers = { "content-length": String(bodyBytes) };
      return { status: 200, headers, body: target === "/whole" ? bytes : pieces(), sent };
    },
    { listen: "127.0.0.1:0" },
  );
  t.after(() => listener.close(0));
  const port = Number(listener.address.split(":").at(-1));
  const ask = (...targets: readonly string[]) => {
    const socket = connect(port, "127.0.0.1").pause();
    t.after(() => socket.destroy());
    socket.on("error", () => {});
    for (const target of targets) socket.write(`GET ${target} HTTP/1.1\r\nhost: a\r\n\r\n`);
    return socket;
  };
  return { ask, told: () => told };
}

const turns = () => new Promise((resolve) => setTimeout(resolve, 200));

for (const target of ["/whole", "/pieces"]) {
  test(`sent, ${target}: a client that reads late gets the bytes as they were`, async (t) => {
    const { ask, told } = await start(t);
    const socket = ask(target, target);
    await turns();
    assert.equal(told(), 0, "the client has read nothing, and the system does not hold all of it");
    let good = 0;
    let bad = 0;
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      for (const byte of chunk) {
        if (byte === 7) good++;
        else if (byte === 9) bad++;
      }
      if (good + bad >= 2 * bodyBytes) break;
    }
    assert.deepEqual([good, bad], [2 * bodyBytes, 0]);
    while (told() < 2) await turns();
    assert.equal(told(), 2);
  });

  test(`sent, ${target}: nobody is told of an answer whose client goes away`, async (t) => {
    const { ask, told } = await start(t);
    const socket = ask(target);
    socket.resume();
    await once(socket, "data");
    socket.destroy();
    await turns();
    assert.equal(told(), 0);
  });
}
