/** The plan of every operation on queues. */
import type { Plan, PlanContext } from "../plan.ts";
import { clearMessages, countMessages, deleteMessage, getMessages, peekMessages, putMessage, updateMessage } from "./messages.ts";
import type { QueueOperation } from "./operation.ts";
import { createQueue, deleteQueue, getQueue, listQueues, setQueueAcl, setQueueMetadata } from "./queues.ts";

export function planOfQueue({ kind }: QueueOperation, context: PlanContext): Plan {
  switch (kind.case) {
    case "createQueue":
      return createQueue(kind.value, context);
    case "getQueue":
      return getQueue(kind.value);
    case "setQueueMetadata":
      return setQueueMetadata(kind.value);
    case "setQueueAcl":
      return setQueueAcl(kind.value);
    case "deleteQueue":
      return deleteQueue(kind.value);
    case "listQueues":
      return listQueues(kind.value, context);
    case "putMessage":
      return putMessage(kind.value, context);
    case "getMessages":
      return getMessages(kind.value, context);
    case "peekMessages":
      return peekMessages(kind.value, context);
    case "deleteMessage":
      return deleteMessage(kind.value, context);
    case "updateMessage":
      return updateMessage(kind.value, context);
    case "clearMessages":
      return clearMessages(kind.value, context);
    case "countMessages":
      return countMessages(kind.value, context);
  }
}
