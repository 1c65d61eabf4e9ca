/**
 * A key-value store that is proven complete each time it is opened, or refused. It stands between a role that keeps the only copy of
 * something and LevelDB, which opens a damaged log without the records that it could not read.
 *
 * Invariants (store-proof.ts has the formats):
 *   - Every batch carries the proof of the content that it leaves.
 *   - A synced batch is acknowledged after the mark outside the store names it.
 *   - Opening reads every entry; content that is not the proof's, or a store behind its mark, is refused and nothing is written to it.
 */
import { equalBytes, FailureError, type Outcome, ok, type Rules, refused, toHex, utf8 } from "@stamp/base";
import { DiskError, type DiskFile } from "../disk.ts";
import type { World } from "../world.ts";
import type { BatchMax, KeyRange, KeyValue, KeyValueOperation } from "./key-value.ts";
import {
  addedToProof,
  decodeMarkFile,
  decodeProof,
  emptySum,
  encodeMark,
  encodeMarkFile,
  encodeProof,
  entryHash,
  markOffset,
  proofKey,
  removedFromProof,
  type StoreProof,
  type Sum,
  sameContent,
} from "./store-proof.ts";

export type CompleteStoreWorld = Pick<World, "keyValue" | "disk" | "digest" | "random" | "rules" | "logger">;

export interface OpenCompleteOptions {
  /** True if nothing is written: neither a mark nor the first proof of a store of an earlier version. */
  readonly readOnly?: boolean;
  /**
   * Looks through a store of an earlier version, which has no proof yet, and gives what is written along with its first proof. Refused: the
   * store is not taken over. Absent: such a store is refused.
   */
  readonly adopt?: (store: KeyValue) => Promise<Outcome<readonly KeyValueOperation[]>>;
  /** The store itself, instead of the one of that name on this disk. */
  readonly store?: KeyValue;
  /**
   * Other processes write to the store too, one at a time. Then this process's mark may be missing, behind, or of a store that was restored
   * since; a store of the mark's lineage that is behind the mark is refused all the same.
   */
  readonly shared?: boolean;
  /**
   * Other processes hold the store too, and prove its end to one another. No mark is written, and no entry is read: its owner has done that with
   * `whyIncomplete`.
   */
  readonly replicated?: boolean;
  /** Called for each entry while all are read. A refusal of one refuses the store. */
  readonly look?: (key: Uint8Array, value: Uint8Array) => Outcome<unknown>;
  /** Lineage that an empty store gets: random bytes that its copies carry, too. Undefined: new ones are drawn. */
  readonly lineage?: Uint8Array | undefined;
  /** True if the store was moved away on purpose: what its mark says counts no more. Only for an empty store. */
  readonly discardMark?: boolean;
}

/** Returns the file of the mark, beside the store on the same disk. */
export const markPath = (name: string): string => `${name}-mark`;

/** Bound of the bytes of the proof with its key and the store's own addition. */
const proofBytesMax = 256;
const neverWritten = utf8("proof/none");

/**
 * Refused with `damaged` when the store is not what was acknowledged last, or can't be read. Throws FailureError `conflict` when it is in use,
 * and DiskError when nothing can be written beside it: that is no damage, and the process has to start anew.
 */
export async function openComplete(
  world: CompleteStoreWorld,
  name: string,
  options: OpenCompleteOptions = {},
): Promise<Outcome<CompleteStore>> {
  const opened = options.store === undefined ? await world.keyValue.open(name) : ({ kind: "opened", store: options.store } as const);
  if (opened.kind === "corrupt") return damaged(`LevelDB can't read it: ${opened.message}`);
  const { store } = opened;
  try {
    const complete =
      options.replicated === true ? await replicated(world, name, store, options) : await proven(world, name, store, options);
    if (!complete.ok) await store.close();
    return complete;
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function replicated(
  world: CompleteStoreWorld,
  name: string,
  store: KeyValue,
  options: OpenCompleteOptions,
): Promise<Outcome<CompleteStore>> {
  const stored = await store.get(proofKey);
  const lineage = options.lineage ?? world.random.bytes(16);
  const proof = stored === undefined ? ok({ lineage, sequence: 0, count: 0, sum: emptySum }) : decodeProof(world.digest, stored);
  if (!proof.ok) return damaged(`the proof of its content can't be read: ${proof.failure.message}`);
  return ok(new CompleteStore(world, name, store, proof.value, false));
}

/** Reads a whole store. Returns why its entries are not those of the proof among them; undefined: they are. */
export async function whyIncomplete(world: Pick<World, "digest" | "rules">, store: Pick<KeyValue, "range">): Promise<string | undefined> {
  const found = await scan(world, store);
  if (found.proof === undefined) return found.count === 0 ? undefined : "it holds something, and no proof of its content";
  const proof = decodeProof(world.digest, found.proof);
  if (!proof.ok) return `the proof of its content can't be read: ${proof.failure.message}`;
  return whyOtherContent(found, proof.value, world.rules);
}

/** Reads all entries of the store, and its mark. */
async function readAll(
  world: CompleteStoreWorld,
  name: string,
  store: KeyValue,
  options: OpenCompleteOptions,
): Promise<Outcome<{ readonly found: Found; readonly content: Uint8Array | undefined }>> {
  try {
    const found = await scan(world, store, options.look);
    const discarded = options.discardMark === true && found.count === 0;
    return ok({ found, content: discarded ? undefined : await world.disk.readWhole(markPath(name)) });
  } catch (error) {
    if (error instanceof DiskError) return damaged(`it can't be read: ${error.message}`);
    if (error instanceof LookRefused) return error.outcome;
    throw error;
  }
}

/** Names the store's last batch in the mark anew. A full disk does no harm if the mark names that batch already. */
async function markAnew({ digest, disk, logger }: CompleteStoreWorld, name: string, proof: StoreProof, held: StoreProof | undefined) {
  try {
    await disk.writeAtomically(markPath(name), encodeMarkFile(digest, proof));
  } catch (error) {
    if (!(error instanceof DiskError && error.kind === "full" && held?.sequence === proof.sequence)) throw error;
    logger.warn("the disk is full: the mark of a store stays as it is", { store: name, batch: proof.sequence });
  }
}

async function proven(
  world: CompleteStoreWorld,
  name: string,
  store: KeyValue,
  options: OpenCompleteOptions,
): Promise<Outcome<CompleteStore>> {
  const { digest, disk, random, rules } = world;
  const read = await readAll(world, name, store, options);
  if (!read.ok) return read;
  const { found, content } = read.value;
  const mark = content === undefined ? undefined : decodeMarkFile(digest, content);
  if (mark?.ok === false) return damaged(`its mark, the file ${markPath(name)}, is damaged: ${mark.failure.message}`);
  if (found.proof !== undefined) {
    const proof = decodeProof(digest, found.proof);
    if (!proof.ok) return damaged(`the proof of its content can't be read: ${proof.failure.message}`);
    const wrong = judgeStore(found, proof.value, options.shared === true ? sharedMark(proof.value, mark?.value) : mark?.value, rules);
    if (wrong !== undefined) return damaged(wrong);
    if (options.readOnly !== true) await markAnew(world, name, proof.value, mark?.value);
    return ok(new CompleteStore(world, name, store, proof.value));
  }
  const before = mark?.value;
  if (rules.on("storeNotBehind") && before !== undefined && before.sequence > 0) {
    const what = found.count === 0 ? "everything that was written to it" : "the proof of its content";
    return damaged(`it has lost ${what}: batch ${before.sequence} was acknowledged`);
  }
  const first: StoreProof = before ?? { lineage: options.lineage ?? random.bytes(16), sequence: 0, count: 0, sum: emptySum };
  const fresh = new CompleteStore(world, name, store, { ...first, count: found.count, sum: found.sum });
  if (found.count > 0 && options.adopt === undefined) return damaged("it holds something, and no proof of its content");
  if (options.readOnly === true) return ok(fresh);
  await disk.writeAtomically(markPath(name), encodeMarkFile(digest, { ...first, sequence: 0, count: 0, sum: emptySum }));
  if (found.count === 0 || options.adopt === undefined) return ok(fresh);
  const along = await options.adopt(store);
  if (!along.ok) return along;
  await fresh.batch(along.value, { sync: true });
  world.logger.info("a store of an earlier version has the proof of its content now", { store: name, keys: found.count });
  return ok(fresh);
}

interface Found {
  readonly count: number;
  readonly sum: Sum;
  readonly proof: Uint8Array | undefined;
}

/** Returns the mark that counts: this process's own if it is of the same store; else no batch was acknowledged here. */
const sharedMark = (proof: StoreProof, mark: StoreProof | undefined): StoreProof =>
  mark !== undefined && equalBytes(mark.lineage, proof.lineage) ? mark : proof;

class LookRefused extends Error {
  readonly outcome: Outcome<never>;
  constructor(outcome: Outcome<never>) {
    super("an entry was refused");
    this.outcome = outcome;
  }
}

async function scan({ digest }: Pick<World, "digest">, store: Pick<KeyValue, "range">, look?: OpenCompleteOptions["look"]): Promise<Found> {
  let count = 0;
  let sum: Sum = emptySum;
  let proof: Uint8Array | undefined;
  for await (const [key, value] of store.range({})) {
    if (equalBytes(key, proofKey)) proof = value;
    else {
      count += 1;
      sum = addedToProof(sum, entryHash(digest, key, value));
      const seen = look?.(key, value);
      if (seen?.ok === false) throw new LookRefused(seen);
    }
  }
  return { count, sum, proof };
}

/** Returns why a store with a proof is refused; undefined: it is complete. */
export function judgeStore(
  found: Pick<StoreProof, "count" | "sum">,
  proof: StoreProof,
  mark: StoreProof | undefined,
  rules: Rules,
): string | undefined {
  const other = whyOtherContent(found, proof, rules);
  if (other !== undefined) return other;
  if (!rules.on("storeNotBehind")) return undefined;
  if (mark === undefined) return "its mark, the file that names the last acknowledged batch, is gone";
  if (!equalBytes(mark.lineage, proof.lineage)) return "its mark is of another store: one of both was put in the place of another";
  if (proof.sequence < mark.sequence) {
    return `its last batch is ${proof.sequence}, but ${mark.sequence} was acknowledged: it has lost its end`;
  }
  if (proof.sequence === mark.sequence && !sameContent(proof, mark))
    return `its batch ${proof.sequence} is not the one that was acknowledged`;
  return undefined;
}

function whyOtherContent(found: Pick<StoreProof, "count" | "sum">, proof: StoreProof, rules: Rules): string | undefined {
  if (!rules.on("storeComplete") || sameContent(found, proof)) return undefined;
  return `it holds ${found.count} keys that are not the ${proof.count} keys of its last batch, ${proof.sequence}: something in it was lost or changed`;
}

export class CompleteStore implements KeyValue {
  readonly #world: CompleteStoreWorld;
  readonly #name: string;
  readonly #store: KeyValue;
  readonly #lineage: Uint8Array;
  /** Proof of the store's content; undefined after a batch that failed: that one may be there or not. */
  #proof: StoreProof | undefined;
  #mark: DiskFile | undefined;
  #last: Promise<void> = Promise.resolve();
  /** True if a mark outside of the store names its last batch. */
  readonly #marked: boolean;

  constructor(world: CompleteStoreWorld, name: string, store: KeyValue, proof: StoreProof, marked = true) {
    this.#marked = marked;
    this.#world = world;
    this.#name = name;
    this.#store = store;
    this.#lineage = proof.lineage;
    this.#proof = proof;
  }

  /** Hexadecimal; another one after a restore. */
  get lineage(): string {
    return toHex(this.#lineage);
  }

  /** Number of the last batch that was written here; undefined after one that failed. */
  get sequence(): number | undefined {
    return this.#proof?.sequence;
  }

  /** Number of keys, without that of the proof; undefined after a batch that failed. */
  get count(): number | undefined {
    return this.#proof?.count;
  }

  /** Besides the proof, which each batch carries. */
  get batchMax(): BatchMax | undefined {
    const max = this.#store.batchMax;
    return max && { operations: max.operations - 1, bytes: max.bytes - proofBytesMax };
  }

  get confirm(): (() => Promise<void>) | undefined {
    const { confirm } = this.#store;
    return confirm && (() => confirm.call(this.#store));
  }

  /** Changes no entry, and so not the proof. */
  get forgetOld(): KeyValue["forgetOld"] {
    const { forgetOld } = this.#store;
    return forgetOld && ((range) => forgetOld.call(this.#store, range));
  }

  get(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#store.get(key);
  }

  batch(operations: readonly KeyValueOperation[], options: { readonly sync: boolean }): Promise<void> {
    if (operations.length === 0) return Promise.resolve();
    const done = this.#last.then(() => this.#write(operations, options.sync));
    this.#last = done.catch(() => {});
    return done;
  }

  /** Yields entries as the store below does, without the proof. */
  async *range(range: KeyRange): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    const { limit = Number.POSITIVE_INFINITY, ...bounds } = range;
    let given = 0;
    if (limit === 0) return;
    for await (const entry of this.#store.range(Number.isFinite(limit) ? { ...bounds, limit: limit + 1 } : bounds)) {
      if (equalBytes(entry[0], proofKey)) continue;
      yield entry;
      given += 1;
      if (given >= limit) return;
    }
  }

  /**
   * Yields every entry, as of one moment. Throws FailureError `damaged` at the end when they are not what was written: whoever took them must
   * then drop them, and the process must end.
   */
  async *everything(): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    const { digest, rules } = this.#world;
    let count = 0;
    let sum: Sum = emptySum;
    let stored: Uint8Array | undefined;
    for await (const entry of this.#store.range({})) {
      const [key, value] = entry;
      if (equalBytes(key, proofKey)) {
        stored = value;
        continue;
      }
      count += 1;
      sum = addedToProof(sum, entryHash(digest, key, value));
      yield entry;
    }
    if (stored === undefined && count === 0) return;
    const proof = stored === undefined ? undefined : decodeProof(digest, stored);
    if (!rules.on("storeComplete") || (proof?.ok === true && sameContent({ count, sum }, proof.value))) return;
    throw new FailureError(damaged(`the store ${this.#name} changed on its disk while it was in use`).failure);
  }

  async close(): Promise<void> {
    await this.#last;
    await this.#mark?.close();
    await this.#store.close();
  }

  async #write(operations: readonly KeyValueOperation[], sync: boolean): Promise<void> {
    const { digest } = this.#world;
    const before = this.#proof ?? (await this.#readProof());
    const newest = new Map(operations.map((operation) => [toHex(operation.key), operation]));
    const old = await Promise.all([...newest.values()].map(({ key }) => this.#store.get(key)));
    let { count, sum } = before;
    for (const [i, operation] of [...newest.values()].entries()) {
      const value = old[i];
      if (value !== undefined) {
        count -= 1;
        sum = removedFromProof(sum, entryHash(digest, operation.key, value));
      }
      if (operation.kind === "delete") continue;
      count += 1;
      sum = addedToProof(sum, entryHash(digest, operation.key, operation.value));
    }
    const proof: StoreProof = { lineage: this.#lineage, sequence: before.sequence + 1, count, sum };
    this.#proof = undefined;
    await this.#store.batch([...operations, { kind: "put", key: proofKey, value: encodeProof(digest, proof) }], { sync });
    this.#proof = proof;
    if (sync && this.#marked) await this.#writeMark(proof);
  }

  async #writeMark(proof: StoreProof): Promise<void> {
    const { digest, disk } = this.#world;
    this.#mark ??= await disk.open(markPath(this.#name));
    await this.#mark.write(markOffset(proof.sequence), [encodeMark(digest, proof)]);
    await this.#mark.sync();
  }

  /** Reads the proof after a failed batch. A write first makes the store below find out how much of that batch it has. */
  async #readProof(): Promise<StoreProof> {
    await this.#store.batch([{ kind: "delete", key: neverWritten }], { sync: false });
    const stored = await this.#store.get(proofKey);
    if (stored === undefined) return { lineage: this.#lineage, sequence: 0, ...(await this.#recounted()) };
    const proof = decodeProof(this.#world.digest, stored);
    if (!proof.ok) throw new FailureError(proof.failure);
    return proof.value;
  }

  async #recounted(): Promise<Pick<StoreProof, "count" | "sum">> {
    const { count, sum } = await scan(this.#world, this.#store);
    return { count, sum };
  }
}

const damaged = (why: string): { readonly ok: false; readonly failure: FailureError["failure"] } => refused("dataLoss", "damaged", why);
