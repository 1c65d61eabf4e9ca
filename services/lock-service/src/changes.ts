/**
 * Keys that the last transactions wrote, so that a standby's copy of the metadata needs to read only those. In memory,
 * bounded: a reader that is behind further, or comes after a restart, lists everything again. Values are not kept, they
 * are read from the store.
 */
import { assert } from "@stamp/base";

interface Written {
  readonly version: number;
  readonly key: string;
}

export class Changes {
  readonly #keysMax: number;
  /** Written keys in the order of their versions; the front is cut off in steps. */
  #written: Written[] = [];
  /** Transaction after which every change is known. */
  #completeAfter: number;

  constructor(lastVersion: number, keysMax: number) {
    assert(keysMax >= 1, "a bound");
    this.#completeAfter = lastVersion;
    this.#keysMax = keysMax;
  }

  /** Notes keys as durable. Keys of one version may come in several calls; versions only rise. */
  note(keys: Iterable<readonly [key: string, version: number]>): void {
    for (const [key, version] of keys) this.#written.push({ key, version });
    if (this.#written.length < 2 * this.#keysMax) return;
    const cut = this.#written.length - this.#keysMax;
    this.#completeAfter = (this.#written[cut - 1] as Written).version;
    this.#written = this.#written.slice(cut).filter(({ version }) => version > this.#completeAfter);
  }

  /** Returns each key once; undefined when that is not known. */
  since(version: number, prefix: string): string[] | undefined {
    if (version < this.#completeAfter) return undefined;
    let low = 0;
    let high = this.#written.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#written[middle] as Written).version <= version) low = middle + 1;
      else high = middle;
    }
    const keys = new Set<string>();
    for (let at = low; at < this.#written.length; at++) {
      const { key } = this.#written[at] as Written;
      if (key.startsWith(prefix)) keys.add(key);
    }
    return [...keys];
  }
}
