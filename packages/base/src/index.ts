/**
 * Foundations of every package: assertions, `Outcome`, failures, branded units, bytes, seeded random numbers, names of
 * rules and versions of formats. Depends on nothing.
 */
export * from "./absolute-form.ts";
export * from "./assert.ts";
export * from "./blob-tags.ts";
export * from "./brand.ts";
export * from "./bytes.ts";
export * from "./client-address.ts";
export * from "./connection-places.ts";
export * from "./failure.ts";
export * from "./first-in-order.ts";
export * from "./formats.ts";
export * from "./framed.ts";
export * from "./held-heads.ts";
export * from "./histogram.ts";
export * from "./metrics.ts";
export * from "./ordered-ids.ts";
export * from "./pace.ts";
export * from "./prng.ts";
export * from "./rules.ts";
export * from "./shown-url.ts";
export * from "./varint.ts";
