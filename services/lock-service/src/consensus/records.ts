/**
 * Records of a replicated metadata store (docs/formats/consensus.md): the log, the hard state, the description of a snapshot, and lists of
 * rows. They lie in the store of each member, and travel between members.
 *
 * Invariant: bytes that are not what was written are refused, never read as something else. All numbers are big endian.
 */
import { type Checksum, concatBytes, frameRecord, fromUtf8, type Outcome, ok, refused, unframeRecord, utf8 } from "@stamp/base";
import type { KeyValueOperation } from "@stamp/ports";
import type { Entry, EntryBody, HardState, Members, SnapshotMeta } from "@stamp/raft";

const version = 1;
const kinds = { entry: 0x45, hardState: 0x48, snapshot: 0x4e, applied: 0x41 } as const;
const bodies = { empty: 0, data: 1, members: 2, readmit: 3 } as const;
const operations = { delete: 0, put: 1 } as const;

/** State of a member that its rows belong to. */
export interface StoredSnapshot {
  readonly snapshot: SnapshotMeta;
  /** Random name of the history that the rows belong to, 16 bytes. */
  readonly lineage: Uint8Array;
  /** Number in the keys of the rows that count. */
  readonly generation: number;
}

/** Last entry whose writes are among the rows. */
export interface AppliedEntry {
  readonly index: number;
  readonly term: number;
}

const damaged = (message: string): Outcome<never> => refused("dataLoss", "damaged", message);

function frame(kind: number, payload: Uint8Array, checksum: Checksum): Uint8Array {
  return frameRecord(kind, version, payload, checksum);
}

const unframe = (kind: number, bytes: Uint8Array, checksum: Checksum): Outcome<Uint8Array> =>
  unframeRecord("consensus", kind, version, bytes, checksum);

function numbers(...values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(8 * values.length);
  const view = new DataView(bytes.buffer);
  for (const [i, value] of values.entries()) view.setBigUint64(8 * i, BigInt(value));
  return bytes;
}

const numberAt = (bytes: Uint8Array, at: number): number =>
  Number(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getBigUint64(at));

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isNames = (value: unknown): value is string[] => Array.isArray(value) && value.every((name) => typeof name === "string");
const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && isNames((value as Members).voters) && isNames((value as Members).learners);

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(fromUtf8(bytes));
  } catch {
    return undefined;
  }
}

/** Returns `kind | content` of an entry's body. */
export function encodeBody(body: EntryBody): Uint8Array {
  const kind = new Uint8Array([bodies[body.kind]]);
  switch (body.kind) {
    case "empty":
      return kind;
    case "data":
      return concatBytes([kind, body.data]);
    case "members": {
      const { voters, learners } = body.members;
      return concatBytes([kind, utf8(JSON.stringify({ voters, learners }))]);
    }
    case "readmit":
      return concatBytes([kind, utf8(JSON.stringify({ member: body.member, session: body.session }))]);
  }
}

/** Decodes the body of an entry, with copies of its bytes: a log keeps them. */
export function decodeBody(bytes: Uint8Array): Outcome<EntryBody> {
  const content = bytes.slice(1);
  switch (bytes[0]) {
    case bodies.empty:
      return content.length === 0 ? ok({ kind: "empty" }) : damaged("an empty entry has no content");
    case bodies.data:
      return ok({ kind: "data", data: content });
    case bodies.members: {
      const members = parsed(content);
      return isMembers(members) ? ok({ kind: "members", members }) : damaged("an entry about members does not name them");
    }
    case bodies.readmit: {
      const { member, session } = (parsed(content) ?? {}) as { readonly member?: unknown; readonly session?: unknown };
      if (typeof member !== "string" || !isCount(session)) return damaged("an entry does not name the start that it readmits");
      return ok({ kind: "readmit", member, session });
    }
    default:
      return damaged(`this software knows no entry of kind ${bytes[0]}`);
  }
}

export const encodeEntry = ({ index, term, body }: Entry, checksum: Checksum): Uint8Array =>
  frame(kinds.entry, concatBytes([numbers(index, term), encodeBody(body)]), checksum);

export function decodeEntry(bytes: Uint8Array, checksum: Checksum): Outcome<Entry> {
  const payload = unframe(kinds.entry, bytes, checksum);
  if (!payload.ok) return payload;
  if (payload.value.length < 17) return damaged("an entry has at least 17 bytes");
  const body = decodeBody(payload.value.subarray(16));
  return body.ok ? ok({ index: numberAt(payload.value, 0), term: numberAt(payload.value, 8), body: body.value }) : body;
}

export const encodeHardState = ({ term, vote, commit }: HardState, checksum: Checksum): Uint8Array =>
  frame(kinds.hardState, utf8(JSON.stringify({ term, vote, commit })), checksum);

export function decodeHardState(bytes: Uint8Array, checksum: Checksum): Outcome<HardState> {
  const payload = unframe(kinds.hardState, bytes, checksum);
  if (!payload.ok) return payload;
  const { term, vote, commit } = (parsed(payload.value) ?? {}) as Partial<Record<keyof HardState, unknown>>;
  if (!isCount(term) || !isCount(commit) || (vote !== undefined && typeof vote !== "string")) return damaged("a hard state lacks a field");
  return ok({ term, vote, commit });
}

/** Encodes the description of a snapshot for the wire. */
export function encodeSnapshotMeta({ index, term, members, sessions }: SnapshotMeta): Uint8Array {
  const { voters, learners } = members;
  return utf8(JSON.stringify({ index, term, members: { voters, learners }, sessions }));
}

export function decodeSnapshotMeta(bytes: Uint8Array): Outcome<SnapshotMeta> {
  return snapshotOf(parsed(bytes));
}

function snapshotOf(value: unknown): Outcome<SnapshotMeta> {
  const { index, term, members, sessions } = (value ?? {}) as Partial<Record<keyof SnapshotMeta, unknown>>;
  const known = typeof sessions === "object" && sessions !== null && Object.values(sessions).every(isCount);
  if (!isCount(index) || !isCount(term) || !isMembers(members) || !known) return damaged("the description of a snapshot lacks a field");
  const { voters, learners } = members;
  return ok({ index, term, members: { voters, learners }, sessions: sessions as SnapshotMeta["sessions"] });
}

/** Length of the name of a history. */
export const lineageBytes = 16;

export const encodeSnapshot = ({ snapshot, generation, lineage }: StoredSnapshot, checksum: Checksum): Uint8Array =>
  frame(kinds.snapshot, concatBytes([numbers(generation), lineage, encodeSnapshotMeta(snapshot)]), checksum);

export function decodeSnapshot(bytes: Uint8Array, checksum: Checksum): Outcome<StoredSnapshot> {
  const payload = unframe(kinds.snapshot, bytes, checksum);
  if (!payload.ok) return payload;
  const head = 8 + lineageBytes;
  if (payload.value.length < head) return damaged(`the description of a snapshot has at least ${head} bytes`);
  const snapshot = decodeSnapshotMeta(payload.value.subarray(head));
  if (!snapshot.ok) return snapshot;
  return ok({ snapshot: snapshot.value, generation: numberAt(payload.value, 0), lineage: payload.value.slice(8, head) });
}

export const encodeApplied = ({ index, term }: AppliedEntry, checksum: Checksum): Uint8Array =>
  frame(kinds.applied, numbers(index, term), checksum);

export function decodeApplied(bytes: Uint8Array, checksum: Checksum): Outcome<AppliedEntry> {
  const payload = unframe(kinds.applied, bytes, checksum);
  if (!payload.ok) return payload;
  if (payload.value.length !== 16) return damaged("the place of the last applied entry has 16 bytes");
  return ok({ index: numberAt(payload.value, 0), term: numberAt(payload.value, 8) });
}

/** Returns a batch of the metadata store as the data of an entry, or rows of a snapshot. */
export function encodeOperations(list: readonly KeyValueOperation[]): Uint8Array {
  const size = (each: KeyValueOperation): number => 5 + each.key.length + (each.kind === "put" ? 4 + each.value.length : 0);
  const bytes = new Uint8Array(list.reduce((sum, each) => sum + size(each), 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  const add = (part: Uint8Array): void => {
    view.setUint32(at, part.length);
    bytes.set(part, at + 4);
    at += 4 + part.length;
  };
  for (const each of list) {
    bytes[at++] = operations[each.kind];
    add(each.key);
    if (each.kind === "put") add(each.value);
  }
  return bytes;
}

/** Decodes operations; keys and values are views of `bytes`. */
export function decodeOperations(bytes: Uint8Array): Outcome<KeyValueOperation[]> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const list: KeyValueOperation[] = [];
  let at = 0;
  const part = (): Uint8Array | undefined => {
    const length = at + 4 > bytes.length ? undefined : view.getUint32(at);
    if (length === undefined || at + 4 + length > bytes.length) return undefined;
    at += 4 + length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const kind = bytes[at++];
    const key = part();
    const value = kind === operations.put ? part() : undefined;
    if (key === undefined || (kind === operations.put) !== (value !== undefined) || (kind !== operations.put && kind !== operations.delete))
      return damaged("a list of operations can't be read");
    list.push(value === undefined ? { kind: "delete", key } : { kind: "put", key, value });
  }
  return ok(list);
}
