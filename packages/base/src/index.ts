export * from "./assert.ts";
export * from "./brand.ts";
export * from "./bytes.ts";
export * from "./failure.ts";
export * from "./framed.ts";
export * from "./prng.ts";
export * from "./rules.ts";
export * from "./varint.ts";
