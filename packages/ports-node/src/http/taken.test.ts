/** Bodies whose chunks are used again: the body is told when nobody looks at a chunk any more, and not before. */
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import type { HttpBody } from "@stamp/ports";
import { serveHttp } from "./http-server.ts";

const chunkBytes = 64 * 1024;
const chunks = 256;
const bodyBytes = chunks * chunkBytes;

/** Serves chunks of sevens that become nines as soon as they are said to be taken; `/length` with their length, `/chunked` without. */
async function start(t: TestContext): Promise<{ ask(...targets: readonly string[]): Socket; handed(): number; told(): number }> {
  let [handed, told] = [0, 0];
  const listener = await serveHttp(
    async ({ target }) => {
      const body: HttpBody = {
        async *[Symbol.asyncIterator]() {
          for (let at = 0; at < chunks; at++) {
            handed++;
            yield new Uint8Array(chunkBytes).fill(7);
          }
        },
        taken: (chunk) => {
          told++;
          chunk.fill(9);
        },
      };
      return { status: 200, headers: target === "/length" ? { "content-length": String(bodyBytes) } : {}, body };
    },
    { listen: "127.0.0.1:0" },
  );
  t.after(() => listener.close(0));
  const port = Number(listener.address.split(":").at(-1));
  const ask = (...targets: readonly string[]): Socket => {
    const socket = connect(port, "127.0.0.1").pause();
    t.after(() => socket.destroy());
    socket.on("error", () => {});
    for (const target of targets) socket.write(`GET ${target} HTTP/1.1\r\nhost: a\r\n\r\n`);
    return socket;
  };
  return { ask, handed: () => handed, told: () => told };
}

const turns = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 200));

for (const target of ["/length", "/chunked"]) {
  test(`taken, ${target}: a client that reads late gets the bytes as they were, also behind another answer`, async (t) => {
    const { ask, told } = await start(t);
    const socket = ask(target, target);
    await turns();
    assert.ok(told() < chunks, "the client has read nothing, and the system does not hold all of it");
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
    while (told() < 2 * chunks) await turns();
    assert.equal(told(), 2 * chunks);
  });

  test(`taken, ${target}: nobody is told of chunks that a client who went away did not take`, async (t) => {
    const { ask, handed, told } = await start(t);
    const socket = ask(target);
    while (handed() === 0) await turns();
    await turns();
    const before = told();
    assert.ok(before < handed(), "the last chunk waits for the client");
    socket.destroy();
    await turns();
    assert.equal(told(), before);
  });
}
