/**
 * The state of a range partition, as the last record of its metadata stream says it: the root from which everything else is found.
 *
 *   frame (base framed.ts, kind 'P', version 2) around JSON: what a person may have to read in an emergency, and small.
 *   version 3, when there is a `rest`: the JSON (sized), then the rest as a commit record.
 *   version 4, when extents are settled: as version 3; without a rest nothing follows the JSON.
 */
import {
  ByteReader,
  ByteWriter,
  DecodeError,
  type FormatName,
  formatVersions,
  frameRecord,
  fromHex,
  fromUtf8,
  newerFormat,
  type Outcome,
  ok,
  refused,
  toHex,
  unframeRecord,
  unknownFormat,
  utf8,
} from "@stamp/base";
import type { Crc32c } from "./checkpoint-block.ts";
import type { StoredPlace } from "./checkpoint-index.ts";
import { decodeCommit, encodeCommit, type Write } from "./commit-record.ts";
import { holdsKey, intersect, type KeyBounds, type LogPlace } from "./key-bounds.ts";
import { areFollowers, joinedFollowers, type StoredFollowers } from "./log-followers.ts";
import { joinedLineage, type LogLineage } from "./log-lineage.ts";

export interface StoredCheckpoint {
  readonly id: number;
  /** Places of the index, in pieces, in order. */
  readonly indexPlaces: readonly StoredPlace[];
  /** Size of data blocks and index, in bytes. */
  readonly bytes: number;
  readonly entryCount: number;
  readonly minSequence: number;
  readonly maxSequence: number;
  /**
   * Keys of the checkpoint that count, if not all: the keys that its partition had before a merge. In hexadecimal, as
   * KeyBounds.
   */
  readonly bounds?: { readonly low: string; readonly high: string };
}

export interface PartitionState {
  readonly rangeId: string;
  readonly ownerEpoch: number;
  /** Rises with every record of this partition. */
  readonly recordNumber: number;
  /** Checkpoints of the range, newest first. */
  readonly checkpoints: readonly StoredCheckpoint[];
  /** Sequence of the last commit in the checkpoints; the log is replayed behind it. */
  readonly checkpointedSequence: number;
  /** Highest ticket that the commits in the checkpoints used. */
  readonly lastTicket: number;
  /** Replay begins here; 0: at the first extent of the log. */
  readonly logStartExtentId: number;
  /** Place in that extent behind the last commit in the checkpoints. If it names another extent it does not count. */
  readonly logStart?: LogPlace | undefined;
  readonly nextCheckpointId: number;
  /** Ids of the ranges that may be loaded from this record besides its own: the children of a split or a merge. */
  readonly heirs?: readonly string[];
  /**
   * Rows that were in memory at the handoff, and commits that were not durable; for one key the later write counts.
   * They are the first commit behind `checkpointedSequence`, which is in no log. Every later record has it too, until
   * it is in a checkpoint.
   */
  readonly rest?: readonly Write[] | undefined;
  /** Numbers of sealed extents of blob data in which no upload in progress has bytes, nor ever will (docs/decisions/0370). */
  readonly settledExtents?: readonly number[] | undefined;
  /**
   * Containers, tables and queues that were found deleted while the partition has rows inside of them: by
   * `account/name/incarnation`, the time of the first finding, in milliseconds since 1970. A hint: a reader that does
   * not know it begins anew.
   */
  readonly goneSinceMs?: Readonly<Record<string, number>> | undefined;
  /**
   * Later formats of what lies in this partition's streams without a version that a load reads (rows, keys), each with its version. A release
   * that writes a later one records it here first. Every later record keeps it. This release writes none.
   */
  readonly needs?: Readonly<Record<string, number>> | undefined;
  /**
   * Readers of the commit log for which it is kept. A release that does not know them cuts the log: their places are
   * gone then, and they scan the rows again (docs/design/geo-shipping.md).
   */
  readonly followers?: StoredFollowers | undefined;
  /**
   * Fences against what another stamp ships (docs/design/geo-shipping.md): by the hexadecimal bytes with which the keys of an account
   * begin, the highest role epoch of which nothing is taken any more. Every later record keeps them.
   */
  readonly shippedFences?: Readonly<Record<string, number>> | undefined;
  /** Lineages of the range (log-lineage.ts); undefined: it has lost nothing. */
  readonly lineage?: LogLineage | undefined;
  /** Losses by restores of the metadata store, over which the range was loaded; undefined: none. Every later record keeps them. */
  readonly losses?: RangeLosses | undefined;
}

/** Commits and checkpoints that a range lacks since a restore of the metadata store: their extents did not come back. */
export interface RangeLosses {
  /** Sequences of commits that no log has, the first and the last of each gap, in order. At most `lostGapsMax`: older ones are left out. */
  readonly commits: readonly (readonly [first: number, last: number])[];
  /** Number of checkpoints that were given up. */
  readonly checkpoints: number;
}

export const lostGapsMax = 100;

/** Returns the losses of both. */
export function joinedLosses(a: RangeLosses | undefined, b: RangeLosses | undefined): RangeLosses | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const commits = [...a.commits, ...b.commits].toSorted(([one], [other]) => one - other);
  return { commits: commits.slice(-lostGapsMax), checkpoints: a.checkpoints + b.checkpoints };
}

/** Returns the keys of the checkpoint that count in a partition with the keys of `own`. */
export function boundsOf({ bounds }: StoredCheckpoint, own: KeyBounds): KeyBounds {
  const checked = bounds && keyBounds(bounds);
  return checked ? intersect(checked, own) : own;
}

function keyBounds(bounds: { readonly low: string; readonly high: string }): KeyBounds | undefined {
  const low = fromHex(bounds.low);
  const high = fromHex(bounds.high);
  return low && high && { low, high };
}

/** Returns the checkpoint as it is handed over: to whoever gets it, no more of it counts than did in `own`. */
export function boundedTo(stored: StoredCheckpoint, own: KeyBounds): StoredCheckpoint {
  const { low, high } = boundsOf(stored, own);
  return { ...stored, bounds: { low: toHex(low), high: toHex(high) } };
}

/**
 * Returns the state that neighbours leave to the range they become: what each had, of each no more than its keys. Their logs end here, so their
 * sequences don't have to agree. `first` is the one whose metadata stream goes on.
 */
export function joinedState(first: PartitionState, own: KeyBounds, second: PartitionState, secondOwn: KeyBounds): PartitionState {
  const shift = first.nextCheckpointId;
  const rest = [...(first.rest ?? []), ...(second.rest ?? [])];
  // The settled extents of both depend on their streams: `settledOfBoth` of @stamp/range-partition.
  const { settledExtents: _, followers, ...facts } = withoutRest(first);
  const checkpointedSequence = Math.max(first.checkpointedSequence, second.checkpointedSequence);
  const cursors = joinedFollowers(followers?.cursors ?? {}, own, second.followers?.cursors ?? {}, secondOwn, checkpointedSequence);
  const ranges = followers?.for ?? second.followers?.for ?? [];
  return {
    ...facts,
    ...(Object.keys(cursors).length > 0 && { followers: { for: ranges, cursors } }),
    ...(rest.length > 0 && { rest }),
    checkpoints: [
      ...first.checkpoints.map((stored) => boundedTo(stored, own)),
      ...second.checkpoints.map((stored) => boundedTo({ ...stored, id: stored.id + shift }, secondOwn)),
    ],
    ...((first.needs ?? second.needs) && { needs: highestOf(first.needs, second.needs) }),
    ...((first.shippedFences ?? second.shippedFences) && { shippedFences: highestOf(first.shippedFences, second.shippedFences) }),
    ...((first.lineage ?? second.lineage) && { lineage: joinedLineage(first.lineage, second.lineage) }),
    ...((first.losses ?? second.losses) && { losses: joinedLosses(first.losses, second.losses) }),
    ...((first.goneSinceMs ?? second.goneSinceMs) && { goneSinceMs: { ...second.goneSinceMs, ...first.goneSinceMs } }),
    checkpointedSequence,
    lastTicket: Math.max(first.lastTicket, second.lastTicket),
    nextCheckpointId: shift + second.nextCheckpointId,
  };
}

type Named = Readonly<Record<string, number>> | undefined;

/** Returns the higher number for each name. */
function highestOf(first: Named, second: Named): Record<string, number> {
  const both: Record<string, number> = { ...first };
  for (const [name, number] of Object.entries(second ?? {})) both[name] = Math.max(both[name] ?? 0, number);
  return both;
}

/** Returns the state of the child that has the keys of `own`: of the rest only its own rows. */
export function withRestOf(state: PartitionState, own: KeyBounds): PartitionState {
  const rest = (state.rest ?? []).filter(({ key }) => holdsKey(own, key));
  return { ...withoutRest(state), ...(rest.length > 0 && { rest }) };
}

const withoutRest = ({ rest: _, ...state }: PartitionState): Omit<PartitionState, "rest"> => state;

const kind = 0x50;
/** Version 2 added `heirs` and `bounds`; version 1 is read as it was. */
const formatVersion = 2;
const formatVersionWithRest = 3;
const formatVersionWithSettled = 4;

export function encodeState(state: PartitionState, crc32c: Crc32c): Uint8Array<ArrayBuffer> {
  const { rest = [], settledExtents = [], ownerEpoch, checkpointedSequence, lastTicket } = state;
  const json = utf8(JSON.stringify({ ...withoutRest(state), settledExtents: settledExtents.length > 0 ? settledExtents : undefined }));
  if (rest.length === 0 && settledExtents.length === 0) return frameRecord(kind, formatVersion, json, crc32c);
  const version = settledExtents.length > 0 ? formatVersionWithSettled : formatVersionWithRest;
  const record =
    rest.length === 0
      ? undefined
      : encodeCommit({ ownerEpoch, firstSequence: checkpointedSequence + 1, lastTicket, transactions: [rest] }, crc32c);
  const writer = new ByteWriter(json.length + (record?.length ?? 0) + 16);
  writer.sized(json);
  if (record !== undefined) writer.sized(record);
  return frameRecord(kind, version, writer.written, crc32c);
}

/** Decodes a state. Keys and values of the rest are views: keeping one keeps the record. */
export function decodeState(bytes: Uint8Array, crc32c: Crc32c): Outcome<PartitionState> {
  const [, version] = bytes;
  const known = version !== undefined && version >= 1 && version <= formatVersionWithSettled ? version : formatVersionWithSettled;
  const payload = unframeRecord("partition-metadata", kind, known, bytes, crc32c);
  if (!payload.ok || known < formatVersionWithRest) return payload.ok ? decodeFacts(payload.value) : payload;
  try {
    const reader = new ByteReader(payload.value);
    const state = decodeFacts(reader.sized());
    if (!state.ok || (known === formatVersionWithSettled && reader.left === 0)) return state;
    const record = decodeCommit(reader.sized(), crc32c);
    return record.ok && reader.left === 0 ? ok({ ...state.value, rest: record.value.transactions.flat() }) : malformed();
  } catch (error) {
    if (error instanceof DecodeError) return malformed();
    throw error;
  }
}

function decodeFacts(json: Uint8Array): Outcome<PartitionState> {
  let state: PartitionState;
  try {
    state = JSON.parse(fromUtf8(json)) as PartitionState;
  } catch {
    return malformed();
  }
  const numbers = [
    state?.ownerEpoch,
    state?.recordNumber,
    state?.checkpointedSequence,
    state?.lastTicket,
    state?.logStartExtentId,
    state?.nextCheckpointId,
    ...Object.values(state?.goneSinceMs ?? {}),
    ...Object.values(state?.shippedFences ?? {}),
    ...(state?.lineage === undefined ? [] : [state.lineage?.log, state.lineage?.store]),
    ...(state?.losses === undefined ? [] : lossNumbers(state.losses)),
    ...(state?.settledExtents === undefined ? [] : Array.isArray(state.settledExtents) ? state.settledExtents : [undefined]),
    ...(state?.logStart === undefined ? [] : [state.logStart?.extentId, state.logStart?.offsetBytes]),
  ];
  if (typeof state?.rangeId !== "string" || !Array.isArray(state.checkpoints) || !numbers.every(Number.isSafeInteger)) return malformed();
  if (!areFollowers(state.followers)) return malformed();
  for (const [format, version] of Object.entries(state.needs ?? {})) {
    if (!Object.hasOwn(formatVersions, format)) return unknownFormat("the state of a partition", format);
    const name = format as FormatName;
    if (version > formatVersions[name]) return newerFormat("what the streams of a partition hold", { format: name, version });
  }
  for (const { bounds } of state.checkpoints) if (bounds !== undefined && keyBounds(bounds) === undefined) return malformed();
  return ok(state);
}

const lossNumbers = ({ checkpoints, commits }: RangeLosses): unknown[] =>
  Array.isArray(commits) && commits.every(Array.isArray) ? [checkpoints, ...commits.flat()] : [undefined];

const malformed = (): Outcome<never> => refused("dataLoss", "damaged", "a partition state that can't be read");
