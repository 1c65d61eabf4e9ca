/** Bodies of answers, as the HTTP server (http-server.ts) sends them. */
import type { HttpBody, HttpResponse } from "@stamp/ports";

/** Size of a piece of an answer in bytes, so that no more of it waits in a socket. */
export const writeBytesMax: number = 64 * 1024;

/** Returns a function that tells the body of a written chunk; undefined: the body has no use for it. */
export function takenBy(body: HttpBody | Iterable<Uint8Array>): ((chunk: Uint8Array) => (error?: Error | null) => void) | undefined {
  if (!("taken" in body) || body.taken === undefined) return undefined;
  return (chunk) => (error) => {
    if (!error) body.taken?.(chunk);
  };
}

export async function dispose(body: HttpResponse["body"]): Promise<void> {
  if (body === undefined || body instanceof Uint8Array) return;
  await body[Symbol.asyncIterator]().return?.();
}

export function* bodyPieces(body: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < body.length; at += writeBytesMax) yield body.subarray(at, at + writeBytesMax);
}
