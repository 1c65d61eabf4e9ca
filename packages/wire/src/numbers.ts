/** 64-bit numbers are bigint on the wire and safe integers inside; this is the only place where one becomes the other. */
import { FailureError } from "@stamp/base";

/** Throws FailureError `badRequest` for what a peer should not have sent. */
export function fromWire(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) {
    throw new FailureError({ code: "invalidArgument", reason: "badRequest", message: `number out of range: ${value}`, applied: "no" });
  }
  return number;
}

export const toWire = (value: number): bigint => BigInt(value);
