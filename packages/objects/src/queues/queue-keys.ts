/**
 * Where queues and messages are: keys of the Message table.
 *
 *   AccountName  PartitionName                  ObjectName
 *   (account)    (0, queue)                     ()                                                    queue row
 *   (account)    (1, queue, incarnation)        (0)                                                   state row
 *   "            "                              (1, generation, 0, visible ms, ticket, index)         order row
 *   "            "                              (1, generation, 1, message)                           text row
 *   "            "                              (1, generation, 2, expires ms, message)               expiry row
 *
 * All messages of a queue have one PartitionName, so that taking them is decided by one server, one after another. The incarnation is
 * that of the queue's row (rule incarnationInKey); clearing a queue begins the next generation, so that what was there can't be reached.
 */
import type { Rules } from "@stamp/base";
import { appendComponents, appendOpenComponent, encodeKey, encodeKeyPrefix, type KeyComponent } from "../rows/key.ts";
import type { QueueName } from "./operation.ts";

const queueKind = 0;
const messageKind = 1;
export const stateRow = 0;
export const generations = 1;
export const orderRow = 0;
export const textRow = 1;
export const expiryRow = 2;

/**
 * A place in the order in which messages are handed out: by the time at which it is visible, then by the ticket of the operation that put
 * it there, then inside that operation. No place is given twice, and none is given before one that was looked at (model: `QueueEdit`).
 */
export interface Position {
  readonly visibleMs: number;
  readonly ticket: number;
  readonly index: number;
}

export const queueKey = (account: string, queue: string): Uint8Array => encodeKey([[account], [queueKind, queue], []]);

/** Returns the prefix of every queue row of the account whose name begins with `prefix`. */
export const queuesPrefix = (account: string, prefix: string): Uint8Array => encodeKeyPrefix([[account]], [queueKind], prefix);

/** Returns the prefix of every row of the queue's messages; it is also the key that orders their operations. */
export const messagesPrefix = (rules: Rules, { account, queue, incarnation }: QueueName): Uint8Array =>
  encodeKey([[account], [messageKind, queue, rules.on("incarnationInKey") ? incarnation : 0]]);

/** Returns the key of the queue's state row. `messages` is what messagesPrefix gave. */
export const stateKey = (messages: Uint8Array): Uint8Array => appendComponents(messages, [[stateRow]]);

/**
 * Returns the key of the hidden row that is there while the queue's messages are seeded from another stamp, and stays if this stamp was promoted
 * before their last piece came (docs/formats/shipped-version.md "Seed marks").
 */
export function seedMarkOf(messages: Uint8Array): Uint8Array {
  const key = new Uint8Array(messages.length + 2);
  key.set(messages);
  key.set([0x03, 0x04], messages.length);
  return key;
}

const keyOf = (messages: Uint8Array, generation: number, rest: KeyComponent): Uint8Array =>
  appendComponents(messages, [[generations, generation, ...rest]]);

export const orderKey = (messages: Uint8Array, generation: number, { visibleMs, ticket, index }: Position): Uint8Array =>
  keyOf(messages, generation, [orderRow, visibleMs, ticket, index]);
export const textKey = (messages: Uint8Array, generation: number, message: number): Uint8Array =>
  keyOf(messages, generation, [textRow, message]);
export const expiryKey = (messages: Uint8Array, generation: number, expiresMs: number, message: number): Uint8Array =>
  keyOf(messages, generation, [expiryRow, expiresMs, message]);

/** Returns the first key of what is visible at `ms` or later. */
export const orderFrom = (messages: Uint8Array, generation: number, ms: number): Uint8Array =>
  appendOpenComponent(messages, [generations, generation, orderRow, ms]);
export const expiryFrom = (messages: Uint8Array, generation: number, ms: number): Uint8Array =>
  appendOpenComponent(messages, [generations, generation, expiryRow, ms]);
/** Returns the first key of this generation and later ones. */
export const generationFrom = (messages: Uint8Array, generation: number): Uint8Array =>
  appendOpenComponent(messages, [generations, generation]);

export function positionOfOrderKey(objectName: KeyComponent): Position {
  return { visibleMs: Number(objectName[3]), ticket: Number(objectName[4]), index: Number(objectName[5]) };
}
