import assert from "node:assert/strict";
import { test } from "node:test";
import { ownerEpoch, unwrap } from "@stamp/base";
import type { Transport, World } from "@stamp/ports";
import { StreamManager } from "@stamp/wire";
import { block, Stamp } from "./harness.test.ts";
import { StreamClient } from "./index.ts";

/** A world whose stream manager leaves out every sealed length when a stream is opened. */
function withoutLengths(world: World): World {
  const client = ((address: string, service: typeof StreamManager) => {
    const real = world.transport.client(address, service);
    if (service !== StreamManager) return real;
    const openStream: typeof real.openStream = async (request, options) => {
      const answer = await real.openStream(request, options);
      if (answer.ok) for (const extent of answer.value.extents) delete extent.sealedLengthBytes;
      return answer;
    };
    return new Proxy(real, { get: (target, name) => (name === "openStream" ? openStream : Reflect.get(target, name)) });
  }) as Transport["client"];
  const transport = new Proxy(world.transport, { get: (target, name) => (name === "client" ? client : Reflect.get(target, name)) });
  return { ...world, transport };
}

test("stream client: a list with an extent that has no sealed length is refused, not read as if it were empty", async () => {
  const stamp = new Stamp(31);
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    unwrap(await stream.append(block("acknowledged"), { timeoutMs: 10_000 }));
    const client = new StreamClient(withoutLengths(stamp.sim.world("other")), { lockService: "lock" });
    const opened = await client.openForOwner("/a", ownerEpoch(2), { create: false, timeoutMs: 30_000 });
    assert.ok(!opened.ok && opened.failure.reason === "notReady" && opened.failure.code === "unavailable");
  });
});
