/** Numbers made of the time, for what has to rise over restores of the metadata store: nothing that was stored before is there to count on from. */

/** 2026-01-01T00:00:00Z, in milliseconds since 1970. */
const beginMs = 1_767_225_600_000;
/** Numbers of one second: more transactions than a lock service does in it. */
const perSecond: number = 2 ** 20;

/** Seconds since 2026; 0 before. */
export const secondsSince2026 = (wallMs: number): number => Math.max(0, Math.floor((wallMs - beginMs) / 1_000));

/** Returns a number that rises with every second. It stays below 2^53 until the year 2298. */
export const timeNumber = (wallMs: number): number => secondsSince2026(wallMs) * perSecond;
