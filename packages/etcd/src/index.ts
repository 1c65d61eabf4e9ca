/**
 * etcd as a metadata store: client, sessions, election, and the `KeyValue` port over it (`EtcdKeyValue`). Speaks etcd's
 * own protos over the Transport port. The caller owes: conditions on the election in every transaction
 * (docs/decisions/0520-lock-services-over-etcd.md).
 */
export * from "./compaction.ts";
export { Election, type ElectionOptions, Session } from "./election.ts";
export { EtcdClient, type Member } from "./etcd-client.ts";
export * from "./etcd-key-value.ts";
export * from "./options.ts";
