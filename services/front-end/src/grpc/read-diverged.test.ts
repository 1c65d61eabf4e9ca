/** A page of a reported blob: content under a customer's key is refused with its SHA-256, bytes that are gone are told as gone, and memory is given back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError, ok, refused } from "@stamp/base";
import type { CallContext } from "@stamp/ports";
import type { ReadDivergedRequest } from "@stamp/wire";
import type { Objects } from "../objects/objects.ts";
import { readDiverged } from "./read-diverged.ts";

const place = { account: "acme", key: Uint8Array.of(1), operation: 3n, sequence: 12n };
const context = { metadata: {}, deadlineMs: 10_000, signal: new AbortController().signal } as unknown as CallContext;
const none = { inline: new Uint8Array(0), places: [], extents: [], encryptionKeySha256: new Uint8Array(0), encryptionScope: "" };

async function* from(parts: readonly (readonly number[])[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Uint8Array.from(part);
}

function front(content: object, read: () => AsyncIterable<Uint8Array> = () => from([])) {
  const held = { bytes: 0 };
  const parts = {
    world: { clock: { monotonicMs: () => 0 } },
    downloads: {
      of: () => ({
        take: async (bytes: number) => {
          held.bytes += bytes;
          return ok();
        },
        give: (bytes: number) => {
          held.bytes -= bytes;
        },
      }),
    },
    router: { divergedContent: async () => ok({ contentLength: 4n, lengthBytes: 4n, ...none, ...content }) },
    scopes: { key: async () => ({ ok: false, error: { message: "The scope is disabled." } }) },
    reader: { learn: () => {}, readPlaces: read },
  };
  const ask = (request: Partial<ReadDivergedRequest> = {}) =>
    readDiverged({ parts } as unknown as Objects, { place, startBytes: 0n, ...request } as ReadDivergedRequest, context);
  return { ask, held };
}

const at = { extentId: 7n, offsetBytes: 0n, lengthBytes: 4 };

test("reported blobs: content under a key that is not here is refused, and the key is named", async () => {
  const theirs = front({ encryptionKeySha256: new Uint8Array(32).fill(7) });
  const refusal = await theirs.ask();
  assert.ok(!refusal.ok && /SHA-256 BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=/.test(refusal.failure.message));
  assert.equal(theirs.held.bytes, 0);
  const disabled = await front({ encryptionScope: "scope1", places: [at] }).ask();
  assert.ok(!disabled.ok && /encryption scope scope1: The scope is disabled/.test(disabled.failure.message));
  const cipher = { salt: new Uint8Array(32), offsetBytes: 0n };
  const unnamed = await front({ places: [{ ...at, cipher }] }).ask();
  assert.ok(!unnamed.ok && unnamed.failure.reason === "bug", "never the encrypted bytes");
});

test("reported blobs: bytes that were collected before the report are told as gone; fewer bytes than there are places for are no page", async () => {
  const collected = front({ places: [at] }, () => {
    throw new FailureError(refused("notFound", "unknownExtent", "extent 7").failure);
  });
  const gone = await collected.ask();
  assert.ok(!gone.ok && /collected, before the report was made/.test(gone.failure.message));
  assert.equal(collected.held.bytes, 0);
  const short = await front({ places: [at] }, () => from([[1, 2]])).ask();
  assert.ok(!short.ok && short.failure.reason === "bug");
  const whole = await front({ places: [at] }, () =>
    from([
      [1, 2],
      [3, 4],
    ]),
  ).ask();
  assert.ok(whole.ok && whole.value.payload.length === 4);
});
