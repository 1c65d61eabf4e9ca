/**
 * The ports: everything that a role needs of its machine, as types, with the conformance suites that every
 * implementation passes. Start at `World`. An implementation owes what the comments of each port say; roles owe: no
 * other way to time, randomness, disks or sockets.
 */
export * from "./bearer.ts";
export * from "./clock.conformance.ts";
export * from "./clock.ts";
export * from "./complete-store.ts";
export { check, checkEqual, type RegisterTest } from "./conformance.ts";
export * from "./digest.conformance.ts";
export * from "./digest.ts";
export * from "./disk.conformance.ts";
export * from "./disk.ts";
export * from "./foreign-calls.ts";
export * from "./format-marker.ts";
export * from "./http.ts";
export * from "./http-client.ts";
export * from "./identity.ts";
export * from "./key-value.conformance.ts";
export * from "./key-value.ts";
export * from "./logger.ts";
export * from "./loopback.ts";
export * from "./random.ts";
export * from "./slow-log.ts";
export * from "./store-proof.ts";
export * from "./transport.conformance.ts";
export * from "./transport.ts";
export * from "./turns.ts";
export * from "./world.ts";
