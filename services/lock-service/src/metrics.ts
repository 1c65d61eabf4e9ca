/** Declares how `/metrics` tells the facts of a lock service. */
import { counter, gauge, histogram, type Metrics } from "@stamp/base";

export const lockServiceMetrics: Metrics = {
  lastTransaction: counter("lock_service_transactions_total", "Transactions of the metadata store since the stamp was made."),
  waiting: gauge("lock_service_waiting_transactions", "Transactions that wait for the disk."),
  wrote: histogram("lock_service_write_duration_seconds", "Writing and syncing one group of transactions."),
  freeBytes: gauge("lock_service_disk_free_bytes", "Free on the disk of the metadata store."),
  freeFiles: gauge(
    "lock_service_disk_free_files",
    "Free inodes on the disk of the metadata store; absent where the file system has no fixed number.",
  ),
  diskFull: gauge("lock_service_disk_full", "1 while only what frees room or keeps leases is written."),
  keys: gauge("lock_service_keys", "Keys of the metadata store, leases among them."),
  keysMax: gauge("lock_service_keys_max", "Keys from which on no new one is made."),
  "snapshot.version": gauge("lock_service_snapshot_version", "Transaction of the metadata store up to which it goes."),
  "snapshot.bytes": gauge("lock_service_snapshot_bytes", "Size of the newest snapshot that nodes copy."),
  "snapshot.tookMs": gauge("lock_service_snapshot_duration_seconds", "Time that taking it took."),
  "snapshot.takenAtMs": gauge("lock_service_snapshot_time_seconds", "When it was taken, since 1970."),
  "consensus.term": gauge("lock_service_log_term", "Term of the replicated log."),
  "consensus.lastIndex": gauge("lock_service_log_last_index", "Last entry of this member's log."),
  "consensus.durable": gauge("lock_service_log_durable_index", "Last entry that this member has synced to its disk."),
  "consensus.commit": gauge("lock_service_log_commit_index", "Last entry of the replicated log that is known to be committed."),
  "consensus.applied": gauge("lock_service_log_applied_index", "Last entry whose writes are among the rows."),
  "consensus.waiting": gauge("lock_service_log_waiting_writes", "Writes that wait for the disk of this member."),
  "consensus.snapshotIndex": gauge("lock_service_log_snapshot_index", "Entry up to which the replicated log was cut."),
  "consensus.store": gauge("lock_service_log_store", "Number of the store of this member: one more for each store that was set aside."),
  "consensus.full": gauge("lock_service_log_standing", "1 while the vote of this lock service counts in a majority."),
  "consensus.lagMost": gauge("lock_service_log_lag_entries", "Entries that the member lacks which lags most, as the leader sees it."),
  "consensus.lag.*": gauge("lock_service_log_member_lag_entries", "Entries that the member lacks, as the leader sees it.", { member: "*" }),
  "leases.length": gauge("lock_service_leases", "Leases that are known, ended ones too."),
};
