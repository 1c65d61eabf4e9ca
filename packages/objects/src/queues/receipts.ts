/**
 * Names of messages and pop receipts, as clients see them. A message's name is a GUID (version 8: our own layout) of the ticket that it
 * was put with, never used again in this queue, and of the queue's incarnation. A pop receipt is the message's place in the order: whoever
 * moves the message (takes it, updates it) gives it another place, and so the older receipt fits no more.
 */
import type { Position } from "./queue-keys.ts";

const ticketDigits = 14;
const msDigits = 12;
const indexDigits = 2;

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");

export function messageIdOf(ticket: number, incarnation: number): string {
  const t = hex(ticket, ticketDigits);
  const i = hex(incarnation, ticketDigits);
  return `${t.slice(0, 8)}-${t.slice(8, 12)}-8${t.slice(12)}0-80${i.slice(0, 2)}-${i.slice(2)}`;
}

/** Undefined for what is no message of this queue. */
export function ticketOfMessageId(messageId: string, incarnation: number): number | undefined {
  const match = /^([0-9a-f]{8})-([0-9a-f]{4})-8([0-9a-f]{2})0-80([0-9a-f]{2})-([0-9a-f]{12})$/i.exec(messageId);
  if (!match) return undefined;
  const ticket = Number.parseInt(`${match[1]}${match[2]}${match[3]}`, 16);
  const of = Number.parseInt(`${match[4]}${match[5]}`, 16);
  return of === incarnation && Number.isSafeInteger(ticket) ? ticket : undefined;
}

export const popReceiptOf = ({ visibleMs, ticket, index }: Position): string =>
  hex(visibleMs, msDigits) + hex(ticket, ticketDigits) + hex(index, indexDigits);

/** Undefined for what never was one. */
export function positionOfPopReceipt(receipt: string): Position | undefined {
  if (receipt.length !== msDigits + ticketDigits + indexDigits || !/^[0-9a-f]+$/i.test(receipt)) return undefined;
  const number = (from: number, digits: number): number => Number.parseInt(receipt.slice(from, from + digits), 16);
  const visibleMs = number(0, msDigits);
  const ticket = number(msDigits, ticketDigits);
  if (!Number.isSafeInteger(ticket)) return undefined;
  return { visibleMs, ticket, index: number(msDigits + ticketDigits, indexDigits) };
}
