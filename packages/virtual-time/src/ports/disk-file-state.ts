/**
 * Content of one simulated file: what readers see, what is durable, and every change between the two.
 *
 * Pages are 4 KiB; an absent page is zeros. A page that was changed since it was last durable keeps its durable bytes and the list of
 * changes in order. A crash takes for each such page, independently, the state after some first part of its changes (none to all); a
 * torn page takes that choice for each 512-byte sector of its own. The length of the file is taken from one of the lengths it had
 * since it was last durable, and what lies beyond it is gone. This is what a page cache and a disk that writes in any order can leave.
 *
 * After a failed sync a page counts as clean although the disk does not have it, as in Linux: it is read as before, no later sync writes it
 * unless it is changed once more, and a loss of power shows what the disk has.
 */
import type { Prng } from "@stamp/base";

export const pageBytes = 4096;
const sectorBytes = 512;

interface Change {
  readonly order: number;
  /** Offset inside of the page, in bytes. */
  readonly from: number;
  readonly to: number;
  /** Bytes that were written; undefined: zeros. */
  readonly bytes: Uint8Array | undefined;
}

interface Page {
  current: Uint8Array;
  /** Undefined: the same as `current`. Set exactly while there are changes, or after a failed sync. */
  durable: Uint8Array | undefined;
  changes: Change[];
}

export class FileState {
  readonly #pages = new Map<number, Page>();
  readonly #dirty = new Set<number>();
  /** Pages taken for clean by mistake. */
  readonly #forgotten = new Set<number>();
  #sizeBytes = 0;
  #durableSizeBytes = 0;
  #sizes: { order: number; sizeBytes: number }[] = [];
  #order = 0;

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get dirty(): boolean {
    return this.#dirty.size > 0 || this.#forgotten.size > 0 || this.#sizes.length > 0;
  }

  /** Names a moment for `makeDurable`. */
  get order(): number {
    return this.#order;
  }

  read(offsetBytes: number, lengthBytes: number): Uint8Array<ArrayBuffer> {
    const length = Math.max(0, Math.min(lengthBytes, this.#sizeBytes - offsetBytes));
    const result = new Uint8Array(length);
    let done = 0;
    while (done < length) {
      const at = offsetBytes + done;
      const inside = at % pageBytes;
      const part = Math.min(pageBytes - inside, length - done);
      const page = this.#pages.get((at - inside) / pageBytes);
      if (page) result.set(page.current.subarray(inside, inside + part), done);
      done += part;
    }
    return result;
  }

  /** `bytes` are owned by the file from here on. */
  write(offsetBytes: number, bytes: Uint8Array): void {
    this.#order += 1;
    let done = 0;
    while (done < bytes.length) {
      const at = offsetBytes + done;
      const inside = at % pageBytes;
      const part = Math.min(pageBytes - inside, bytes.length - done);
      this.#change((at - inside) / pageBytes, inside, inside + part, bytes.subarray(done, done + part));
      done += part;
    }
    if (offsetBytes + bytes.length > this.#sizeBytes) this.#resize(offsetBytes + bytes.length);
  }

  setSize(sizeBytes: number): void {
    if (sizeBytes === this.#sizeBytes) return;
    this.#order += 1;
    if (sizeBytes < this.#sizeBytes) {
      const firstGone = Math.floor(sizeBytes / pageBytes);
      for (const number of [...this.#pages.keys()]) {
        if (number < firstGone) continue;
        this.#change(number, number === firstGone ? sizeBytes % pageBytes : 0, pageBytes, undefined);
      }
    }
    this.#resize(sizeBytes);
  }

  /** Makes every change up to `order` durable. */
  makeDurable(order: number): void {
    for (const number of this.#dirty) {
      const page = this.#pages.get(number) as Page;
      const later = page.changes.filter((change) => change.order > order);
      if (later.length === 0) {
        page.durable = undefined;
        page.changes = [];
        this.#dirty.delete(number);
      } else if (later.length < page.changes.length) {
        const durable = page.durable as Uint8Array;
        for (const change of page.changes) if (change.order <= order) apply(durable, change);
        page.changes = later;
      }
    }
    while (this.#sizes.length > 0 && (this.#sizes[0] as { order: number }).order <= order) {
      this.#durableSizeBytes = (this.#sizes.shift() as { sizeBytes: number }).sizeBytes;
    }
  }

  /** Fails a sync of every change up to `order`. */
  syncFailed(order: number): void {
    for (const number of this.#dirty) {
      const page = this.#pages.get(number) as Page;
      page.changes = page.changes.filter((change) => change.order > order);
      if (page.changes.length > 0) continue;
      this.#dirty.delete(number);
      this.#forgotten.add(number);
    }
  }

  /** Loses power. Returns the number of changed pages that lost something. */
  crash(prng: Prng, tornChance: number): number {
    let lost = 0;
    for (const number of this.#forgotten) {
      const page = this.#pages.get(number) as Page;
      page.current = page.durable as Uint8Array;
      page.durable = undefined;
      lost += 1;
    }
    this.#forgotten.clear();
    for (const number of [...this.#dirty].sort((a, b) => a - b)) {
      const page = this.#pages.get(number) as Page;
      const kept = prng.below(page.changes.length + 1);
      const torn = prng.chance(tornChance);
      if (kept < page.changes.length || torn) lost += 1;
      page.current = torn ? tear(page, prng) : stateAfter(page, kept);
      page.durable = undefined;
      page.changes = [];
    }
    this.#dirty.clear();
    const sizes = [this.#durableSizeBytes, ...this.#sizes.map((entry) => entry.sizeBytes)];
    this.#sizes = [];
    const sizeBytes = prng.pick(sizes);
    this.setSize(sizeBytes);
    this.#sizes = [];
    this.#durableSizeBytes = sizeBytes;
    // Bytes that setSize cut off are cut off for good.
    this.makeDurable(this.#order);
    return lost;
  }

  /** Changes a byte behind everybody's back, in what is durable as well. */
  flip(offsetBytes: number, mask: number): void {
    const inside = offsetBytes % pageBytes;
    const number = (offsetBytes - inside) / pageBytes;
    const page = this.#pages.get(number) ?? this.#newPage(number);
    page.current[inside] = (page.current[inside] as number) ^ mask;
    if (page.durable) page.durable[inside] = (page.durable[inside] as number) ^ mask;
  }

  #resize(sizeBytes: number): void {
    this.#sizeBytes = sizeBytes;
    this.#sizes.push({ order: this.#order, sizeBytes });
  }

  #newPage(number: number): Page {
    const page: Page = { current: new Uint8Array(pageBytes), durable: undefined, changes: [] };
    this.#pages.set(number, page);
    return page;
  }

  #change(number: number, from: number, to: number, bytes: Uint8Array | undefined): void {
    const page = this.#pages.get(number) ?? this.#newPage(number);
    page.durable ??= new Uint8Array(page.current);
    this.#forgotten.delete(number);
    this.#dirty.add(number);
    const change: Change = { order: this.#order, from, to, bytes };
    page.changes.push(change);
    apply(page.current, change);
  }
}

function apply(target: Uint8Array, change: Change): void {
  if (change.bytes) target.set(change.bytes, change.from);
  else target.fill(0, change.from, change.to);
}

function stateAfter(page: Page, count: number): Uint8Array {
  if (count === page.changes.length) return page.current;
  const state = new Uint8Array(page.durable as Uint8Array);
  for (let i = 0; i < count; i++) apply(state, page.changes[i] as Change);
  return state;
}

function tear(page: Page, prng: Prng): Uint8Array {
  const result = new Uint8Array(pageBytes);
  const states = new Map<number, Uint8Array>();
  for (let at = 0; at < pageBytes; at += sectorBytes) {
    const count = prng.below(page.changes.length + 1);
    const state = states.get(count) ?? stateAfter(page, count);
    states.set(count, state);
    result.set(state.subarray(at, at + sectorBytes), at);
  }
  return result;
}
