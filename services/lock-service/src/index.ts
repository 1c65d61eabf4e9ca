/**
 * The lock service: leases, and the metadata store over LevelDB or etcd; restore and migration of a stopped store.
 * `LockServiceRole` takes a `World`.
 */
export { type LockServiceConfig, lockServiceSchema } from "./config.ts";
export { membersIn } from "./consensus/member.ts";
export { memberStoreName } from "./consensus/member-folder.ts";
export { LockServiceRole } from "./lock-service.ts";
export { type MetadataPlace, migrateMetadata } from "./metadata/migrate.ts";
export { metadataOffline, newestMetadata, type OfflineMetadata, snapshotEntries } from "./metadata/offline.ts";
export { restoreMetadata, restoreNotePath, whileHeld, whileStopped } from "./metadata/restore.ts";
export { openSurvivor, type Survivor } from "./metadata/survivor.ts";
export { lockServiceMetrics } from "./metrics.ts";
export { etcdSecrets } from "./store/etcd-access.ts";
export { metadataStoreName } from "./store/store.ts";
