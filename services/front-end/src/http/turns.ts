/** Documents of any length, read and written without keeping the event loop: after a slice (Turns) everybody else goes first. */
import type { ByteSink, Parsed, RestError } from "@stamp/azure-rest";
import { type Clock, Turns } from "@stamp/ports";
import { TextMemory } from "../content/text-memory.ts";

/** Bytes of a document that are parsed at once. */
const sliceBytes = 16 * 1024;
/** Characters that are encoded at once. */
const chunkCharacters = 16 * 1024;

export interface PieceReader<T> {
  /** Takes bytes of the body; undefined: go on. */
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

/** Returns the pieces one after another, in UTF-8. `bytesExpected`: their size, about. */
export async function textInTurns(clock: Clock, pieces: Iterable<string>, bytesExpected = 0): Promise<Uint8Array> {
  const writer = new TextWriter(clock);
  writer.expect(bytesExpected);
  await writer.add(pieces);
  return writer.finish().bytes;
}

const notReused = new TextMemory(0);

export interface WrittenText {
  readonly bytes: Uint8Array;
  /** Gives the memory of the text back. Called once, when nobody looks at `bytes` any more, or never. */
  readonly giveBack: () => void;
}

/** A text in UTF-8 whose pieces are not there at once. No piece is kept: thousands of them would outlive a collection of the heap. */
export class TextWriter {
  readonly #turns: Turns;
  readonly #encoded: EncodedText;
  /** Pieces that are not encoded yet. */
  #text = "";

  /** `memory`: memory that the text is written into. */
  constructor(clock: Clock, memory: TextMemory = notReused) {
    this.#turns = new Turns(clock);
    this.#encoded = new EncodedText(memory);
  }

  /** Makes room for about this many more bytes. */
  expect(bytes: number): void {
    this.#encoded.room(bytes);
  }

  /** Writes the pieces, and lets others run in between. One call at a time. */
  async add(pieces: Iterable<string>): Promise<void> {
    for (const piece of pieces) {
      this.#text += piece;
      if (this.#text.length >= chunkCharacters) this.#encode();
      if (this.#turns.over) await this.#turns.next();
    }
  }

  /** Returns the sink that writes behind the present text. */
  get sink(): ByteSink {
    this.#encode();
    return this.#encoded;
  }

  /** Calls `step`, which may write to `sink`, until it returns false, and lets others run in between. */
  async steps(step: () => boolean): Promise<void> {
    while (step()) if (this.#turns.over) await this.#turns.next();
  }

  /** Returns the text. Nothing can be added any more. */
  finish(): WrittenText {
    this.#encode();
    return this.#encoded.finish();
  }

  #encode(): void {
    this.#encoded.add(this.#text);
    this.#text = "";
  }
}

const encoder = new TextEncoder();

/** Texts in UTF-8, written one behind the other into one buffer. */
class EncodedText implements ByteSink {
  readonly #memory: TextMemory;
  bytes: Uint8Array = new Uint8Array(0);
  length = 0;

  constructor(memory: TextMemory) {
    this.#memory = memory;
  }

  room(bytes: number): void {
    if (this.bytes.length - this.length < bytes) this.#grow(bytes);
  }

  add(text: string): void {
    // A character takes at most three bytes for each unit of UTF-16. Mostly it takes one: the buffer grows if it has to.
    if (this.bytes.length - this.length < text.length) this.#grow(text.length);
    let rest = text;
    for (;;) {
      const { read, written } = encoder.encodeInto(rest, this.bytes.subarray(this.length));
      this.length += written;
      if (read === rest.length) return;
      rest = rest.slice(read);
      this.#grow(rest.length * 3);
    }
  }

  /** Returns the text so far, of which the caller is the owner from now on. */
  finish(): WrittenText {
    const bytes = this.bytes;
    return { bytes: bytes.subarray(0, this.length), giveBack: () => this.#memory.give(bytes) };
  }

  #grow(more: number): void {
    const smaller = this.bytes;
    const grown = this.#memory.take(Math.ceil(Math.max(this.length + more, smaller.length * 2)));
    grown.set(smaller.subarray(0, this.length));
    this.bytes = grown;
    this.#memory.give(smaller);
  }
}
