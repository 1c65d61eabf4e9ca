/**
 * Decisions of replication between stamps: the role of an account at each stamp, the operations of the location service,
 * shipping, seeding, Last Sync Time and placement. Pure machines: state in, state out. The caller owes: a row or record
 * is durable before its command is answered or sent (docs/design/geo.md).
 */
export * from "./account-role.ts";
export * from "./acknowledgements.ts";
export * from "./location-records.ts";
export * from "./operations.ts";
export * from "./placement.ts";
export * from "./range-cursor.ts";
export * from "./role-row.ts";
export * from "./row-versions.ts";
export * from "./seeding.ts";
export * from "./shipping-window.ts";
export * from "./sync-time.ts";
