/** Documents of any length, read and written without keeping the event loop: after a slice (Turns) everybody else goes first. */
import type { Parsed, RestError } from "@stamp/azure-rest";
import { concatBytes, utf8 } from "@stamp/base";
import { type Clock, Turns } from "@stamp/ports";

/** Bytes of a document that are parsed at once. */
const sliceBytes = 16 * 1024;
/** Characters that are encoded at once. */
const chunkCharacters = 64 * 1024;

export interface PieceReader<T> {
  /** Undefined: go on. */
  push(bytes: Uint8Array): RestError | undefined;
  end(): Parsed<T>;
}

export async function readInTurns<T>(clock: Clock, reader: PieceReader<T>, body: Uint8Array): Promise<Parsed<T>> {
  const turns = new Turns(clock);
  for (let at = 0; at < body.length; at += sliceBytes) {
    const error = reader.push(body.subarray(at, at + sliceBytes));
    if (error !== undefined) return { ok: false, error };
    if (turns.over) await turns.next();
  }
  return reader.end();
}

/** The pieces one after another, in UTF-8. */
export async function textInTurns(clock: Clock, pieces: Iterable<string>): Promise<Uint8Array> {
  const turns = new Turns(clock);
  const chunks: Uint8Array[] = [];
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length >= chunkCharacters) {
      chunks.push(utf8(text));
      text = "";
    }
    if (turns.over) await turns.next();
  }
  chunks.push(utf8(text));
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : concatBytes(chunks);
}
