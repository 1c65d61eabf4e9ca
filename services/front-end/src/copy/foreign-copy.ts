/**
 * The next part of a copy whose source is outside of this stamp: read there under the ETag with which the copy began, written into the
 * destination's range. What is a part follows from the size of the blob alone, so whoever takes the copy over goes on with the same ones.
 *
 * Of block and append blobs parts are ranges of one size. Of page blobs they are chunks; the source is asked where it has pages, so that
 * what is zeros is not moved.
 */
import { create } from "@bufbuild/protobuf";
import { parseCopySource, type RestError, sourceRequestHeaders } from "@stamp/azure-rest";
import { FailureError, type Outcome, ok, refused } from "@stamp/base";
import { chunkBytes, clipPlaces } from "@stamp/objects";
import { type Blob, type CopyBlock, CopyBlockSchema, type CopyPart, CopyPartSchema, type Place, toWire } from "@stamp/wire";
import type { ContentKey } from "../accounts/content-key.ts";
import { placeFromWire, placeToWire } from "../content/encryption.ts";
import type { UploadPins } from "../content/upload-pins.ts";
import type { LocatedBlob, Objects } from "../objects/objects.ts";
import type { ForeignContent, ForeignLimits, ForeignSource } from "./foreign-sources.ts";

export interface ForeignCopy {
  /** URL of the source, with its secrets. */
  readonly url: string;
  readonly etag: string;
  readonly totalBytes: number;
  readonly blobType: string;
}

export type ForeignStep =
  | { readonly kind: "parts"; readonly parts: readonly CopyPart[]; readonly next: bigint }
  /** The copy has no more parts; `blob`: facts about the source. */
  | { readonly kind: "end"; readonly blob: Blob }
  | { readonly kind: "failed"; readonly description: string };

const mebibyte = 1024 * 1024;
const partBytesMin = 8 * mebibyte;
const partBytesMax = 4096 * mebibyte;
/** About: more when the blob is larger than that many of the largest parts. */
const partsMax = 10_000;
const pageWindowBytes = 4 * mebibyte;

const partBytesOf = (totalBytes: number): number =>
  Math.min(Math.max(partBytesMin, Math.ceil(totalBytes / partsMax / mebibyte) * mebibyte), partBytesMax);

export interface ForeignStepOptions {
  readonly to: LocatedBlob;
  readonly position: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called with every piece that arrived; returns false to stop. */
  readonly onChunk: () => Promise<boolean>;
  /** Pins of what was put, until it is committed. */
  readonly pins: UploadPins;
  /** Key that encrypts the written bytes. */
  readonly key: ContentKey | undefined;
}

/** Makes one step of a copy from elsewhere. A failure means that a later attempt may succeed. */
export async function foreignStep(objects: Objects, copy: ForeignCopy, options: ForeignStepOptions): Promise<Outcome<ForeignStep>> {
  const url = parseCopySource({ "x-ms-copy-source": copy.url });
  const source = url.ok ? objects.parts.foreignSources.locate(url.value) : url;
  if (!source.ok) return outcomeOf(source.error);
  const step = new Step(objects, copy, source.value, options);
  try {
    return copy.blobType === "PageBlob" ? await step.pages() : await step.bytes();
  } catch (error) {
    if (error instanceof SourceRefused) return ok(error.step);
    if (error instanceof FailureError) return { ok: false, failure: { ...error.failure, applied: "no" } };
    throw error;
  }
}

/** Returns the outcome of a source's refusal, which is final, or of its temporary failure, which is not. */
function outcomeOf({ code, status, message, headers }: RestError): Outcome<ForeignStep> {
  const told = headers["x-ms-copy-source-status-code"];
  if (status >= 500 || told === "429" || told === "408") return refused("unavailable", "notReady", `${code}: ${message}`);
  return ok({ kind: "failed", description: `${told ?? status} ${code}: ${message}`.slice(0, 500) });
}

class Step {
  readonly #objects: Objects;
  readonly #copy: ForeignCopy;
  readonly #source: ForeignSource;
  readonly #options: ForeignStepOptions;
  readonly #limits: ForeignLimits;
  readonly #headers: Record<string, string>;

  constructor(objects: Objects, copy: ForeignCopy, source: ForeignSource, options: ForeignStepOptions) {
    this.#objects = objects;
    this.#copy = copy;
    this.#source = source;
    this.#options = options;
    this.#limits = { timeoutMs: options.timeoutMs, signal: options.signal };
    this.#headers = sourceRequestHeaders({ "x-ms-source-if-match": copy.etag });
  }

  async bytes(): Promise<Outcome<ForeignStep>> {
    const { totalBytes } = this.#copy;
    const { position } = this.#options;
    const partBytes = partBytesOf(totalBytes);
    const startBytes = position * partBytes;
    if (startBytes >= totalBytes) return this.#end();
    const endBytes = Math.min(startBytes + partBytes, totalBytes);
    const content = await this.#read(startBytes, endBytes);
    if (!content.ok) return content;
    const places = await this.#write(content.value.bytes, endBytes - startBytes);
    if (!places.ok) return places;
    const block = create(CopyBlockSchema, { blockId: noId, sizeBytes: toWire(endBytes - startBytes), places: [...places.value] });
    return ok({ kind: "parts", parts: [partOf(position, [block])], next: BigInt(position + 1) });
  }

  /** Chunks from the next page that holds something on, as many as the window has. */
  async pages(): Promise<Outcome<ForeignStep>> {
    const { totalBytes } = this.#copy;
    const from = this.#options.position * chunkBytes;
    if (from >= totalBytes) return this.#end();
    const pages = await this.#objects.parts.foreignSources.pages(this.#source, from, totalBytes, this.#headers, this.#limits);
    if (!pages.ok) return outcomeOf(pages.error);
    const { ranges, more } = pages.value;
    const [first] = ranges;
    if (!first) return this.#end();
    const start = Math.floor(Math.max(first.startBytes, from) / chunkBytes) * chunkBytes;
    const window = Math.min(start + pageWindowBytes, totalBytes);
    // The chunk of the last range in an incomplete list may have further ranges. One chunk has fewer ranges than fit
    // into a list.
    const told = Math.floor((ranges.at(-1)?.endBytes ?? 0) / chunkBytes) * chunkBytes;
    const end = more ? Math.min(window, told) : window;
    if (end <= start) return ok({ kind: "failed", description: "The source lists too few of its pages at a time." });
    const runs = runsOf(ranges, Math.max(start, from), end);
    const next = BigInt(Math.ceil(end / chunkBytes));
    const parts = await this.#movePages(runs);
    return parts.ok ? ok({ kind: "parts", parts: parts.value, next }) : parts;
  }

  async #movePages(runs: readonly Run[]): Promise<Outcome<CopyPart[]>> {
    const [first] = runs;
    if (!first) return ok([]);
    const endBytes = runs.at(-1)?.endBytes ?? first.endBytes;
    const content = await this.#read(first.startBytes, endBytes);
    if (!content.ok) return content;
    const wanted = runs.reduce((sum, run) => sum + run.endBytes - run.startBytes, 0);
    const written = await this.#write(onlyRuns(content.value.bytes, first.startBytes, runs), wanted, true);
    if (!written.ok) return written;
    const places = written.value.map(placeFromWire);
    const chunks = new Map<number, CopyBlock[]>();
    let at = 0;
    for (const { startBytes, endBytes: end } of runs) {
      const chunk = Math.floor(startBytes / chunkBytes);
      const sizeBytes = end - startBytes;
      const block = {
        blockId: noId,
        startBytes: toWire(startBytes - chunk * chunkBytes),
        sizeBytes: toWire(sizeBytes),
        places: clipPlaces(places, at, at + sizeBytes).map(placeToWire),
      };
      chunks.set(chunk, [...(chunks.get(chunk) ?? []), create(CopyBlockSchema, block)]);
      at += sizeBytes;
    }
    return ok([...chunks].map(([chunk, blocks]) => partOf(chunk, blocks)));
  }

  /** Ends the copy after the last part, with facts about the source; a source that changed is refused. */
  async #end(): Promise<Outcome<ForeignStep>> {
    const blob = await this.#objects.parts.foreignSources.head(this.#source, this.#headers, this.#limits);
    return blob.ok ? ok({ kind: "end", blob: blob.value }) : outcomeOf(blob.error);
  }

  async #read(startBytes: number, endBytes: number): Promise<Outcome<ForeignContent>> {
    const { foreignSources } = this.#objects.parts;
    const lengthBytes = endBytes - startBytes;
    const content = await foreignSources.read(this.#source, { startBytes, endBytes }, lengthBytes, this.#headers, this.#limits);
    if (!content.ok) {
      const failed = outcomeOf(content.error);
      if (!failed.ok) return failed;
      throw new SourceRefused(failed.value);
    }
    if (content.value.lengthBytes === lengthBytes) return ok(content.value);
    await content.value.bytes.return?.();
    throw new SourceRefused({ kind: "failed", description: "The source answers with fewer bytes than it has." });
  }

  async #write(bytes: AsyncIterable<Uint8Array>, lengthBytes: number, isPages = false): Promise<Outcome<readonly Place[]>> {
    const { signal, onChunk, to, pins, key } = this.#options;
    async function* watched(): AsyncGenerator<Uint8Array> {
      let received = 0;
      for await (const chunk of bytes) {
        if (!(await onChunk())) throw new FailureError(refused("aborted", "conflict", "the copy is over").failure);
        received += chunk.length;
        yield chunk;
      }
      if (received !== lengthBytes)
        throw new FailureError(refused("unavailable", "connectionLost", "the source's answer is not whole").failure);
    }
    const wants = { md5: false, crc64: false };
    const received = await this.#objects.receive(to, watched(), { contentLengthBytes: undefined, wants, signal, pins, key, isPages });
    return received.ok
      ? ok(received.value.places)
      : refused("unavailable", "notReady", `${received.error.code}: ${received.error.message}`);
  }
}

/** Thrown through what only knows failures that pass. */
class SourceRefused extends Error {
  readonly step: ForeignStep;
  constructor(step: ForeignStep) {
    super("the source refuses");
    this.step = step;
  }
}

interface Run {
  readonly startBytes: number;
  readonly endBytes: number;
}

/** Returns the parts of the ranges between the two, cut at the ends of chunks. */
function runsOf(ranges: readonly Run[], from: number, to: number): Run[] {
  const runs: Run[] = [];
  for (const range of ranges) {
    const end = Math.min(range.endBytes, to);
    for (let start = Math.max(range.startBytes, from); start < end; ) {
      const chunkEnd = (Math.floor(start / chunkBytes) + 1) * chunkBytes;
      runs.push({ startBytes: start, endBytes: Math.min(end, chunkEnd) });
      start = chunkEnd;
    }
  }
  return runs;
}

/** Yields the bytes of the runs from bytes that begin at `startBytes`. */
async function* onlyRuns(bytes: AsyncIterable<Uint8Array>, startBytes: number, runs: readonly Run[]): AsyncGenerator<Uint8Array> {
  let at = startBytes;
  let next = 0;
  for await (const chunk of bytes) {
    const end = at + chunk.length;
    for (let run = runs[next]; run && run.startBytes < end; run = runs[next]) {
      yield chunk.subarray(Math.max(run.startBytes - at, 0), Math.min(run.endBytes, end) - at);
      if (run.endBytes > end) break;
      next++;
    }
    at = end;
  }
}

const noId = new Uint8Array(0);
const partOf = (index: number, blocks: CopyBlock[]): CopyPart => create(CopyPartSchema, { index: toWire(index), blocks });
