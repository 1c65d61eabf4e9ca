/**
 * The metadata store's client (`MetadataClient`), the keeping of a lease (`LeaseKeeper`), and calls to whoever leads
 * (`LeaderCalls`). A transaction is conditional on the caller's epoch and on versions of keys. The caller owes: taking
 * an unknown outcome for unknown.
 */

export { decodeLevel, encodeLevel, type LevelRecord, levelKey } from "./feature-level/level-record.ts";
export { LevelWatch } from "./feature-level/level-watch.ts";
export { processVersions } from "./feature-level/process-versions.ts";
export { type CommandNumbers, GivenNumbers, unvouchedEpochsMax, unvouchedTermsMax } from "./given-numbers.ts";
export { LeaderCalls } from "./leader-calls.ts";
export { LeaseKeeper, leaseDefaults, refusedByStandby } from "./lease-keeper.ts";
export { decodeLineage, encodeLineage, type LineageRecord, lineageKey, storeLineage } from "./lineage-record.ts";
export { heldQuestionMs, lockServiceAddresses, lockServices } from "./lock-services.ts";
export { MetadataClient, type StoredKey, type StoreFence, type StorePosition } from "./metadata-client.ts";
export { metadataStoreConformance } from "./metadata-store.conformance.ts";
export {
  inMemory,
  type OpenedSnapshot,
  openSnapshot,
  type SeededChecksum,
  type SnapshotEntry,
  type SnapshotSource,
  SnapshotWriter,
  verifySnapshot,
} from "./snapshot.ts";
export { statusService } from "./status-service.ts";
export { StoreAge } from "./store-age.ts";
