/**
 * One operation on the messages of a queue: the state as it was found, what is written, and the clock. Operations of one queue run one
 * after another, each seeing what the one before decided.
 *
 * Invariants:
 *   time      an operation never acts at an earlier time than one before it (rule queueClockNeverBack), so that no message is hidden, or
 *             alive, a second time;
 *   head      every place that is given lies at or behind (now, ticket of this operation), and the head moves at most to there: so nothing
 *             is ever put before the head, and deleted rows before it are never walked again;
 *   count     goes down exactly where a message's text row is removed, which happens once. Only where a seeding from another stamp never ended
 *             may rows of one message be there without the others: the count is then near the truth, and not below 0.
 */
import { answer, type Decision, getRow, type Plan, type PlanContext, type RowWrite } from "../plan.ts";
import type { QueueName, QueueResultKind } from "./operation.ts";
import { expiryKey, messagesPrefix, orderKey, type Position, stateKey, textKey } from "./queue-keys.ts";
import {
  decodeState,
  encodeOrder,
  encodeState,
  encodeText,
  expiryMark,
  type MessageFacts,
  type MessagesState,
  noMessages,
} from "./queue-rows.ts";

/** Number of steps over deleted rows from which on a write that avoids them is worth it. */
const deletedWorthWriting = 64;

export class QueueEdit {
  readonly queue: QueueName;
  readonly nowMs: number;
  /** Ticket of this operation, larger than every earlier one in this queue. */
  readonly ticket: number;
  /** Every row of the queue's messages starts so. */
  readonly messages: Uint8Array;
  readonly #writes: RowWrite[] = [];
  #state: MessagesState;
  #changed = false;

  constructor(queue: QueueName, messages: Uint8Array, state: MessagesState, context: PlanContext) {
    this.queue = queue;
    this.messages = messages;
    this.nowMs = Math.floor(actingMs(queue, state.clockMs, context));
    this.ticket = context.sequence;
    this.#state = state;
  }

  get state(): MessagesState {
    return this.#state;
  }
  get generation(): number {
    return this.#state.generation;
  }

  isExpired(expiresMs: number | undefined): boolean {
    return expiresMs !== undefined && expiresMs <= this.nowMs;
  }

  /** True if the sweep has removed the message, except for its order row. */
  isSwept({ expiresMs, message }: { readonly expiresMs: number | undefined; readonly message: number }): boolean {
    const { sweptMs, sweptMessage } = this.#state;
    return expiresMs !== undefined && (expiresMs < sweptMs || (expiresMs === sweptMs && message <= sweptMessage));
  }

  add(facts: MessageFacts, at: Position, text: string): void {
    this.putText(facts, text);
    if (facts.expiresMs !== undefined) {
      const key = expiryKey(this.messages, this.generation, facts.expiresMs, facts.message);
      this.#writes.push({ kind: "put", key, value: expiryMark });
    }
    this.#putOrder(facts, at);
    this.change({ count: this.#state.count + 1 });
  }

  move(facts: MessageFacts, from: Position, to: Position): void {
    this.dropOrder(from);
    this.#putOrder(facts, to);
    this.change({});
  }

  putText({ message, expiresMs }: MessageFacts, text: string): void {
    this.#writes.push({ kind: "put", key: textKey(this.messages, this.generation, message), value: encodeText(text, expiresMs) });
  }

  /** Removes the message at this position, or the rest that the sweep left. */
  remove(facts: MessageFacts, at: Position): void {
    this.dropOrder(at);
    if (this.isSwept(facts)) this.change({});
    else this.removeContent(facts.message, facts.expiresMs);
  }

  /** Removes all rows of a message but the order row, which the next visitor drops. */
  removeContent(message: number, expiresMs: number | undefined): void {
    this.drop(textKey(this.messages, this.generation, message));
    if (expiresMs !== undefined) this.drop(expiryKey(this.messages, this.generation, expiresMs, message));
    this.change({ count: Math.max(0, this.#state.count - 1) });
  }

  drop(key: Uint8Array): void {
    this.#writes.push({ kind: "delete", key });
  }

  dropOrder(at: Position): void {
    this.drop(orderKey(this.messages, this.generation, at));
  }

  /** Moves the head, if something is written anyway or many deleted rows lie before it. */
  moveHead(head: Position, deletedBefore: number): void {
    this.#state = { ...this.#state, head };
    if (deletedBefore > deletedWorthWriting) this.#changed = true;
  }

  moveSwept(sweptMs: number, sweptMessage: number, deletedBefore: number): void {
    this.#state = { ...this.#state, sweptMs, sweptMessage };
    if (deletedBefore > deletedWorthWriting) this.#changed = true;
  }

  change(facts: Partial<MessagesState>): void {
    this.#state = { ...this.#state, ...facts };
    this.#changed = true;
  }

  answer(result?: QueueResultKind): Decision {
    if (this.#changed) {
      const value = encodeState({ ...this.#state, clockMs: Math.max(this.nowMs, this.#state.clockMs) });
      this.#writes.push({ kind: "put", key: stateKey(this.messages), value });
    }
    return answer(result === undefined ? { case: "done" } : { case: "queue", value: { kind: result } }, this.#writes);
  }

  /** Answers without a write, because the rows are another stamp's. */
  answerOnly(result: QueueResultKind): Decision {
    return answer({ case: "queue", value: { kind: result } }, []);
  }

  #putOrder(facts: MessageFacts, at: Position): void {
    this.#writes.push({ kind: "put", key: orderKey(this.messages, this.generation, at), value: encodeOrder(facts) });
  }
}

const actingMs = ({ account, queue, incarnation }: QueueName, clockMs: number, { rules, wallMs, queueMs }: PlanContext): number =>
  rules.on("queueClockNeverBack") ? queueMs(`${account}/${queue}/${incarnation}`, clockMs) : wallMs;

export function* openQueue(queue: QueueName, context: PlanContext): Plan<QueueEdit> {
  const messages = messagesPrefix(context.rules, queue);
  const row = yield* getRow(stateKey(messages));
  return new QueueEdit(queue, messages, row ? decodeState(row) : noMessages, context);
}
