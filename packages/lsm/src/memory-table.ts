/**
 * The recent commits of a range partition, every version, sorted: a skip list whose levels are drawn from a fixed seed, so that the same
 * commits give the same table. Nodes are only added, so an iterator stays valid while commits go on; it sees nothing newer than its
 * snapshot.
 */
import { assert, compareBytes, Prng } from "@stamp/base";
import type { Entry, KeyRange } from "./entry.ts";

const levelsMax = 18;
/** Of a node beside its key and value, about. */
const nodeOverheadBytes = 120;

interface Node extends Entry {
  readonly next: (Node | undefined)[];
}

const levelSeed = 0x51ab1e;

export class MemoryTable {
  readonly #head: Node = { key: new Uint8Array(0), sequence: 0, value: undefined, next: new Array<Node | undefined>(levelsMax) };
  readonly #prng = new Prng(levelSeed);
  /** Before the place of the last put, by level: rows of one transaction are often neighbours. */
  readonly #path: Node[] = new Array<Node>(levelsMax).fill(this.#head);
  /** Before what was looked for last. */
  #sought: Node = this.#head;
  #levels = 1;
  #count = 0;
  #bytes = 0;
  #firstSequence = 0;
  #lastSequence = 0;

  /** Versions, tombstones included. */
  get count(): number {
    return this.#count;
  }
  /** About what it takes in memory. */
  get bytes(): number {
    return this.#bytes;
  }
  /** Of what it holds; 0 when empty. */
  get firstSequence(): number {
    return this.#firstSequence;
  }
  get lastSequence(): number {
    return this.#lastSequence;
  }

  /** Key and value belong to the table from then on. A second write of one key in one commit replaces the first. */
  put(key: Uint8Array, sequence: number, value: Uint8Array | undefined): void {
    assert(sequence > 0, "sequences start at 1");
    if (!isJustBehind(this.#path[0] as Node, this.#head, key, sequence)) {
      let at = this.#head;
      for (let level = this.#levels - 1; level >= 0; level--) {
        at = before(at, level, key, sequence);
        this.#path[level] = at;
      }
    }
    const same = this.#path[0]?.next[0];
    if (same !== undefined && same.sequence === sequence && compareBytes(same.key, key) === 0) {
      this.#bytes += (value?.length ?? 0) - (same.value?.length ?? 0);
      (same as { value: Uint8Array | undefined }).value = value;
      return;
    }
    let height = 1;
    while (height < levelsMax && (this.#prng.uint32() & 3) === 0) height++;
    for (; this.#levels < height; this.#levels++) this.#path[this.#levels] = this.#head;
    const node: Node = { key, sequence, value, next: new Array<Node | undefined>(height) };
    for (let level = 0; level < height; level++) {
      const previous = this.#path[level] as Node;
      node.next[level] = previous.next[level];
      previous.next[level] = node;
      this.#path[level] = node;
    }
    this.#count++;
    this.#bytes += key.length + (value?.length ?? 0) + nodeOverheadBytes;
    if (this.#firstSequence === 0 || sequence < this.#firstSequence) this.#firstSequence = sequence;
    if (sequence > this.#lastSequence) this.#lastSequence = sequence;
  }

  /** The newest version that the snapshot sees; its value is undefined when that is a tombstone. */
  get(key: Uint8Array, snapshotSequence: number): Entry | undefined {
    const found = this.#seek(key, snapshotSequence);
    return found !== undefined && compareBytes(found.key, key) === 0 ? found : undefined;
  }

  /** Per key the newest version that the snapshot sees, tombstones included. */
  *iterate(range: KeyRange, snapshotSequence: number): Generator<Entry, void, void> {
    if (range.reverse) {
      yield* this.#backwards(range, snapshotSequence);
      return;
    }
    let node = range.gte === undefined ? this.#head.next[0] : this.#seek(range.gte, Number.MAX_SAFE_INTEGER);
    let last: Uint8Array | undefined;
    const { cursor } = range;
    for (; node !== undefined; node = node.next[0]) {
      if (cursor?.from !== undefined && compareBytes(node.key, cursor.from) < 0) {
        node = this.#seek(cursor.from, Number.MAX_SAFE_INTEGER);
        if (node === undefined) return;
      }
      if (range.lt !== undefined && compareBytes(node.key, range.lt) >= 0) return;
      if (node.sequence > snapshotSequence) continue;
      if (last !== undefined && compareBytes(node.key, last) === 0) continue;
      last = node.key;
      yield node;
    }
  }

  /** Every version, as they are written to a checkpoint. */
  *versions(): Generator<Entry, void, void> {
    for (let node = this.#head.next[0]; node !== undefined; node = node.next[0]) yield node;
  }

  /** Keys in order, spread as what it holds is; about so many at most, and found without a look at all of it. */
  keySamples(countMax: number): Uint8Array[] {
    let level = 0;
    // Of the nodes of a level every fourth is on the next one.
    for (let count = this.#count; count > countMax && level < this.#levels - 1; count /= 4) level++;
    const keys: Uint8Array[] = [];
    for (let node = this.#head.next[level]; node !== undefined; node = node.next[level]) keys.push(node.key);
    return keys;
  }

  *#backwards(range: KeyRange, snapshotSequence: number): Generator<Entry, void, void> {
    let bound = range.lt;
    for (;;) {
      const node = this.#lastBelow(bound);
      if (node === undefined || (range.gte !== undefined && compareBytes(node.key, range.gte) < 0)) return;
      const visible = this.#seek(node.key, snapshotSequence);
      if (visible !== undefined && compareBytes(visible.key, node.key) === 0) yield visible;
      bound = node.key;
    }
  }

  /** The first node at or after (key, newest that the snapshot sees). */
  #seek(key: Uint8Array, snapshotSequence: number): Node | undefined {
    if (!isJustBehind(this.#sought, this.#head, key, snapshotSequence)) {
      let at = this.#head;
      for (let level = this.#levels - 1; level >= 0; level--) at = before(at, level, key, snapshotSequence);
      this.#sought = at;
    }
    return this.#sought.next[0];
  }

  /** The last node whose key is below `bound`, or the very last. */
  #lastBelow(bound: Uint8Array | undefined): Node | undefined {
    let at = this.#head;
    for (let level = this.#levels - 1; level >= 0; level--) {
      for (
        let next = at.next[level];
        next !== undefined && (bound === undefined || compareBytes(next.key, bound) < 0);
        next = at.next[level]
      ) {
        at = next;
      }
    }
    return at === this.#head ? undefined : at;
  }
}

/** Whether (key, sequence) lies between this node and the one that follows it now, or at that one: then nothing has to be looked for. */
function isJustBehind(node: Node, head: Node, key: Uint8Array, sequence: number): boolean {
  if (node !== head && compareTo(node, key, sequence) >= 0) return false;
  const next = node.next[0];
  return next === undefined || compareTo(next, key, sequence) >= 0;
}

/** Newest first within a key. */
const compareTo = (node: Node, key: Uint8Array, sequence: number): number => compareBytes(node.key, key) || sequence - node.sequence;

/** The last node on this level that sorts before (key, sequence), newest first within a key. */
function before(start: Node, level: number, key: Uint8Array, sequence: number): Node {
  let at = start;
  for (;;) {
    const next = at.next[level];
    if (next === undefined) return at;
    const order = compareBytes(next.key, key);
    if (order > 0 || (order === 0 && next.sequence <= sequence)) return at;
    at = next;
  }
}
