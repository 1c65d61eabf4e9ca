export * from "./given-numbers.ts";
export * from "./leader-calls.ts";
export * from "./lease-keeper.ts";
export * from "./metadata-client.ts";
export * from "./metadata-store.conformance.ts";
export * from "./snapshot.ts";
export * from "./status-service.ts";
export * from "./store-age.ts";
