/**
 * Finds the rows of a blob that no state uses any more. It sees rows in key order, all rows of a blob at one moment:
 *
 *   content, block, users and page rows of a generation that no state of the blob and no staging row names;
 *   page rows of a layer that no state sees, because a newer one of the same chunk covers it for all of them;
 *   states (the head row, kept rows) whose time is over: deleted softly, or expired; uncommitted blocks that were given up; all rows of a
 *   file that was removed from its tree.
 *
 * The first two stay garbage whatever happens next: generations and layers are given once, in rising order, so their rows may simply be
 * deleted. The third is decided in the row's order (purgeBlob): until then somebody may undelete it, or change its expiry.
 */
import { compareBytes, emptyBytes } from "@stamp/base";
import { handlesKey } from "../handles/handle-row.ts";
import {
  afterPrefix,
  blockRow,
  contentRow,
  headKey,
  headRow,
  keptPrefix,
  keptRow,
  pageRow,
  stagingKey,
  stagingRow,
  usersRow,
} from "../object-keys.ts";
import { answer, done, getRow, type Plan, type RowEntry, type RowWrite, remove, successor, walkRows } from "../plan.ts";
import type { KeyComponent } from "../rows/key.ts";
import { fileNodeRow, nodeKey } from "../tree/tree-keys.ts";
import { decodeTreeRow } from "../tree/tree-row.ts";
import { guarded, hasExpired, isOver, type Moment, protectionOf } from "./protect/protection.ts";
import { dropStaging } from "./state/blob-state.ts";
import { ContentUsers } from "./state/content-users.ts";
import { decodeHead, type HeadState } from "./state/head-row.ts";
import { decodeStaging, isGivenUp } from "./state/staging-rows.ts";

/** Time after its end at which nobody's clock thinks that a state may still be restored, in milliseconds. */
export const purgeMarginMs = 3_600_000;
/** Bytes of rows that one commit purges. */
const purgedBytesMax = 1024 * 1024;

const beforeMargin = ({ rules, wallMs }: Moment): Moment => ({ rules, wallMs: wallMs - purgeMarginMs });

const purgeGivenUp = (value: Uint8Array, wallMs: number): boolean => isGivenUp(decodeStaging(value), wallMs - purgeMarginMs);

interface PageRow {
  readonly key: Uint8Array;
  readonly generation: number;
  readonly chunk: number;
  readonly layer: number;
}

/** Rows of blobs are shown to it in key order, all of a blob's first three kinds before it is asked about the others. */
export class BlobGarbage {
  readonly #now: Moment;
  #prefix: Uint8Array = emptyBytes;
  /** Layers that the blob's states see, by generation. */
  readonly #layers = new Map<number, Set<number>>();
  #staging: number | undefined;
  #purge = false;
  /** True if a row of the blob can't be read: which of its rows are garbage is not known. */
  #isUnread = false;
  #lastPage: PageRow | undefined;
  #rows: Uint8Array[] = [];
  #prefixes: Uint8Array[] = [];

  constructor(now: Moment) {
    this.#now = now;
  }

  /** Takes a row of the blob with this key prefix; `objectName`: third component of its key. Throws FailureError on damage. */
  see(prefix: Uint8Array, objectName: KeyComponent, { key, value }: RowEntry): void {
    if (compareBytes(prefix, this.#prefix) !== 0) this.#begin(Uint8Array.from(prefix));
    if (this.#isUnread) return;
    const [kind, generation, chunk, layer] = objectName;
    if (kind === headRow || kind === keptRow) this.#state(decodeHead(value));
    else if (kind === stagingRow) {
      this.#staging = decodeStaging(value).generation;
      if (purgeGivenUp(value, this.#now.wallMs)) this.#purge = true;
    } else if (kind === fileNodeRow) {
      if (decodeTreeRow(value).removed) this.#purge = true;
    } else if (kind === pageRow) this.#page({ key, generation: Number(generation), chunk: Number(chunk), layer: Number(layer) });
    else if (!this.#isNamed(Number(kind), Number(generation))) this.#rows.push(Uint8Array.from(key));
  }

  /** Finds nothing in the blob that was seen last: `see` threw, so what the row names is not known. */
  leave(): void {
    this.#isUnread = true;
    this.#purge = false;
  }

  /** Takes the findings since the last call, for blobs whose rows have all been shown. */
  take(): { readonly rows: readonly Uint8Array[]; readonly purge: readonly Uint8Array[] } {
    this.#begin(emptyBytes);
    const found = { rows: this.#rows, purge: this.#prefixes };
    this.#rows = [];
    this.#prefixes = [];
    return found;
  }

  #begin(prefix: Uint8Array): void {
    this.#endPages(undefined);
    if (this.#purge) this.#prefixes.push(this.#prefix);
    this.#prefix = prefix;
    this.#layers.clear();
    this.#staging = undefined;
    this.#purge = false;
    this.#isUnread = false;
  }

  #state(state: HeadState): void {
    const layers = this.#layers.get(state.generation) ?? new Set();
    this.#layers.set(state.generation, layers.add(state.pageLayer));
    if (isOver(state, beforeMargin(this.#now))) this.#purge = true;
  }

  #isNamed(kind: number, generation: number): boolean {
    if (kind === contentRow || kind === usersRow) return this.#layers.has(generation);
    return kind !== blockRow || generation === this.#staging;
  }

  #page(row: PageRow): void {
    this.#endPages(row);
    this.#lastPage = row;
  }

  /** Notes the last page row as garbage if nobody sees it, now that the next row is known. */
  #endPages(next: PageRow | undefined): void {
    const last = this.#lastPage;
    this.#lastPage = undefined;
    if (!last) return;
    const covered = next && next.generation === last.generation && next.chunk === last.chunk ? next.layer : Number.POSITIVE_INFINITY;
    for (const layer of this.#layers.get(last.generation) ?? []) if (layer >= last.layer && layer < covered) return;
    this.#rows.push(Uint8Array.from(last.key));
  }
}

/** Takes away the states of a blob whose time is over, as many as one commit takes. `prefix`: with which all its rows begin. */
export const purgeBlob = (prefix: Uint8Array, now: Moment): Plan =>
  guarded(prefix, now, { hold: false, policy: false }, purge(prefix, now));

function* purge(prefix: Uint8Array, { rules, wallMs }: Moment): Plan {
  const moment = beforeMargin({ rules, wallMs });
  const headRowValue = yield* getRow(headKey(prefix));
  const head = headRowValue && decodeHead(headRowValue);
  const node = yield* getRow(nodeKey(prefix, "file"));
  const isRemoved = node !== undefined && decodeTreeRow(node).removed === true;
  const headIsOver = head !== undefined && (isRemoved || isOver(head, moment));
  // An expiring blob takes its snapshots along, and waits for protected ones.
  const takesSnapshots = headIsOver && !isRemoved && hasExpired(head, moment.wallMs);
  const headGoes = headIsOver && !(takesSnapshots && (yield* hasProtectedSnapshot(prefix, moment)));
  const expired = headGoes && takesSnapshots;
  const users = new ContentUsers();
  const writes: RowWrite[] = [];
  let bytes = 0;
  let left = false;
  const low = keptPrefix(prefix);
  yield* walkRows(low, afterPrefix(low), (row) => {
    const state = decodeHead(row.value);
    const goes = isRemoved || isOver(state, moment) || (expired && isLiveSnapshot(state));
    if (!goes) return successor(row.key);
    if (bytes > purgedBytesMax) {
      left = true;
      return undefined;
    }
    users.drop(state);
    writes.push(remove(row.key));
    bytes += 2 * row.key.length + row.value.length;
    return successor(row.key);
  });
  if (headGoes && !left) {
    users.drop(head);
    writes.push(remove(headKey(prefix)));
  }
  const staging = yield* getRow(stagingKey(prefix));
  if (staging && (isRemoved || purgeGivenUp(staging, wallMs))) writes.push(...(yield* dropStaging(prefix, decodeStaging(staging))));
  // Last, so that what is left is found again.
  if (isRemoved && !left)
    writes.push(remove(nodeKey(prefix, "file")), ...((yield* getRow(handlesKey(prefix))) ? [remove(handlesKey(prefix))] : []));
  return answer(done, [...writes, ...(yield* users.writes(prefix))]);
}

const isLiveSnapshot = ({ role, deleted }: HeadState): boolean => role === "snapshot" && deleted === undefined;

function* hasProtectedSnapshot(prefix: Uint8Array, moment: Moment): Plan<boolean> {
  const low = keptPrefix(prefix);
  let found = false;
  yield* walkRows(low, afterPrefix(low), ({ key, value }) => {
    const state = decodeHead(value);
    found = isLiveSnapshot(state) && protectionOf(state, moment) !== undefined;
    return found ? undefined : successor(key);
  });
  return found;
}
