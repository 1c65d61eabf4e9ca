import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, FailureError, type Outcome, ok, refused } from "@stamp/base";
import { NodeClock, NodeDigest } from "@stamp/ports-node";
import type { ExtentReader } from "@stamp/stream-client";
import type { BlobContent } from "@stamp/wire";
import { BodyPieces, type DownloadPieces, ownPieces } from "./body-pieces.ts";
import { ByteBudget } from "./byte-budget.ts";
import { Download } from "./download.ts";

const whole = Uint8Array.from({ length: 1000 }, (_, i) => i & 0xff);
const unknownExtent = new FailureError(refused("notFound", "unknownExtent", "it was rewritten").failure);

/** Content from here on, in places of 100 bytes whose offset is where they are in the blob. */
function contentFrom(startBytes: number): BlobContent {
  const places = [];
  for (let at = startBytes; at < 1000; at += 100) {
    places.push({ extentId: 1n, offsetBytes: BigInt(at), lengthBytes: Math.min(100, 1000 - at) });
  }
  return {
    startBytes: BigInt(startBytes),
    lengthBytes: BigInt(1000 - startBytes),
    inline: new Uint8Array(0),
    places,
    extents: [],
  } as unknown as BlobContent;
}

/** Gives so many chunks of 50 bytes, then fails; the next opening starts anew. */
function reader(chunksBeforeFailure: readonly number[]) {
  const state = { opened: 0, returned: 0 };
  const fake = {
    learn: () => {},
    readPlaces: async function* (places: readonly { offsetBytes: number; lengthBytes: number }[]) {
      const limit = chunksBeforeFailure[state.opened++] ?? Number.POSITIVE_INFINITY;
      let given = 0;
      try {
        for (const place of places) {
          for (let at = 0; at < place.lengthBytes; at += 50) {
            if (given++ >= limit) throw unknownExtent;
            const from = place.offsetBytes + at;
            const chunk = whole.slice(from, Math.min(from + 50, place.offsetBytes + place.lengthBytes));
            yield chunk;
            // Its memory is used again.
            chunk.fill(0xdb);
          }
        }
      } finally {
        state.returned++;
      }
    },
  };
  return { fake: fake as unknown as ExtentReader, state };
}

async function read(download: Download): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of download) chunks.push(chunk);
  return concatBytes(chunks);
}

const budgetOf = (bytesMax: number): ByteBudget => new ByteBudget(new NodeClock(), { bytesMax, waitMaxMs: 100 });

const start = (
  chunks: readonly number[],
  again: (startBytes: number, endBytes: number) => Promise<Outcome<BlobContent>>,
  budget = budgetOf(600),
  pieces = ownPieces(50),
) => {
  const { fake, state } = reader(chunks);
  const download = new Download(contentFrom(0), 1000, {
    reader: fake,
    clock: new NodeClock(),
    budget: budget.of({ account: "a", address: "1" }),
    windowBytes: 400,
    pieces,
    readTimeoutMs: 1000,
    again,
  });
  return { download, state, budget };
};

test("an extent that is gone in mid-body is asked for again from where the reader is, and the bytes are the same", async () => {
  const asked: number[] = [];
  const { download, state, budget } = start([3, 0, 0, 5], async (startBytes) => {
    asked.push(startBytes);
    return ok(contentFrom(startBytes));
  });
  assert.ok((await download.open()).ok);
  assert.deepEqual(await read(download), whole);
  assert.deepEqual(asked, [150, 150, 150, 400]);
  assert.equal(state.returned, state.opened);
  assert.equal(budget.usedBytes, 0);
});

test("a blob that was changed meanwhile breaks the body; no other bytes follow", async () => {
  const { download, budget } = start([3], async () => refused("aborted", "conflict", "changed"));
  assert.ok((await download.open()).ok);
  const chunks: Uint8Array[] = [];
  await assert.rejects(async () => {
    for await (const chunk of download) chunks.push(chunk);
  }, FailureError);
  assert.deepEqual(concatBytes(chunks), whole.subarray(0, 150));
  await download.return();
  assert.equal(budget.usedBytes, 0);
});

test("asking without one more byte ends", async () => {
  const { download, budget } = start([0, 0, 0, 0, 0, 0, 0, 0], async (startBytes) => ok(contentFrom(startBytes)));
  const opened = await download.open();
  assert.equal(opened.ok, false);
  assert.equal(budget.usedBytes, 0);
});

test("a body that is dropped half-way gives its budget and its reads back", async () => {
  const { download, state, budget } = start([], async () => refused("internal", "bug", "never asked"));
  assert.ok((await download.open()).ok);
  assert.equal(budget.usedBytes, 450);
  await download.next();
  await download.return();
  assert.equal(budget.usedBytes, 0);
  assert.equal(state.returned, 1);
});

test("a client that takes nothing more holds one piece, and gets the same bytes when it goes on, without a question", async () => {
  const { download, state, budget } = start([], async () => refused("internal", "bug", "never asked"));
  assert.ok((await download.open()).ok);
  const got: Uint8Array[] = [(await download.next()).value ?? new Uint8Array(0)];
  while (budget.usedBytes > 50) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual([state.returned, budget.usedBytes], [1, 50]);
  for await (const chunk of download) got.push(chunk);
  assert.deepEqual(concatBytes(got), whole);
  assert.equal(budget.usedBytes, 0);
  assert.ok(state.opened > 2, "it goes on in small runs");
});

test("where there is room for pieces only, downloads go on in pieces; beyond, who begins is refused", async () => {
  const budget = budgetOf(100);
  const [one, two, three] = [start([], never, budget).download, start([], never, budget).download, start([], never, budget).download];
  assert.ok((await one.open()).ok);
  const other = budget.of({ account: "b", address: "2" });
  assert.ok(other.tryTake(50));
  const refusedOne = await two.open();
  assert.ok(!refusedOne.ok && refusedOne.failure.reason === "overloaded");
  assert.deepEqual(await read(one), whole);
  assert.ok((await three.open()).ok);
  await three.return();
  other.give(50);
  assert.equal(budget.usedBytes, 0);
});

test("a blob of many places: a slow client's places are let go, and asked for again piece by piece", async () => {
  const many = {
    ...contentFrom(0),
    places: Array.from({ length: 500 }, (_, i) => ({ extentId: 1n, offsetBytes: BigInt(2 * i), lengthBytes: 2 })),
  };
  const asked: [number, number][] = [];
  const { fake } = reader([]);
  const budget = budgetOf(600);
  const download = new Download(many as unknown as BlobContent, 1000, {
    clock: new NodeClock(),
    reader: fake,
    budget: budget.of({ account: "a", address: "1" }),
    windowBytes: 400,
    pieces: ownPieces(50),
    readTimeoutMs: 1000,
    again: async (startBytes, endBytes) => {
      asked.push([startBytes, endBytes]);
      return ok(contentFrom(startBytes));
    },
  });
  assert.ok((await download.open()).ok);
  const got: Uint8Array[] = [(await download.next()).value ?? new Uint8Array(0)];
  while (budget.usedBytes > 50) await new Promise((resolve) => setTimeout(resolve, 10));
  for await (const chunk of download) got.push(chunk);
  assert.deepEqual(concatBytes(got), whole);
  assert.deepEqual(asked[0], [2, 52]);
});

const never = async (): Promise<Outcome<BlobContent>> => refused("internal", "bug", "never asked");

test("pieces: the first is small, later ones are large while there is room; a client that stands still holds its own until it goes on", async () => {
  const room = budgetOf(60);
  const pieces: DownloadPieces = { ...ownPieces(20), largeBytes: 50, room: room.of({ account: "a", address: "1" }) };
  const { download, budget } = start([], never, budgetOf(600), pieces);
  assert.ok((await download.open()).ok);
  const next = async (): Promise<Uint8Array> => (await download.next()).value ?? new Uint8Array(0);
  const got = [await next(), await next(), await next()];
  assert.deepEqual(
    got.map(({ length }) => length),
    [20, 30, 50],
  );
  assert.equal(room.usedBytes, 30);
  while (budget.usedBytes > 20) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(room.usedBytes, 30, "the piece is still in the socket");
  got.push(await next());
  assert.deepEqual([got[3]?.length, room.usedBytes], [20, 0], "small again for a slow client");
  for await (const piece of download) got.push(piece);
  assert.ok(
    got.slice(4).some(({ length }) => length > 20),
    "and large when it keeps up",
  );
  assert.deepEqual(concatBytes(got), whole);
  assert.equal(room.usedBytes, 0);
});

test("pieces: without room for large ones all are small, and a download that is dropped gives its room back", async () => {
  const room = budgetOf(60);
  const pieces: DownloadPieces = { ...ownPieces(20), largeBytes: 50, room: room.of({ account: "a", address: "1" }) };
  const other = room.of({ account: "b", address: "2" });
  assert.ok(other.tryTake(60));
  const { download } = start([], never, budgetOf(600), pieces);
  assert.ok((await download.open()).ok);
  for (let i = 0; i < 4; i++) assert.ok(((await download.next()).value?.length ?? 0) <= 20);
  other.give(60);
  while (room.usedBytes === 0) await download.next();
  await download.return();
  assert.equal(room.usedBytes, 0);
});

test("pieces: the memory of one is used again when the system has taken it, and not before", () => {
  const pieces = new BodyPieces(new NodeClock(), 1 << 20).of({ account: "a", address: "1" });
  const [first, second] = [1, 2].map((fill) => pieces.copyOf(new Uint8Array(pieces.largeBytes).fill(fill))) as [Uint8Array, Uint8Array];
  assert.ok(first.buffer !== second.buffer);
  pieces.taken(first);
  const third = pieces.copyOf(new Uint8Array(pieces.largeBytes).fill(3));
  assert.ok(third.buffer === first.buffer);
  assert.ok(second.every((byte) => byte === 2) && third.every((byte) => byte === 3));
  const small = pieces.copyOf(new Uint8Array(5).fill(4));
  pieces.taken(small);
  assert.ok(pieces.copyOf(new Uint8Array(5)).buffer !== small.buffer);
});

test("content in the clear of a row that names a key is refused, inline and in places", async () => {
  for (const content of [{ ...contentFrom(0), places: [], inline: whole }, contentFrom(0)]) {
    const download = new Download(content, 1000, {
      reader: reader([]).fake,
      clock: new NodeClock(),
      budget: budgetOf(2_000).of({ account: "a", address: "1" }),
      windowBytes: 400,
      pieces: ownPieces(50),
      readTimeoutMs: 1000,
      again: async () => refused("aborted", "conflict", "changed"),
      decrypting: { digest: new NodeDigest(), key: { bytes: new Uint8Array(32), sha256: new Uint8Array(32) } },
    });
    const opened = await download.open();
    assert.ok(!opened.ok && /in the clear/.test(opened.failure.message), JSON.stringify(opened));
    await download.return();
  }
});
