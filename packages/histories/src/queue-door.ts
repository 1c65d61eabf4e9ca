/** Queues: what a client is told, or that it does not know. */
import type { HandOut } from "./queue-judge.ts";

export type QueueAnswer<T> =
  | { readonly kind: "ok"; readonly value: T }
  /** Refused by the service; nothing was changed. */
  | { readonly kind: "refused"; readonly code: string }
  /** The operation may have happened, or may still. */
  | { readonly kind: "unknown" };

export interface ToldMessage extends HandOut {
  readonly popReceipt: string;
}

/** Operations on queues that clients of histories use, by SDK or by gRPC. Times in seconds. */
export interface QueueDoor {
  create(queue: string): Promise<QueueAnswer<void>>;
  put(queue: string, text: string, hiddenS: number, liveS: number): Promise<QueueAnswer<ToldMessage>>;
  take(queue: string, count: number, timeoutS: number): Promise<QueueAnswer<readonly ToldMessage[]>>;
  peek(queue: string): Promise<QueueAnswer<readonly ToldMessage[]>>;
  delete(queue: string, message: ToldMessage): Promise<QueueAnswer<void>>;
  /** Updates a message. Returns the new receipt and the time at which the message is visible. */
  update(
    queue: string,
    message: ToldMessage,
    text: string,
    hiddenS: number,
  ): Promise<QueueAnswer<{ readonly popReceipt: string; readonly visibleS: number }>>;
  /** Returns the approximate number of messages. */
  count(queue: string): Promise<QueueAnswer<number>>;
}
