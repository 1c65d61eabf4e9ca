/** Memory for many small byte strings: each allocation of its own costs more than what is written to it. */
import { ByteWriter } from "./varint.ts";

const slabBytes = 64 * 1024;
/** Length from which on a row has a buffer of its own, in bytes. */
const sharedBytesMax = slabBytes / 8;
const scratchBytesMax = 256 * 1024;

/** Copies that lie one behind the other in slabs. A slab lives as long as any copy in it, and none is used twice. */
export class Slabs {
  #slab: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  #filledBytes = 0;

  copy(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    const { length } = bytes;
    if (length > sharedBytesMax) return bytes.slice();
    if (this.#filledBytes + length > this.#slab.length) {
      this.#slab = new Uint8Array(slabBytes);
      this.#filledBytes = 0;
    }
    const copy = this.#slab.subarray(this.#filledBytes, this.#filledBytes + length);
    copy.set(bytes);
    this.#filledBytes += length;
    return copy;
  }
}

/** A writer that is used again and again; what once was large is not kept. */
export class Scratch {
  #writer = new ByteWriter(0);

  cleared(): ByteWriter {
    if (this.#writer.capacityBytes > scratchBytesMax) this.#writer = new ByteWriter();
    this.#writer.clear();
    return this.#writer;
  }
}
