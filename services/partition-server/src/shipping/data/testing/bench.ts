/** Two stamps as the copies of bytes see them: extents here, a link, and extents there. */
import assert from "node:assert/strict";
import { allRules, equalBytes, FailureError, type Outcome, ok, refused, unwrap, utf8 } from "@stamp/base";
import { blobSchema, encodeRow, type Place, placesOfRow } from "@stamp/objects";
import { sleep } from "@stamp/ports";
import type { StoredData } from "@stamp/range-partition";
import { Simulation } from "@stamp/virtual-time";
import { ByteGate } from "../byte-gate.ts";
import { PlacesBudget } from "../copied-places.ts";
import { type CopierOptions, type CopyResult, DataCopier, type DataLink } from "../data-copier.ts";

export const name = utf8("n");
export const place = (extentId: number, offsetBytes: number, lengthBytes: number): Place => ({ extentId, offsetBytes, lengthBytes });
export const rowOf = (...places: Place[]): Uint8Array => Uint8Array.from(encodeRow(blobSchema, { places }));

/** Each byte of this stamp says where it is. */
const byteAt = (extentId: number, offsetBytes: number): number => (extentId * 31 + offsetBytes * 7) % 251;

export const bytesAt = (extentId: number, offsetBytes: number, lengthBytes: number): Uint8Array =>
  Uint8Array.from({ length: lengthBytes }, (_, i) => byteAt(extentId, offsetBytes + i));

export class Bench {
  readonly sim = new Simulation({ seed: 1, rules: allRules });
  readonly world = this.sim.world("sender");
  /** Extents of the other stamp; each write is one of its own. */
  readonly there = new Map<number, Uint8Array>();
  #next = 1_000;
  readonly gone = new Set<number>();
  readonly pinned: number[][] = [];
  /** End of the pin of each extent that is there, by the monotonic clock. */
  readonly #pinnedUntilMs = new Map<number, number>();
  reads = 0;
  heldBytes = 0;
  heldBytesMax = 0;
  pinTermMs = 60_000;
  writeMs = 10;
  failWrites = 0;

  readonly data: StoredData = {
    appendedBytes: 0,
    sealedExtents: [],
    lists: (extentId) => !this.gone.has(extentId),
    read: (places) => this.#read(places),
  };

  readonly link: DataLink = {
    writeData: async (_name, payload): Promise<Outcome<{ place: Place; pinTermMs: number }>> => {
      this.heldBytes += payload.length;
      this.heldBytesMax = Math.max(this.heldBytesMax, this.heldBytes);
      await sleep(this.world.clock, this.writeMs);
      this.heldBytes -= payload.length;
      if (this.failWrites-- > 0) return refused("unavailable", "connectFailed", "cut");
      const extentId = this.#next++;
      this.there.set(extentId, Uint8Array.from(payload));
      this.#pin(extentId);
      return ok({ place: place(extentId, 0, payload.length), pinTermMs: this.pinTermMs });
    },
    pinData: async (_name, extentIds) => {
      this.pinned.push([...extentIds]);
      for (const extentId of extentIds) this.#pin(extentId);
      return ok(extentIds.filter((extentId) => !this.there.has(extentId)));
    },
  };

  #pin(extentId: number): void {
    this.#pinnedUntilMs.set(extentId, this.world.clock.monotonicMs() + this.pinTermMs);
  }

  /** The collector of the other stamp gives back what is not pinned. */
  collect(): void {
    for (const [extentId, untilMs] of this.#pinnedUntilMs) if (untilMs <= this.world.clock.monotonicMs()) this.there.delete(extentId);
  }

  async *#read(places: readonly Place[]): AsyncGenerator<Uint8Array> {
    this.reads++;
    for (const { extentId, offsetBytes, lengthBytes } of places) {
      if (this.gone.has(extentId)) throw new FailureError(refused("notFound", "unknownExtent", `extent ${extentId}`).failure);
      yield bytesAt(extentId, offsetBytes, lengthBytes);
    }
  }

  /** Every place of the row has the bytes of the row here. */
  judge(row: Uint8Array, mapped: Uint8Array): void {
    const [from, to] = [unwrap(placesOfRow(row)), unwrap(placesOfRow(mapped))];
    assert.equal(to.length, from.length);
    for (const [i, { extentId, offsetBytes, lengthBytes }] of from.entries()) {
      const at = to[i] as Place;
      const expected = bytesAt(extentId, offsetBytes, lengthBytes);
      const bytes = this.there.get(at.extentId)?.subarray(at.offsetBytes, at.offsetBytes + at.lengthBytes);
      assert.ok(bytes !== undefined && equalBytes(bytes, expected), `place ${i}`);
    }
  }
}

/** Copies, and holds what was copied until the copy is over. */
export type Copy = (
  name: Uint8Array,
  rows: readonly Uint8Array[],
  limits?: { readonly bytesPerSecondMax?: number; readonly signal?: AbortSignal; readonly isPiece?: boolean },
) => Promise<CopyResult>;

export async function onBench(
  work: (bench: Bench, copy: Copy, copier: DataCopier) => Promise<void>,
  options: Partial<CopierOptions> = {},
): Promise<void> {
  const bench = new Bench();
  const bounds = { gate: new ByteGate(4_000), places: new PlacesBudget(1_000), pieceBytesMax: 1_000 };
  const copier = new DataCopier(bench.world, bench.data, bench.link, { ...bounds, ...options });
  const copy: Copy = async (name, rows, limits) => {
    const hold = copier.hold();
    const copied = await copier.copy(name, rows, { signal: new AbortController().signal, hold, ...limits });
    await hold.end();
    return copied;
  };
  await bench.sim.run(() => work(bench, copy, copier));
}
