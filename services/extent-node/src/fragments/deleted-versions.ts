/**
 * Versions of extents whose fragment this process was told to delete. The node that makes the fragments of an attempt may be slow: the attempt is
 * taken back, its fragments are deleted, and the pieces arrive afterwards. Fragments made of such pieces would stay on the disk, and no record would explain them.
 *
 * Forgotten with the process, and when `versionsMax` others were deleted since: what is made then is counted as a stray.
 */
import type { ExtentId } from "@stamp/base";

/** Number of deleted versions that are remembered, about 10 MB. */
const versionsMax = 100_000;

export class DeletedVersions {
  /** Deleted versions, in the order of their deletion. */
  readonly #versions = new Set<string>();
  readonly #max: number;

  constructor(max = versionsMax) {
    this.#max = max;
  }

  add(id: ExtentId, version: number): void {
    const key = `${id}-${version}`;
    this.#versions.delete(key);
    this.#versions.add(key);
    if (this.#versions.size > this.#max) this.#versions.delete(this.#versions.values().next().value as string);
  }

  has(id: ExtentId, version: number): boolean {
    return this.#versions.has(`${id}-${version}`);
  }
}
