/** The two protobuf primitives that frames and payloads are written and scanned with. Numbers are unsigned and safe integers. */
import { FailureError } from "@stamp/base";

export function varintSize(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  if (value < 0x1000_0000) return 4;
  return 5;
}

/** Writes a value below 2^32 and returns where to go on. */
export function writeVarint(target: Uint8Array, at: number, value: number): number {
  let rest = value >>> 0;
  let next = at;
  while (rest >= 0x80) {
    target[next++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  target[next++] = rest;
  return next;
}

const malformed = (what: string): FailureError =>
  new FailureError({ code: "invalidArgument", reason: "badRequest", message: `malformed frame: ${what}`, applied: "no" });

/** Walks the fields of one message. Throws FailureError `badRequest` on malformed bytes. */
export class FieldScanner {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;
  /** Number and type of the field that `next` found. */
  number = 0;
  wireType = 0;

  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length) {
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  next(): boolean {
    if (this.#at >= this.#end) return false;
    const tag = this.varint();
    this.number = tag >>> 3;
    this.wireType = tag & 7;
    if (this.number === 0) throw malformed("field number 0");
    return true;
  }

  get ended(): boolean {
    return this.#at >= this.#end;
  }

  /** Returns the low 32 bits of the value; longer ones are read whole. */
  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.#at >= this.#end) throw malformed("a number is cut off");
      const byte = this.#bytes[this.#at++] as number;
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw malformed("a number is too long");
  }

  /** Returns a view. */
  bytes(): Uint8Array {
    if (this.wireType !== 2) throw malformed(`wire type ${this.wireType} where bytes belong`);
    const length = this.varint();
    const start = this.#at;
    if (length > this.#end - start) throw malformed("bytes are cut off");
    this.#at = start + length;
    return this.#bytes.subarray(start, start + length);
  }

  number32(): number {
    if (this.wireType !== 0) throw malformed(`wire type ${this.wireType} where a number belongs`);
    return this.varint();
  }

  skip(): void {
    if (this.wireType === 0) this.varint();
    else if (this.wireType === 2) this.bytes();
    else if (this.wireType === 1 || this.wireType === 5) {
      this.#at += this.wireType === 1 ? 8 : 4;
      if (this.#at > this.#end) throw malformed("a fixed number is cut off");
    } else throw malformed(`wire type ${this.wireType}`);
  }
}
