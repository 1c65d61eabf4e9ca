import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, refused } from "@stamp/base";
import { zeroExtentId } from "@stamp/objects";
import type { LocatedBlob, Objects } from "../objects/objects.ts";
import { locateBlob } from "./locate-blob.ts";

const none = new Uint8Array(0);
const name = { account: "acme", container: "c", containerIncarnation: 1n, blob: "b" } as LocatedBlob;
const limits = { deadlineMs: 1_000 } as Parameters<typeof locateBlob>[3];

function locate(answer: object, startBytes = 0n) {
  const asked: unknown[] = [];
  const router = {
    routeOf: () => ({ table: "Blob", key: none }),
    executeAt: async (_route: unknown, kind: unknown) => {
      asked.push(kind);
      return answer;
    },
  };
  return { asked, found: locateBlob({ parts: { router } } as unknown as Objects, name, startBytes, limits) };
}

const content = (contentLengthBytes: bigint, value: object) =>
  ok({
    result: { case: "content", value: { blob: { contentLengthBytes }, startBytes: 0n, inline: none, places: [], ...value } },
    range: { rangeId: "blob-1" },
  });
const place = (extentId: number, lengthBytes: number) => ({ extentId: BigInt(extentId), offsetBytes: 0n, lengthBytes });

test("locate blob: places that follow one another in one extent are one piece, and the next page begins behind them", async () => {
  const places = [place(7, 10), place(7, 20), place(zeroExtentId, 5), place(zeroExtentId, 5), place(9, 1), place(7, 4)];
  const { found, asked } = locate(content(100n, { startBytes: 50n, places }), 50n);
  assert.deepEqual(await found, {
    ok: true,
    value: {
      rangeId: "blob-1",
      nextBytes: 95n,
      pieces: [
        { startBytes: 50n, lengthBytes: 30n, in: { case: "extentId", value: 7n } },
        { startBytes: 80n, lengthBytes: 10n, in: { case: "zeros", value: true } },
        { startBytes: 90n, lengthBytes: 1n, in: { case: "extentId", value: 9n } },
        { startBytes: 91n, lengthBytes: 4n, in: { case: "extentId", value: 7n } },
      ],
    },
  });
  assert.deepEqual(asked, [{ case: "getBlob", value: { name, startBytes: 50n } }]);
});

test("locate blob: small content is in the row; an empty blob has no piece", async () => {
  const small = await locate(content(3n, { lengthBytes: 3n, inline: new Uint8Array(3) })).found;
  assert.deepEqual(small, {
    ok: true,
    value: { rangeId: "blob-1", pieces: [{ startBytes: 0n, lengthBytes: 3n, in: { case: "row", value: true } }] },
  });
  assert.deepEqual(await locate(content(0n, { lengthBytes: 0n })).found, { ok: true, value: { rangeId: "blob-1", pieces: [] } });
});

test("locate blob: what the service answers, and a server that does not, are told", async () => {
  const gone = await locate(ok({ result: { case: "error", value: { code: "BlobNotFound", message: "", details: {} } }, range: {} })).found;
  assert.equal(gone.ok ? "" : gone.error.code, "BlobNotFound");
  assert.equal((await locate(refused("unavailable", "wrongPartition", "no server")).found).ok, false);
});
