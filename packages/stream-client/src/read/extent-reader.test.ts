import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, type FailureError, ok, ownerEpoch, refused, unwrap } from "@stamp/base";
import type { Transport } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import type { OwnedStream, Place, StreamClient } from "../index.ts";
import { block, nodeNames, Stamp } from "../testing/harness.ts";
import { ExtentReader } from "./extent-reader.ts";
import { runBytesMax, runPlacesMax } from "./place-runs.ts";

const forever = { timeoutMs: Number.POSITIVE_INFINITY };

async function written(
  stamp: Stamp,
  text: string,
): Promise<{ client: StreamClient; stream: OwnedStream; place: Place; holders: string[] }> {
  const client = stamp.client();
  const stream = unwrap(await client.openForOwner("/a", ownerEpoch(1), { create: true, timeoutMs: 30_000 }));
  const place = unwrap(await stream.append(block(text), forever))[0] as Place;
  const location = unwrap(await client.locate([place.extentId], { timeoutMs: 5_000 }))[0];
  return { client, stream, place, holders: location?.addresses ?? [] };
}

test("extent reader: any one replica is enough", async () => {
  const stamp = new Stamp(21);
  await stamp.sim.run(async () => {
    const { client, place, holders } = await written(stamp, "hello");
    assert.equal(holders.length, 3);
    for (const alive of holders) {
      for (const node of holders) if (node !== alive) stamp.sim.pause(node);
      const before = stamp.sim.nowMs;
      assert.equal(new TextDecoder().decode(unwrap(await client.reader.read(place, { timeoutMs: 5_000 }))), "hello");
      assert.ok(stamp.sim.nowMs - before < 1_000, "the hedge, not a timeout, found it");
      for (const node of holders) stamp.sim.resume(node);
    }
  });
});

test("extent reader: a reader that never heard of the extent asks the stream manager once", async () => {
  const stamp = new Stamp(22);
  await stamp.sim.run(async () => {
    const { place } = await written(stamp, "hello");
    const stranger = stamp.client("stranger");
    unwrap(await stranger.reader.read(place, { timeoutMs: 5_000 }));
    stamp.sim.crash("sm1", { stayDown: true });
    unwrap(await stranger.reader.read(place, { timeoutMs: 5_000 }));
  });
});

test("extent reader: a location that went stale is looked up again", async () => {
  const stamp = new Stamp(23);
  await stamp.sim.run(async () => {
    const { place, holders } = await written(stamp, "hello");
    const reader = stamp.client("stranger").reader;
    const other = nodeNames.filter((name) => !holders.includes(name));
    reader.learn([{ extentId: place.extentId, version: 0, addresses: other }]);
    assert.equal(new TextDecoder().decode(unwrap(await reader.read(place, { timeoutMs: 5_000 }))), "hello");
  });
});

test("extent reader: what nobody has is a failure, at once when all say so, at the deadline when nobody answers", async () => {
  const stamp = new Stamp(24);
  await stamp.sim.run(async () => {
    const { client, place } = await written(stamp, "hello");
    const unknown = await client.reader.read({ extentId: 999, offsetBytes: 20, lengthBytes: 1 }, { timeoutMs: 5_000 });
    assert.ok(!unknown.ok && unknown.failure.reason === "unknownExtent");
    const beyond = await client.reader.read({ ...place, lengthBytes: 4_000 }, { timeoutMs: 5_000 });
    assert.ok(!beyond.ok && beyond.failure.reason === "outOfRange", beyond.ok ? "" : beyond.failure.reason);
    for (const node of nodeNames) stamp.sim.crash(node, { stayDown: true });
    const start = stamp.sim.nowMs;
    const silent = await client.reader.read(place, { timeoutMs: 700 });
    assert.ok(!silent.ok);
    assert.ok(stamp.sim.nowMs - start <= 750, "the deadline holds");
  });
});

test("extent reader: many places come in order in pieces of at most 1 MiB; leaving early or an abort ends it", async () => {
  const stamp = new Stamp(25, { journalSegmentBytes: 1 << 23 });
  await stamp.sim.run(async () => {
    const { client, stream, place } = await written(stamp, "small");
    const large = new Uint8Array(2_500_000).map((_, i) => i % 251);
    const [far] = unwrap(await stream.append([large], forever)) as [Place];
    const pieces: Uint8Array[] = [];
    for await (const piece of client.reader.readPlaces([place, far, place])) pieces.push(piece);
    assert.ok(pieces.every(({ length }) => length <= 1024 * 1024));
    const expected = Buffer.concat([Buffer.from("small"), large, Buffer.from("small")]);
    assert.ok(Buffer.concat(pieces).equals(expected), `${pieces.map(({ length }) => length)}`);
    for await (const _ of client.reader.readPlaces([far, far, far])) break;
    const stop = new AbortController();
    await assert.rejects(
      async () => {
        for await (const _ of client.reader.readPlaces([far, far, far, far], { signal: stop.signal })) stop.abort();
      },
      (error: FailureError) => error.failure.reason === "cancelled",
    );
  });
});

test("sequential read: a replica that holds more than the sealed length shows no more than that", async () => {
  // The first owner's node is cut off after it wrote what no other replica has: the seal is shorter than its copy.
  for (let seed = 60; seed < 66; seed++) {
    const stamp = new Stamp(seed);
    await stamp.sim.run(async () => {
      const { stream, holders } = await written(stamp, "kept");
      const [primary, ...secondaries] = holders as [string, ...string[]];
      stamp.sim.partition([primary], secondaries);
      stamp.sim.partition([primary], ["sm1"]);
      const lost = stream.append(block("torn"), { timeoutMs: 300 });
      await stamp.sim.sleep(400);
      await lost;
      stream.abandon();
      const second = await stamp.open("/a", 2, "second");
      stamp.sim.heal();
      const found: string[] = [];
      for await (const { payload } of second.readAll()) found.push(new TextDecoder().decode(payload));
      assert.deepEqual(found, ["kept"], `seed ${seed}`);
    });
  }
});

interface Call {
  readonly places: number;
  readonly bytes: number;
}

/** A reader whose nodes answer with bytes that tell their place; `answers` decides when, and which calls were made is kept. */
function counted(
  seed: number,
  options: {
    readonly old?: boolean;
    readonly answers?: (call: number) => Promise<void>;
    readonly giveBack?: (payload: Uint8Array) => void;
  } = {},
) {
  const calls: Call[] = [];
  const simulation = new Simulation({ seed });
  const world = simulation.world("reader");
  const answer = async (offsets: readonly bigint[], lengths: readonly number[]) => {
    const call = calls.push({ places: offsets.length, bytes: lengths.reduce((sum, length) => sum + length, 0) });
    await options.answers?.(call);
    return ok({ payload: concatBytes(offsets.map((offset, i) => bytesAt(Number(offset), lengths[i] as number))) });
  };
  const client = () => ({
    read: ({ offsetBytes, lengthBytes }: { offsetBytes: bigint; lengthBytes: number }) => answer([offsetBytes], [lengthBytes]),
    readPlaces: async ({ offsetsBytes, lengthsBytes }: { offsetsBytes: bigint[]; lengthsBytes: number[] }) =>
      options.old ? refused("unimplemented", "unknownMethod", "ReadPlaces") : answer(offsetsBytes, lengthsBytes),
  });
  const transport = { ...world.transport, client, giveBack: options.giveBack } as unknown as Transport;
  const locate = async (ids: readonly number[]) => ok(ids.map((extentId) => ({ extentId, version: 1, addresses: ["a:1"] })));
  return { simulation, calls, reader: new ExtentReader({ ...world, transport }, locate, { locationsMax: 10 }) };
}

const bytesAt = (offset: number, length: number): Uint8Array => new Uint8Array(length).map((_, i) => (offset + i) % 251);

const allOf = async (chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> => {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return concatBytes(all);
};

/** Blocks of this size one behind another, a header between each two. */
const small = (count: number, lengthBytes = 100): Place[] =>
  Array.from({ length: count }, (_, i) => ({ extentId: 7, offsetBytes: 20 + i * (20 + lengthBytes), lengthBytes }));

test("extent reader: 50,000 small neighbours are 49 calls and come back in order; a node without the method is asked for each", async () => {
  const places = small(50_000);
  const expected = concatBytes(places.map(({ offsetBytes, lengthBytes }) => bytesAt(offsetBytes, lengthBytes)));
  const { simulation, calls, reader } = counted(31);
  await simulation.run(async () => assert.deepEqual(await allOf(reader.readPlaces(places)), expected));
  assert.equal(calls.length, Math.ceil(50_000 / 1_024));
  const older = counted(32, { old: true });
  await older.simulation.run(async () =>
    assert.deepEqual(await allOf(older.reader.readPlaces(places.slice(0, 3_000))), expected.subarray(0, 300_000)),
  );
  assert.equal(older.calls.length, 3_000);
});

test("extent reader: places of other extents, far away, repeated and large ones keep their order and the bounds of a call", async () => {
  const far = (count: number): Place[] => Array.from({ length: count }, (_, i) => ({ extentId: 9, offsetBytes: i << 20, lengthBytes: 10 }));
  const again = Array.from({ length: 2_000 }, () => ({ extentId: 8, offsetBytes: 20, lengthBytes: 400 }));
  const large = { extentId: 8, offsetBytes: 1_000_000, lengthBytes: 2_500_000 };
  const backwards = [...small(10).reverse(), ...far(5).reverse()];
  const places = [...small(3, 200_000), ...far(5), ...again, large, ...backwards, { extentId: 8, offsetBytes: 700, lengthBytes: 1 }];
  const { simulation, calls, reader } = counted(33);
  await simulation.run(async () => {
    const expected = concatBytes(places.map(({ offsetBytes, lengthBytes }) => bytesAt(offsetBytes, lengthBytes)));
    assert.deepEqual(await allOf(reader.readPlaces(places)), expected);
  });
  assert.ok(calls.every((call) => call.places === 1 || (call.places <= runPlacesMax && call.bytes <= runBytesMax)));
  // 3 + 5 apart, 400-byte places 655 to a call, the large one in pieces of 1 MiB, ten backward ones at once and five apart, the last one.
  assert.equal(calls.length, 3 + 5 + Math.ceil(2_000 / 655) + 3 + 1 + 5 + 1);
});

test("extent reader: however small the places are, 16 calls are under way", async () => {
  const places = Array.from({ length: 400 }, (_, i) => ({ extentId: 7, offsetBytes: i << 20, lengthBytes: 10 }));
  let [waiting, most] = [0, 0];
  const { simulation, calls, reader } = counted(34, {
    answers: async () => {
      most = Math.max(most, ++waiting);
      await simulation.sleep(5);
      waiting--;
    },
  });
  await simulation.run(async () => assert.equal((await allOf(reader.readPlaces(places))).length, 4_000));
  assert.equal(calls.length, 400);
  assert.equal(most, 16);
});

test("extent reader: readers begin at the same replica of a region, and regions that follow each other at different ones", async () => {
  const addresses = ["a:1", "b:1", "c:1"];
  const askedOf = async (seed: number, offsetsBytes: readonly number[]): Promise<readonly string[]> => {
    const asked: string[] = [];
    const simulation = new Simulation({ seed });
    const world = simulation.world("reader");
    const client = (address: string) => ({
      read: async ({ lengthBytes }: Place) => {
        asked.push(address);
        return ok({ payload: new Uint8Array(lengthBytes) });
      },
    });
    const transport = { ...world.transport, client } as unknown as Transport;
    const locate = async (ids: readonly number[]) => ok(ids.map((extentId) => ({ extentId, version: 1, addresses })));
    const reader = new ExtentReader({ ...world, transport }, locate, { locationsMax: 10 });
    await simulation.run(async () => {
      for (const offsetBytes of offsetsBytes)
        unwrap(await reader.read({ extentId: 7, offsetBytes, lengthBytes: 100 }, { timeoutMs: 1_000 }));
    });
    return asked;
  };
  const spread = Array.from({ length: 20 }, (_, i) => (i * 997) % (1 << 20));
  assert.equal(new Set([...(await askedOf(1, spread)), ...(await askedOf(2, spread))]).size, 1);
  assert.equal(new Set(await askedOf(3, [0, 1 << 20, 2 << 20])).size, 3);
});

test("extent reader: chunks that are borrowed are given back when the next one is asked for, or the reader is left; others never", async () => {
  const places = Array.from({ length: 5 }, (_, i) => ({ extentId: 7, offsetBytes: i << 20, lengthBytes: 10 }));
  const given: Uint8Array[] = [];
  const { simulation, reader } = counted(35, { giveBack: (payload) => given.push(payload) });
  await simulation.run(async () => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of reader.readPlaces(places, { isBorrowed: true })) {
      assert.deepEqual(given, chunks, "every chunk before this one, and not this one");
      chunks.push(chunk);
    }
    assert.deepEqual(given, chunks);
    for await (const chunk of reader.readPlaces(places, { isBorrowed: true })) {
      chunks.push(chunk);
      break;
    }
    assert.deepEqual(given, chunks);
    await allOf(reader.readPlaces(places));
    assert.equal(given.length, chunks.length);
  });
});
