/**
 * Listing containers and blobs, in key order, a page at a time. A page ends when it is full, when nothing follows, or with the range that
 * is asked; the reader then asks the next range. A listing walks from row to row and says each time where to look next, so content and
 * blocks are never read, nor snapshots and versions that were not asked for. Of one name what is kept comes before the blob itself,
 * oldest first.
 */
import { compareBytes, emptyBytes } from "@stamp/base";
import { pageSize, spanOf } from "../lists.ts";
import {
  afterPrefix,
  blobsPrefix,
  containerRowsPrefix,
  containersEnd,
  deletedContainerKey,
  headRow,
  keptKey,
  keptRow,
  stagingKey,
  stagingRow,
} from "../object-keys.ts";
import type { FindBlobs, ListBlobs, ListContainers, OperationValue } from "../operation.ts";
import { blobsRoute, containersRoute } from "../operations/routes.ts";
import { answer, intact, type Plan, type PlanContext, type RowEntry, refuse, successor, walkRows } from "../plan.ts";
import type { Container, ListedBlob } from "../results.ts";
import { decodeKey } from "../rows/key.ts";
import { holds, parseWhere, type TagFilter, tagsOfWhere } from "../tags/where.ts";
import { BlobPacker } from "./packed-blobs.ts";
import { isOver, protectionOf } from "./protect/protection.ts";
import { isPurged } from "./protect/retention.ts";
import { BlobKeys } from "./state/blob-keys.ts";
import { type ContainerState, containerOf, decodeContainer } from "./state/container-row.ts";
import { blobOf, decodeHead, type HeadFacts, type HeadState, notListed, type ShownOfBlob } from "./state/head-row.ts";
import { decodeStaging, isGivenUp, type StagingState, uncommittedBlobOf } from "./state/staging-rows.ts";

/** Bound of the blobs that a search reads in one go, found or not. */
export const searchedMax = 20_000;

/** Lists containers. For one name the live container comes first, then deleted ones, oldest first. */
export function* listContainers(value: ListContainers, context: PlanContext): Plan {
  const start = containersRoute(context.rules, value).key;
  const span = spanOf(context, start, containersEnd(value.account, value.prefix));
  const containers: Container[] = [];
  const size = pageSize(value.maxResults);
  let nextMarker = "";
  let nextMarkerStamp = 0;
  const { markerStamp = 0 } = value;
  const visit = (row: RowEntry): Uint8Array | undefined => {
    const components = intact(decodeKey(row.key));
    const name = String(components[1]?.[1]);
    const incarnation = Number(components[2]?.[0] ?? 0);
    if (name === value.marker && incarnation < markerStamp) return deletedContainerKey(value.account, name, markerStamp);
    const state = decodeContainer(row.value);
    if (isListedContainer(value, context, state)) {
      if (containers.length >= size) {
        nextMarker = name;
        nextMarkerStamp = incarnation;
        return undefined;
      }
      containers.push(containerOf(context, name, state));
    }
    return value.includeDeleted ? successor(row.key) : afterPrefix(containerRowsPrefix(value.account, name));
  };
  if (compareBytes(span.low, span.high) < 0) yield* walkRows(span.low, span.high, visit);
  const rangeEnded = nextMarker === "" && span.cut;
  return answer({ case: "containers", value: { containers, nextMarker, nextMarkerStamp, rangeEnded } });
}

const isListedContainer = (value: ListContainers, context: PlanContext, { deleted }: ContainerState): boolean =>
  deleted === undefined || (value.includeDeleted === true && !isPurged(deleted, context.wallMs));

export function* listBlobs(value: OperationValue<"listBlobs">, context: PlanContext): Plan {
  const start = blobsRoute(context.rules, value).key;
  const span = spanOf(context, start, afterPrefix(blobsPrefix(context.rules, value, value.prefix)));
  if (value.onlyProtected) return yield* listProtected(value, context, span);
  const shown: ShownOfBlob = { metadata: value.includeMetadata === true, tags: value.includeTags === true };
  if (value.packed !== true) {
    const entries = new Entries(context, shown);
    return answer({ case: "blobs", value: { entries: entries.all, ...(yield* pageOf(new Page(value, context, entries), span)) } });
  }
  const packer = new BlobPacker(context, shown);
  const page = yield* pageOf(new Page(value, context, packer), span);
  return answer({ case: "blobs", value: { entries: [], packed: packer.finish(), ...page } });
}

function* pageOf<State extends HeadFacts>(page: Page<State>, span: ReturnType<typeof spanOf>): Plan<PageEnd> {
  if (compareBytes(span.low, span.high) < 0) {
    yield* walkRows(span.low, span.high, (row) => page.visit(row));
    page.end();
  }
  const { nextMarker, nextMarkerStamp } = page;
  return { nextMarker, nextMarkerStamp, rangeEnded: nextMarker === "" && span.cut };
}

interface PageEnd {
  readonly nextMarker: string;
  readonly nextMarkerStamp: number;
  readonly rangeEnded: boolean;
}

/** Takes the entries of a page, in order. */
interface Sink<State extends HeadFacts> {
  decode(row: Uint8Array): State;
  prefix(name: string): void;
  /** Takes a listed state; `stamp`: stamp of a kept row, 0 for another one. `row`: row that `state` was decoded from. */
  state(name: string, state: State, row: Uint8Array, stamp: number): void;
  uncommitted(name: string, staging: StagingState): void;
  versionsOnly(name: string): void;
}

class Entries implements Sink<HeadState> {
  readonly all: ListedBlob[] = [];
  readonly decode: (row: Uint8Array) => HeadState = decodeHead;
  readonly #context: PlanContext;
  readonly #shown: ShownOfBlob;

  constructor(context: PlanContext, shown: ShownOfBlob) {
    this.#context = context;
    this.#shown = shown;
  }

  prefix(name: string): void {
    this.all.push({ case: "prefix", value: name });
  }

  state(name: string, state: HeadState, _row: Uint8Array, stamp: number): void {
    this.all.push({ case: "blob", value: blobOf(this.#context, name, state, stamp, this.#shown) });
  }

  uncommitted(name: string, staging: StagingState): void {
    this.all.push({ case: "blob", value: uncommittedBlobOf(name, staging) });
  }

  versionsOnly(name: string): void {
    this.all.push({ case: "blob", value: { ...notListed, name, versionsOnly: true } });
  }
}

/**
 * Finds the first state of a blob that a policy or a hold protects, or where to look on when many names had none. It looks at all states of a
 * name in one moment: a write moves a state from row to row inside a name, so that a page that ended there could miss it.
 */
function* listProtected(value: ListBlobs, context: PlanContext, span: ReturnType<typeof spanOf>): Plan {
  const entries: ListedBlob[] = [];
  let nextMarker = "";
  let name: string | undefined;
  let searched = 0;
  const keys = new BlobKeys(context.rules, value);
  const visit = (row: RowEntry): Uint8Array | undefined => {
    keys.read(row.key);
    const { name: found, kind, stamp } = keys;
    if (found !== name && searched >= searchedMax) {
      nextMarker = found;
      return undefined;
    }
    name = found;
    searched++;
    if (kind !== headRow && kind !== keptRow) return keys.behindBlob();
    const state = decodeHead(row.value);
    if (protectionOf(state, context) === undefined) return successor(row.key);
    entries.push({ case: "blob", value: blobOf(context, found, state, stamp) });
    return undefined;
  };
  if (compareBytes(span.low, span.high) < 0) yield* walkRows(span.low, span.high, visit);
  const rangeEnded = entries.length === 0 && nextMarker === "" && span.cut;
  return answer({ case: "blobs", value: { entries, nextMarker, nextMarkerStamp: 0, rangeEnded } });
}

/** Facts about one name, collected from its rows. */
interface Name<State> {
  readonly name: string;
  /** State of the blob's head row, which is listed last. */
  head: State | undefined;
  headRow: Uint8Array;
  hasVersions: boolean;
}

/** Timestamp behind every one that is ever given: it stands for the blob itself. */
const baseStamp = Number.MAX_SAFE_INTEGER;

class Page<State extends HeadFacts> {
  nextMarker = "";
  nextMarkerStamp = 0;
  readonly #value: ListBlobs;
  readonly #context: PlanContext;
  readonly #size: number;
  readonly #walksKept: boolean;
  readonly #keys: BlobKeys;
  readonly #sink: Sink<State>;
  #name: Name<State> | undefined;
  #count = 0;
  /** Common prefix that was added last; undefined if a blob was. */
  #lastPrefix: string | undefined;

  constructor(value: ListBlobs, context: PlanContext, sink: Sink<State>) {
    this.#value = value;
    this.#context = context;
    this.#size = pageSize(value.maxResults);
    this.#keys = new BlobKeys(context.rules, value);
    this.#sink = sink;
    const { includeSnapshots, includeVersions, includeDeleted, includeDeletedWithVersions, onlyDeleted } = value;
    const included = [includeSnapshots, includeVersions, includeDeleted, includeDeletedWithVersions, onlyDeleted];
    this.#walksKept = included.includes(true);
  }

  /** Returns where to look next, or undefined when the page is full. */
  visit(row: RowEntry): Uint8Array | undefined {
    this.#keys.read(row.key);
    const { name, kind, stamp } = this.#keys;
    if (this.#name?.name !== name) {
      if (!this.#finish()) return undefined;
      this.#name = { name, head: undefined, headRow: emptyBytes, hasVersions: false };
    }
    const current = this.#name;
    if (kind === headRow) {
      current.head = this.#sink.decode(row.value);
      current.headRow = row.value;
      const folded = this.#commonPrefix(name);
      // Nothing else of the name is shown, or nothing else makes a difference to the prefix: what lies behind is not read.
      if (this.#showsHead(current.head) && (folded !== undefined || !this.#walksKept)) {
        if (!this.#finish()) return undefined;
        return folded === undefined ? this.#keys.behindBlob() : afterPrefix(blobsPrefix(this.#context.rules, this.#value, folded));
      }
    }
    if (kind === keptRow && this.#walksKept) {
      if (!this.#kept(current, stamp, row.value)) return undefined;
    } else if (kind === stagingRow && this.#value.includeUncommitted && current.head === undefined) {
      const staging = decodeStaging(row.value);
      const shown = !isGivenUp(staging, this.#context.wallMs);
      if (shown && !this.#add(current, baseStamp, () => this.#sink.uncommitted(name, staging))) return undefined;
    }
    return this.#next(current, kind, row.key);
  }

  /** Returns the key of the next row that matters for this name behind one of this kind, or of the next name. */
  #next(current: Name<State>, kind: number, key: Uint8Array): Uint8Array {
    const folded = this.#commonPrefix(current.name);
    if (folded !== undefined && folded === this.#lastPrefix) return afterPrefix(blobsPrefix(this.#context.rules, this.#value, folded));
    if (kind === headRow && this.#walksKept) return keptKey(this.#keys.blobPrefix(), this.#resumeStamp(current));
    if (kind === keptRow && this.#walksKept) return successor(key);
    if (kind < stagingRow && this.#value.includeUncommitted && current.head === undefined) return stagingKey(this.#keys.blobPrefix());
    return this.#keys.behindBlob();
  }

  /** Returns the stamp behind which the first name of the page goes on: its earlier states may have been on the page before. */
  #resumeStamp(current: Name<State>): number {
    return current.name === this.#value.marker ? (this.#value.markerStamp ?? 0) : 0;
  }

  #kept(current: Name<State>, stamp: number, row: Uint8Array): boolean {
    const state = this.#sink.decode(row);
    if (stamp < this.#resumeStamp(current) || isOver(state, this.#context)) return true;
    if (state.role === "version" && state.deleted === undefined) current.hasVersions = true;
    return !this.#isListed(state) || this.#add(current, stamp, () => this.#sink.state(current.name, state, row, stamp));
  }

  #isListed({ role, deleted }: HeadFacts): boolean {
    const { includeSnapshots = false, includeVersions = false, includeDeleted = false, onlyDeleted = false } = this.#value;
    if (deleted !== undefined) return (includeDeleted || onlyDeleted) && (role !== "version" || includeVersions || onlyDeleted);
    if (onlyDeleted) return false;
    return role === "snapshot" ? includeSnapshots : role === "version" && includeVersions;
  }

  /** Lists the blob itself, which comes behind its snapshots and versions. */
  #finish(): boolean {
    const current = this.#name;
    this.#name = undefined;
    if (!current) return true;
    const { head, headRow, name } = current;
    if (head && this.#isThere(head))
      return !this.#showsHead(head) || this.#add(current, baseStamp, () => this.#sink.state(name, head, headRow, 0));
    if (!current.hasVersions || !this.#value.includeDeletedWithVersions || this.#value.includeVersions) return true;
    return this.#add(current, baseStamp, () => this.#sink.versionsOnly(name));
  }

  #isThere(head: HeadFacts): boolean {
    return !isOver(head, this.#context);
  }

  #showsHead(head: HeadFacts): boolean {
    const { includeDeleted, onlyDeleted } = this.#value;
    if (!this.#isThere(head)) return false;
    return head.deleted === undefined ? !onlyDeleted : includeDeleted === true || onlyDeleted === true;
  }

  /** Ends the list: no row follows that would finish the last name. */
  end(): void {
    if (this.nextMarker === "") this.#finish();
  }

  /** Adds a state with `addBlob`, unless a common prefix stands for it; false: there was no room. */
  #add(current: Name<State>, stamp: number, addBlob: () => void): boolean {
    const folded = this.#commonPrefix(current.name);
    if (folded !== undefined && folded === this.#lastPrefix) return true;
    if (this.#count >= this.#size) {
      this.nextMarker = folded ?? current.name;
      this.nextMarkerStamp = folded === undefined && this.#walksKept ? stamp : 0;
      this.#name = undefined;
      return false;
    }
    this.#count++;
    this.#lastPrefix = folded;
    if (folded === undefined) addBlob();
    else this.#sink.prefix(folded);
    return true;
  }

  #commonPrefix(name: string): string | undefined {
    const { delimiter, prefix } = this.#value;
    if (delimiter === "") return undefined;
    const at = name.indexOf(delimiter, prefix.length);
    return at < 0 ? undefined : name.slice(0, at + delimiter.length);
  }
}

/** Returns the blobs whose tags fulfil an expression, with the tags that it speaks of. A page may hold fewer than fit, and have a marker. */
export function* findBlobs(value: FindBlobs, context: PlanContext): Plan {
  const parsed = parseWhere(value.where, "search");
  if (!parsed.ok) return refuse("badRequest", parsed.reason);
  const start = blobsRoute(context.rules, value).key;
  const span = spanOf(context, start, afterPrefix(blobsPrefix(context.rules, value, "")));
  const search = new Search(value, context, parsed.where);
  if (compareBytes(span.low, span.high) < 0) yield* walkRows(span.low, span.high, (row) => search.visit(row));
  const { entries, nextMarker } = search;
  return answer({ case: "blobs", value: { entries, nextMarker, nextMarkerStamp: 0, rangeEnded: nextMarker === "" && span.cut } });
}

const nameOnly: ShownOfBlob = { metadata: false, tags: false };

class Search {
  readonly entries: ListedBlob[] = [];
  nextMarker = "";
  readonly #value: FindBlobs;
  readonly #context: PlanContext;
  readonly #where: TagFilter;
  readonly #keys: BlobKeys;
  #searched = 0;

  constructor(value: FindBlobs, context: PlanContext, where: TagFilter) {
    this.#value = value;
    this.#context = context;
    this.#where = where;
    this.#keys = new BlobKeys(context.rules, value);
  }

  visit(row: RowEntry): Uint8Array | undefined {
    this.#keys.read(row.key);
    const { name, kind } = this.#keys;
    if (this.entries.length >= pageSize(this.#value.maxResults) || this.#searched >= searchedMax) {
      this.nextMarker = name;
      return undefined;
    }
    this.#searched++;
    if (kind === headRow) this.#look(name, decodeHead(row.value));
    return this.#keys.behindBlob();
  }

  #look(name: string, head: HeadState): void {
    const hidden = head.deleted !== undefined || isOver(head, this.#context);
    if (hidden || !holds(this.#where, head.tags)) return;
    const blob = { ...blobOf(this.#context, name, head, 0, nameOnly), tags: tagsOfWhere(this.#where, head.tags) };
    this.entries.push({ case: "blob", value: blob });
  }
}
