/** Slow clients of the HTTP door: the system takes little from the process for them. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { serveHttp } from "./http-server.ts";

test("the system holds little for a client that reads nothing, over all listening sockets", async (t) => {
  const piece = new Uint8Array(64 * 1024);
  const handedOut: number[] = [];
  const listener = await serveHttp(
    (request) => {
      const at = Number(request.target.slice(1));
      handedOut[at] = 0;
      const body = async function* (): AsyncGenerator<Uint8Array> {
        for (let i = 0; i < 256; i++) {
          yield piece;
          handedOut[at] = (handedOut[at] ?? 0) + piece.length;
        }
      };
      return Promise.resolve({ status: 200, headers: { "content-length": String(256 * piece.length) }, body: body() });
    },
    { listen: "127.0.0.1:0" },
  );
  t.after(() => listener.close(0));
  const port = Number(listener.address.split(":").at(-1));
  const clients = Array.from({ length: 20 }, (_, at) => {
    const socket = connect(port, "127.0.0.1").pause();
    socket.on("error", () => {});
    socket.write(`GET /${at} HTTP/1.1\r\nhost: a\r\n\r\n`);
    return socket;
  });
  t.after(() => clients.map((socket) => socket.destroy()));
  let before = "";
  for (let same = 0; same < 5; same = before === String(handedOut) ? same + 1 : 0) {
    before = String(handedOut);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(handedOut.length, clients.length);
  // 256 KiB unsent, what the client's system has received (128 KiB before it reads), and the pieces between. Without the bound: 4 MiB.
  for (const bytes of handedOut) assert.ok(bytes > 0 && bytes <= 1024 * 1024, `${bytes} bytes were handed out`);
});
