/**
 * Pages of a listing from one range after the other. Entries come packed if the question asked for that, and as messages from a partition server
 * of an older release; readers see no difference.
 */
import type { ListedBlobProperties } from "@stamp/azure-rest";
import { countOfPacked, PackedBlob } from "@stamp/objects";
import type { BlobPage, ListedBlob } from "@stamp/wire";
import { blobOf } from "./wire-to-rest.ts";

/** Makes something of each entry. */
export interface EntryReader<T> {
  /** Takes a blob, which is valid until this returns. */
  readonly blob: (blob: ListedBlobProperties) => T;
  readonly prefix: (name: string) => T;
}

interface Taken {
  readonly page: BlobPage;
  /** Number of entries at the start that an earlier page has. */
  readonly skipped: number;
}

interface Name {
  readonly isPrefix: boolean;
  readonly name: string;
}

export class BlobPages {
  readonly #taken: Taken[] = [];
  /** Common prefix with which the last page ended. It may lie in the next range, too, and is listed once. */
  #lastPrefix: string | undefined;

  /** Adds the page; returns how many of its entries are new. */
  take(page: BlobPage): number {
    const skipped = this.#known(page);
    const count = countOf(page);
    this.#taken.push({ page, skipped });
    if (count > skipped) {
      const last = page.rangeEnded ? nameAt(page, count - 1) : undefined;
      this.#lastPrefix = last?.isPrefix ? last.name : undefined;
    }
    return count - skipped;
  }

  /** Returns the first name of the page that would be new. */
  first(page: BlobPage): string | undefined {
    const skipped = this.#known(page);
    return skipped < countOf(page) ? nameAt(page, skipped).name : undefined;
  }

  /** Entries that came as messages: all of them if the question did not ask for packed ones. */
  get messages(): ListedBlob[] {
    return this.#taken.flatMap(({ page, skipped }) => page.entries.slice(skipped));
  }

  get count(): number {
    return this.#taken.reduce((sum, { page, skipped }) => sum + countOf(page) - skipped, 0);
  }

  names(): Iterable<string> {
    return this.read({ blob: ({ name }) => name, prefix: (name) => name }, true);
  }

  /** Reads the entries, in order. `showsTagCount`: whether the reader may know how many tags a blob has. Throws FailureError for damage. */
  *read<T>(reader: EntryReader<T>, showsTagCount: boolean): Generator<T, void> {
    for (const { page, skipped } of this.#taken) {
      if (page.packed.length > 0) yield* packedEntries(page.packed, skipped, reader, showsTagCount);
      for (const { kind } of page.entries.slice(skipped)) {
        if (kind.case === "prefix") yield reader.prefix(kind.value);
        else if (kind.case === "blob") yield reader.blob(showsTagCount ? blobOf(kind.value) : { ...blobOf(kind.value), tagCount: 0 });
      }
    }
  }

  #known(page: BlobPage): number {
    if (this.#lastPrefix === undefined || countOf(page) === 0) return 0;
    const { isPrefix, name } = nameAt(page, 0);
    return isPrefix && name === this.#lastPrefix ? 1 : 0;
  }
}

function* packedEntries<T>(packed: Uint8Array, skipped: number, reader: EntryReader<T>, showsTagCount: boolean): Generator<T, void> {
  const entry = new PackedBlob(packed, showsTagCount);
  for (let at = 0; entry.next(); at++) {
    if (at >= skipped) yield entry.isPrefix ? reader.prefix(entry.name) : entry.read(reader.blob);
  }
}

const countOf = ({ packed, entries }: BlobPage): number => (packed.length > 0 ? countOfPacked(packed) : entries.length);

/** True if there is an entry at this place. */
function nameAt({ packed, entries }: BlobPage, at: number): Name {
  if (packed.length > 0) {
    const entry = new PackedBlob(packed);
    for (let i = 0; i <= at; i++) entry.next();
    return entry;
  }
  const kind = entries[at]?.kind;
  return kind?.case === "prefix" ? { isPrefix: true, name: kind.value } : { isPrefix: false, name: kind?.value?.name ?? "" };
}
