/** The Queue service. */
import {
  checkQueueName,
  errorBody,
  formatIso,
  parsed,
  parseQueueResource,
  queueAuthorizationOf,
  reasonPhraseOf,
  recognizeQueue,
  refuseConditions,
  signedQueueResource,
} from "@stamp/azure-rest";
import { signedIdentifiersFromWire } from "@stamp/wire";
import type { RestService } from "../service.ts";
import { operationHandlers } from "./operations.ts";

export const queueService = (hostSuffixes: readonly string[]): RestService => ({
  name: "queue",
  serverName: "Stamp-Queue/1.0",
  hostSuffixes,
  reasonPhrase: reasonPhraseOf,
  resource(target) {
    const resource = parseQueueResource(target);
    return resource.ok ? parsed(signedQueueResource(resource.value)) : resource;
  },
  async storedPolicies(objects, account, resource, limits) {
    if (resource.kind !== "queue") return parsed([]);
    const row = await objects.parts.queues.row({ account, queue: resource.queue }, limits);
    if (!row.ok) return row.error.code === "QueueNotFound" ? parsed([]) : row;
    return parsed(signedIdentifiersFromWire(row.value.signedIdentifiers));
  },
  recognize(method, target, headers) {
    const resource = parseQueueResource(target);
    if (!resource.ok) return resource;
    const name = resource.value.queue === undefined ? undefined : checkQueueName(resource.value.queue);
    if (name && !name.ok) return name;
    const named = { ...target, ...resource.value };
    const operation = recognizeQueue(method, named);
    if (!operation.ok) return operation;
    const conditions = refuseConditions(headers, []);
    if (!conditions.ok) return conditions;
    return parsed({
      name: operation.value,
      authorization: queueAuthorizationOf(operation.value),
      serve: (exchange) => operationHandlers[operation.value]({ ...exchange, target: named }),
    });
  },
  errorBody: (error, { requestId, nowMs }) => ({ contentType: "application/xml", text: errorBody(error, requestId, formatIso(nowMs)) }),
});
