/** Bodies that are documents, not content: read whole, within a bound, and checked against the checksums that the request announces. */
import { type Parsed, parseContentLength, parsed, rejected } from "@stamp/azure-rest";
import { concatBytes } from "@stamp/base";
import { announcedDigests, compareDigests } from "../content-digests.ts";
import type { Exchange } from "./exchange.ts";

export function lengthWithin(exchange: Exchange, bytesMax: number): Parsed<number> {
  const length = parseContentLength(exchange.headers);
  if (!length.ok || length.value <= bytesMax) return length;
  return rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) });
}

/** Its bytes count as an upload in progress while it is read. */
export async function wholeBody(exchange: Exchange, lengthBytes: number): Promise<Parsed<Uint8Array>> {
  const uploads = exchange.objects.parts.uploads.of(exchange.target.account);
  await uploads.take(lengthBytes);
  try {
    const chunks: Uint8Array[] = [];
    let received = 0;
    for await (const chunk of exchange.request.body) {
      received += chunk.length;
      if (received > lengthBytes) break;
      chunks.push(chunk);
    }
    if (received !== lengthBytes) return rejected("InvalidInput", { Reason: "The body is not as long as Content-Length says." });
    return parsed(concatBytes(chunks));
  } finally {
    uploads.give(lengthBytes);
  }
}

/** The whole of it, no longer than that. */
export async function documentBody(exchange: Exchange, bytesMax: number): Promise<Parsed<Uint8Array>> {
  const announced = announcedDigests(exchange.headers);
  if (!announced.ok) return announced;
  const length = lengthWithin(exchange, bytesMax);
  if (!length.ok) return length;
  const body = await wholeBody(exchange, length.value);
  if (!body.ok) return body;
  const { digest } = exchange.objects.parts.world;
  const md5 = digest.md5();
  md5.update(body.value);
  const compared = compareDigests(announced.value, { md5: md5.digest(), crc64: digest.crc64(body.value) });
  return compared.ok ? body : compared;
}
