/** Table of the functions that serve the operations of the Queue service. */
import type { QueueOperationName } from "@stamp/azure-rest";
import { getServiceStatistics } from "../../geo/service-statistics.ts";
import { getUserDelegationKey } from "../delegation-key.ts";
import { analyticsUnsupported, getServiceProperties, setServiceProperties } from "../service-properties.ts";
import type { QueueOperationHandler } from "./exchange.ts";
import { clearMessages, deleteMessage, getMessages, peekMessages, putMessage, updateMessage } from "./messages.ts";
import { createQueue, deleteQueue, getQueueAcl, getQueueMetadata, listQueues, setQueueAcl, setQueueMetadata } from "./queues.ts";

export const operationHandlers: Readonly<Record<QueueOperationName, QueueOperationHandler>> = {
  ListQueues: listQueues,
  GetQueueServiceProperties: (exchange) => getServiceProperties(exchange, "queue"),
  SetQueueServiceProperties: (exchange) => setServiceProperties(exchange, "queue", analyticsUnsupported),
  GetQueueServiceStats: async (exchange) => getServiceStatistics(exchange),
  GetUserDelegationKey: (exchange) => getUserDelegationKey(exchange, "queue"),
  CreateQueue: createQueue,
  DeleteQueue: deleteQueue,
  GetQueueMetadata: getQueueMetadata,
  SetQueueMetadata: setQueueMetadata,
  GetQueueAcl: getQueueAcl,
  SetQueueAcl: setQueueAcl,
  PutMessage: putMessage,
  GetMessages: getMessages,
  PeekMessages: peekMessages,
  ClearMessages: clearMessages,
  UpdateMessage: updateMessage,
  DeleteMessage: deleteMessage,
};
