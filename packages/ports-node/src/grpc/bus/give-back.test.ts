/** The memory of a frame is used again when every handler of its requests has given its payload back, and not before. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ok, unwrap } from "@stamp/base";
import { type CallContext, servedPartly } from "@stamp/ports";
import { ExtentNode } from "@stamp/wire";
import { GrpcTransport } from "../transport.ts";

const payloadBytes = 300_000;
const timeoutMs = 20_000;

interface Got {
  readonly payload: Uint8Array;
  readonly context: CallContext;
}

async function scene(t: TestContext, reusedBytesMax: number): Promise<{ got: Got[]; send: (fill: number) => Promise<void> }> {
  const transport = new GrpcTransport({ limits: { reusedBytesMax } });
  const got: Got[] = [];
  const listener = await transport.serve("127.0.0.1:0", [
    servedPartly(ExtentNode, {
      append: async (request, context) => {
        got.push({ payload: request.payload[0] as Uint8Array, context });
        return ok({});
      },
    }),
  ]);
  t.after(async () => {
    await transport.close();
    await listener.close(0);
  });
  const node = transport.client(listener.address, ExtentNode);
  const send = async (fill: number): Promise<void> => {
    unwrap(await node.append({ payload: [new Uint8Array(payloadBytes).fill(fill)] }, { timeoutMs }));
  };
  return { got, send };
}

const filledWith = ({ payload }: Got, fill: number): boolean => Buffer.compare(payload, Buffer.alloc(payloadBytes, fill)) === 0;

test("giving back: a frame with two requests is used again only after both payloads were given back", async (t) => {
  const { got, send } = await scene(t, 8 * 1024 * 1024);
  // Made in one tick: they travel in one frame.
  await Promise.all([send(1), send(2)]);
  const [first, second] = got as [Got, Got];
  assert.equal(first.payload.buffer, second.payload.buffer, "both lie in one frame");
  first.context.giveBackPayload?.();
  await Promise.all([send(3), send(4)]);
  assert.ok(filledWith(second, 2), "a payload that was not given back stays as it is");
  assert.notEqual(got[2]?.payload.buffer, second.payload.buffer);
  second.context.giveBackPayload?.();
  await Promise.all([send(5), send(6)]);
  assert.equal(got[4]?.payload.buffer, second.payload.buffer, "now the memory is used again");
  assert.ok(filledWith(got[4] as Got, 5) && filledWith(got[5] as Got, 6));
  assert.ok(filledWith(got[2] as Got, 3) && filledWith(got[3] as Got, 4), "and only that");
});

test("giving back: a payload that is given back twice is a bug that is told", async (t) => {
  const { got, send } = await scene(t, 8 * 1024 * 1024);
  await send(1);
  got[0]?.context.giveBackPayload?.();
  assert.throws(() => got[0]?.context.giveBackPayload?.(), /once/);
});

test("giving back: without memory to use again, nothing can be given back", async (t) => {
  const { got, send } = await scene(t, 0);
  await send(1);
  assert.equal(got[0]?.context.giveBackPayload, undefined);
});
