import { toHex } from "@stamp/base";

/** Randomness: real entropy in production, the seed's in a simulation. */
export interface Random {
  /** Returns a number, uniform in 0 .. 2^32-1. */
  uint32(): number;
  /** Returns a number, uniform in [0, 1). */
  float(): number;
  /** Returns owned bytes, fit for identifiers and secrets in production. */
  bytes(length: number): Uint8Array<ArrayBuffer>;
}

/** Returns a UUID of version 4, lower case. */
export function uuid(random: Random): string {
  const b = random.bytes(16);
  b[6] = ((b[6] as number) & 0x0f) | 0x40;
  b[8] = ((b[8] as number) & 0x3f) | 0x80;
  const hex = toHex(b);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Returns a time of `baseMs` ± a quarter, so that retries of many callers spread out. */
export const jittered = (random: Random, baseMs: number): number => baseMs * (0.75 + random.float() / 2);
