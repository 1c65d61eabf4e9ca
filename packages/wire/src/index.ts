/**
 * The wire: code generated from `proto/`, and the conversion between messages and domain types (`toWire`, `fromWire`).
 * Numbers are safe integers inside; they are converted here and nowhere else.
 */

export { type PlainBlockReference, packBlockSizes, packBlocks, unpackBlockSizes, unpackBlocks } from "./block-references.ts";
export { busVersion } from "./bus-version.ts";
export { callersOf, methodsFor, type RequestCheck, requestCheckOf, rowsOf } from "./callers.ts";
export { type NamedValue, propertyFromWire, propertyToWire, valueFromWire, valueToWire } from "./entity-values.ts";
export * as etcd from "./gen/etcdserverpb/etcd_pb.ts";
export * from "./gen/stamp/v1/accounts_pb.ts";
export * from "./gen/stamp/v1/availability_pb.ts";
export * from "./gen/stamp/v1/bus_pb.ts";
export * from "./gen/stamp/v1/common_pb.ts";
export * from "./gen/stamp/v1/entities_pb.ts";
export * from "./gen/stamp/v1/extent_fragments_pb.ts";
export * from "./gen/stamp/v1/extent_node_pb.ts";
export * from "./gen/stamp/v1/fault_rules_pb.ts";
export * from "./gen/stamp/v1/feature_levels_pb.ts";
export * from "./gen/stamp/v1/file_handles_pb.ts";
export * from "./gen/stamp/v1/front_end_pb.ts";
export * from "./gen/stamp/v1/geo_removal_pb.ts";
export * from "./gen/stamp/v1/geo_reports_pb.ts";
export * from "./gen/stamp/v1/geo_shipping_pb.ts";
export * from "./gen/stamp/v1/location_pb.ts";
export * from "./gen/stamp/v1/lock_service_pb.ts";
export * from "./gen/stamp/v1/messages_pb.ts";
export * from "./gen/stamp/v1/metadata_store_pb.ts";
export * from "./gen/stamp/v1/objects_pb.ts";
export * from "./gen/stamp/v1/partition_manager_pb.ts";
export * from "./gen/stamp/v1/partition_server_pb.ts";
export * from "./gen/stamp/v1/raft_pb.ts";
export * from "./gen/stamp/v1/requests_pb.ts";
export * from "./gen/stamp/v1/signals_pb.ts";
export * from "./gen/stamp/v1/status_pb.ts";
export * from "./gen/stamp/v1/stream_manager_pb.ts";
export { answerable, executeFields, fieldLevel, operationOf } from "./levels.ts";
export { fromWire, toWire } from "./numbers.ts";
export { initOf, plainOf } from "./plain.ts";
export { type Caller, callerNumbers, callers, isCaller } from "./roles.ts";
export { signedIdentifiersFromWire, signedIdentifiersToWire } from "./signed-identifiers.ts";
