/**
 * Reads the keys of one container's blob rows one after another, where they lie: a listing needs the name, the kind of the row and its stamp, and the key
 * behind all rows of the blob. Keys that are out of the ordinary (a name with U+0000) are decoded as a whole.
 *
 * Invariant: `read` was given a key that begins with `blobsPrefix` of the container and an empty prefix.
 */
import { fromUtf8, type Rules } from "@stamp/base";
import { type BlobName, blobsPrefix } from "../../object-keys.ts";
import { intact } from "../../plan.ts";
import { decodeKey, encodeKey, type KeyComponent } from "../../rows/key.ts";

const componentTag = 0x05;
const numberTag = 0x14;
const numberBytesMax = 6;

export class BlobKeys {
  /** Offset in the key at which the name begins. */
  readonly #nameAt: number;
  #key: Uint8Array = new Uint8Array(0);
  /** End of what all keys of the blob begin with. */
  #blobEnd = 0;
  /** Name of the blob. */
  name = "";
  /** Kind of the row (object-keys.ts). */
  kind = 0;
  /** Stamp of a kept row; 0 for another one. */
  stamp = 0;

  constructor(rules: Rules, container: Omit<BlobName, "blob">) {
    this.#nameAt = blobsPrefix(rules, container, "").length;
  }

  /** Sets `name`, `kind` and `stamp`. The key is borrowed until the next one. Throws FailureError `damaged`. */
  read(key: Uint8Array): void {
    const isNamed = this.#isSameBlob(key) || this.#readName(key);
    this.#key = key;
    if (!isNamed || !this.#readRow(key, this.#blobEnd)) this.#readWhole(key);
  }

  /** Returns the key behind all rows of the blob that was read last. */
  behindBlob(): Uint8Array {
    const end = this.blobPrefix();
    // It ended with the terminator of its component, 0.
    end[end.length - 1] = 1;
    return end;
  }

  /** Returns the common prefix of all keys of the blob that was read last. */
  blobPrefix(): Uint8Array {
    return new Uint8Array(this.#key.subarray(0, this.#blobEnd));
  }

  #isSameBlob(key: Uint8Array): boolean {
    const last = this.#key;
    const end = this.#blobEnd;
    if (end === 0 || key.length < end) return false;
    for (let at = end - 1; at >= this.#nameAt; at--) if (key[at] !== last[at]) return false;
    return true;
  }

  /** Reads the blob's name from a key; false if the key is of another kind. */
  #readName(key: Uint8Array): boolean {
    const end = key.indexOf(0, this.#nameAt);
    // Behind the text comes the end of the component; any other byte belongs to a name with U+0000.
    if (end < 0 || key[end + 1] !== 0) return false;
    try {
      this.name = fromUtf8(key.subarray(this.#nameAt, end));
    } catch {
      return false;
    }
    this.#blobEnd = end + 2;
    return true;
  }

  /** Reads kind and stamp. False if the component looks otherwise. */
  #readRow(key: Uint8Array, start: number): boolean {
    if (key[start] !== componentTag) return false;
    const found = [0, 0];
    let at = start + 1;
    for (let element = 0; element < 2 && key[at] !== 0; element++) {
      const length = (key[at++] ?? 0) - numberTag;
      if (length < 0 || length > numberBytesMax || at + length >= key.length) return false;
      let value = 0;
      for (const end = at + length; at < end; at++) value = value * 256 + (key[at] as number);
      found[element] = value;
    }
    [this.kind = 0, this.stamp = 0] = found;
    return at > start + 1;
  }

  #readWhole(key: Uint8Array): void {
    const components = intact(decodeKey(key));
    const [kind, stamp] = components[2] as KeyComponent;
    this.name = String(components[1]?.[3]);
    this.#blobEnd = encodeKey(components.slice(0, 2)).length;
    this.kind = Number(kind);
    this.stamp = typeof stamp === "number" ? stamp : 0;
  }
}
