/** Documents of clients that announce much and send little, on a budget that is full. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeClock } from "@stamp/ports-node";
import { ByteBudget } from "../content/byte-budget.ts";
import { CountedClock, settled } from "../testing/clock.ts";
import { wholeBody } from "./body.ts";
import type { Exchange } from "./exchange.ts";

const mebibyte = 1024 * 1024;

/** Sends so many bytes and then nothing until it is let. */
function clientOf(documents: ByteBudget, address: string, clock: NodeClock, first: number) {
  let goOn = (): void => {};
  const going = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  async function* body(): AsyncGenerator<Uint8Array, void, void> {
    yield new Uint8Array(first);
    await going;
    yield new Uint8Array(4 * mebibyte - first);
  }
  const exchange = {
    objects: { parts: { documents, world: { clock } } },
    target: { account: "a" },
    request: { body: body(), remoteAddress: address, signal: new AbortController().signal },
  } as unknown as Exchange;
  return { answer: wholeBody(exchange, 4 * mebibyte), goOn };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test("documents: eight clients that announce 4 MiB and send one byte take 32 KiB, and a ninth is served", async () => {
  const clock = new NodeClock();
  const documents = new ByteBudget(clock, { bytesMax: 32 * mebibyte, waitMaxMs: 1_000 });
  const slow = Array.from({ length: 8 }, () => clientOf(documents, "1", clock, 1));
  await pause(20);
  assert.equal(documents.usedBytes, 8 * 4096);
  const quick = clientOf(documents, "1", clock, 4 * mebibyte - 1);
  quick.goOn();
  assert.ok((await quick.answer).ok);
  for (const { goOn } of slow) goOn();
  for (const { answer } of slow) assert.ok((await answer).ok);
  assert.equal(documents.usedBytes, 0);
});

test("documents: who waits for room is served when one that takes its time gives way with 503, or is refused in time", async () => {
  let aheadMs = 0;
  const clock = new NodeClock();
  const monotonicMs = clock.monotonicMs.bind(clock);
  clock.monotonicMs = () => monotonicMs() + aheadMs;
  const documents = new ByteBudget(clock, { bytesMax: 8 * mebibyte, waitMaxMs: 500 });
  const slow = [clientOf(documents, "1", clock, 3 * mebibyte), clientOf(documents, "2", clock, 3 * mebibyte)];
  await pause(20);
  const refusedOne = await clientOf(documents, "1", clock, 3 * mebibyte).answer;
  assert.ok(!refusedOne.ok && refusedOne.error.status === 503 && refusedOne.error.headers?.["Retry-After"] === "1");
  aheadMs = 5_000;
  const served = clientOf(documents, "1", clock, 3 * mebibyte);
  served.goOn();
  assert.ok((await served.answer).ok);
  for (const { goOn } of slow) goOn();
  const answers = await Promise.all(slow.map(({ answer }) => answer));
  assert.ok(answers.some((answer) => !answer.ok && answer.error.code === "ServerBusy"));
  assert.equal(documents.usedBytes, 0);
});

test("documents: 300 half-sent ones of one caller give way to another account's, at the same address and at another", async () => {
  const [halfSent, waitingForBytes] = [128 * 1024, 4 * mebibyte];
  for (const [account, address, sentBytes] of [
    ["b", "1", halfSent],
    ["b", "2", halfSent],
    ["a", "2", halfSent],
    ["b", "1", waitingForBytes],
  ] as const) {
    const clock = new CountedClock();
    const documents = new ByteBudget(clock, { bytesMax: 32 * mebibyte, waitMaxMs: 10_000 });
    const lengthBytes = 4 * mebibyte;
    const pieceBytes = 64 * 1024;
    const ends = new AbortController();
    const begin = (of: string, from: string, bytes: number) => {
      async function* body(): AsyncGenerator<Uint8Array, void, void> {
        for (let sent = 0; sent < bytes; sent += pieceBytes) yield new Uint8Array(pieceBytes);
        if (bytes < lengthBytes) await new Promise((resolve) => ends.signal.addEventListener("abort", resolve));
      }
      const request = { body: body(), remoteAddress: from, signal: ends.signal };
      const exchange = { objects: { parts: { documents, world: { clock } } }, target: { account: of }, request };
      return wholeBody(exchange as unknown as Exchange, lengthBytes);
    };
    // The documents that come late wait for bytes themselves, and hold some.
    const slow = Array.from({ length: 300 }, () => begin("a", "1", sentBytes));
    for (let i = 0; i < 20; i++) await settled();
    assert.ok(documents.waiting > 0, "the budget is full");
    let served = 0;
    void begin(account, address, lengthBytes).then(({ ok }) => (served += Number(ok)));
    // This is less than the 10 s after which a request is refused, and the 5 s that a document may take.
    for (let i = 0; i < 20 && served === 0; i++) {
      await clock.pass(100);
      for (let turn = 0; turn < 100; turn++) await settled();
    }
    assert.equal(served, 1, `${account} at ${address}`);
    ends.abort();
    await Promise.all(slow);
    assert.equal(documents.usedBytes, 0);
  }
});
