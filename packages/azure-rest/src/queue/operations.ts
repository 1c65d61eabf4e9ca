/** Operation of a request to the Queue service: a table by resource, method and `comp`, like blob/operations.ts. */
import { badQuery, type Parsed, parsed, rejected } from "../rest-error.ts";
import { queryValue, type Target } from "../target.ts";
import type { QueueResource } from "./resource.ts";

export const queueOperationNames = [
  "ListQueues",
  "GetQueueServiceProperties",
  "SetQueueServiceProperties",
  "GetQueueServiceStats",
  "GetUserDelegationKey",
  "CreateQueue",
  "DeleteQueue",
  "GetQueueMetadata",
  "SetQueueMetadata",
  "GetQueueAcl",
  "SetQueueAcl",
  "PutMessage",
  "GetMessages",
  "PeekMessages",
  "ClearMessages",
  "UpdateMessage",
  "DeleteMessage",
] as const;
export type QueueOperationName = (typeof queueOperationNames)[number];

const serviceRows: Readonly<Record<string, QueueOperationName>> = {
  "GET comp=list": "ListQueues",
  "GET restype=service comp=properties": "GetQueueServiceProperties",
  "PUT restype=service comp=properties": "SetQueueServiceProperties",
  "GET restype=service comp=stats": "GetQueueServiceStats",
  "POST restype=service comp=userdelegationkey": "GetUserDelegationKey",
};

const queueRows: Readonly<Record<string, QueueOperationName>> = {
  PUT: "CreateQueue",
  DELETE: "DeleteQueue",
  "GET comp=metadata": "GetQueueMetadata",
  "HEAD comp=metadata": "GetQueueMetadata",
  "PUT comp=metadata": "SetQueueMetadata",
  "GET comp=acl": "GetQueueAcl",
  "HEAD comp=acl": "GetQueueAcl",
  "PUT comp=acl": "SetQueueAcl",
};

const messagesRows: Readonly<Record<string, QueueOperationName>> = {
  POST: "PutMessage",
  GET: "GetMessages",
  DELETE: "ClearMessages",
};

const messageRows: Readonly<Record<string, QueueOperationName>> = {
  PUT: "UpdateMessage",
  DELETE: "DeleteMessage",
};

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE"]);

export function recognizeQueue(method: string, target: Target & QueueResource): Parsed<QueueOperationName> {
  if (!methods.has(method)) return rejected("InvalidHttpVerb");
  const rows = rowsOf(target);
  const { restype, comp, query } = asked(target);
  const row = Object.hasOwn(rows, method + query) ? rows[method + query] : undefined;
  if (row === "GetMessages") return peekOf(target);
  if (row !== undefined) return parsed(row);
  if (Object.keys(rows).some((key) => key.slice(key.indexOf(" ")) === query || (query === "" && !key.includes(" ")))) {
    return rejected("UnsupportedHttpVerb");
  }
  if (comp !== "") return badQuery("comp", comp, "It does not name an operation on this resource.");
  if (restype !== "") return badQuery("restype", restype, "It does not name a resource of this path.");
  return rejected("InvalidUri");
}

function asked({ query }: Target): { readonly restype: string; readonly comp: string; readonly query: string } {
  const restype = queryValue(query, "restype")?.toLowerCase() ?? "";
  const comp = queryValue(query, "comp")?.toLowerCase() ?? "";
  return { restype, comp, query: `${restype === "" ? "" : ` restype=${restype}`}${comp === "" ? "" : ` comp=${comp}`}` };
}

function rowsOf({ queue, messages, messageId }: QueueResource): Readonly<Record<string, QueueOperationName>> {
  if (messageId !== undefined) return messageRows;
  if (messages) return messagesRows;
  return queue === undefined ? serviceRows : queueRows;
}

function peekOf({ query }: Target): Parsed<QueueOperationName> {
  const text = queryValue(query, "peekonly")?.toLowerCase();
  if (text === undefined || text === "false") return parsed("GetMessages");
  return text === "true" ? parsed("PeekMessages") : badQuery("peekonly", text, "One of true, false.");
}

/** A kind of request that the service has: its name, and the status of a refusal, if it is not served. */
export interface QueueRequest {
  readonly title: string;
  readonly resource: "service" | "queue" | "messages" | "message";
  /** Method and parameters, e.g. `PUT comp=metadata`. */
  readonly request: string;
  readonly served: boolean;
}

const wordsOf = (operation: string): string => operation.replace(/(?<=[a-z])(?=[A-Z])/g, " ");
const peekRequest = { title: wordsOf("PeekMessages"), resource: "messages", request: "GET peekonly=true", served: true } as const;

/** Returns every row of the tables. */
export function queueRequests(): QueueRequest[] {
  const requests: QueueRequest[] = [];
  for (const [resource, rows] of [
    ["service", serviceRows],
    ["queue", queueRows],
    ["messages", messagesRows],
    ["message", messageRows],
  ] as const) {
    for (const [request, row] of Object.entries(rows)) {
      requests.push({ title: wordsOf(row), resource, request, served: true });
    }
  }
  return [...requests, peekRequest];
}

/** Returns the title of the row that a request fits; undefined: none. */
export function queueRequestTitle(method: string, target: Target & QueueResource): string | undefined {
  const rows = rowsOf(target);
  const key = method + asked(target).query;
  const row = Object.hasOwn(rows, key) ? rows[key] : undefined;
  if (row !== "GetMessages") return row && wordsOf(row);
  const operation = peekOf(target);
  return operation.ok ? wordsOf(operation.value) : undefined;
}
