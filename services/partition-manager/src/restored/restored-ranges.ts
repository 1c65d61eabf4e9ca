/**
 * Ranges that were split or merged after the copy from which the metadata were restored. The map, whose extents came back, names them. The restored
 * metadata have the streams of the ranges that they came from, and of their own no more than the extents that began since. So before one is given to a
 * server, its streams are made of those (rule `rangesHaveOrigins`):
 *
 *     streams of its origins, oldest first ─┐
 *     what came back of its own streams ────┴─► its streams ── all ranges of an origin have theirs ──► the origin's streams are removed
 *
 * Invariants:
 *   - Every stream is fenced under a new owner epoch before its list is read.
 *   - Each step may be done again: an extent that comes twice is once in a list.
 *   - No range waits for another one's streams.
 */
import { type Outcome, ok } from "@stamp/base";
import { type Origin, type Range, streamsOf } from "@stamp/partition-map";
import { jittered, pause, type World } from "@stamp/ports";
import type { Assigner } from "../assign/assigner.ts";
import { endsTerm, type OwnerEpochs } from "../assign/owner-epochs.ts";
import type { MapState } from "../map/map-state.ts";
import type { StreamLayer } from "../reshape/reshaper.ts";

const callTimeoutMs = 30_000;
const againMs = 1_000;
const prefix = "/ps/";

type Kind = "metadata" | "commitLog" | "rowData" | "blobData";
const kinds: readonly Kind[] = ["metadata", "commitLog", "rowData", "blobData"];
const givenBy: Readonly<Record<Origin["left"], readonly Kind[]>> = {
  all: kinds,
  state: ["metadata", "rowData", "blobData"],
  data: ["rowData", "blobData"],
};

export class RestoredRanges {
  readonly #world: World;
  readonly #map: MapState;
  readonly #epochs: OwnerEpochs;
  readonly #streams: StreamLayer;
  readonly #end: (why: string) => void;
  /** Names of all streams of ranges that there are. */
  #there: ReadonlySet<string> = new Set();
  #waiting: readonly Range[] = [];

  constructor(
    world: World,
    parts: { readonly map: MapState; readonly epochs: OwnerEpochs; readonly streams: StreamLayer },
    end: (why: string) => void,
  ) {
    this.#world = world;
    this.#map = parts.map;
    this.#epochs = parts.epochs;
    this.#streams = parts.streams;
    this.#end = end;
  }

  /** Returns the ranges whose streams have to be made first: nobody may be given them until `run` releases them. */
  async find(): Promise<Outcome<readonly Range[]>> {
    if (this.#map.lineage === 0 || !this.#world.rules.on("rangesHaveOrigins")) return ok([]);
    const listed = await this.#streams.names(prefix, callTimeoutMs);
    // A stream manager of an earlier release does not say it to this role: the next term asks again.
    if (!listed.ok) return listed.failure.reason === "unauthorized" ? ok([]) : listed;
    this.#there = listed.value;
    this.#waiting = this.#map.current.ranges.filter((range) => this.#sources(range).length > 0);
    this.#tellStrangers();
    return ok(this.#waiting);
  }

  /** Makes the streams, again and again until all are there or the term ends. */
  async run(assigner: Pick<Assigner, "release">, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#world;
    const found = this.#waiting;
    while (this.#waiting.length > 0 && !signal.aborted) {
      const failed: Range[] = [];
      for (const range of this.#waiting) {
        if (signal.aborted) return;
        const made = await this.#make(range);
        if (made.ok) assigner.release(range, { kind: "idle" });
        else failed.push(range);
        if (!made.ok && endsTerm(made.failure)) return this.#end(made.failure.message);
      }
      this.#waiting = failed;
      if (failed.length > 0) await pause(clock, jittered(random, againMs), signal);
    }
    await this.#removeOrigins(found, signal);
  }

  async #make(range: Range): Promise<Outcome<void>> {
    const { logger } = this.#world;
    const made = await this.#joined(range);
    const facts = { range: range.rangeId, origins: [...new Set(this.#sources(range).map(({ rangeId }) => rangeId))].join() };
    if (made.ok) logger.warn("the restored metadata did not know the streams of a range: they are made of those of its origins", facts);
    else logger.error("the streams of a range, which the restored metadata do not know, can't be made yet", { ...facts, ...made.failure });
    return made;
  }

  async #joined(range: Range): Promise<Outcome<void>> {
    const minted = await this.#epochs.mint(1);
    if (!minted.ok) return minted;
    const sources = this.#sources(range);
    for (const kind of kinds) {
      const name = range.streams[kind];
      if (name === "") continue;
      const from = sources.filter((source) => source.kind === kind).map((source) => source.name);
      const made = await this.#streams.prepend(name, from, minted.value, callTimeoutMs);
      if (!made.ok) return made;
    }
    return ok();
  }

  /** Returns the streams of a range's origins that are there, oldest first. */
  #sources({ origins = [], table }: Range): readonly { readonly rangeId: string; readonly kind: Kind; readonly name: string }[] {
    return origins.flatMap(({ left, rangeId }) =>
      givenBy[left]
        .map((kind) => ({ rangeId, kind, name: streamsOf(rangeId, table)[kind] }))
        .filter(({ name }) => name !== "" && this.#there.has(name)),
    );
  }

  /** Removes the streams of origins, also those that nobody begins with: the ranges that came from them have all that they had. */
  async #removeOrigins(ranges: readonly Range[], signal: AbortSignal): Promise<void> {
    const names = ranges.flatMap(({ origins = [], table }) => origins.flatMap(({ rangeId }) => Object.values(streamsOf(rangeId, table))));
    for (const name of new Set(names)) {
      if (signal.aborted) return;
      if (!this.#there.has(name)) continue;
      const minted = await this.#epochs.mint(1);
      const removed = minted.ok ? await this.#streams.remove(name, minted.value, callTimeoutMs) : minted;
      if (!removed.ok)
        this.#world.logger.warn("a stream of a range that is no more is not removed: the next term tries again", {
          name,
          ...removed.failure,
        });
    }
  }

  /** Tells of ranges whose streams are there and that nothing names: the map lost its last changes. */
  #tellStrangers(): void {
    const known = new Set(
      this.#map.current.ranges.flatMap(({ origins = [], rangeId, reshape }) => [
        rangeId,
        ...origins.map((origin) => origin.rangeId),
        ...(reshape?.children ?? []).map((child) => child.rangeId),
      ]),
    );
    const strangers = new Set([...this.#there].map((name) => name.slice(prefix.length).split("/")[0] ?? "").filter((id) => !known.has(id)));
    if (strangers.size === 0) return;
    this.#world.logger.error(
      "streams of ranges are there that the restored map does not know: rows that were written to them are not served",
      {
        ranges: [...strangers].slice(0, 20).join(),
        count: strangers.size,
      },
    );
  }
}
