/**
 * A page of the content of a blob that only this stamp had when a forced failover deposed it (`FrontEnd.ReadDiverged`). An operator of
 * the stamp asks: `stamp geo diverged --get`.
 *
 * Invariants:
 * - Nothing is read but what the account's report names: the partition server reads rows of reports only.
 * - One page is in memory at a time, counted in the budget of downloads.
 */
import { toBase64 } from "@stamp/azure-rest";
import { concatBytes, FailureError, type Outcome, ok, refused } from "@stamp/base";
import { spanOf } from "@stamp/objects";
import type { CallContext } from "@stamp/ports";
import { locationFromWire } from "@stamp/stream-client";
import { type DivergedContent, type DivergedPlace, fromWire, type ReadDivergedRequest, toWire } from "@stamp/wire";
import type { ContentKey } from "../accounts/content-key.ts";
import { withZeros } from "../content/download.ts";
import { decrypted, placeFromWire } from "../content/encryption.ts";
import type { Objects } from "../objects/objects.ts";
import type { CallLimits } from "../routing/router.ts";
import { limitsOf } from "./call-limits.ts";

const pageBytesMax = 1024 * 1024;

interface Page {
  readonly payload: Uint8Array;
  readonly contentLength: bigint;
}

export async function readDiverged(objects: Objects, request: ReadDivergedRequest, context: CallContext): Promise<Outcome<Page>> {
  const { place, startBytes } = request;
  if (place === undefined) return refused("invalidArgument", "badRequest", "no row of a report is named");
  const limits = limitsOf(context);
  const { router, downloads } = objects.parts;
  const share = downloads.of({ account: place.account, address: "" }, context.signal);
  const taken = await share.take(pageBytesMax);
  if (!taken.ok) return taken;
  try {
    const endBytes = startBytes + toWire(pageBytesMax);
    const found = await router.divergedContent(place, startBytes, endBytes, limits);
    if (!found.ok) return found;
    const content = found.value;
    const key = await keyOf(objects, place, content, limits);
    if (!key.ok) return key;
    const payload = content.inline.length > 0 ? content.inline : await bytesOf(objects, content, key.value, context);
    if (payload.length !== fromWire(content.lengthBytes)) return broken;
    return ok({ payload, contentLength: content.contentLength });
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    return error.failure.reason === "unknownExtent" ? gone : { ok: false, failure: error.failure };
  } finally {
    share.give(pageBytesMax);
  }
}

const broken = refused("internal", "bug", "the places of a reported blob have other lengths than its content");
const gone = refused(
  "notFound",
  "unknownExtent",
  "the bytes are not there any more: a later write had replaced this content, and its bytes were collected, before the report was made",
);

/** Returns the key that decrypts the content; undefined: it is not encrypted. */
async function keyOf(
  objects: Objects,
  { account }: DivergedPlace,
  { encryptionKeySha256, encryptionScope }: DivergedContent,
  limits: CallLimits,
): Promise<Outcome<ContentKey | undefined>> {
  if (encryptionKeySha256.length > 0) {
    const sha256 = toBase64(encryptionKeySha256);
    const message = `the content is encrypted under a key that the customer brought and the stamp does not have (SHA-256 ${sha256}): it can't be read back by this command`;
    return refused("failedPrecondition", "conflict", message);
  }
  if (encryptionScope === "") return ok(undefined);
  const key = await objects.parts.scopes.key(account, encryptionScope, limits);
  if (key.ok) return ok(key.value);
  return refused("failedPrecondition", "conflict", `the key of encryption scope ${encryptionScope}: ${key.error.message}`);
}

async function bytesOf(
  objects: Objects,
  { places, extents }: DivergedContent,
  key: ContentKey | undefined,
  { deadlineMs, signal }: CallContext,
): Promise<Uint8Array> {
  const { world, reader } = objects.parts;
  reader.learn(extents.map(locationFromWire));
  const wanted = places.map(placeFromWire);
  if (key === undefined && wanted.some(({ cipher }) => cipher)) throw new FailureError(broken.failure);
  const options = { timeoutMs: Math.max(1, deadlineMs - world.clock.monotonicMs()), windowBytes: pageBytesMax, signal };
  const stored = withZeros(wanted.map(spanOf), (some) => reader.readPlaces(some, options));
  const parts: Uint8Array[] = [];
  for await (const part of key === undefined ? stored : decrypted(world.digest, key, wanted, stored)) parts.push(Uint8Array.from(part));
  return concatBytes(parts);
}
