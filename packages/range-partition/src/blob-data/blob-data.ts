/**
 * The blob data stream of a range partition: bytes are appended, rows refer to them by place, and extents that nothing refers to leave the
 * stream. An extent that is to leave is marked first: from then on no row may begin to refer to it (rule placesCheckedInRowOrder).
 */
import { assert, type Failure, type Outcome, ok } from "@stamp/base";
import type { AppendOptions, ExtentReader, OwnedStream, Place } from "@stamp/stream-client";
import type { DataExtent } from "../types.ts";
import type { DataPins } from "./data-pins.ts";

/** Blob data for readers outside of the partition. */
export interface StoredData {
  /** Bytes that were appended since the partition was loaded. */
  readonly appendedBytes: number;
  /** Sealed extents, in order. */
  readonly sealedExtents: readonly DataExtent[];
  /** Returns the bytes of all places, in order, in chunks. Throws FailureError. */
  read(places: readonly Place[], options: { readonly timeoutMs: number; readonly signal: AbortSignal }): AsyncIterable<Uint8Array>;
  /** True if the stream lists the extent; false: no row refers to it any more, and its bytes may be gone. */
  lists(extentId: number): boolean;
}

export class BlobData implements StoredData {
  appendedBytes = 0;
  /** Stream of the blob data; undefined: the table has none. */
  readonly #stream: OwnedStream | undefined;
  readonly #reader: ExtentReader;
  readonly #pins: DataPins;
  readonly #nowMs: () => number;
  #leaving: ReadonlySet<number> = new Set();
  /** Failure with which appends are refused; undefined: they are taken. */
  #closed: Failure | undefined;

  constructor(stream: OwnedStream | undefined, reader: ExtentReader, pins: DataPins, nowMs: () => number) {
    this.#stream = stream;
    this.#reader = reader;
    this.#pins = pins;
    this.#nowMs = nowMs;
  }

  /** Appends one block a chunk, and pins the extents where they are. Bytes that no row refers to are garbage when the pin ends. */
  async append(chunks: readonly Uint8Array[], options: AppendOptions): Promise<Outcome<readonly Place[]>> {
    if (this.#closed !== undefined) return { ok: false, failure: this.#closed };
    assert(this.#stream !== undefined, "this table has blob data");
    const places = await this.#stream.append(chunks, options);
    if (!places.ok) return places;
    this.#pins.pin(new Set(places.value.map(({ extentId }) => extentId)), this.#nowMs());
    for (const chunk of chunks) this.appendedBytes += chunk.length;
    return places;
  }

  read(places: readonly Place[], options: { readonly timeoutMs: number; readonly signal: AbortSignal }): AsyncIterable<Uint8Array> {
    return this.#reader.readPlaces(places, options);
  }

  lists(extentId: number): boolean {
    return this.#stream?.knows(extentId) === true;
  }

  /** Renews the pins on these extents. Returns those that have left the stream, or are about to: what was put there has to be put again. */
  pin(extentIds: readonly number[]): readonly number[] {
    const gone = extentIds.filter((extentId) => this.#leaving.has(extentId) || this.#stream?.knows(extentId) !== true);
    this.#pins.pin(
      extentIds.filter((extentId) => !gone.includes(extentId)),
      this.#nowMs(),
    );
    return gone;
  }

  /** Settles what may be settled. */
  settle(): void {
    this.#pins.settle(
      this.sealedExtents.map(({ extentId }) => extentId),
      this.#nowMs(),
    );
  }

  /** Numbers of the settled extents. */
  get settled(): readonly number[] {
    return this.#pins.settled;
  }

  /** Sealed extents that the collector may look at, in order. */
  get settledExtents(): readonly DataExtent[] {
    return this.sealedExtents.filter(({ extentId }) => this.#pins.isSettled(extentId));
  }

  /** Appends the bytes of these places once more. Returns a place for each. */
  async copy(places: readonly Place[], options: { readonly timeoutMs: number }): Promise<Outcome<readonly Place[]>> {
    const chunks: Uint8Array[] = [];
    for (const place of places) {
      const bytes = await this.#reader.read(place, options);
      if (!bytes.ok) return bytes;
      chunks.push(bytes.value);
    }
    return this.append(chunks, options);
  }

  /**
   * Takes no more: what is not on its way to an extent is given back as not done. Resolves when what is on its way is in, or after
   * `timeoutMs`.
   */
  async hold(closed: Failure, timeoutMs: number): Promise<void> {
    this.#closed = closed;
    this.#stream?.withdrawWaiting(closed);
    await this.#stream?.quiet({ timeoutMs });
  }

  owns(place: Place): boolean {
    return !this.#leaving.has(place.extentId) && (this.#stream?.knows(place.extentId) ?? false);
  }

  /** Sealed extents in the order of the stream. */
  get sealedExtents(): readonly DataExtent[] {
    return (this.#stream?.extents ?? [])
      .slice(0, -1)
      .flatMap(({ extentId, sealedLengthBytes }) =>
        sealedLengthBytes === undefined ? [] : [{ extentId, lengthBytes: sealedLengthBytes }],
      );
  }

  /** Disowns the places in these extents from now on. Only one collector at a time may call it. */
  leave(extentIds: readonly number[]): void {
    this.#leaving = new Set(extentIds);
  }

  /** Takes those of the extents that leave out of the stream that nothing refers to; the others may be referred to again. */
  async drop(unreferenced: ReadonlySet<number>, options: { readonly timeoutMs: number }): Promise<Outcome<readonly number[]>> {
    const dead = new Set([...unreferenced].filter((extentId) => this.#leaving.has(extentId)));
    const dropped = this.#stream === undefined ? ok([]) : await this.#stream.dropExtents(dead, options);
    this.#stay();
    return dropped;
  }

  /** Takes `leave` back: the extents stay owned. */
  #stay(): void {
    this.#leaving = new Set();
  }
}
