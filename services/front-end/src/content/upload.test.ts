import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { concatBytes, type Outcome, ok, ReusedMemory, unknownOutcome } from "@stamp/base";
import { NodeClock, NodeDigest } from "@stamp/ports-node";
import type { Place } from "@stamp/wire";
import fc from "fast-check";
import { CountedClock } from "../testing/clock.ts";
import { ByteBudget, type ByteShare } from "./byte-budget.ts";
import { quickChunkBytes, receiveBody, type UploadOptions } from "./upload.ts";

async function* chunksOf(sizes: readonly number[]): AsyncGenerator<Uint8Array, void, void> {
  let at = 0;
  for (const size of sizes) yield Uint8Array.from({ length: size }, () => at++ & 0xff);
}

const none = new Uint8Array(0);
const wholeOf = (lengthBytes: number): Uint8Array => Uint8Array.from({ length: lengthBytes }, (_, i) => i & 0xff);

const budgetOf = (bytesMax: number): ByteBudget => new ByteBudget(new NodeClock(), { bytesMax, waitMaxMs: 5_000 });
const shareOf = (budget: ByteBudget, account = "a"): ByteShare => budget.of({ account, address: account });

function options(contentLengthBytes: number | undefined, more: Partial<UploadOptions> = {}): UploadOptions & { pieces: Uint8Array[] } {
  const pieces: Uint8Array[] = [];
  return {
    contentLengthBytes,
    bytesMax: 10_000,
    inlineBytesMax: 16,
    pieceBytes: 100,
    windowBytes: 300,
    quickChunkBytes: 50,
    wants: { md5: true, crc64: true },
    budget: shareOf(budgetOf(1000)),
    pieceRoom: shareOf(budgetOf(1000)),
    digest: new NodeDigest(),
    writeData: async (payload, free): Promise<Outcome<readonly Place[]>> => {
      const index = pieces.push(none);
      await new Promise((resolve) => setImmediate(resolve));
      // The piece is sent at last. From now on its memory is used again.
      pieces[index - 1] = payload.slice();
      payload.fill(0xdb);
      free();
      return ok([{ extentId: BigInt(index), lengthBytes: payload.length } as Place]);
    },
    pieces,
    ...more,
  };
}

test("whatever the chunks are, the pieces are the body in order, hashes are of the body, and the budget is whole again", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 350 }), { maxLength: 12 }),
      fc.integer({ min: 1, max: 400 }),
      async (sizes, budgetBytes) => {
        const lengthBytes = sizes.reduce((sum, size) => sum + size, 0);
        const budget = budgetOf(budgetBytes);
        const pieces = budgetOf(budgetBytes);
        const memory = new ReusedMemory({ freeBytesMax: 1_000, pieceBytesMin: 8, pieceBytesMax: 1_000, classBytes: 8 });
        const given = options(lengthBytes, { budget: shareOf(budget), pieceRoom: shareOf(pieces), memory });
        const received = await receiveBody(chunksOf(sizes), given);
        assert.ok(received.ok);
        const { inline, places, md5 } = received.value;
        assert.deepEqual(concatBytes([inline, ...given.pieces]), wholeOf(lengthBytes));
        assert.equal(inline.length > 0 && places.length > 0, false);
        assert.deepEqual(
          places.map((place) => place.extentId),
          given.pieces.map((_, i) => BigInt(i + 1)),
        );
        assert.deepEqual(Buffer.from(md5 ?? []), createHash("md5").update(wholeOf(lengthBytes)).digest());
        assert.ok(given.pieces.every((piece) => piece.length <= 100));
        assert.deepEqual([budget.usedBytes, pieces.usedBytes], [0, 0]);
      },
    ),
    { numRuns: 100 },
  );
});

test("no more than the window is in flight", async () => {
  let inFlight = 0;
  let most = 0;
  const given = options(5000, {
    writeData: async (payload) => {
      inFlight += payload.length;
      most = Math.max(most, inFlight);
      await new Promise((resolve) => setTimeout(resolve, 1));
      inFlight -= payload.length;
      return ok([]);
    },
  });
  assert.ok((await receiveBody(chunksOf([5000]), given)).ok);
  assert.equal(most, 300);
});

test("a body that is too long or too short is refused, and nothing stays held", async () => {
  for (const sizes of [[50, 50, 1], [50, 49], []]) {
    const budget = budgetOf(1000);
    const pieces = budgetOf(1000);
    const given = options(100, { budget: shareOf(budget), pieceRoom: shareOf(pieces) });
    const received = await receiveBody(chunksOf(sizes), given);
    assert.equal(received.ok ? "ok" : received.error.code, "InvalidInput", String(sizes));
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.deepEqual([budget.usedBytes, pieces.usedBytes], [0, 0]);
  }
  const unbounded = options(undefined, { bytesMax: 200 });
  const received = await receiveBody(chunksOf([150, 51]), unbounded);
  assert.equal(received.ok ? "ok" : received.error.code, "RequestBodyTooLarge");
});

test("a piece whose fate is unknown fails the upload as not done: nothing refers to it", async () => {
  const given = options(500, { writeData: async () => unknownOutcome("unavailable", "connectionLost", "gone") });
  const received = await receiveBody(chunksOf([500]), given);
  assert.ok(!received.ok);
  assert.equal(received.error.status, 503);
});

test("many slow uploads share a small budget without stopping each other", async () => {
  const budget = budgetOf(120);
  const uploads = Array.from({ length: 20 }, (_, i) =>
    receiveBody(chunksOf([60, 60, 60, 60]), options(240, { budget: shareOf(budget, `a${i % 3}`) })),
  );
  for (const received of await Promise.all(uploads)) assert.ok(received.ok);
  assert.equal(budget.usedBytes, 0);
});

/** Chunks that come when they are let. */
function scripted() {
  const queue: Uint8Array[] = [];
  let wake = (): void => {};
  let ended = false;
  async function* body(): AsyncGenerator<Uint8Array, void, void> {
    for (;;) {
      const chunk = queue.shift();
      if (chunk) yield chunk;
      else if (ended) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  }
  const send = async (bytes: number): Promise<void> => {
    queue.push(new Uint8Array(bytes));
    wake();
    await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const end = (): void => {
    ended = true;
    wake();
  };
  return { body: body(), send, end };
}

test("an announced length takes nothing of the budget; many small chunks take no more than twice their bytes", async () => {
  for (const contentLengthBytes of [1 << 20, undefined]) {
    const budget = budgetOf(1 << 30);
    const client = scripted();
    const bounds = { bytesMax: 1 << 30, inlineBytesMax: 1 << 10, pieceBytes: 1 << 20, windowBytes: 1 << 21, quickChunkBytes };
    const receiving = receiveBody(client.body, options(contentLengthBytes, { ...bounds, budget: shareOf(budget) }));
    await client.send(1);
    assert.ok(budget.usedBytes <= 4096, `${budget.usedBytes}`);
    for (let i = 0; i < 20; i++) await client.send(1_000);
    assert.ok(budget.usedBytes >= 20_001 && budget.usedBytes <= 2 * 20_001, `${budget.usedBytes}`);
    client.end();
    await receiving;
    assert.equal(budget.usedBytes, 0);
  }
});

test("a slow upload writes what it holds when others want its bytes, and goes on", async () => {
  const budget = budgetOf(8_192);
  const client = scripted();
  const bounds = { pieceBytes: 10_000, bytesMax: 1 << 20, windowBytes: 20_000 };
  const given = options(10_000, { ...bounds, budget: shareOf(budget) });
  const receiving = receiveBody(client.body, given);
  await client.send(5_000);
  assert.ok(budget.usedBytes >= 5_000);
  const other = shareOf(budget, "other");
  assert.ok((await other.take(6_000)).ok);
  assert.deepEqual(
    given.pieces.map(({ length }) => length),
    [5_000],
  );
  other.give(6_000);
  await client.send(2_000);
  await client.send(3_000);
  client.end();
  const received = await receiving;
  assert.ok(received.ok && concatBytes(given.pieces).length === 10_000);
});

test("however many quick uploads share the budget, each is written in whole pieces, and a small body waits for none of them", async () => {
  const budget = budgetOf(1_560);
  const pieces = budgetOf(1_400);
  const sizes = Array.from({ length: 20 }, () => 50);
  let most = 0;
  const uploads = Array.from({ length: 64 }, () => {
    const given = options(1_000, { pieceBytes: 200, budget: shareOf(budget), pieceRoom: shareOf(pieces) });
    return { given, received: receiveBody(chunksOf(sizes), given) };
  });
  for (let i = 0; i < 50; i++) {
    most = Math.max(most, budget.usedBytes);
    const small = shareOf(budget);
    assert.ok(small.tryTake(16), "the same account has room for a small body");
    small.give(16);
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const { given, received } of uploads) {
    assert.ok((await received).ok);
    assert.deepEqual(
      given.pieces.map(({ length }) => length),
      Array.from({ length: 5 }, () => 200),
    );
  }
  assert.ok(most >= 1_000 && most <= 1_050, `${most}`);
  assert.deepEqual([budget.usedBytes, pieces.usedBytes], [0, 0]);
});

test("a quick upload keeps its room while bytes come, and gives it back when its client stands still", async () => {
  const clock = new CountedClock();
  const budget = new ByteBudget(clock, { bytesMax: 1_600, waitMaxMs: 5_000 });
  const client = scripted();
  const given = options(3_000, { pieceBytes: 1_000, windowBytes: 2_000, budget: shareOf(budget), pieceRoom: shareOf(budgetOf(10_000)) });
  const receiving = receiveBody(client.body, given);
  const other = shareOf(budget, "other");
  let got = false;
  await client.send(50);
  assert.equal(budget.usedBytes, 1_000, "room for a whole piece");
  void other.take(700).then(({ ok: isTaken }) => (got = isTaken));
  for (let i = 0; i < 5; i++) {
    await clock.pass(300);
    await client.send(50);
  }
  assert.deepEqual([given.pieces.length, got], [0, false]);
  await clock.pass(1_000);
  await client.send(0);
  assert.deepEqual([given.pieces.map(({ length }) => length), got], [[300], true]);
  other.give(700);
  for (const bytes of [700, 1_000, 1_000]) await client.send(bytes);
  client.end();
  assert.ok((await receiving).ok && concatBytes(given.pieces).length === 3_000);
  assert.equal(budget.usedBytes, 0);
});

test("a quick upload keeps its room over a few smaller chunks, and is a slow one after four in a row", async () => {
  const clock = new CountedClock();
  const budget = new ByteBudget(clock, { bytesMax: 1_600, waitMaxMs: 5_000 });
  const client = scripted();
  const given = options(3_000, { pieceBytes: 1_000, windowBytes: 2_000, budget: shareOf(budget), pieceRoom: shareOf(budgetOf(10_000)) });
  const receiving = receiveBody(client.body, given);
  await client.send(50);
  let got = false;
  void shareOf(budget, "other")
    .take(700)
    .then(({ ok: isTaken }) => (got = isTaken));
  for (let i = 0; i < 3; i++) {
    await client.send(10);
    await clock.pass(150);
  }
  assert.deepEqual([given.pieces.length, got], [0, false]);
  await client.send(10);
  await clock.pass(150);
  await client.send(0);
  assert.deepEqual([given.pieces.map(({ length }) => length), got], [[90], true]);
  client.end();
  assert.ok(!(await receiving).ok);
});

test("a quick upload does not hold a piece with a large chunk each second", async () => {
  const clock = new CountedClock();
  const budget = new ByteBudget(clock, { bytesMax: 1_600, waitMaxMs: 5_000 });
  const client = scripted();
  const given = options(3_000, { pieceBytes: 1_000, windowBytes: 2_000, budget: shareOf(budget), pieceRoom: shareOf(budgetOf(10_000)) });
  const receiving = receiveBody(client.body, given);
  await client.send(50);
  const other = shareOf(budget, "other");
  let got = false;
  void other.take(700).then(({ ok: isTaken }) => (got = isTaken));
  for (let i = 0; i < 5; i++) {
    await clock.pass(700);
    assert.equal(got, false, "within 3.5 s it keeps its room");
    await client.send(50);
  }
  await clock.pass(900);
  assert.equal(got, true);
  other.give(700);
  client.end();
  assert.ok(!(await receiving).ok);
});

test("a quick upload that stands still gives its room back sooner while small requests leave little of it", async () => {
  for (const [bytesNow, isGivenBack] of [
    [10_000, false],
    [1_500, true],
  ] as const) {
    const clock = new CountedClock();
    const rooms = new ByteBudget(clock, { bytesMax: 10_000, waitMaxMs: 5_000, bytesNow: () => bytesNow });
    const client = scripted();
    const bounds = { pieceBytes: 1_000, windowBytes: 2_000, budget: shareOf(budgetOf(10_000)), pieceRoom: shareOf(rooms) };
    const given = options(3_000, bounds);
    const receiving = receiveBody(client.body, given);
    await client.send(50);
    void shareOf(rooms, "other").take(bytesNow - 400);
    await clock.pass(350);
    await client.send(0);
    assert.equal(given.pieces.length === 1, isGivenBack, `${bytesNow}`);
    client.end();
    assert.ok(!(await receiving).ok);
  }
});

test("an upload too long for small pieces gives back the room that it does not fill", async () => {
  const clock = new CountedClock();
  const budget = new ByteBudget(clock, { bytesMax: 1_600, waitMaxMs: 5_000 });
  const client = scripted();
  const lengthBytes = 8_000 * 500;
  const bounds = { bytesMax: lengthBytes, pieceBytes: 1_000, windowBytes: 2_000, pieceRoom: shareOf(budgetOf(10_000)) };
  const given = options(lengthBytes, { ...bounds, budget: shareOf(budget) });
  const receiving = receiveBody(client.body, given);
  await client.send(60);
  assert.equal(budget.usedBytes, 1_000);
  const other = shareOf(budget, "other").take(1_200);
  await clock.pass(1_000);
  assert.ok((await other).ok);
  assert.deepEqual([given.pieces.length, budget.usedBytes], [0, 1_260]);
  client.end();
  assert.ok(!(await receiving).ok);
});

test("memory of pieces: a piece that was written is the memory of a later one; one that was not given back never is", async () => {
  const memory = new ReusedMemory({ freeBytesMax: 1_000, pieceBytesMin: 100, pieceBytesMax: 100, classBytes: 100 });
  for (const isFree of [true, false]) {
    const used = new Set<ArrayBufferLike>();
    const given = options(1_000, {
      memory,
      quickChunkBytes: 1,
      writeData: async (payload, free) => {
        used.add(payload.buffer);
        await new Promise((resolve) => setImmediate(resolve));
        if (isFree) free();
        return ok([]);
      },
    });
    assert.ok((await receiveBody(chunksOf(Array(10).fill(100)), given)).ok);
    assert.ok(isFree ? used.size <= 4 : used.size === 10, `${used.size}`);
  }
});

test("memory of pieces: a body that breaks off gives the memory back that no piece was made of", async () => {
  const memory = new ReusedMemory({ freeBytesMax: 1_000, pieceBytesMin: 100, pieceBytesMax: 100, classBytes: 100 });
  const given = options(1_000, { memory, quickChunkBytes: 1 });
  assert.equal((await receiveBody(chunksOf([50]), given)).ok, false);
  assert.equal(memory.freeBytes, 100);
});
