/**
 * Reads what a stopped member of the replicated metadata store still holds, as a snapshot that a restore can begin from.
 *
 * Invariants:
 *   - Its log counts to the end. A majority may have acknowledged an entry that this member has, and does not know to be committed.
 *   - Nothing that counts in its store changes.
 */
import { compareBytes, FailureError, type Outcome, ok, toHex, unwrap } from "@stamp/base";
import type { OpenedSnapshot } from "@stamp/metadata-store";
import type { KeyRange, KeyValue, World } from "@stamp/ports";
import type { Entry } from "@stamp/raft";
import { openToRead } from "../consensus/member-folder.ts";
import { decodeOperations } from "../consensus/records.ts";
import { LockStore } from "../store/store.ts";

type Rows = Pick<KeyValue, "get" | "range">;

interface Changed {
  readonly key: Uint8Array;
  /** Value of the row; undefined: it was deleted. */
  readonly value: Uint8Array | undefined;
}

export interface Survivor {
  /** Everything, with the end of the log. */
  readonly snapshot: OpenedSnapshot;
  /** Number of the last transaction that this member knew to be committed. */
  readonly committedVersion: number;
  /** Last entry of its log: of two members of one lineage, the one with the higher term, then index, has more. */
  readonly last: Pick<Entry, "term" | "index">;
  close(): Promise<void>;
}

/**
 * Opens the member's store in this folder. `takenAtMs`: when it was written last. Refused with `notReady` if it holds nothing, with `damaged` if it
 * can't be read.
 */
export async function openSurvivor(world: World, takenAtMs: number): Promise<Outcome<Survivor>> {
  const opened = await openToRead(world);
  if (!opened.ok) return opened;
  const { store: member, stored } = opened.value;
  const { entries } = stored;
  const tail = entries.filter(({ index }) => index > member.applied.index);
  const { term, index } = entries.at(-1) ?? member.applied;
  try {
    const committed = unwrap(await openRows(world, member.rows, member.lineage));
    const all = unwrap(await openRows(world, withTail(member.rows, tail), member.lineage));
    const committedVersion = unwrap(await committed.lastVersion());
    const stampId = unwrap(await all.stampId()) ?? "";
    const version = unwrap(await all.lastVersion());
    const snapshot = { stampId, version, takenAtMs, lineage: all.lineage, entries: () => all.everything() };
    return ok({ snapshot, committedVersion, last: { term, index }, close: () => member.close() });
  } catch (error) {
    await member.close();
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

function openRows(world: World, rows: Rows, lineage: Uint8Array): Promise<Outcome<LockStore>> {
  const kv: KeyValue = { ...rows, batch: () => Promise.reject(new Error("the store was opened to read")), close: async () => {} };
  return LockStore.openReplicated(world, kv, lineage, { readOnly: true });
}

/** Returns the rows after the writes of the entries behind them. */
export function withTail(rows: Rows, tail: readonly Entry[]): Rows {
  const changed = new Map<string, Changed>();
  for (const { body } of tail) {
    if (body.kind !== "data") continue;
    for (const row of unwrap(decodeOperations(body.data)))
      changed.set(toHex(row.key), { key: row.key, value: row.kind === "put" ? row.value : undefined });
  }
  const sorted = [...changed.values()].sort((one, other) => compareBytes(one.key, other.key));
  return {
    get: async (key) => {
      const found = changed.get(toHex(key));
      return found === undefined ? rows.get(key) : found.value;
    },
    range: (range) => merged(rows, sorted, range),
  };
}

async function* merged(
  rows: Rows,
  sorted: readonly Changed[],
  { gte, lt, limit = Number.POSITIVE_INFINITY }: KeyRange,
): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
  let left = limit;
  const changed = sorted.filter(
    ({ key }) => (gte === undefined || compareBytes(key, gte) >= 0) && (lt === undefined || compareBytes(key, lt) < 0),
  );
  for await (const [key, value] of inOrder(rows.range({ ...(gte && { gte }), ...(lt && { lt }) }), changed)) {
    if (value === undefined) continue;
    if (left-- <= 0) return;
    yield [key, value];
  }
}

/** Yields each key once, of both in key order; a change comes in the place of its row. */
async function* inOrder(
  rows: AsyncIterable<readonly [Uint8Array, Uint8Array]>,
  changed: readonly Changed[],
): AsyncIterable<readonly [Uint8Array, Uint8Array | undefined]> {
  let at = 0;
  for await (const row of rows) {
    let isChanged = false;
    for (; at < changed.length; at++) {
      const { key, value } = changed[at] as Changed;
      const order = compareBytes(key, row[0]);
      if (order > 0) break;
      isChanged = order === 0;
      yield [key, value];
    }
    if (!isChanged) yield row;
  }
  for (const { key, value } of changed.slice(at)) yield [key, value];
}
