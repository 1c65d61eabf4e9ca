/** The memory of an answer's frame is used again when every caller has given its payload back, and not before. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ok, unwrap } from "@stamp/base";
import { type Client, type Listener, servedPartly } from "@stamp/ports";
import { ExtentNode, PartitionServer } from "@stamp/wire";
import { codecOf } from "../message-codec.ts";
import { defaultLimits } from "../options.ts";
import { GrpcTransport } from "../transport.ts";
import { AnswerFrames } from "./answer-frames.ts";
import { BusClient } from "./bus-client.ts";
import type { FrameLink, LinkEvents } from "./frame-link.ts";
import { encodeFrames, methodField } from "./frames.ts";

const payloadBytes = 300_000;
const timeoutMs = 20_000;
const asked = { extentId: 1n, offsetBytes: 0n, lengthBytes: 1 };

interface Scene {
  readonly transport: GrpcTransport;
  readonly listener: Listener;
  readonly node: Client<typeof ExtentNode>;
  /** A payload of bytes that all are `fill`. */
  read(fill: number): Promise<Uint8Array>;
}

async function scene(t: TestContext, reusedBytesMax = 8 * 1024 * 1024): Promise<Scene> {
  const transport = new GrpcTransport({ limits: { reusedBytesMax } });
  const listener = await transport.serve("127.0.0.1:0", [
    servedPartly(ExtentNode, {
      read: async ({ lengthBytes }) => ok({ payload: new Uint8Array(payloadBytes).fill(lengthBytes) }),
      readBlocks: async ({ maxBytes }) => ok({ payload: [new Uint8Array(payloadBytes).fill(maxBytes)] }),
    }),
  ]);
  t.after(async () => {
    await transport.close();
    await listener.close(0);
  });
  const node = transport.client(listener.address, ExtentNode);
  const read = async (fill: number): Promise<Uint8Array> => unwrap(await node.read({ ...asked, lengthBytes: fill }, { timeoutMs })).payload;
  return { transport, listener, node, read };
}

const filledWith = (payload: Uint8Array, fill: number): boolean => Buffer.compare(payload, Buffer.alloc(payloadBytes, fill)) === 0;

test("answers: a large answer without a payload is given back as a whole, and a small one beside it has memory of its own", async (t) => {
  const transport = new GrpcTransport({ limits: { reusedBytesMax: 8 * 1024 * 1024 } });
  const listener = await transport.serve("127.0.0.1:0", [
    servedPartly(PartitionServer, {
      execute: async ({ rangeId }) => {
        const [fill = 0, size = 0] = rangeId.split(" ").map(Number);
        const page = { rows: new Uint8Array(size).fill(fill), more: false, rangeEnded: false, rowsRead: 1 };
        return ok({ result: { kind: { case: "table", value: { kind: { case: "entities", value: page } } } } });
      },
    }),
  ]);
  t.after(async () => {
    await transport.close();
    await listener.close(0);
  });
  const server = transport.client(listener.address, PartitionServer);
  const ask = async (fill: number, size = payloadBytes) => {
    const answer = unwrap(await server.execute({ rangeId: `${fill} ${size}` }, { timeoutMs }));
    const kind = answer.result?.kind;
    assert.ok(kind?.case === "table" && kind.value.kind.case === "entities");
    return { answer, rows: kind.value.kind.value.rows };
  };
  const [large, small] = await Promise.all([ask(1), ask(2, 1_000)]);
  transport.giveBack(small.answer);
  const [second] = await Promise.all([ask(3), ask(4, 1_000)]);
  assert.ok(second.rows.buffer !== large.rows.buffer && filledWith(large.rows, 1), "not before it was given back");
  transport.giveBack(large.answer);
  const [third] = await Promise.all([ask(5), ask(6, 1_000)]);
  assert.ok(third.rows.buffer === large.rows.buffer && filledWith(third.rows, 5));
  assert.ok(filledWith(second.rows, 3));
  assert.deepEqual(small.rows, new Uint8Array(1_000).fill(2));
});

test("answers: a frame with two payloads is used again only after both were given back", async (t) => {
  const { transport, read } = await scene(t);
  // Both are asked for in one tick, so the answers travel in one frame.
  const [first, second] = await Promise.all([read(1), read(2)]);
  assert.ok(first.buffer === second.buffer, "both lie in one frame");
  transport.giveBack(first);
  const [third, fourth] = await Promise.all([read(3), read(4)]);
  assert.ok(filledWith(second, 2), "a payload that was not given back stays as it is");
  assert.ok(third.buffer !== second.buffer);
  transport.giveBack(second);
  const [fifth, sixth] = await Promise.all([read(5), read(6)]);
  assert.ok(fifth.buffer === second.buffer, "now the memory is used again");
  assert.ok(filledWith(fifth, 5) && filledWith(sixth, 6));
  assert.ok(filledWith(third, 3) && filledWith(fourth, 4), "and only that");
});

test("answers: giving back twice counts once", async (t) => {
  const { transport, read } = await scene(t);
  const [first, second] = await Promise.all([read(1), read(2)]);
  transport.giveBack(first);
  transport.giveBack(first);
  await Promise.all([read(3), read(4)]);
  assert.ok(filledWith(second, 2));
});

test("answers: a view of a payload, bytes that came elsewhere and blocks are not held, so their frames are left to the collector", async (t) => {
  const { transport, node, read } = await scene(t);
  const first = await read(1);
  transport.giveBack(first.subarray(0));
  transport.giveBack(new Uint8Array(5));
  const { payload } = unwrap(await node.readBlocks({ extentId: 1n, offsetBytes: 0n, maxBytes: 2 }, { timeoutMs }));
  const block = payload[0] as Uint8Array;
  transport.giveBack(block);
  await Promise.all([read(3), read(4)]);
  assert.ok(filledWith(first, 1) && filledWith(block, 2));
});

test("answers: a call that was given up holds nothing of the frame", async () => {
  const frames = new AnswerFrames(8 * 1024 * 1024);
  let events: LinkEvents | undefined;
  const link = {
    headBytes: 0,
    referencedFromBytes: 1_000,
    write: () => {},
    pause: () => {},
    resume: () => {},
    end: () => {},
    destroy: () => {},
  };
  const dial = (_address: string, told: LinkEvents): FrameLink => {
    events = told;
    return link;
  };
  const bus = new BusClient("a:1", defaultLimits, dial, frames);
  const { method } = ExtentNode;
  const read = { name: "read", field: methodField("read"), request: codecOf(method.read.input), answer: codecOf(method.read.output) };
  const stop = new AbortController();
  const given = bus.call(read, asked, { timeoutMs, signal: stop.signal });
  const kept = bus.call(read, asked, { timeoutMs });
  events?.open();
  await new Promise((resolve) => setTimeout(resolve, 50));
  stop.abort();
  assert.equal((await given).ok, false);
  const answers = [1, 2].map((callId) => {
    const message = read.answer.prepare({ payload: new Uint8Array(payloadBytes).fill(callId) });
    return { kind: "answer", callId, failure: new Uint8Array(0), message } as const;
  });
  const bytes = Buffer.concat(encodeFrames(answers, [], link));
  const frame = frames.memory.take(bytes.length);
  bytes.copy(frame);
  events?.frame(frame);
  const { payload } = unwrap(await kept) as { readonly payload: Uint8Array };
  assert.ok(filledWith(payload, 2));
  assert.equal(frames.memory.freeBytes, 0);
  frames.giveBack(payload);
  assert.ok(frames.memory.freeBytes >= bytes.length);
  bus.close();
});

test("answers: without memory to use again, nothing is given back", async (t) => {
  const { transport, read } = await scene(t, 0);
  const first = await read(1);
  transport.giveBack(first);
  await read(2);
  assert.ok(filledWith(first, 1));
});
