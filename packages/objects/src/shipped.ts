/** Rows of accounts that go to another stamp (docs/design/geo-shipping.md "Shipping"). */
import { compareBytes, prefixEnd, present, startsWith } from "@stamp/base";
import { headRow, keptRow } from "./object-keys.ts";
import { textRow } from "./queues/queue-keys.ts";
import { decodeText } from "./queues/queue-rows.ts";
import { encodeKey, type KeyComponent, partitionStart } from "./rows/key.ts";
import { decodeRow, msOfDateTime } from "./rows/row.ts";
import { blobSchema } from "./rows/schemas.ts";

/** Tables whose rows are shipped. */
export const shippedTables = ["Entity", "Blob", "Message"] as const;
export type ShippedTable = (typeof shippedTables)[number];

/** True for a table whose rows refer to bytes in extents: those are shipped before the rows. */
export const hasBytes = (table: string): boolean => table === "Blob";

export const isShippedTable = (table: string): table is ShippedTable => (shippedTables as readonly string[]).includes(table);

/** Table of queues and messages. They belong to one stamp, as in the service, unless the account's queues are copied. */
export const queuesTable: "Message" = "Message";

/** Returns whether rows of a table are shipped for an account with this role. Without them a copy is not complete. */
export const isShippedFor = ({ queues }: { readonly queues?: true }, table: string): table is ShippedTable =>
  isShippedTable(table) && (table !== queuesTable || queues === true);

/** Returns the keys of all rows of an account; `high` is exclusive. */
export function accountKeys(account: string): { readonly low: Uint8Array; readonly high: Uint8Array } {
  const low = encodeKey([[account]]);
  return { low, high: present(prefixEnd(low), "the end of an account's keys") };
}

/** Returns a function that gives the bytes with which the keys of a row's PartitionName begin; undefined for a row of another account. */
export function shippedNames(account: string): (key: Uint8Array) => Uint8Array | undefined {
  const { low } = accountKeys(account);
  return (key) => (startsWith(key, low) ? partitionStart(key) : undefined);
}

/** True if a range has keys of the account. `low` is inclusive; `high` is exclusive, and empty for the end of the table. */
export function holdsAccount({ low, high }: { readonly low: Uint8Array; readonly high: Uint8Array }, account: string): boolean {
  const keys = accountKeys(account);
  return compareBytes(low, keys.high) < 0 && (high.length === 0 || compareBytes(keys.low, high) < 0);
}

/** Names the queue that a row of the Message table belongs to, for people. */
export interface QueueRow {
  /** "queue": the queue itself. "message": a text. "message-part": another row of a queue's messages. */
  readonly kind: "queue" | "message" | "message-part";
  readonly queue: string;
  /** Text of the message; undefined: the row has none, or was deleted. */
  readonly text: string | undefined;
}

/** Returns the facts of a queue's row; `value`: undefined if the row was deleted. */
export function queueRowOf([, partition = [], row = []]: readonly KeyComponent[], value: Uint8Array | undefined): QueueRow {
  const queue = String(partition[1] ?? "");
  const isText = row.length > 2 && row[2] === textRow;
  const kind = partition.length < 3 ? "queue" : isText ? "message" : "message-part";
  return { kind, queue, text: kind === "message" && value !== undefined ? decodeText(value).text : undefined };
}

/** Names the container or blob that a row of the Blob table belongs to, for people. */
export interface ShippedBlobRow {
  /** "blob": the head, with properties and content. "snapshot": a snapshot or version. "blob-part": another row of a blob. */
  readonly kind: "container" | "blob" | "snapshot" | "blob-part";
  readonly container: string;
  /** Name of the blob; empty: the row is a container's. */
  readonly blob: string;
  /** Last-Modified of the blob or container, in milliseconds since 1970; undefined: the row has none. */
  readonly modifiedMs: number | undefined;
}

/** Returns the facts of a blob's row; `value`: undefined if the row was deleted. */
export function blobRowOf([, partition = [], row = []]: readonly KeyComponent[], value: Uint8Array | undefined): ShippedBlobRow {
  const container = String(partition[1] ?? "");
  const [part] = row;
  const kind = partition.length < 4 ? "container" : part === headRow ? "blob" : part === keptRow ? "snapshot" : "blob-part";
  const decoded = value === undefined || kind === "blob-part" ? undefined : decodeRow(blobSchema, value);
  const modified = decoded?.ok === true ? decoded.value.lastModified : undefined;
  return { kind, container, blob: String(partition[3] ?? ""), modifiedMs: modified === undefined ? undefined : msOfDateTime(modified) };
}
