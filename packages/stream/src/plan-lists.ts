/**
 * MultiModify: one atomic change of several streams' extent lists (split, merge, rename and concatenation are made of it). Data are never
 * copied: extents are shared between lists, and so are whole segments of long ones.
 *
 *  - Every stream that is named is written, also one that stays as it is: its key carries the condition, so no list that an extent was
 *    taken from can lose it meanwhile.
 *  - An extent that is not sealed goes to one list at most, as the last, under the owner epoch it had: nobody else could fence its owner.
 *  - No list holds an extent twice: one that comes again is left out.
 *  - A stream may be given its next extent, which was made ahead, in the same transaction (`open`).
 *  - An owner that will append no more may say where its open extent ends (`complete`): it is sealed there in the same transaction, without
 *    a fence, for the reasons of `planRoll` (docs/design/stream-layer.md), whatever its nodes have behind it (0340).
 */
import type { ExtentId, Outcome, OwnerEpoch, Rules } from "@stamp/base";
import { extentVersion, ok, refused } from "@stamp/base";
import { streamKey } from "./codec.ts";
import { checkName, checkNew, checkOwner } from "./plan-streams.ts";
import type { ExtentRecord, SegmentReference, StreamRecord } from "./records.ts";
import { segmentExtentsMax, segmentsPerStreamMax } from "./records.ts";
import type { RecordChange, TransactionPlan } from "./state/changes.ts";
import type { StreamState } from "./state.ts";

export const editsMax = 32;
export const rangesMax = 256;
/** New segments in one change: with 1,000 extents each it stays under 1 MiB. */
export const newSegmentsMax = 32;

/** A part of the list that a stream has before the change. */
export interface ListRange {
  readonly stream: string;
  /** First extent; undefined: the first one of the list. */
  readonly first?: ExtentId;
  /** End, exclusive; undefined: the end of the list. */
  readonly before?: ExtentId;
}

export interface StreamContent {
  readonly ownerEpoch: OwnerEpoch;
  readonly ranges: readonly ListRange[];
  /** Extent made for this stream and owner, and in no list yet: it becomes the last extent of the list. */
  readonly open?: ExtentId | undefined;
}

export interface StreamEdit {
  readonly name: string;
  /** Recorded owner epoch; undefined if there must be no such stream. */
  readonly ownerEpoch: OwnerEpoch | undefined;
  /** Version of the list's key (`StreamState.versionOf`); undefined: any version. */
  readonly listVersion?: number;
  /** Content of the stream afterwards; undefined: the stream is removed. */
  readonly content: StreamContent | undefined;
  /** The last extent that is recorded: every append up to here is acknowledged, and its owner takes none behind it for appended. */
  readonly complete?: { readonly extent: ExtentId; readonly lengthBytes: number };
}

/** `segmentIds`: numbers for new segments. Too few are refused; the detail `segments` is the needed number. */
export function planMultiModify(
  state: StreamState,
  edits: readonly StreamEdit[],
  segmentIds: readonly number[],
  rules: Rules,
): Outcome<TransactionPlan> {
  const checked = checkEdits(state, edits, rules);
  if (!checked.ok) return checked;
  const completed = sealsOf(state, edits);
  if (!completed.ok) return completed;
  const isSealed = (id: ExtentId): boolean => completed.value.has(id) || state.extent(id)?.phase === "sealed";
  const changes: RecordChange[] = [...completed.value.values()];
  const minted = new Minted(segmentIds);
  const unsealed = new Set<ExtentId>();
  for (const { name, ownerEpoch, content } of edits) {
    if (content === undefined) {
      changes.push({ kind: "removeStream", name });
      continue;
    }
    if (ownerEpoch !== undefined && content.ownerEpoch < ownerEpoch) {
      return refused("invalidArgument", "badRequest", `the owner epoch of stream ${name} can't go back to ${content.ownerEpoch}`);
    }
    const builder = new Builder(minted);
    const several = content.ranges.length > 1;
    for (const range of content.ranges) {
      const added = builder.add(state, range, several);
      if (!added.ok) return added;
    }
    const opened = content.open === undefined ? undefined : openedExtent(state, name, content, content.open);
    if (opened !== undefined && !opened.ok) return opened;
    if (opened !== undefined) {
      builder.open(opened.value.id);
      changes.push({ kind: "extent", record: opened.value });
    }
    const { segments, skipCount, tail, last, unsealedInside } = builder.finish(isSealed);
    if (unsealedInside !== undefined) {
      return refused("failedPrecondition", "conflict", `extent ${unsealedInside.id} would not be the last of ${name} and is not sealed`);
    }
    const open = last !== undefined && !isSealed(last.id) ? last : undefined;
    if (open !== undefined) {
      if (unsealed.has(open.id) || state.stream(open.stream)?.ownerEpoch !== content.ownerEpoch || state.references(open.id) > 1) {
        return refused("failedPrecondition", "conflict", `extent ${open.id} is not sealed: open stream ${open.stream} first`);
      }
      unsealed.add(open.id);
    }
    if (segments.length > segmentsPerStreamMax) {
      return refused("resourceExhausted", "noPlacement", `stream ${name} would have more than ${segmentsPerStreamMax} segments`);
    }
    const record: StreamRecord = { name, ownerEpoch: content.ownerEpoch, segments, skipCount, tail };
    changes.push({ kind: "stream", record });
  }
  for (const { name, content } of edits) {
    const last = state.list(name).last;
    if (content === undefined || last === undefined || isSealed(last) || unsealed.has(last)) continue;
    return refused("failedPrecondition", "conflict", `extent ${last} of stream ${name} is not sealed and would be lost`);
  }
  if (minted.wanted > newSegmentsMax) {
    return refused("resourceExhausted", "noPlacement", `the change needs ${minted.wanted} new segments, ${newSegmentsMax} are the most`);
  }
  if (minted.wanted > segmentIds.length) {
    return refused("aborted", "conflict", `the change needs ${minted.wanted} segments`, { segments: String(minted.wanted) });
  }
  return ok({ changes: [...minted.changes, ...changes], reads: [] });
}

function openedExtent(state: StreamState, name: string, content: StreamContent, id: ExtentId): Outcome<ExtentRecord> {
  const extent = state.extent(id);
  const isMadeForIt = extent?.phase === "allocating" && extent.stream === name && extent.ownerEpoch === content.ownerEpoch;
  if (!isMadeForIt) return refused("aborted", "conflict", `extent ${id} was not made for stream ${name}`);
  return ok({ ...extent, phase: "open" });
}

/** Returns the seals of extents that owners say are complete. Refuses with `conflict` if one is being sealed otherwise. */
function sealsOf(state: StreamState, edits: readonly StreamEdit[]): Outcome<Map<ExtentId, RecordChange>> {
  const seals = new Map<ExtentId, RecordChange>();
  for (const { name, ownerEpoch, complete } of edits) {
    if (complete === undefined) continue;
    const extent = state.extent(complete.extent);
    const sealedThere = extent?.phase === "sealed" && extent.sealedLengthBytes === complete.lengthBytes;
    if (state.list(name).last === complete.extent && sealedThere) continue;
    if (state.list(name).last !== complete.extent || extent?.phase !== "open" || extent.ownerEpoch !== ownerEpoch) {
      return refused(
        "aborted",
        "conflict",
        `extent ${complete.extent} of stream ${name} can't be taken for complete: open the stream again`,
      );
    }
    const version = extentVersion(extent.version + 1);
    const record = { ...extent, phase: "sealed", version, sealedLengthBytes: complete.lengthBytes } as const;
    seals.set(complete.extent, { kind: "extent", record });
  }
  return ok(seals);
}

function checkEdits(state: StreamState, edits: readonly StreamEdit[], rules: Rules): Outcome<void> {
  const names = new Set(edits.map((edit) => edit.name));
  const ranges = edits.reduce((sum, { content }) => sum + (content?.ranges.length ?? 0), 0);
  if (edits.length === 0 || edits.length > editsMax || names.size !== edits.length || ranges > rangesMax) {
    return refused("invalidArgument", "badRequest", `1 to ${editsMax} different streams and ${rangesMax} ranges in one change`);
  }
  for (const { name, ownerEpoch, listVersion, content } of edits) {
    const record = state.stream(name);
    if (ownerEpoch === undefined) {
      if (record !== undefined) {
        return refused("alreadyExists", "streamExists", `stream ${name} exists with owner epoch ${record.ownerEpoch}`);
      }
      const named = content === undefined ? checkName(name) : checkNew(name, content.ownerEpoch);
      if (!named.ok) return named;
    } else {
      if (record === undefined) return refused("notFound", "streamNotFound", `there is no stream ${name}`);
      const owner = checkOwner(record, ownerEpoch, rules);
      if (!owner.ok) return owner;
      const current = state.versionOf(streamKey(name));
      if (listVersion !== undefined && listVersion !== current) {
        return refused("aborted", "conflict", `the list of stream ${name} has version ${current}, not ${listVersion}`);
      }
    }
    const foreign = content?.ranges.find((range) => !names.has(range.stream));
    if (foreign !== undefined) {
      return refused("invalidArgument", "badRequest", `stream ${foreign.stream} is read: it must be named as well, with its owner epoch`);
    }
  }
  return ok();
}

/** Numbers and contents of the segments that a change makes. */
class Minted {
  readonly changes: RecordChange[] = [];
  readonly #ids: readonly number[];
  wanted = 0;

  constructor(ids: readonly number[]) {
    this.#ids = ids;
  }

  segment(extents: readonly ExtentId[]): SegmentReference {
    const id = this.#ids[this.wanted] ?? 0;
    this.wanted += 1;
    this.changes.push({ kind: "segment", id, extents });
    return { id, count: extents.length };
  }
}

interface LastExtent {
  readonly id: ExtentId;
  /** Name of the stream whose list the extent comes from. */
  readonly stream: string;
}

/** One list put together from ranges: whole segments are shared, the rest goes into new ones and the tail. */
class Builder {
  readonly #minted: Minted;
  readonly #segments: SegmentReference[] = [];
  readonly #seen = new Set<ExtentId>();
  /** Last extents of the sources, in order: only these may be unsealed. */
  readonly #ends: LastExtent[] = [];
  #skipCount = 0;
  #loose: ExtentId[] = [];
  #last: ExtentId | undefined;

  constructor(minted: Minted) {
    this.#minted = minted;
  }

  add(state: StreamState, range: ListRange, distinct: boolean): Outcome<void> {
    const record = state.stream(range.stream);
    if (record === undefined) return refused("notFound", "streamNotFound", `there is no stream ${range.stream}`);
    const list = state.list(range.stream);
    const from = range.first === undefined ? 0 : list.indexOf(range.first);
    const to = range.before === undefined ? list.length : list.indexOf(range.before);
    const unknown = from < 0 ? range.first : to < 0 ? range.before : undefined;
    if (unknown !== undefined) return refused("notFound", "unknownExtent", `extent ${unknown} is not in stream ${range.stream}`);
    if (to < from) return refused("invalidArgument", "badRequest", `extent ${range.before} comes before ${range.first}`);
    let at = 0;
    list.pieces.forEach((piece, index) => {
      const length = piece.extents.length - piece.from;
      const [begin, end] = [piece.from + Math.max(from - at, 0), piece.from + Math.min(to - at, length)];
      at += length;
      if (begin >= end) return;
      const segment = record.segments[index];
      if (segment !== undefined && end === segment.count && this.#share(segment, piece.extents, begin, distinct)) return;
      for (const id of piece.extents.slice(begin, end)) this.#one(id, distinct);
    });
    const { last } = list;
    if (last !== undefined && to === list.length && to > from) this.#ends.push({ id: last, stream: range.stream });
    return ok();
  }

  /** Adds the open extent behind all others. */
  open(id: ExtentId): void {
    this.#one(id, false);
  }

  finish(isSealed: (id: ExtentId) => boolean): {
    segments: readonly SegmentReference[];
    skipCount: number;
    tail: readonly ExtentId[];
    last: LastExtent | undefined;
    unsealedInside: LastExtent | undefined;
  } {
    const ends = this.#ends.filter(({ id }) => !isSealed(id));
    return {
      segments: this.#segments,
      skipCount: this.#skipCount,
      tail: this.#loose,
      last: ends.find(({ id }) => id === this.#last),
      unsealedInside: ends.find(({ id }) => id !== this.#last),
    };
  }

  #share(segment: SegmentReference, extents: readonly ExtentId[], begin: number, distinct: boolean): boolean {
    const leads = this.#segments.length === 0 && this.#loose.length === 0;
    if (begin > 0 && !leads) return false;
    if (distinct) {
      const part = begin === 0 ? extents : extents.slice(begin);
      if (part.some((id) => this.#seen.has(id))) return false;
      for (const id of part) this.#seen.add(id);
    }
    this.#flush();
    this.#segments.push(segment);
    if (leads) this.#skipCount = begin;
    this.#last = extents.at(-1);
    return true;
  }

  #one(id: ExtentId, distinct: boolean): void {
    if (distinct) {
      if (this.#seen.has(id)) return;
      this.#seen.add(id);
    }
    if (this.#loose.length === segmentExtentsMax) this.#flush();
    this.#loose.push(id);
    this.#last = id;
  }

  #flush(): void {
    if (this.#loose.length === 0) return;
    this.#segments.push(this.#minted.segment(this.#loose));
    this.#loose = [];
  }
}
