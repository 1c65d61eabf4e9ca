/** Where an operation on queues belongs: see ../routing.ts. Takes the wire's operations as well as ours: only names are looked at. */
import { assert, type Rules } from "@stamp/base";
import { type ListStart, listStart } from "../list-start.ts";
import { messagesPrefix, queueKey, queuesPrefix } from "./queue-keys.ts";

interface Address {
  readonly account: string;
  readonly queue: string;
}

/** The part of an operation on queues that routing reads. */
export type RoutableQueueKind =
  | { readonly case: "createQueue" | "getQueue" | "setQueueMetadata" | "setQueueAcl" | "deleteQueue"; readonly value: Address }
  | { readonly case: "listQueues"; readonly value: { readonly account: string } & ListStart }
  | {
      readonly case: "putMessage" | "getMessages" | "peekMessages" | "deleteMessage" | "updateMessage" | "clearMessages" | "countMessages";
      readonly value: { readonly queue?: (Address & { readonly incarnation: number | bigint }) | undefined };
    };

export function routeOfQueue(rules: Rules, kind: RoutableQueueKind): { readonly table: "Message"; readonly key: Uint8Array } {
  switch (kind.case) {
    case "createQueue":
    case "getQueue":
    case "setQueueMetadata":
    case "setQueueAcl":
    case "deleteQueue":
      return { table: "Message", key: queueKey(kind.value.account, kind.value.queue) };
    case "listQueues":
      return { table: "Message", key: listStart((text) => queuesPrefix(kind.value.account, text), kind.value) };
    default: {
      const name = kind.value.queue;
      assert(name !== undefined, "an operation on messages names its queue");
      const { account, queue, incarnation } = name;
      return { table: "Message", key: messagesPrefix(rules, { account, queue, incarnation: Number(incarnation) }) };
    }
  }
}

export const isQueueRead = (kind: RoutableQueueKind["case"]): boolean => kind === "getQueue" || kind === "listQueues";

const onQueues: ReadonlySet<RoutableQueueKind["case"]> = new Set([
  "createQueue",
  "getQueue",
  "setQueueMetadata",
  "setQueueAcl",
  "deleteQueue",
  "listQueues",
]);

export const isOnMessages = (kind: RoutableQueueKind["case"]): boolean => !onQueues.has(kind);
