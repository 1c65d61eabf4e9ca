/** The in-process transport against the suite of its port, and that messages go by reference. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, unwrap } from "@stamp/base";
import { served, servedPartly, transportConformance } from "@stamp/ports";
import { ExtentNode, LockService } from "@stamp/wire";
import { NodeClock } from "./clock.ts";
import { InProcessNetwork } from "./in-process.ts";

transportConformance(
  (name, run) => void test(`in process: ${name}`, { timeout: 60_000 }, run),
  async () => {
    const network = new InProcessNetwork();
    return {
      clock: new NodeClock(),
      server: network.transport("server"),
      client: network.transport("client"),
      listen: "server",
      absent: "nobody",
      dispose: async () => {},
    };
  },
);

test("in process: payloads are not copied, and a handler never runs inside its caller's stack", async () => {
  const network = new InProcessNetwork();
  let seen: Uint8Array | undefined;
  await network.transport("server").serve("node", [
    servedPartly(ExtentNode, {
      append: async (request) => {
        seen = request.payload[0];
        return ok({ endBytes: 1n });
      },
    }),
  ]);
  const block = new Uint8Array(10);
  const call = network
    .transport("client")
    .client("node", ExtentNode)
    .append({ payload: [block] }, { timeoutMs: 1000 });
  assert.equal(seen, undefined);
  assert.equal(unwrap(await call).endBytes, 1n);
  assert.equal(seen, block);
});

test("in process: two listeners can't have one address, port 0 gives a new one each time", async () => {
  const network = new InProcessNetwork();
  const transport = network.transport("server");
  const services = [served(LockService, servedPartly(LockService, {}).handlers)];
  await transport.serve("a", services);
  await assert.rejects(transport.serve("a", services), /taken/);
  const one = await transport.serve("127.0.0.1:0", services);
  const two = await transport.serve("127.0.0.1:0", services);
  assert.notEqual(one.address, two.address);
});
