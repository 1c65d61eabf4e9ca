/** Coordination of many processes over a storage account: see the README of this package. */
export {
  CorruptCounterError,
  DeadlineError,
  FencedError,
  LeaseBlobInUseError,
  LeaseLostError,
  RetriesExhaustedError,
  UnhealthyLeaderError,
  UsageError,
} from "./errors.ts";
export {
  BlobOptimisticSyncStore,
  type OptimisticSyncStore,
  type StoredData,
  TableOptimisticSyncStore,
} from "./ids/optimistic-sync-store.ts";
export { UniqueIdGenerator, type UniqueIdOptions } from "./ids/unique-id-generator.ts";
export { BlobDistributedMutex, type HeldMutex, type MutexOptions, type MutexTask } from "./lease/blob-distributed-mutex.ts";
export { type ElectorOptions, LeaderElector } from "./lease/leader-elector.ts";
export type { HeldLease, LeaseOptions } from "./lease/lease-holder.ts";
export { BlobLeaseStore, type Leadership, type LeadershipRecord, type LeaseStore } from "./lease/lease-store.ts";
export { type MessageHandler, processQueue, type QueueMessage, type QueueWorkerOptions } from "./queue/process-queue.ts";
export { BlobGlobalFlag, type GlobalFlag } from "./release/global-flag.ts";
export { GrpcSignalChannel, type GrpcSignalOptions } from "./release/grpc-signal-channel.ts";
export { ListeningRelease } from "./release/listening-release.ts";
export { type PollingOptions, PollingRelease, type WaitOptions } from "./release/polling-release.ts";
export { Release, type ReleaseOptions } from "./release/release.ts";
export type { SignalChannel, Subscription } from "./release/signal-channel.ts";
export type { Clock } from "./time/clock.ts";
export { TimeoutError } from "./time/clock.ts";
export { putFenced } from "./update/fenced.ts";
export { putLastWriterWins, withLease } from "./update/other-strategies.ts";
export { type EntityValues, type UpdateOptions, updateBlob, updateEntity } from "./update/update.ts";
