/** Operations on the messages of a queue. */
import { emptyBytes, FailureError, refused } from "@stamp/base";
import { type Decision, fail, getRow, intact, type Plan, type PlanContext, scanRows } from "../plan.ts";
import { decodeKey } from "../rows/key.ts";
import type { GetMessages, Message, OnMessage, PeekMessages, PutMessage, QueueName, UpdateMessage } from "./operation.ts";
import { openQueue, type QueueEdit } from "./queue-edit.ts";
import { generationFrom, orderFrom, orderKey, type Position, positionOfOrderKey, seedMarkOf, textKey } from "./queue-keys.ts";
import { decodeOrder, decodeText, type MessageFacts } from "./queue-rows.ts";
import { messageIdOf, parsePopReceipt, popReceiptOf, sameSecret, ticketOfMessageId } from "./receipts.ts";
import { collectGarbage, sweepExpired } from "./upkeep.ts";

/** Rows of the order that one operation looks at, at most; what expired is removed on the way. */
const walkedMax = 1_000;
/** Deleted rows that one operation steps over, at most. */
const deletedMax = 2_000;
const scanBytesMax = 256 * 1024;
const dequeueCountMax = 2 ** 31 - 1;

export function* putMessage(value: PutMessage, context: PlanContext): Plan {
  const edit = yield* upkept(value.queue, context);
  const { nowMs, ticket } = edit;
  const expiresMs = value.timeToLiveSeconds < 0 ? undefined : nowMs + value.timeToLiveSeconds * 1000;
  const at: Position = { visibleMs: nowMs + value.visibilityTimeoutSeconds * 1000, ticket, index: 0 };
  const facts: MessageFacts = { message: ticket, insertedMs: nowMs, expiresMs, dequeueCount: 0, receiptSecret: context.receiptSecret() };
  edit.add(facts, at, value.text);
  return edit.answer({ case: "message", value: messageOf(edit, facts, at, "") });
}

export function* getMessages(value: GetMessages, context: PlanContext): Plan {
  const edit = yield* upkept(value.queue, context);
  const { found, more } = yield* visible(edit, value.count, true);
  const messages: Message[] = [];
  // One receipt secret for all messages of the answer: they go to one client.
  const receiptSecret = found.length > 0 ? context.receiptSecret() : emptyBytes;
  for (const [index, { facts, at }] of found.entries()) {
    const taken = { ...facts, receiptSecret, dequeueCount: Math.min(facts.dequeueCount + 1, dequeueCountMax) };
    const text = yield* textOf(edit, facts);
    if (text === undefined) {
      edit.remove(facts, at);
      continue;
    }
    const to: Position = { visibleMs: edit.nowMs + value.visibilityTimeoutSeconds * 1000, ticket: edit.ticket, index };
    messages.push(messageOf(edit, taken, to, text));
    edit.move(taken, at, to);
  }
  return edit.answer({ case: "messages", value: { messages, more: more || messages.length < found.length } });
}

/**
 * Nothing of a message changes; what expired before it is removed. The primary decides about the rows of a copy: there, nothing is removed, and
 * nothing behind the rows that one operation looks at is shown, because nobody moves the head.
 */
export function* peekMessages(value: PeekMessages, context: PlanContext): Plan {
  const edit = yield* value.ofCopy === true ? openQueue(value.queue, context) : upkept(value.queue, context);
  const { found, more } = yield* visible(edit, value.count, false);
  const messages: Message[] = [];
  for (const { facts, at } of found) {
    const text = yield* textOf(edit, facts);
    if (text === undefined) edit.remove(facts, at);
    else messages.push({ ...messageOf(edit, facts, at, text), popReceipt: "" });
  }
  return value.ofCopy === true
    ? edit.answerOnly({ case: "messages", value: { messages, more: false } })
    : edit.answer({ case: "messages", value: { messages, more: more || messages.length < found.length } });
}

export function* deleteMessage(value: OnMessage, context: PlanContext): Plan {
  const edit = yield* upkept(value.queue, context);
  const fenced = yield* fence(edit, value);
  if ("writes" in fenced) return fenced;
  edit.remove(fenced.facts, fenced.at);
  return edit.answer();
}

export function* updateMessage(value: UpdateMessage, context: PlanContext): Plan {
  const edit = yield* upkept(value.queue, context);
  const fenced = yield* fence(edit, value);
  if ("writes" in fenced) return fenced;
  const { at } = fenced;
  const facts: MessageFacts = { ...fenced.facts, receiptSecret: context.receiptSecret() };
  const to: Position = { visibleMs: edit.nowMs + value.visibilityTimeoutSeconds * 1000, ticket: edit.ticket, index: 0 };
  if (value.text !== undefined) edit.putText(facts, value.text);
  edit.move(facts, at, to);
  return edit.answer({ case: "message", value: messageOf(edit, facts, to, "") });
}

/** Clears in one commit, however many messages there are: they belong to an earlier generation and are collected later. */
export function* clearMessages(value: { readonly queue: QueueName }, context: PlanContext): Plan {
  const edit = yield* openQueue(value.queue, context);
  const garbage = edit.state.garbage ?? generationFrom(edit.messages, edit.generation);
  edit.change({ generation: edit.generation + 1, count: 0, garbage });
  return edit.answer();
}

export function* countMessages(value: { readonly queue: QueueName; readonly ofCopy?: boolean }, context: PlanContext): Plan {
  const edit = yield* openQueue(value.queue, context);
  const more = yield* sweepExpired(edit, true);
  if (value.ofCopy === true) return edit.answerOnly({ case: "count", value: { count: edit.state.count, more: false } });
  return edit.answer({ case: "count", value: { count: edit.state.count, more } });
}

function* upkept(queue: QueueName, context: PlanContext): Plan<QueueEdit> {
  const edit = yield* openQueue(queue, context);
  yield* collectGarbage(edit);
  yield* sweepExpired(edit);
  return edit;
}

interface Found {
  readonly facts: MessageFacts;
  readonly at: Position;
}

/**
 * Yields the first `count` messages that are visible now, in order. What expired is removed on the way. The head moves behind everything that is
 * gone, and, with `taking`, behind what is found: the caller moves that away.
 */
function* visible(edit: QueueEdit, count: number, taking: boolean): Plan<{ readonly found: readonly Found[]; readonly more: boolean }> {
  const { messages, generation, nowMs } = edit;
  const high = orderFrom(messages, generation, nowMs + 1);
  const found: Found[] = [];
  let low = orderKey(messages, generation, edit.state.head);
  let deleted = 0;
  let walked = 0;
  let drained = false;
  let next: Position | undefined;
  while (!drained && found.length < count && walked < walkedMax) {
    const rowsMax = count - found.length;
    const page = yield* scanRows(low, high, { rowsMax, bytesMax: scanBytesMax, deletedMax });
    for (const row of page.rows) {
      const at = positionOf(row.key);
      const facts = decodeOrder(row.value);
      if (edit.isExpired(facts.expiresMs)) edit.remove(facts, at);
      else found.push({ facts, at });
      next = { ...at, index: at.index + 1 };
    }
    walked += page.rows.length;
    deleted += page.deleted;
    if (page.stoppedAt !== undefined) {
      next = positionOf(page.stoppedAt);
      break;
    }
    drained = !page.more;
    if (drained) next = { visibleMs: nowMs, ticket: edit.ticket, index: 0 };
    else if (next !== undefined) low = orderKey(messages, generation, next);
  }
  const first = taking ? undefined : found[0]?.at;
  const head = first ?? next;
  if (head !== undefined) edit.moveHead(head, deleted);
  return { found, more: found.length < count && !drained };
}

const positionOf = (key: Uint8Array): Position => positionOfOrderKey(intact(decodeKey(key))[2] ?? []);

/**
 * Returns the text of a message; undefined: the seeding of the queue's messages has not ended, or never will, and did not bring it. Else a loss,
 * which is told.
 */
function* textOf(edit: QueueEdit, { message }: MessageFacts): Plan<string | undefined> {
  const row = yield* getRow(textKey(edit.messages, edit.generation, message));
  if (row) return decodeText(row).text;
  if ((yield* getRow(seedMarkOf(edit.messages))) !== undefined) return undefined;
  throw new FailureError(refused("dataLoss", "damaged", `message ${message} of queue ${edit.queue.queue} has no text`).failure);
}

/**
 * Returns the message if this receipt is the last one given for it and the message has not expired. Else the refusal: MessageNotFound, the
 * same for an older receipt, a receipt of another message, and a message that is gone.
 */
function* fence(edit: QueueEdit, { messageId, popReceipt }: OnMessage): Plan<Found | Decision> {
  const receipt = parsePopReceipt(popReceipt);
  if (receipt === undefined) {
    const details = { QueryParameterName: "popreceipt", QueryParameterValue: popReceipt, Reason: "Invalid pop receipt format" };
    return fail("InvalidQueryParameterValue", details);
  }
  const message = ticketOfMessageId(messageId, edit.queue.incarnation);
  if (message === undefined) return fail("MessageNotFound");
  const { at, secret } = receipt;
  const row = yield* getRow(orderKey(edit.messages, edit.generation, at));
  const facts = row && decodeOrder(row);
  const fits = facts?.message === message && sameSecret(facts.receiptSecret, secret);
  return fits && !edit.isExpired(facts.expiresMs) ? { facts, at } : fail("MessageNotFound");
}

const messageOf = (edit: QueueEdit, facts: MessageFacts, at: Position, text: string): Message => ({
  messageId: messageIdOf(facts.message, edit.queue.incarnation),
  insertedMs: facts.insertedMs,
  expiresMs: facts.expiresMs,
  dequeueCount: facts.dequeueCount,
  popReceipt: popReceiptOf(at, facts.receiptSecret),
  visibleMs: at.visibleMs,
  text,
});
