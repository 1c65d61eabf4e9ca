/**
 * Clients that record what they asked and were answered, and judges of it: the same for virtual time and for real
 * clusters. What speaks to the service is a door (`BlobDoor`, `QueueDoor`).
 */
export { HttpBlobDoor } from "./http-blob-door.ts";
export { ObjectClients, type ObjectClientsOptions } from "./object-clients.ts";
export { type Answer, answerOfCode, answerOfStatus, type BlobCondition, type BlobDoor } from "./object-door.ts";
export { BlobHistory, contentOf, writeOf } from "./object-history.ts";
export { QueueClients } from "./queue-clients.ts";
export type { QueueAnswer, QueueDoor, ToldMessage } from "./queue-door.ts";
export { BrokenPromise, type HistoryStage, until } from "./stage.ts";
export { blobOfEntity, entityCount, partitionKeyOf, partsOf, wholeOf } from "./transaction-parts.ts";
