/** A handler is told when the system has taken its answer, and not before; nobody is told of an answer that did not leave whole. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ok, unwrap } from "@stamp/base";
import { type CallContext, type Listener, servedPartly } from "@stamp/ports";
import { ExtentNode } from "@stamp/wire";
import { codecOf } from "../message-codec.ts";
import { defaultLimits } from "../options.ts";
import { GrpcTransport } from "../transport.ts";
import { FrameWriter } from "./frame-writer.ts";
import type { OutgoingAnswer } from "./frames.ts";

const payloadBytes = 12 * 1024 * 1024;
const timeoutMs = 20_000;
const asked = { extentId: 1n, offsetBytes: 0n, lengthBytes: 1 };
const turns = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 100));

interface Scene {
  readonly transport: GrpcTransport;
  readonly listener: Listener;
  told(): number;
}

/** Serves payloads of sevens that become nines as soon as the handler is told that they were sent. */
async function scene(t: TestContext, before: (context: CallContext) => Promise<void> = async () => {}): Promise<Scene> {
  const transport = new GrpcTransport();
  let told = 0;
  const listener = await transport.serve("127.0.0.1:0", [
    servedPartly(ExtentNode, {
      read: async (_request, context) => {
        const payload = new Uint8Array(payloadBytes).fill(7);
        context.whenSent?.(() => {
          told++;
          payload.fill(9);
        });
        await before(context);
        return ok({ payload });
      },
    }),
  ]);
  t.after(async () => {
    await transport.close();
    await listener.close(0);
  });
  return { transport, listener, told: () => told };
}

test("answers, sent: callers get the bytes as they were, and each handler is told once", async (t) => {
  const { transport, listener, told } = await scene(t);
  const node = transport.client(listener.address, ExtentNode);
  const answers = await Promise.all(Array.from({ length: 5 }, () => node.read(asked, { timeoutMs })));
  const expected = Buffer.alloc(payloadBytes, 7);
  for (const answer of answers) assert.equal(Buffer.compare(unwrap(answer).payload, expected), 0);
  while (told() < 5) await turns();
  await turns();
  assert.equal(told(), 5);
});

test("answers, sent: nobody is told of an answer whose caller has gone", async (t) => {
  let answer = (): void => {};
  const { transport, listener, told } = await scene(t, () => new Promise((resolve) => (answer = resolve)));
  const call = transport.client(listener.address, ExtentNode).read(asked, { timeoutMs });
  await turns();
  transport.disconnect(listener.address);
  assert.equal((await call).ok, false);
  await turns();
  answer();
  await turns();
  assert.equal(told(), 0);
});

for (const [how, error] of [
  ["written", undefined],
  ["broken off", new Error("the connection is lost")],
] as const) {
  test(`answers, sent: a frame that was ${how} ${error === undefined ? "is told, when it is" : "is not told"}`, async () => {
    const written: ((error?: Error | null) => void)[] = [];
    const sink = { headBytes: 0, referencedFromBytes: 1_000, write: (_parts: unknown, told: () => void) => void written.push(told) };
    const writer = new FrameWriter<OutgoingAnswer>(defaultLimits, sink);
    writer.open();
    let told = 0;
    const message = codecOf(ExtentNode.method.read.output).prepare({ payload: new Uint8Array(5_000) });
    const item: OutgoingAnswer = { kind: "answer", callId: 1, failure: new Uint8Array(0), message };
    writer.push(
      item,
      () => false,
      () => {},
      () => told++,
    );
    await turns();
    assert.deepEqual([written.length, told], [1, 0]);
    written[0]?.(error);
    assert.equal(told, error === undefined ? 1 : 0);
    assert.equal(writer.pendingBytes, 0);
  });
}
