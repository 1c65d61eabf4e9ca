/** Bodies that are documents, not content: read whole, within a bound, and checked against the checksums that the request announces. */
import { type Parsed, parseContentLength, parsed, rejected } from "@stamp/azure-rest";
import { clientAddress, type Outcome, ok } from "@stamp/base";
import type { Digest } from "@stamp/ports";
import { type AnnouncedDigests, announcedDigests, type ContentDigests, compareDigests } from "../content/content-digests.ts";
import { CountedBuffer } from "../content/counted-buffer.ts";
import { busyError, restErrorOf } from "../objects/failures.ts";
import type { Exchange } from "./exchange.ts";

export function lengthWithin(exchange: Exchange, bytesMax: number): Parsed<number> {
  const length = parseContentLength(exchange.headers);
  if (!length.ok || length.value <= bytesMax) return length;
  return rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) });
}

/** Time after which a document is given up if anybody waits for its bytes, in milliseconds. */
const patienceMs = 5_000;
/** Room that a document which has to wait asks for beyond what came, in bytes, at most. */
const aheadBytesMax = 1024 * 1024;

/**
 * Reads a document whole. Its bytes count while it is read, apart from content: a document can't be written in parts.
 * The request is refused, and its client begins again, if somebody waits for its bytes who holds less, or if anybody does and it has taken its
 * time. Then it makes no difference whether it waits for its client or for bytes itself.
 */
export async function wholeBody(exchange: Exchange, lengthBytes: number): Promise<Parsed<Uint8Array>> {
  // A body that came with its head is in memory, whoever waits.
  const small = await exchange.request.smallBody?.();
  if (small !== undefined) return small.length === lengthBytes ? parsed(small) : wrongLength;
  const { documents, world } = exchange.objects.parts;
  const { account } = exchange.target;
  const stop = new AbortController();
  const { remoteAddress, signal } = exchange.request;
  const clientLeft = (): void => stop.abort();
  signal.addEventListener("abort", clientLeft, { once: true });
  if (signal.aborted) clientLeft();
  const share = documents.of({ account, address: clientAddress(remoteAddress) }, stop.signal);
  const held = new CountedBuffer(share, lengthBytes);
  const startMs = world.clock.monotonicMs();
  let wake = (): void => {};
  const endWanted = share.whenWanted((by) => {
    const givesWay = by === "smaller" || (by === "anybody" && world.clock.monotonicMs() - startMs >= patienceMs);
    if (givesWay) {
      stop.abort();
      wake();
    }
    return givesWay;
  });
  const chunks = exchange.request.body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await new Promise<IteratorResult<Uint8Array> | "given up">((resolve, reject) => {
        wake = () => resolve("given up");
        chunks.next().then(resolve, reject);
      });
      if (step === "given up" || stop.signal.aborted) return tooSlow;
      if (step.done) return held.lengthBytes === lengthBytes ? parsed(new Uint8Array(held.bytes)) : wrongLength;
      if (held.lengthBytes + step.value.length > lengthBytes) return wrongLength;
      const appended = held.tryAppend(step.value) ? ok() : await appendLater(held, step.value, lengthBytes);
      if (stop.signal.aborted) return tooSlow;
      if (!appended.ok) return { ok: false, error: restErrorOf(appended.failure) };
    }
  } finally {
    signal.removeEventListener("abort", clientLeft);
    endWanted();
    held.drop();
    chunks.return?.().catch(() => {});
  }
}

/** Waits for room for the chunk, and for more: a document that waited for each chunk would wait a hundred times. */
async function appendLater(held: CountedBuffer, chunk: Uint8Array, lengthBytes: number): Promise<Outcome<void>> {
  const needed = held.lengthBytes + chunk.length;
  const room = await held.reserve(Math.min(lengthBytes, needed + Math.min(needed, aheadBytesMax)));
  return room.ok ? held.append(chunk) : room;
}

const tooSlow: Parsed<never> = { ok: false, error: busyError("The body came too slowly while others waited.") };
const wrongLength: Parsed<never> = rejected("InvalidInput", { Reason: "The body is not as long as Content-Length says." });

/** Reads a whole body of at most this many bytes. */
export async function documentBody(exchange: Exchange, bytesMax: number): Promise<Parsed<Uint8Array>> {
  const announced = announcedDigests(exchange.headers);
  if (!announced.ok) return announced;
  const length = lengthWithin(exchange, bytesMax);
  if (!length.ok) return length;
  const body = await wholeBody(exchange, length.value);
  if (!body.ok) return body;
  const compared = compareDigests(announced.value, digestsOf(exchange.objects.parts.world.digest, announced.value, body.value));
  return compared.ok ? body : compared;
}

/** Returns the digests of the body that the request announces, and no other. */
function digestsOf(digest: Digest, announced: AnnouncedDigests, body: Uint8Array): ContentDigests {
  if (announced.crc64) return { crc64: digest.crc64(body) };
  if (!announced.md5) return {};
  const md5 = digest.md5();
  md5.update(body);
  return { md5: md5.digest() };
}
