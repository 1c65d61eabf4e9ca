/**
 * Brings the bytes that rows refer to to another stamp, before the rows (docs/design/geo-shipping.md "Bytes of blobs").
 *
 *     rows ──► places that are not known there ──► pieces: read here, written there ──► rows with the places of the other stamp
 *
 * Invariants:
 * - Memory is bounded, however large a blob is: one piece of a batch at a time, and a gate for all batches to one stamp.
 * - What was copied stays known over failures: a batch that is tried again goes on where it was.
 * - The extents of a batch are held (pin-hold.ts) until its rows are applied.
 */
import { concatBytes, type Failed, FailureError, type Outcome, ok, refused, toHex } from "@stamp/base";
import { type Place, placesOfRow, withPlaces } from "@stamp/objects";
import { SlowLog, sleep, type World } from "@stamp/ports";
import type { StoredData } from "@stamp/range-partition";
import type { ByteGate } from "./byte-gate.ts";
import { type CopiedBytes, CopiedPlaces, type PlacesBudget, placeAtPeer } from "./copied-places.ts";
import type { DataHandle } from "./data-handles.ts";
import type { FreshBytes } from "./fresh-bytes.ts";
import { PinHold, type PinLink } from "./pin-hold.ts";

type CallLimits = { readonly timeoutMs: number; readonly signal: AbortSignal };

/** Calls that write bytes at the other stamp. */
export interface DataLink extends PinLink {
  /** Resolves well when the bytes are durable there. */
  writeData(name: Uint8Array, payload: Uint8Array, limits: CallLimits): Promise<Outcome<WrittenData>>;
}

/** Bytes that are durable at the other stamp, and their places there. */
export interface WrittenData {
  readonly place: Place;
  /** Vouches there for the bytes; undefined: that stamp's release gives none. */
  readonly handle?: DataHandle | undefined;
  readonly pinTermMs: number;
}

export interface CopierOptions {
  readonly gate: ByteGate;
  /** Bounds the places that all copiers of a server remember. */
  readonly places: PlacesBudget;
  /** Bytes that need not be read from extents. */
  readonly fresh?: FreshBytes | undefined;
  /** Bound of a piece, in bytes; a larger place goes alone. */
  readonly pieceBytesMax?: number;
  /** Places that are remembered. */
  readonly placesMax?: number;
  /** Places that are remembered of each PartitionName that goes in pieces. */
  readonly pieceNamePlacesMax?: number;
}

/** Where the bytes of each place are, the extents of the other stamp that have them, and what vouches for them. */
export interface CopiedBatch {
  readonly placeFor: (place: Place) => Place;
  readonly extentIds: ReadonlySet<number>;
  /** Handles that vouch for all these bytes at the other stamp. */
  readonly handles: ReadonlySet<DataHandle>;
}

/** Copy that failed. `gone`: the place's extent has left this stamp's blob data, so its row is not the newest one. */
export type NotCopied = Failed | { readonly ok: false; readonly gone: Pick<Place, "extentId"> };
export type CopyResult = Outcome<CopiedBatch> | NotCopied;

const pieceBytesDefault = 1024 * 1024;
const placesDefault = 32_768;
const pieceNamePlacesDefault = 262_144;
/** PartitionNames that go in pieces and whose places are remembered, each until its last piece is there. */
const pieceNamesMax = 8;
const readTimeoutMs = 10_000;
const writeTimeoutMs = 20_000;

/** Bytes that are copied as one. */
type Run = Pick<Place, "extentId" | "offsetBytes" | "lengthBytes">;

interface Batch {
  readonly name: Uint8Array;
  /** Id of the batch, in hexadecimal. */
  readonly id: string;
  readonly copied: CopiedPlaces;
  readonly extentIds: Set<number>;
  /** Extents of the other stamp that hold pieces of this batch. */
  readonly newIds: Set<number>;
  readonly handles: Set<DataHandle>;
  readonly signal: AbortSignal;
  readonly hold: PinHold;
}

export interface CopyLimits {
  readonly signal: AbortSignal;
  /** Hold that keeps the copied bytes at the other stamp until the rows are applied. */
  readonly hold: PinHold;
  /** True if the rows are a piece of a PartitionName that is larger than a part. */
  readonly isPiece?: boolean;
  /** Bound of the rate in bytes per second; undefined: none. */
  readonly bytesPerSecondMax?: number | undefined;
}

export class DataCopier {
  readonly #world: World;
  readonly #data: StoredData;
  readonly #link: DataLink;
  readonly #options: CopierOptions;
  readonly #known: CopiedPlaces;
  readonly #slow: SlowLog;
  /** Places of PartitionNames that go in pieces, used last at the end. If one is read anew, what did not change goes no second time. */
  readonly #pieces = new Map<string, CopiedPlaces>();
  /** End of the time that copies at a bounded rate have taken, by the monotonic clock. */
  #pacedUntilMs = 0;
  /** Bytes that were written at the other stamp. */
  copiedBytes = 0;

  constructor(world: World, data: StoredData, link: DataLink, options: CopierOptions) {
    this.#world = world;
    this.#data = data;
    this.#link = link;
    this.#options = options;
    this.#slow = new SlowLog(world);
    this.#known = new CopiedPlaces(options.placesMax ?? placesDefault, options.places);
  }

  /** Returns a hold that keeps the bytes of copies until it is ended. */
  hold(): PinHold {
    return new PinHold(this.#world, this.#link, (extentIds) => this.forget(extentIds));
  }

  /** Copies the bytes that these rows of one PartitionName refer to. */
  async copy(name: Uint8Array, rows: Iterable<Uint8Array>, { signal, hold, isPiece, bytesPerSecondMax }: CopyLimits): Promise<CopyResult> {
    const places: Place[] = [];
    for (const row of rows) {
      const own = placesOfRow(row);
      if (!own.ok) return own;
      for (const place of own.value) places.push(place);
    }
    const batch: Batch = {
      name,
      id: toHex(name),
      copied: new CopiedPlaces(),
      extentIds: new Set(),
      newIds: new Set(),
      handles: new Set(),
      signal,
      hold,
    };
    hold.add(batch);
    if (isPiece === true) this.#beginPieces(batch.id);
    for (let missing = this.#missing(batch, places); missing.length > 0; missing = this.#missing(batch, places)) {
      for (const piece of piecesOf(missing, this.#options.pieceBytesMax ?? pieceBytesDefault)) {
        const failed = hold.failure ?? (await this.#copyPiece(batch, piece, bytesPerSecondMax));
        if (failed !== undefined) return failed;
      }
    }
    return hold.failure ?? ok({ placeFor: (place) => placeIn(batch, place), extentIds: batch.extentIds, handles: batch.handles });
  }

  /** Forgets bytes in these extents of the other stamp, which has refused a row that refers to them. */
  forget(extentIds: ReadonlySet<number>): void {
    this.#known.forget(extentIds);
    for (const known of this.#pieces.values()) known.forget(extentIds);
  }

  /** Forgets what was remembered of a PartitionName, because its last piece is applied at the other stamp. */
  endPieces(name: Uint8Array): void {
    this.#dropPieces(toHex(name));
  }

  /** Forgets everything: nothing is copied any more. */
  end(): void {
    this.#known.clear();
    for (const id of this.#pieces.keys()) this.#dropPieces(id);
  }

  #beginPieces(id: string): void {
    const { pieceNamePlacesMax = pieceNamePlacesDefault, places } = this.#options;
    const known = this.#pieces.get(id) ?? new CopiedPlaces(pieceNamePlacesMax, places);
    this.#pieces.delete(id);
    this.#pieces.set(id, known);
    const [oldest] = this.#pieces.keys();
    if (this.#pieces.size > pieceNamesMax && oldest !== undefined) this.#dropPieces(oldest);
  }

  #dropPieces(id: string): void {
    this.#pieces.get(id)?.clear();
    this.#pieces.delete(id);
  }

  /** Returns the runs of places that are not known to be at the other stamp, and notes the others. */
  #missing(batch: Batch, places: readonly Place[]): readonly Run[] {
    const absent: Place[] = [];
    for (const place of places) {
      if (batch.copied.find(batch.id, place) !== undefined) continue;
      const known = this.#known.find(batch.id, place) ?? this.#pieces.get(batch.id)?.find(batch.id, place);
      if (known === undefined) absent.push(place);
      else this.#note(batch, known);
    }
    return runsOf(absent);
  }

  #note(batch: Batch, copied: CopiedBytes): void {
    batch.copied.add(copied);
    batch.extentIds.add(copied.to.extentId);
    if (copied.handle !== undefined) batch.handles.add(copied.handle);
  }

  async #copyPiece(batch: Batch, piece: readonly Run[], bytesPerSecondMax?: number): Promise<NotCopied | undefined> {
    const { gate } = this.#options;
    const { clock } = this.#world;
    const bytes = sizeOf(piece);
    const sinceMs = clock.monotonicMs();
    if (bytesPerSecondMax !== undefined) await this.#paced(bytes, bytesPerSecondMax, batch.signal);
    if (batch.signal.aborted || !(await gate.take(bytes, batch.signal)))
      return refused("cancelled", "cancelled", "nothing is shipped any more");
    const takenMs = clock.monotonicMs();
    try {
      const payload = await this.#read(piece, batch.signal);
      if (!(payload instanceof Uint8Array)) return payload;
      const readMs = clock.monotonicMs();
      const written = await this.#link.writeData(batch.name, payload, { timeoutMs: writeTimeoutMs, signal: batch.signal });
      this.#slow.ended("a piece of blob data took long on its way to the other stamp", sinceMs, () => ({
        bytes,
        waitedMs: Math.round(takenMs - sinceMs),
        readMs: Math.round(readMs - takenMs),
        writtenMs: Math.round(clock.monotonicMs() - readMs),
        outcome: written.ok ? "done" : written.failure.reason,
      }));
      if (!written.ok) return written;
      const { place, handle, pinTermMs } = written.value;
      if (place.lengthBytes !== bytes) return refused("internal", "bug", `${bytes} bytes have a place of ${place.lengthBytes}`);
      batch.newIds.add(place.extentId);
      batch.hold.pinned(pinTermMs);
      this.copiedBytes += bytes;
      let at = place.offsetBytes;
      for (const from of piece) {
        const copied = { name: batch.id, from, to: { extentId: place.extentId, offsetBytes: at, lengthBytes: from.lengthBytes }, handle };
        this.#known.add(copied);
        this.#pieces.get(batch.id)?.add(copied);
        this.#note(batch, copied);
        this.#options.fresh?.forget(from);
        at += from.lengthBytes;
      }
      return undefined;
    } finally {
      gate.give(bytes);
    }
  }

  /** Waits for the turn of these bytes at the bounded rate. */
  async #paced(bytes: number, bytesPerSecondMax: number, signal: AbortSignal): Promise<void> {
    const nowMs = this.#world.clock.monotonicMs();
    const beginMs = Math.max(nowMs, this.#pacedUntilMs);
    this.#pacedUntilMs = beginMs + (bytes / bytesPerSecondMax) * 1_000;
    if (beginMs > nowMs) await sleep(this.#world.clock, beginMs - nowMs, signal);
  }

  async #read(piece: readonly Run[], signal: AbortSignal): Promise<Uint8Array | NotCopied> {
    const kept = piece.map((run) => this.#options.fresh?.find(run));
    if (kept.every((bytes) => bytes !== undefined)) return kept.length === 1 && kept[0] !== undefined ? kept[0] : concatBytes(kept);
    const payload = new Uint8Array(sizeOf(piece));
    let at = 0;
    try {
      for await (const chunk of this.#data.read(piece, { timeoutMs: readTimeoutMs, signal })) {
        payload.set(chunk, at);
        at += chunk.length;
      }
      return payload;
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      const gone = piece.find(({ extentId }) => !this.#data.lists(extentId));
      return gone === undefined ? { ok: false, failure: error.failure } : { ok: false, gone };
    }
  }
}

/** Returns the row with places of the other stamp. */
export function rowAtPeer(row: Uint8Array, { placeFor }: CopiedBatch): Uint8Array {
  const mapped = withPlaces(row, placeFor);
  if (!mapped.ok) throw new FailureError(mapped.failure);
  return mapped.value;
}

function placeIn({ copied, id }: Batch, place: Place): Place {
  const found = copied.find(id, place);
  if (found === undefined) throw new FailureError(refused("internal", "bug", "bytes of a row were not copied").failure);
  return placeAtPeer(place, found);
}

const sizeOf = (piece: readonly Run[]): number => piece.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);

/** Returns the places in order, without those that lie in another one. */
function runsOf(places: readonly Place[]): readonly Run[] {
  const inOrder = [...places].sort((a, b) => a.extentId - b.extentId || a.offsetBytes - b.offsetBytes || b.lengthBytes - a.lengthBytes);
  const runs: Run[] = [];
  let last: Run | undefined;
  for (const { extentId, offsetBytes, lengthBytes } of inOrder) {
    const end = offsetBytes + lengthBytes;
    if (last?.extentId === extentId && end <= last.offsetBytes + last.lengthBytes) continue;
    last = { extentId, offsetBytes, lengthBytes };
    runs.push(last);
  }
  return runs;
}

function* piecesOf(runs: readonly Run[], bytesMax: number): Generator<readonly Run[]> {
  let piece: Run[] = [];
  let bytes = 0;
  for (const run of runs) {
    if (piece.length > 0 && bytes + run.lengthBytes > bytesMax) {
      yield piece;
      piece = [];
      bytes = 0;
    }
    piece.push(run);
    bytes += run.lengthBytes;
  }
  if (piece.length > 0) yield piece;
}
