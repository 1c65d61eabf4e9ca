/**
 * Judges the lists of streams over restores of the metadata (docs/decisions/0581). A history ends with each restore.
 *   - What was deleted before the copy was taken is in no list afterwards.
 *   - A list has only extents with content that it had in the history that ended, or that an owner was given since.
 *   - An extent with an acknowledged record is in the list of its stream until its owner deletes it, and its records are at their places.
 *     The exception: nodes that were away for all of the first term had every replica of it.
 */

import { BrokenPromise } from "@stamp/virtual-time";
import type { ExtentLocation } from "@stamp/wire";
import type { RecordName, StreamJudge } from "../judges/stream-judge.ts";

/** Reads all records of an extent, by offset. */
export type ReadExtent = (stream: string, extent: ExtentLocation) => Promise<ReadonlyMap<number, RecordName>>;

export class ListJudge {
  readonly #judge: StreamJudge;
  readonly #read: ReadExtent;
  /** Extents in the list of each stream, as it was told last; what its owners were given since is in `#judge`. */
  readonly #lists = new Map<string, ReadonlySet<bigint>>();
  /** Extents that owners were given before the last restore. */
  #before: ReadonlySet<bigint> = new Set();
  /** Extents that an owner asked to be deleted. */
  readonly #unwanted = new Set<bigint>();
  /** Extents among the unwanted that a restore may have brought back. */
  readonly #undeleted = new Set<bigint>();
  /** Extents that were deleted when the copy was taken that was restored last. */
  #deleted: ReadonlySet<bigint> = new Set();
  /** Extents that only absent nodes had at a restore. True: extents behind it came back, so a later restore may find it at its place. */
  readonly #lost = new Map<bigint, boolean>();
  #absent: ReadonlySet<string> = new Set();
  /** Streams whose lists nobody was told since the last restore. */
  #unread = new Set<string>();

  constructor(judge: StreamJudge, read: ReadExtent) {
    this.#judge = judge;
    this.#read = read;
  }

  /** Extents of a stream that are in its list, as far as owners were told. */
  extentsOf(stream: string): bigint[] {
    const begun = [...this.#judge.begunExtents].filter(([id, { stream: of }]) => of === stream && !this.#before.has(id));
    return [...new Set([...(this.#lists.get(stream) ?? []), ...begun.map(([id]) => id)])]
      .filter((id) => !this.#unwanted.has(id))
      .toSorted((a, b) => Number(a - b));
  }

  /** Notes that an owner asks for the deletion of extents. */
  unwanted(extents: readonly bigint[]): void {
    for (const id of extents) {
      this.#unwanted.add(id);
      this.#undeleted.delete(id);
    }
  }

  /** Returns what was deleted by now, for the restore of a copy that is taken later. */
  deletedNow(): ReadonlySet<bigint> {
    return this.#unwanted.difference(this.#undeleted);
  }

  /** Notes that the metadata were restored, while these nodes were away for longer than anybody waits. */
  restored(deleted: ReadonlySet<bigint>, absent: readonly string[]): void {
    for (const stream of this.#streams) this.#lists.set(stream, new Set(this.extentsOf(stream)));
    this.#before = new Set(this.#judge.begunExtents.keys());
    this.#deleted = deleted;
    for (const id of this.#unwanted) if (!deleted.has(id)) this.#undeleted.add(id);
    this.#absent = new Set(absent);
    this.#unread = this.#streams;
  }

  /** Takes a list as an owner was given it, and reads all of it in the first look after a restore, or if `reads`. */
  async told(stream: string, list: readonly ExtentLocation[], reads: boolean): Promise<void> {
    const isRead = reads || this.#unread.delete(stream);
    const known = new Set(this.extentsOf(stream));
    const ids = new Set(list.map(({ extentId }) => extentId));
    for (const { extentId: id, sealedLengthBytes } of list) {
      if (this.#deleted.has(id)) throw new BrokenPromise(`${stream}: extent ${id} was deleted before the copy, and is in the list again`);
      if (sealedLengthBytes !== 0n && !known.has(id) && !this.#unwanted.has(id) && this.#lost.get(id) !== true)
        throw new BrokenPromise(`${stream}: extent ${id} is in the list, and was in no list of the history that ended`);
    }
    const places = Map.groupBy(
      this.#judge.places().filter((each) => each.stream === stream),
      ({ place }) => place.extent,
    );
    for (const [id, those] of places) {
      if (this.#unwanted.has(id) || this.#lost.has(id)) continue;
      const extent = list.find(({ extentId }) => extentId === id);
      if (extent === undefined) this.#miss(stream, id, ids);
      else if (isRead) {
        const records = await this.#read(stream, extent);
        for (const { record, place } of those) {
          const found = records.get(place.offsetBytes);
          if (found?.epoch !== record.epoch || found.sequence !== record.sequence)
            throw new BrokenPromise(`${stream}: record ${record.epoch}/${record.sequence} was acknowledged, and is not in extent ${id}`);
        }
        this.#judge.count("acknowledged records found", those.length);
      }
    }
    this.#lists.set(stream, ids);
  }

  #miss(stream: string, id: bigint, list: ReadonlySet<bigint>): void {
    const { addresses = [] } = this.#judge.begunExtents.get(id) ?? {};
    if (!addresses.every((node) => this.#absent.has(node)))
      throw new BrokenPromise(`${stream}: extent ${id} has acknowledged records, and is not in the list`);
    this.#lost.set(
      id,
      [...list].some((other) => other > id && this.#before.has(other)),
    );
    this.#judge.count("extents that only absent nodes had");
  }

  get #streams(): Set<string> {
    return new Set([...this.#judge.begunExtents.values()].map(({ stream }) => stream));
  }
}
