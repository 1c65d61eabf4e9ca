import assert from "node:assert/strict";
import { test } from "node:test";
import { ownerEpoch, refused, unwrap } from "@stamp/base";
import type { Client, Transport, World } from "@stamp/ports";
import { StreamManager } from "@stamp/wire";
import { StreamClient } from "./index.ts";
import { block, Stamp } from "./testing/harness.ts";

type Manager = Client<typeof StreamManager>;

/** A world whose stream manager opens several streams in this way. */
function withOpening(world: World, openStreams: (real: Manager) => Manager["openStreams"]): World {
  const client = ((address: string, service: typeof StreamManager) => {
    const real = world.transport.client(address, service);
    if (service !== StreamManager) return real;
    return new Proxy(real, { get: (target, name) => (name === "openStreams" ? openStreams(real) : Reflect.get(target, name)) });
  }) as Transport["client"];
  const transport = new Proxy(world.transport, { get: (target, name) => (name === "client" ? client : Reflect.get(target, name)) });
  return { ...world, transport };
}

/** Leaves out every sealed length. */
const withoutLengths =
  (real: Manager): Manager["openStreams"] =>
  async (request, options) => {
    const answer = await real.openStreams(request, options);
    if (answer.ok) for (const { extents } of answer.value.streams) for (const extent of extents) delete extent.sealedLengthBytes;
    return answer;
  };

test("stream client: a list with an extent that has no sealed length is refused, not read as if it were empty", async () => {
  const stamp = new Stamp(31);
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    unwrap(await stream.append(block("acknowledged"), { timeoutMs: 10_000 }));
    const client = new StreamClient(withOpening(stamp.sim.world("other"), withoutLengths), { lockService: "lock" });
    const opened = await client.openForOwner("/a", ownerEpoch(2), { create: false, timeoutMs: 30_000 });
    assert.ok(!opened.ok && opened.failure.reason === "notReady" && opened.failure.code === "unavailable");
  });
});

test("stream client: several streams are had together or not at all", async () => {
  const stamp = new Stamp(32);
  await stamp.sim.run(async () => {
    const first = await stamp.open("/a", 3);
    unwrap(await first.append(block("kept"), { timeoutMs: 10_000 }));
    const client = stamp.client("other");
    const options = { create: true, timeoutMs: 30_000 };
    const stale = await client.openAllForOwner(["/new", "/a"], ownerEpoch(2), options);
    assert.ok(!stale.ok && stale.failure.reason === "staleOwnerEpoch");
    unwrap(await first.append(block("the owner goes on"), { timeoutMs: 10_000 }));
    const absent = await client.openForOwner("/new", ownerEpoch(9), { ...options, create: false });
    assert.ok(!absent.ok && absent.failure.reason === "streamNotFound", "nothing was made by the call that was refused");
    const [empty, whole] = unwrap(await client.openAllForOwner(["/new", "/a"], ownerEpoch(4), options));
    assert.deepEqual([empty?.extents.length, whole?.extents.length], [0, 1]);
    assert.ok(whole?.extents.every(({ sealedLengthBytes }) => sealedLengthBytes !== undefined));
    const late = await first.append(block("too late"), { timeoutMs: 10_000 });
    assert.ok(!late.ok && late.failure.reason === "staleOwnerEpoch");
    const twice = await client.openAllForOwner(["/a", "/a"], ownerEpoch(5), options);
    assert.ok(!twice.ok && twice.failure.reason === "badRequest");
  });
});

test("stream client: a stream manager that knows only how to open one stream is asked for each", async () => {
  const stamp = new Stamp(33);
  await stamp.sim.run(async () => {
    const first = await stamp.open("/a", 1);
    unwrap(await first.append(block("kept"), { timeoutMs: 10_000 }));
    const earlier = withOpening(stamp.sim.world("other"), () => async () => refused("unimplemented", "unknownMethod", "not known"));
    const client = new StreamClient(earlier, { lockService: "lock" });
    const options = { create: true, timeoutMs: 30_000 };
    const opened = unwrap(await client.openAllForOwner(["/new", "/a"], ownerEpoch(2), options));
    assert.deepEqual(
      opened.map(({ name, extents }) => [name, extents.length]),
      [
        ["/new", 0],
        ["/a", 1],
      ],
    );
    const late = await first.append(block("too late"), { timeoutMs: 10_000 });
    assert.ok(!late.ok && late.failure.reason === "staleOwnerEpoch");
    const stale = await client.openAllForOwner(["/a"], ownerEpoch(1), options);
    assert.ok(!stale.ok && stale.failure.reason === "staleOwnerEpoch");
  });
});
