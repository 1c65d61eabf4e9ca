export * from "./codec.ts";
export * from "./placement.ts";
export * from "./plan-extents.ts";
export * from "./plan-streams.ts";
export * from "./records.ts";
export * from "./seal-machine.ts";
export * from "./state.ts";
