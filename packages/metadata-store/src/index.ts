/**
 * The metadata store's client (`MetadataClient`), the keeping of a lease (`LeaseKeeper`), and calls to whoever leads
 * (`LeaderCalls`). A transaction is conditional on the caller's epoch and on versions of keys. The caller owes: taking
 * an unknown outcome for unknown.
 */
export * from "./feature-level/level-record.ts";
export * from "./feature-level/level-watch.ts";
export * from "./feature-level/process-versions.ts";
export * from "./given-numbers.ts";
export * from "./leader-calls.ts";
export * from "./lease-keeper.ts";
export * from "./lock-services.ts";
export * from "./metadata-client.ts";
export * from "./metadata-store.conformance.ts";
export * from "./snapshot.ts";
export * from "./status-service.ts";
export * from "./store-age.ts";
