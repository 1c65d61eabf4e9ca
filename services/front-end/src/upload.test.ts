import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { concatBytes, type Outcome, ok, unknownOutcome } from "@stamp/base";
import { NodeDigest } from "@stamp/ports-node";
import type { Place } from "@stamp/wire";
import fc from "fast-check";
import { ByteBudget } from "./byte-budget.ts";
import { receiveBody, type UploadOptions } from "./upload.ts";

async function* chunksOf(sizes: readonly number[]): AsyncGenerator<Uint8Array, void, void> {
  let at = 0;
  for (const size of sizes) yield Uint8Array.from({ length: size }, () => at++ & 0xff);
}

const wholeOf = (lengthBytes: number): Uint8Array => Uint8Array.from({ length: lengthBytes }, (_, i) => i & 0xff);

function options(contentLengthBytes: number | undefined, more: Partial<UploadOptions> = {}): UploadOptions & { pieces: Uint8Array[] } {
  const pieces: Uint8Array[] = [];
  return {
    contentLengthBytes,
    bytesMax: 10_000,
    inlineBytesMax: 16,
    pieceBytes: 100,
    windowBytes: 300,
    wants: { md5: true, crc64: true },
    budget: new ByteBudget(1000).of("a"),
    digest: new NodeDigest(),
    writeData: async (payload): Promise<Outcome<readonly Place[]>> => {
      const index = pieces.push(payload);
      await new Promise((resolve) => setImmediate(resolve));
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
        const budget = new ByteBudget(budgetBytes);
        const given = options(lengthBytes, { budget: budget.of("a") });
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
        assert.equal(budget.usedBytes, 0);
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
    const budget = new ByteBudget(1000);
    const given = options(100, { budget: budget.of("a") });
    const received = await receiveBody(chunksOf(sizes), given);
    assert.equal(received.ok ? "ok" : received.error.code, "InvalidInput", String(sizes));
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.equal(budget.usedBytes, 0);
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
  const budget = new ByteBudget(120);
  const uploads = Array.from({ length: 20 }, (_, i) =>
    receiveBody(chunksOf([60, 60, 60, 60]), options(240, { budget: budget.of(`a${i % 3}`) })),
  );
  for (const received of await Promise.all(uploads)) assert.ok(received.ok);
  assert.equal(budget.usedBytes, 0);
});
