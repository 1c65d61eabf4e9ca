/**
 * Names of messages and pop receipts, as clients see them. A message's name is a GUID (version 8: our own layout) of the ticket that it
 * was put with, never used again in this queue, and of the queue's incarnation. A pop receipt is the message's place in the order: whoever
 * moves the message (takes it, updates it) gives it another place, and so the older receipt fits no more. A place can be worked out from
 * what a peek shows; so 16 random bytes follow, which stand in the order row and are told to nobody else.
 *
 *     visible ms 12 | ticket 14 | index 2 | secret 32        hexadecimal digits
 *
 * A receipt that was given before there were secrets ends behind the index. It fits a message whose row has no secret, and no other.
 */
import { emptyBytes, fromHex, toHex } from "@stamp/base";
import type { Position } from "./queue-keys.ts";

const ticketDigits = 14;
const msDigits = 12;
const indexDigits = 2;
const placeDigits = msDigits + ticketDigits + indexDigits;
export const receiptSecretBytes = 16;

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");

export function messageIdOf(ticket: number, incarnation: number): string {
  const t = hex(ticket, ticketDigits);
  const i = hex(incarnation, ticketDigits);
  return `${t.slice(0, 8)}-${t.slice(8, 12)}-8${t.slice(12)}0-80${i.slice(0, 2)}-${i.slice(2)}`;
}

/** Returns undefined for what is no message of this queue. */
export function ticketOfMessageId(messageId: string, incarnation: number): number | undefined {
  const match = /^([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f]{2})0-80([0-9a-f]{2})-([0-9a-f]{12})$/i.exec(messageId);
  if (!match) return undefined;
  const ticket = Number.parseInt(`${match[1]}${match[2]}${match[3]}`, 16);
  const of = Number.parseInt(`${match[4]}${match[5]}`, 16);
  return of === incarnation && Number.isSafeInteger(ticket) ? ticket : undefined;
}

export interface PopReceipt {
  readonly at: Position;
  /** Random bytes of the receipt; empty in receipts of releases before they had any. */
  readonly secret: Uint8Array;
}

export const popReceiptOf = ({ visibleMs, ticket, index }: Position, secret: Uint8Array): string =>
  hex(visibleMs, msDigits) + hex(ticket, ticketDigits) + hex(index, indexDigits) + toHex(secret);

/** Returns undefined for what never was one. */
export function parsePopReceipt(receipt: string): PopReceipt | undefined {
  const digits = receipt.length;
  if ((digits !== placeDigits && digits !== placeDigits + 2 * receiptSecretBytes) || !/^[0-9a-f]+$/i.test(receipt)) return undefined;
  const number = (from: number, length: number): number => Number.parseInt(receipt.slice(from, from + length), 16);
  const visibleMs = number(0, msDigits);
  const ticket = number(msDigits, ticketDigits);
  if (!Number.isSafeInteger(ticket)) return undefined;
  const secret = fromHex(receipt.slice(placeDigits)) ?? emptyBytes;
  return { at: { visibleMs, ticket, index: number(msDigits + ticketDigits, indexDigits) }, secret };
}

/** Takes as long wherever the two differ. */
export function sameSecret(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let differing = 0;
  for (const [index, byte] of a.entries()) differing |= byte ^ (b[index] as number);
  return differing === 0;
}
