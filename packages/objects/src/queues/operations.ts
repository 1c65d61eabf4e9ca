/** Every operation on queues and messages, a row each (../operations/row.ts). */
import { assert, type Rules } from "@stamp/base";
import type { ListStart } from "../list-start.ts";
import { byCase, type OperationRows, type Route, type RowsOf } from "../operations/row.ts";
import { clearMessages, countMessages, deleteMessage, getMessages, peekMessages, putMessage, updateMessage } from "./messages.ts";
import type { ListQueues, QueueAddress, QueueName, QueueOperationKind } from "./operation.ts";
import { createQueue, deleteQueue, getQueue, listQueues, setQueueAcl, setQueueMetadata } from "./queues.ts";
import { messagesRoute, queueRoute, queuesRoute } from "./routes.ts";

const rows: OperationRows<QueueOperationKind> = {
  createQueue: { access: "write", route: queueRoute, plan: createQueue },
  getQueue: { access: "read", route: queueRoute, plan: getQueue },
  setQueueMetadata: { access: "write", route: queueRoute, plan: setQueueMetadata },
  setQueueAcl: { access: "write", route: queueRoute, plan: setQueueAcl },
  deleteQueue: { access: "write", route: queueRoute, plan: deleteQueue },
  listQueues: { access: "read", route: queuesRoute, plan: listQueues, overRanges: true },
  putMessage: { access: "write", route: messagesRoute, plan: putMessage, pipelined: true },
  getMessages: { access: "write", route: messagesRoute, plan: getMessages, pipelined: true },
  peekMessages: { access: "write", route: messagesRoute, plan: peekMessages, pipelined: true },
  deleteMessage: { access: "write", route: messagesRoute, plan: deleteMessage, pipelined: true },
  updateMessage: { access: "write", route: messagesRoute, plan: updateMessage, pipelined: true },
  clearMessages: { access: "write", route: messagesRoute, plan: clearMessages, pipelined: true },
  countMessages: { access: "write", route: messagesRoute, plan: countMessages, pipelined: true },
};

type RoutableValue<Value> = Value extends { readonly queue: QueueName }
  ? { readonly queue?: (QueueAddress & { readonly incarnation: number | bigint }) | undefined }
  : Value extends ListQueues
    ? Pick<ListQueues, "account"> & ListStart
    : QueueAddress;

/** The part of an operation on queues that routing reads. */
export type RoutableKind = {
  readonly [Kind in QueueOperationKind as Kind["case"]]: { readonly case: Kind["case"]; readonly value: RoutableValue<Kind["value"]> };
}[QueueOperationKind["case"]];

/** A queue operation as routing reads it: of this package, or of the wire, where the kind may be absent. */
export interface QueueOperationRoutable {
  readonly kind?: RoutableKind | { readonly case?: undefined } | undefined;
}

const all = byCase<QueueOperationKind, RoutableKind>(rows);

interface QueueOperations extends RowsOf<QueueOperationKind, RoutableKind> {
  /** Returns the place of an operation. Whoever makes the operation from a request checks that it has a kind. */
  routeOf(rules: Rules, operation: QueueOperationRoutable): Route;
}

export const queueOperations: QueueOperations = {
  ...all,
  routeOf: (rules, { kind }) => {
    assert(kind?.case !== undefined, "an operation on queues has a kind");
    return all.route(rules, kind);
  },
};
