/**
 * etcd as a metadata store: client, sessions, election, and the `KeyValue` port over it (`EtcdKeyValue`). Speaks etcd's
 * own protos over the Transport port. The caller owes: conditions on the election in every transaction
 * (docs/decisions/0520-lock-services-over-etcd.md).
 */
export type { WatchedKey } from "./beats.ts";
export { keepCompact } from "./compaction.ts";
export { Election, Session } from "./election.ts";
export { EtcdClient } from "./etcd-client.ts";
export { EtcdKeyValue } from "./etcd-key-value.ts";
export { type EtcdFacts, MemberLooks } from "./members.ts";
export { EtcdKeys, type EtcdOptions } from "./options.ts";
