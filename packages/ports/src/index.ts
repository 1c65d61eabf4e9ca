/**
 * The ports: everything that a role needs of its machine, as types, with the conformance suites that every
 * implementation passes. Start at `World`. An implementation owes what the comments of each port say; roles owe: no
 * other way to time, randomness, disks or sockets.
 */

export * from "./clock.ts";
export * from "./conformance/clock.conformance.ts";
export { check, checkEqual, type RegisterTest } from "./conformance/conformance.ts";
export * from "./conformance/digest.conformance.ts";
export * from "./conformance/disk.conformance.ts";
export * from "./conformance/key-value.conformance.ts";
export * from "./conformance/transport.conformance.ts";
export * from "./digest.ts";
export * from "./disk.ts";
export * from "./http.ts";
export * from "./logger.ts";
export * from "./loopback.ts";
export * from "./outside/bearer.ts";
export * from "./outside/foreign-calls.ts";
export * from "./outside/http-client.ts";
export * from "./random.ts";
export * from "./slow-log.ts";
export * from "./stores/complete-store.ts";
export * from "./stores/format-marker.ts";
export * from "./stores/identity.ts";
export * from "./stores/key-value.ts";
export * from "./stores/store-proof.ts";
export * from "./transport.ts";
export * from "./turns.ts";
export * from "./world.ts";
