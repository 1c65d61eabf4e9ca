/**
 * Foundations of every package: assertions, `Outcome`, failures, branded units, bytes, seeded random numbers, names of
 * rules and versions of formats. Depends on nothing.
 */

export * from "./assert.ts";
export * from "./blob-tags.ts";
export * from "./brand.ts";
export * from "./bytes.ts";
export * from "./connections/absolute-form.ts";
export * from "./connections/client-address.ts";
export * from "./connections/connection-places.ts";
export * from "./connections/held-heads.ts";
export * from "./connections/pace.ts";
export * from "./connections/shown-url.ts";
export * from "./encoding/framed.ts";
export * from "./encoding/varint.ts";
export * from "./failure.ts";
export * from "./feature-level.ts";
export * from "./first-in-order.ts";
export * from "./formats.ts";
export * from "./histogram.ts";
export * from "./metrics.ts";
export * from "./ordered-ids.ts";
export * from "./prng.ts";
export * from "./rules.ts";
