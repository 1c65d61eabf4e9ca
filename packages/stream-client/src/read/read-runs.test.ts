import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError, ok, ownerEpoch, refused, unwrap } from "@stamp/base";
import { type ExtentReader, type OwnedStream, type Place, readWholeBlocks, type StreamClient } from "../index.ts";
import { Stamp } from "../testing/harness.ts";

const forever = { timeoutMs: Number.POSITIVE_INFINITY };
const payloadOf = (at: number, bytes: number): Uint8Array => new Uint8Array(bytes).map((_, i) => (i * 7 + at) % 251);

/** Calls are counted; `together` may stand for the node's answer to reads of several blocks. */
function counting(reader: ExtentReader, together?: ExtentReader["readBlocksOnce"]) {
  const calls = { alone: 0, together: 0 };
  const counted: Pick<ExtentReader, "read" | "readBlocksOnce"> = {
    read: (...given) => {
      calls.alone++;
      return reader.read(...given);
    },
    readBlocksOnce: (...given) => {
      calls.together++;
      return together === undefined ? reader.readBlocksOnce(...given) : together(...given);
    },
  };
  return { calls, counted };
}

/** 60 blocks of 1 to 90,000 bytes in several extents, some of them with others between them. */
async function written(stamp: Stamp): Promise<{ client: StreamClient; stream: OwnedStream; places: Place[]; payloads: Uint8Array[] }> {
  const client = stamp.client();
  const stream = unwrap(await client.openForOwner("/a", ownerEpoch(1), { create: true, timeoutMs: 30_000 }));
  const [places, payloads]: [Place[], Uint8Array[]] = [[], []];
  for (let at = 0; at < 60; at += 10) {
    const blocks = Array.from({ length: 10 }, (_, i) => payloadOf(at + i, i === 5 ? 90_000 : 1 + (((at + i) * 977) % 20_000)));
    places.push(...unwrap(await stream.append(blocks, forever)));
    payloads.push(...blocks);
    if (at % 20 === 0) unwrap(await stream.append([payloadOf(99, 300)], forever));
  }
  return { client, stream, places, payloads };
}

async function all(source: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const payloads: Uint8Array[] = [];
  for await (const payload of source) payloads.push(new Uint8Array(payload));
  return payloads;
}

const makeStamp = (seed: number): Stamp => new Stamp(seed, { journalSegmentBytes: 1 << 22, client: { extentTargetBytes: 400_000 } });

test("read runs: neighbours come in one call, each block as it was written, whatever lies between", async () => {
  const stamp = makeStamp(41);
  await stamp.sim.run(async () => {
    const { client, places, payloads } = await written(stamp);
    assert.ok(new Set(places.map(({ extentId }) => extentId)).size > 2);
    await stamp.sim.sleep(1_000);
    const { calls, counted } = counting(client.reader);
    assert.deepEqual(await all(readWholeBlocks(counted, places)), payloads);
    assert.ok(calls.together <= 15 && calls.alone <= 12, JSON.stringify(calls));
    const odd = places.filter((_, at) => at % 2 === 1);
    const alone = counting(client.reader);
    const expected = payloads.filter((_, at) => at % 2 === 1);
    assert.deepEqual(await all(readWholeBlocks(alone.counted, odd, { windowBytes: 1 })), expected);
    assert.deepEqual(alone.calls, { alone: 30, together: 0 });
  });
});

test("read runs: what a node does not give together is read block by block; what nobody gives is a failure", async () => {
  const stamp = makeStamp(42);
  await stamp.sim.run(async () => {
    const { client, places, payloads } = await written(stamp);
    const refusing = counting(client.reader, () => Promise.resolve(refused("unavailable", "extentStale", "not now")));
    assert.deepEqual(await all(readWholeBlocks(refusing.counted, places)), payloads);
    assert.equal(refusing.calls.alone, 60);
    // Fewer than were asked for, and one of another length.
    const less: ExtentReader["readBlocksOnce"] = async (...given) => {
      const answer = await client.reader.readBlocksOnce(...given);
      if (!answer.ok) return answer;
      const payload = answer.value.payload.slice(0, 2).map((one, at) => (at === 1 ? one.subarray(1) : one));
      return ok({ ...answer.value, payload });
    };
    const some = counting(client.reader, less);
    assert.deepEqual(await all(readWholeBlocks(some.counted, places)), payloads);
    assert.ok(some.calls.alone < 60, JSON.stringify(some.calls));
    const nowhere = { extentId: 999, offsetBytes: 20, lengthBytes: 5 };
    await assert.rejects(all(readWholeBlocks(client.reader, [places[0] as Place, nowhere])), FailureError);
  });
});
