import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, FailureError, type Outcome, ok, refused } from "@stamp/base";
import type { ExtentReader } from "@stamp/stream-client";
import type { BlobContent } from "@stamp/wire";
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
            yield whole.subarray(from, Math.min(from + 50, place.offsetBytes + place.lengthBytes));
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

const start = (chunks: readonly number[], again: (startBytes: number) => Promise<Outcome<BlobContent>>, budget = new ByteBudget(500)) => {
  const { fake, state } = reader(chunks);
  const download = new Download(contentFrom(0), 1000, {
    reader: fake,
    budget: budget.of("a"),
    windowBytes: 400,
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
  assert.equal(budget.usedBytes, 400);
  await download.next();
  await download.return();
  assert.equal(budget.usedBytes, 0);
  assert.equal(state.returned, 1);
});
