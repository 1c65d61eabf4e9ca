/** Bodies that are documents, not content: read whole, within a bound, and checked against the checksums that the request announces. */
import { type Parsed, parseContentLength, parsed, rejected } from "@stamp/azure-rest";
import { clientAddress } from "@stamp/base";
import type { Digest } from "@stamp/ports";
import { type AnnouncedDigests, announcedDigests, type ContentDigests, compareDigests } from "../content/content-digests.ts";
import { CountedBuffer } from "../content/counted-buffer.ts";
import { busy, restErrorOf } from "../objects/failures.ts";
import type { Exchange } from "./exchange.ts";

export function lengthWithin(exchange: Exchange, bytesMax: number): Parsed<number> {
  const length = parseContentLength(exchange.headers);
  if (!length.ok || length.value <= bytesMax) return length;
  return rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) });
}

/** A document that takes longer than this is given up when others want its bytes. */
const patienceMs = 5_000;

/**
 * Reads a document whole. Its bytes count while it is read, apart from content: a document can't be written in parts.
 * If others want its bytes and it has taken its time, the request is refused, and its client begins again.
 */
export async function wholeBody(exchange: Exchange, lengthBytes: number): Promise<Parsed<Uint8Array>> {
  // A body that came with its head is in memory, whoever waits.
  const small = await exchange.request.smallBody?.();
  if (small !== undefined) return small.length === lengthBytes ? parsed(small) : wrongLength;
  const { documents, world } = exchange.objects.parts;
  const { account } = exchange.target;
  const share = documents.of({ account, address: clientAddress(exchange.request.remoteAddress) }, exchange.request.signal);
  const held = new CountedBuffer(share, lengthBytes);
  const startMs = world.clock.monotonicMs();
  let giveUp = (): void => {};
  const endWanted = share.whenWanted((waiting) => {
    const late = waiting && world.clock.monotonicMs() - startMs >= patienceMs;
    if (late) giveUp();
    return late;
  });
  const chunks = exchange.request.body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const step = await new Promise<IteratorResult<Uint8Array> | "given up">((resolve, reject) => {
        giveUp = () => resolve("given up");
        chunks.next().then(resolve, reject);
      });
      if (step === "given up") return { ok: false, error: busy("The body came too slowly while others waited.") };
      if (step.done) return held.lengthBytes === lengthBytes ? parsed(new Uint8Array(held.bytes)) : wrongLength;
      if (held.lengthBytes + step.value.length > lengthBytes) return wrongLength;
      const appended = await held.append(step.value);
      if (!appended.ok) return { ok: false, error: restErrorOf(appended.failure) };
    }
  } finally {
    endWanted();
    held.drop();
    chunks.return?.().catch(() => {});
  }
}

const wrongLength: Parsed<never> = rejected("InvalidInput", { Reason: "The body is not as long as Content-Length says." });

/** The whole of it, no longer than that. */
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
