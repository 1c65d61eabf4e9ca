/**
 * Clients that record what they asked and were answered, and judges of it: the same for virtual time and for real
 * clusters. What speaks to the service is a door (`BlobDoor`, `QueueDoor`).
 */
export * from "./http-blob-door.ts";
export * from "./object-clients.ts";
export * from "./object-door.ts";
export * from "./object-history.ts";
export * from "./queue-clients.ts";
export * from "./queue-door.ts";
export * from "./queue-judge.ts";
export * from "./stage.ts";
export * from "./transaction-parts.ts";
