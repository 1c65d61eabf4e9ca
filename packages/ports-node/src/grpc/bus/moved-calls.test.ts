/** Calls that a renewed secret moves to another connection: nobody is told that they succeeded while the old connection holds their bytes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PartitionServer } from "@stamp/wire";
import { renewedFailure } from "../failures.ts";
import { codecOf } from "../message-codec.ts";
import { defaultLimits } from "../options.ts";
import { AnswerFrames } from "./answer-frames.ts";
import { BusClient } from "./bus-client.ts";
import type { FrameLink, LinkEvents } from "./frame-link.ts";
import { decodeFrames, encodeFrames, failureField, methodField, type OutgoingAnswer } from "./frames.ts";

const { input, output } = PartitionServer.method.writeData;
const method = {
  name: "WriteData",
  field: methodField("stamp.v1.PartitionServer/WriteData"),
  request: codecOf(input),
  answer: codecOf(output),
};
const frameShape = { headBytes: 0, referencedFromBytes: Number.POSITIVE_INFINITY };

/** A connection whose writes are taken when the test says so. */
class HeldLink implements FrameLink {
  readonly headBytes = 0;
  readonly referencedFromBytes: number = 16_384;
  readonly frames: { readonly callIds: readonly number[]; readonly taken: () => void }[] = [];
  readonly #events: LinkEvents;
  destroyed = false;

  constructor(events: LinkEvents) {
    this.#events = events;
    setImmediate(() => events.open());
  }

  write(parts: readonly Buffer[], written: (error?: Error | null) => void): void {
    const callIds = decodeFrames(Buffer.concat(parts)).requests.map(({ callId }) => callId);
    this.frames.push({ callIds, taken: () => written() });
  }

  answer(callId: number, failure?: Uint8Array): void {
    const message = method.answer.prepare(failure === undefined ? { pinTermMs: 1 } : {});
    const item: OutgoingAnswer = { kind: "answer", callId, failure: failure ?? new Uint8Array(0), message };
    this.#events.frame(Buffer.concat(encodeFrames([item], [], frameShape)));
  }

  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {
    this.destroyed = true;
  }
}

async function scene(): Promise<{ links: HeldLink[]; settled: string[]; call: (name: string) => Promise<boolean> }> {
  const links: HeldLink[] = [];
  const dial = (_address: string, events: LinkEvents): FrameLink => {
    const link = new HeldLink(events);
    links.push(link);
    return link;
  };
  const client = new BusClient("127.0.0.1:1", defaultLimits, dial, new AnswerFrames(1 << 20));
  const settled: string[] = [];
  const call = async (name: string): Promise<boolean> => {
    const request = { rangeId: "r", rangeVersion: 1n, key: new Uint8Array(1), payload: new Uint8Array(1 << 20) };
    const outcome = await client.call(method, request, { timeoutMs: 60_000 });
    settled.push(name);
    return outcome.ok;
  };
  return { links, settled, call };
}

/** Turns of the event loop in which the client may do what it can. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
}

function answerAll(link: HeldLink): void {
  for (const { callIds, taken } of link.frames.splice(0)) {
    taken();
    for (const callId of callIds) link.answer(callId);
  }
}

test("bus: calls move to a new connection when the old one holds none of their bytes, and in their order", async () => {
  const { links, settled, call } = await scene();
  const calls = [call("a"), call("b"), call("c")];
  await turns();
  const first = links[0] as HeldLink;
  assert.ok(first.frames.length > 1, "the test needs bytes that are not taken yet");
  const early = first.frames[0]?.callIds[0] as number;
  first.frames[0]?.taken();
  await turns();
  const second = first.frames[1]?.callIds[0] as number;
  first.answer(second, failureField(renewedFailure));
  calls.push(call("d"));
  await turns();
  assert.equal(links.length, 1, "nothing moves while the old connection has bytes to write");
  for (const { taken } of first.frames.slice(1)) taken();
  await turns();
  const next = links[1] as HeldLink;
  assert.equal(first.destroyed, false, "a call before the refused one is still answered");
  answerAll(next);
  await turns();
  answerAll(next);
  first.answer(early);
  assert.deepEqual(await Promise.all(calls), [true, true, true, true]);
  assert.deepEqual(
    settled.filter((name) => name !== "a"),
    ["b", "c", "d"],
  );
  assert.equal(first.destroyed, true);
});

test("bus: calls move at once when the old connection is given up", async () => {
  const { links, call } = await scene();
  const calls = [call("a"), call("b")];
  await turns();
  const first = links[0] as HeldLink;
  first.answer(first.frames[0]?.callIds[0] as number, failureField(renewedFailure));
  await turns();
  assert.equal(first.destroyed, true, "no call is left on it");
  answerAll(links[1] as HeldLink);
  await turns();
  answerAll(links[1] as HeldLink);
  assert.deepEqual(await Promise.all(calls), [true, true]);
});
