/** Rows of the Message table: between what is stored and what operations speak of. */
import { concatBytes } from "@stamp/base";
import { dictionaryOf, metadataOf } from "../blobs/state/row-values.ts";
import type { Metadata } from "../object-keys.ts";
import { intact } from "../plan.ts";
import { dateTimeOfMs, decodeRow, encodeRow, msOfDateTime } from "../rows/row.ts";
import { messageSchema } from "../rows/schemas.ts";
import { decodeSignedIdentifiers, encodeSignedIdentifiers, type SignedIdentifier } from "../signed-identifiers.ts";
import type { Queue } from "./operation.ts";
import type { Position } from "./queue-keys.ts";

export interface QueueState {
  readonly createdMs: number;
  readonly metadata: Metadata;
  readonly incarnation: number;
  readonly signedIdentifiers: readonly SignedIdentifier[];
}

/** State that all operations on the messages of one queue share. */
export interface MessagesState {
  /** Generation of the rows that count; clearing begins the next one. */
  readonly generation: number;
  /** The largest time that was acted on (rule queueClockNeverBack). */
  readonly clockMs: number;
  readonly count: number;
  /** Position before which no message lies, so that nobody steps over the deleted rows there again. */
  readonly head: Position;
  /** Messages that expired up to here are removed and not in `count`: by time, then by ticket. */
  readonly sweptMs: number;
  readonly sweptMessage: number;
  /** Prefix of rows of earlier generations that still exist; undefined: there are none. */
  readonly garbage: Uint8Array | undefined;
}

export const noMessages: MessagesState = {
  generation: 0,
  clockMs: 0,
  count: 0,
  head: { visibleMs: 0, ticket: 0, index: 0 },
  sweptMs: 0,
  sweptMessage: 0,
  garbage: undefined,
};

/** Facts about a message, without its text and its place. */
export interface MessageFacts {
  /** Ticket with which the message was put; it names the message. */
  readonly message: number;
  readonly insertedMs: number;
  /** Time at which the message expires, in milliseconds since 1970; undefined: never. */
  readonly expiresMs: number | undefined;
  readonly dequeueCount: number;
  /** Random bytes of the last receipt; empty if it was given by a release before such bytes. */
  readonly receiptSecret: Uint8Array;
}

const int = (value: bigint | undefined): number => Number(value ?? 0n);
const ms = (value: bigint | undefined): number => (value === undefined ? 0 : msOfDateTime(value));
const optionalMs = (value: bigint | undefined): number | undefined => (value === undefined ? undefined : msOfDateTime(value));
const optionalTime = (value: number | undefined): bigint | undefined => (value === undefined ? undefined : dateTimeOfMs(value));

export const encodeQueue = (state: QueueState): Uint8Array =>
  encodeRow(messageSchema, {
    created: dateTimeOfMs(state.createdMs),
    metadata: dictionaryOf(state.metadata),
    incarnation: BigInt(state.incarnation),
    signedIdentifiers: encodeSignedIdentifiers(state.signedIdentifiers),
  });

export function decodeQueue(bytes: Uint8Array): QueueState {
  const row = intact(decodeRow(messageSchema, bytes));
  return {
    createdMs: ms(row.created),
    metadata: metadataOf(row.metadata),
    incarnation: int(row.incarnation),
    signedIdentifiers: decodeSignedIdentifiers(row.signedIdentifiers),
  };
}

export const queueOf = (name: string, state: QueueState, created = false): Queue => ({
  name,
  metadata: state.metadata,
  incarnation: state.incarnation,
  signedIdentifiers: state.signedIdentifiers,
  created,
});

export const encodeState = (state: MessagesState): Uint8Array =>
  encodeRow(messageSchema, {
    generation: BigInt(state.generation),
    clock: dateTimeOfMs(state.clockMs),
    count: BigInt(state.count),
    headVisible: dateTimeOfMs(state.head.visibleMs),
    headTicket: BigInt(state.head.ticket),
    headIndex: state.head.index,
    swept: dateTimeOfMs(state.sweptMs),
    sweptMessage: BigInt(state.sweptMessage),
    garbage: state.garbage,
  });

export function decodeState(bytes: Uint8Array): MessagesState {
  const row = intact(decodeRow(messageSchema, bytes));
  return {
    generation: int(row.generation),
    clockMs: ms(row.clock),
    count: int(row.count),
    head: { visibleMs: ms(row.headVisible), ticket: int(row.headTicket), index: row.headIndex ?? 0 },
    sweptMs: ms(row.swept),
    sweptMessage: int(row.sweptMessage),
    garbage: row.garbage && concatBytes([row.garbage]),
  };
}

export const encodeOrder = (facts: MessageFacts): Uint8Array =>
  encodeRow(messageSchema, {
    message: BigInt(facts.message),
    inserted: dateTimeOfMs(facts.insertedMs),
    expires: optionalTime(facts.expiresMs),
    dequeueCount: facts.dequeueCount,
    receiptSecret: facts.receiptSecret.length === 0 ? undefined : facts.receiptSecret,
  });

export function decodeOrder(bytes: Uint8Array): MessageFacts {
  const row = intact(decodeRow(messageSchema, bytes));
  return {
    message: int(row.message),
    insertedMs: ms(row.inserted),
    expiresMs: optionalMs(row.expires),
    dequeueCount: row.dequeueCount ?? 0,
    receiptSecret: concatBytes(row.receiptSecret ? [row.receiptSecret] : []),
  };
}

export const encodeText = (text: string, expiresMs: number | undefined): Uint8Array =>
  encodeRow(messageSchema, { text, expires: optionalTime(expiresMs) });

export function decodeText(bytes: Uint8Array): { readonly text: string; readonly expiresMs: number | undefined } {
  const row = intact(decodeRow(messageSchema, bytes));
  return { text: row.text ?? "", expiresMs: optionalMs(row.expires) };
}

/** Value of an expiry row: its key alone says which message expires when. */
export const expiryMark: Uint8Array = encodeRow(messageSchema, {});
