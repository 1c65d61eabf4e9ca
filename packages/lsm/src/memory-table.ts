/**
 * The recent commits of a range partition, every version, sorted: a skip list whose levels are drawn from a fixed seed, so that the same
 * commits give the same table. Nodes are only added, so an iterator stays valid while commits go on; it sees nothing newer than its
 * snapshot.
 *
 * Keys and values lie one behind the other in chunks, nodes are numbers in one array: a table is some dozens of objects however many rows
 * it has, takes what it says, and goes as a whole.
 */
import { assert, Prng } from "@stamp/base";
import type { Entry, KeyRange } from "./entry.ts";

const levelsMax = 18;
/** Nodes that an iterator steps over before it looks for its reader's cursor from the top: that takes some dozens of comparisons. */
const stepsBeforeSeek = 4;
const chunkBytesMin = 4 * 1024;
const chunkBytesMax = 1024 * 1024;
/** Length from which on a row has a chunk of its own, in bytes. */
const sharedBytesMax = chunkBytesMax / 4;

const levelSeed = 0x51ab1e;

/** A place in `#nodes`, where its fields begin. The head is 0; as the next one 0 says that there is none. */
type Node = number;
const head: Node = 0;
const chunkField = 0;
const startField = 1;
const keyBytesField = 2;
/** Field with the length of the value in bytes; -1: a tombstone. */
const valueBytesField = 3;
const sequenceLowField = 4;
const sequenceHighField = 5;
/** The next one on level 0; those on higher levels follow, as many as the node is high. */
const nextField = 6;

const two32 = 2 ** 32;

export class MemoryTable {
  #nodes: Int32Array = new Int32Array(256);
  #nodesEnd: number = nextField + levelsMax;
  readonly #chunks: Uint8Array[] = [];
  /** The chunk that is filled now, and how far. */
  #filling = -1;
  #filledBytes = 0;
  readonly #prng = new Prng(levelSeed);
  /** Nodes before the place of the last put, by level: rows of one transaction are often neighbours. */
  readonly #path = new Int32Array(levelsMax);
  /** Node before the key that was looked for last. */
  #sought: Node = head;
  #levels = 1;
  #count = 0;
  #rowBytes = 0;
  #firstSequence = 0;

  /** Versions, tombstones included. */
  get count(): number {
    return this.#count;
  }
  /** Bytes of keys, values and nodes; up to 1 MiB more is allocated ahead. */
  get bytes(): number {
    return this.#count === 0 ? 0 : this.#rowBytes + this.#nodesEnd * Int32Array.BYTES_PER_ELEMENT;
  }
  /** Sequence of the oldest commit in the table; 0 when empty. */
  get firstSequence(): number {
    return this.#firstSequence;
  }

  /** Adds a row, with copies of key and value. A second write of one key in one commit replaces the first. */
  put(key: Uint8Array, sequence: number, value: Uint8Array | undefined): void {
    assert(sequence > 0, "sequences start at 1");
    const path = this.#path;
    if (!this.#isJustBehind(path[0] as Node, key, sequence)) {
      let at = head;
      for (let level = this.#levels - 1; level >= 0; level--) {
        at = this.#before(at, level, key, sequence);
        path[level] = at;
      }
    }
    const same = this.#next(path[0] as Node, 0);
    if (same !== head && this.#compare(same, key, sequence) === 0) {
      this.#store(same, key, value);
      return;
    }
    let height = 1;
    while (height < levelsMax && (this.#prng.uint32() & 3) === 0) height++;
    for (; this.#levels < height; this.#levels++) path[this.#levels] = head;
    const node = this.#newNode(height, sequence);
    this.#store(node, key, value);
    const nodes = this.#nodes;
    for (let level = 0; level < height; level++) {
      const behind = (path[level] as Node) + nextField + level;
      nodes[node + nextField + level] = nodes[behind] as Node;
      nodes[behind] = node;
      path[level] = node;
    }
    this.#count++;
    if (this.#firstSequence === 0 || sequence < this.#firstSequence) this.#firstSequence = sequence;
  }

  /** Returns the newest version that the snapshot sees, a view; its value is undefined when that is a tombstone. */
  get(key: Uint8Array, snapshotSequence: number): Entry | undefined {
    const node = this.#seek(key, snapshotSequence);
    return node !== head && this.#compareKey(node, key) === 0 ? this.#entry(node) : undefined;
  }

  /** Yields, for each key, the newest version that the snapshot sees, tombstones included; views. */
  *iterate(range: KeyRange, snapshotSequence: number): Generator<Entry, void, void> {
    if (range.reverse) {
      yield* this.#backwards(range, snapshotSequence);
      return;
    }
    let node = range.gte === undefined ? this.#next(head, 0) : this.#seek(range.gte, Number.MAX_SAFE_INTEGER);
    let last: Uint8Array | undefined;
    const { cursor } = range;
    for (; node !== head; node = this.#next(node, 0)) {
      if (cursor?.from !== undefined) {
        // Where a reader goes on is often only a few rows away.
        for (let steps = 0; steps < stepsBeforeSeek && node !== head && this.#compareKey(node, cursor.from) < 0; steps++)
          node = this.#next(node, 0);
        if (node !== head && this.#compareKey(node, cursor.from) < 0) node = this.#seek(cursor.from, Number.MAX_SAFE_INTEGER);
        if (node === head) return;
      }
      if (range.lt !== undefined && this.#compareKey(node, range.lt) >= 0) return;
      if (this.#sequence(node) > snapshotSequence) continue;
      if (last !== undefined && this.#compareKey(node, last) === 0) continue;
      const entry = this.#entry(node);
      last = entry.key;
      yield entry;
    }
  }

  /** Yields every version in the order in which a checkpoint has them; views. */
  *versions(): Generator<Entry, void, void> {
    for (let node = this.#next(head, 0); node !== head; node = this.#next(node, 0)) yield this.#entry(node);
  }

  /** Returns at most this many keys, about, in order and spread like the rows; found without a look at all of them. */
  keySamples(countMax: number): Uint8Array[] {
    let level = 0;
    // Every fourth node of a level is on the next one, too.
    for (let count = this.#count; count > countMax && level < this.#levels - 1; count /= 4) level++;
    const keys: Uint8Array[] = [];
    for (let node = this.#next(head, level); node !== head; node = this.#next(node, level)) keys.push(this.#entry(node).key.slice());
    return keys;
  }

  *#backwards(range: KeyRange, snapshotSequence: number): Generator<Entry, void, void> {
    let bound = range.lt;
    for (;;) {
      const node = this.#lastBelow(bound);
      if (node === head || (range.gte !== undefined && this.#compareKey(node, range.gte) < 0)) return;
      const { key } = this.#entry(node);
      const visible = this.get(key, snapshotSequence);
      if (visible !== undefined) yield visible;
      bound = key;
    }
  }

  /** Returns the first node at or after (key, newest that the snapshot sees). */
  #seek(key: Uint8Array, snapshotSequence: number): Node {
    if (!this.#isJustBehind(this.#sought, key, snapshotSequence)) {
      let at = head;
      for (let level = this.#levels - 1; level >= 0; level--) at = this.#before(at, level, key, snapshotSequence);
      this.#sought = at;
    }
    return this.#next(this.#sought, 0);
  }

  /** Returns the last node whose key is below `bound`, or the very last. */
  #lastBelow(bound: Uint8Array | undefined): Node {
    let at = head;
    for (let level = this.#levels - 1; level >= 0; level--) {
      for (
        let next = this.#next(at, level);
        next !== head && (bound === undefined || this.#compareKey(next, bound) < 0);
        next = this.#next(at, level)
      ) {
        at = next;
      }
    }
    return at;
  }

  /** Returns the last node on this level that sorts before (key, sequence), newest first within a key. */
  #before(start: Node, level: number, key: Uint8Array, sequence: number): Node {
    let at = start;
    for (;;) {
      const next = this.#next(at, level);
      if (next === head || this.#compare(next, key, sequence) >= 0) return at;
      at = next;
    }
  }

  /** True if (key, sequence) lies between this node and the next one, or equals that: then no search is needed. */
  #isJustBehind(node: Node, key: Uint8Array, sequence: number): boolean {
    if (node !== head && this.#compare(node, key, sequence) >= 0) return false;
    const next = this.#next(node, 0);
    return next === head || this.#compare(next, key, sequence) >= 0;
  }

  /** Orders nodes by key, newest first within a key. */
  #compare(node: Node, key: Uint8Array, sequence: number): number {
    return this.#compareKey(node, key) || sequence - this.#sequence(node);
  }

  /** Compares a node's key like `compareBytes`, without a view of it. */
  #compareKey(node: Node, key: Uint8Array): number {
    const nodes = this.#nodes;
    const chunk = this.#chunks[nodes[node + chunkField] as number] as Uint8Array;
    const start = nodes[node + startField] as number;
    const length = nodes[node + keyBytesField] as number;
    const shared = Math.min(length, key.length);
    for (let i = 0; i < shared; i++) {
      const difference = (chunk[start + i] as number) - (key[i] as number);
      if (difference !== 0) return difference;
    }
    return length - key.length;
  }

  #next(node: Node, level: number): Node {
    return this.#nodes[node + nextField + level] as Node;
  }

  #sequence(node: Node): number {
    const nodes = this.#nodes;
    return (nodes[node + sequenceHighField] as number) * two32 + ((nodes[node + sequenceLowField] as number) >>> 0);
  }

  #entry(node: Node): Entry {
    const nodes = this.#nodes;
    const chunk = this.#chunks[nodes[node + chunkField] as number] as Uint8Array;
    const start = nodes[node + startField] as number;
    const keyEnd = start + (nodes[node + keyBytesField] as number);
    const valueBytes = nodes[node + valueBytesField] as number;
    return {
      key: chunk.subarray(start, keyEnd),
      sequence: this.#sequence(node),
      value: valueBytes < 0 ? undefined : chunk.subarray(keyEnd, keyEnd + valueBytes),
    };
  }

  #newNode(height: number, sequence: number): Node {
    const node = this.#nodesEnd;
    this.#nodesEnd = node + nextField + height;
    if (this.#nodesEnd > this.#nodes.length) {
      const nodes = new Int32Array(this.#nodes.length * 2);
      nodes.set(this.#nodes);
      this.#nodes = nodes;
    }
    this.#nodes[node + sequenceLowField] = sequence;
    this.#nodes[node + sequenceHighField] = Math.floor(sequence / two32);
    return node;
  }

  /** Stores a version in the node. Earlier bytes stay where they are: an iterator may have given them out. */
  #store(node: Node, key: Uint8Array, value: Uint8Array | undefined): void {
    const bytes = key.length + (value?.length ?? 0);
    const chunk = this.#room(bytes);
    const start = this.#filling === chunk ? this.#filledBytes : 0;
    const into = this.#chunks[chunk] as Uint8Array;
    into.set(key, start);
    if (value !== undefined) into.set(value, start + key.length);
    if (this.#filling === chunk) this.#filledBytes += bytes;
    this.#rowBytes += bytes;
    const nodes = this.#nodes;
    nodes[node + chunkField] = chunk;
    nodes[node + startField] = start;
    nodes[node + keyBytesField] = key.length;
    nodes[node + valueBytesField] = value?.length ?? -1;
  }

  /** Returns a chunk with room for these bytes: the present one, the next one, twice as large, or one for this alone. */
  #room(bytes: number): number {
    if (bytes > sharedBytesMax) return this.#chunks.push(new Uint8Array(bytes)) - 1;
    const filled = this.#chunks[this.#filling];
    if (filled !== undefined && this.#filledBytes + bytes <= filled.length) return this.#filling;
    const next = Math.min(Math.max(chunkBytesMin, bytes, (filled?.length ?? 0) * 2), chunkBytesMax);
    this.#filling = this.#chunks.push(new Uint8Array(next)) - 1;
    this.#filledBytes = 0;
    return this.#filling;
  }
}
