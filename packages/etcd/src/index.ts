export * from "./compaction.ts";
export { Election, type ElectionOptions, Session } from "./election.ts";
export { EtcdClient, type Member } from "./etcd-client.ts";
export * from "./etcd-key-value.ts";
export * from "./options.ts";
