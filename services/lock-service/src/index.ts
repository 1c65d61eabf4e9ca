/**
 * The lock service: leases, and the metadata store over LevelDB or etcd; restore and migration of a stopped store.
 * `LockServiceRole` takes a `World`.
 */
export { type LockServiceConfig, lockServiceSchema } from "./config.ts";
export { type EtcdSecrets, etcdAccess, etcdSecrets } from "./etcd-access.ts";
export { LockServiceRole } from "./lock-service.ts";
export { lockServiceMetrics } from "./metrics.ts";
export { type MetadataPlace, type Migrated, migrateMetadata } from "./migrate.ts";
export { metadataOffline } from "./offline.ts";
export { restoreMetadata, whileStopped } from "./restore.ts";
export { metadataStoreName } from "./store.ts";
