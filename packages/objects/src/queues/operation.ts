/**
 * Operations of the Queue service and their results: the same as in proto/stamp/v1/messages.proto, with safe-integer numbers and without
 * absent parts. Times to wait are in seconds, as the REST API has them.
 */
import type { Metadata } from "../object-keys.ts";
import type { SignedIdentifier } from "../signed-identifiers.ts";

export interface QueueAddress {
  readonly account: string;
  readonly queue: string;
}

/** Queue, as a read of its row showed it that was sent after the request arrived. */
export interface QueueName extends QueueAddress {
  readonly incarnation: number;
}

export interface PutMessage {
  readonly queue: QueueName;
  /** Text of the message, after XML references were resolved. */
  readonly text: string;
  readonly visibilityTimeoutSeconds: number;
  /** Time to live: at least 1 second, or -1: it never expires. */
  readonly timeToLiveSeconds: number;
}

export interface GetMessages {
  readonly queue: QueueName;
  readonly count: number;
  readonly visibilityTimeoutSeconds: number;
}

export interface PeekMessages {
  readonly queue: QueueName;
  readonly count: number;
  /** True for a queue whose rows are another stamp's: nothing is written. */
  readonly ofCopy?: boolean;
}

/** Message with its fence: the receipt of the last Put, Get or Update. */
export interface OnMessage {
  readonly queue: QueueName;
  readonly messageId: string;
  readonly popReceipt: string;
}

export interface UpdateMessage extends OnMessage {
  readonly visibilityTimeoutSeconds: number;
  /** New text; undefined: the text stays. */
  readonly text?: string | undefined;
}

export interface ListQueues {
  readonly account: string;
  readonly prefix: string;
  /** The first name of the page; empty for the start. */
  readonly marker: string;
  readonly maxResults: number;
}

export type QueueOperationKind =
  | { readonly case: "createQueue"; readonly value: QueueAddress & { readonly metadata: Metadata } }
  | { readonly case: "getQueue"; readonly value: QueueAddress }
  | { readonly case: "setQueueMetadata"; readonly value: QueueAddress & { readonly metadata: Metadata } }
  | { readonly case: "setQueueAcl"; readonly value: QueueAddress & { readonly signedIdentifiers: readonly SignedIdentifier[] } }
  | { readonly case: "deleteQueue"; readonly value: QueueAddress }
  | { readonly case: "listQueues"; readonly value: ListQueues }
  | { readonly case: "putMessage"; readonly value: PutMessage }
  | { readonly case: "getMessages"; readonly value: GetMessages }
  | { readonly case: "peekMessages"; readonly value: PeekMessages }
  | { readonly case: "deleteMessage"; readonly value: OnMessage }
  | { readonly case: "updateMessage"; readonly value: UpdateMessage }
  | { readonly case: "clearMessages"; readonly value: { readonly queue: QueueName } }
  | { readonly case: "countMessages"; readonly value: { readonly queue: QueueName; readonly ofCopy?: boolean } };

/** Nested as the message of the wire is, so that both can be routed by the same code. */
export interface QueueOperation {
  readonly kind: QueueOperationKind;
}

export interface Queue {
  readonly name: string;
  readonly metadata: Metadata;
  readonly incarnation: number;
  readonly signedIdentifiers: readonly SignedIdentifier[];
  /** True if this operation created the queue. */
  readonly created: boolean;
}

export interface Message {
  readonly messageId: string;
  readonly insertedMs: number;
  /** Time at which the message expires, in milliseconds since 1970; undefined: never. */
  readonly expiresMs: number | undefined;
  readonly dequeueCount: number;
  /** Pop receipt; empty in a peek. */
  readonly popReceipt: string;
  readonly visibleMs: number;
  readonly text: string;
}

export interface MessagePage {
  readonly messages: readonly Message[];
  /** True if a bound on the rows of one operation was met before as many were found as were asked for: ask again. */
  readonly more: boolean;
}

export type QueueResultKind =
  | { readonly case: "queue"; readonly value: Queue }
  | {
      readonly case: "queues";
      readonly value: { readonly queues: readonly Queue[]; readonly nextMarker: string; readonly rangeEnded: boolean };
    }
  /** Answer of Put Message (without the text) and of Update Message. */
  | { readonly case: "message"; readonly value: Message }
  | { readonly case: "messages"; readonly value: MessagePage }
  /** Number of messages; `more`: expired messages are still among them, ask again. */
  | { readonly case: "count"; readonly value: { readonly count: number; readonly more: boolean } };

export interface QueueResult {
  readonly kind: QueueResultKind;
}
