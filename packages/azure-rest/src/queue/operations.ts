/** Which operation of the Queue service a request is: a table by resource, method and `comp`, as blob/operations.ts. */
import { badQuery, notImplemented, type Parsed, parsed, rejected } from "../rest-error.ts";
import { queryValue, type Target } from "../target.ts";
import type { QueueResource } from "./resource.ts";

export const queueOperationNames = [
  "ListQueues",
  "GetQueueServiceProperties",
  "SetQueueServiceProperties",
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

type Row = QueueOperationName | { readonly feature: string };

const serviceRows: Readonly<Record<string, Row>> = {
  "GET comp=list": "ListQueues",
  "GET restype=service comp=properties": "GetQueueServiceProperties",
  "PUT restype=service comp=properties": "SetQueueServiceProperties",
  "GET restype=service comp=stats": { feature: "Get Queue Service Stats (geo-replication)" },
  "POST restype=service comp=userdelegationkey": { feature: "Get User Delegation Key of the Queue service" },
};

const queueRows: Readonly<Record<string, Row>> = {
  PUT: "CreateQueue",
  DELETE: "DeleteQueue",
  "GET comp=metadata": "GetQueueMetadata",
  "HEAD comp=metadata": "GetQueueMetadata",
  "PUT comp=metadata": "SetQueueMetadata",
  "GET comp=acl": "GetQueueAcl",
  "HEAD comp=acl": "GetQueueAcl",
  "PUT comp=acl": "SetQueueAcl",
};

const messagesRows: Readonly<Record<string, Row>> = {
  POST: "PutMessage",
  GET: "GetMessages",
  DELETE: "ClearMessages",
};

const messageRows: Readonly<Record<string, Row>> = {
  PUT: "UpdateMessage",
  DELETE: "DeleteMessage",
};

const methods: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE"]);

export function recognizeQueue(method: string, target: Target & QueueResource): Parsed<QueueOperationName> {
  if (!methods.has(method)) return rejected("InvalidHttpVerb");
  if (method === "OPTIONS") return rejected("CorsPreflightFailure");
  const rows = rowsOf(target);
  const restype = queryValue(target.query, "restype")?.toLowerCase() ?? "";
  const comp = queryValue(target.query, "comp")?.toLowerCase() ?? "";
  const query = `${restype === "" ? "" : ` restype=${restype}`}${comp === "" ? "" : ` comp=${comp}`}`;
  const row = Object.hasOwn(rows, method + query) ? rows[method + query] : undefined;
  if (row === "GetMessages") return peekOf(target);
  if (row !== undefined) return typeof row === "string" ? parsed(row) : notImplemented(row.feature);
  if (Object.keys(rows).some((key) => key.slice(key.indexOf(" ")) === query || (query === "" && !key.includes(" ")))) {
    return rejected("UnsupportedHttpVerb");
  }
  if (comp !== "") return badQuery("comp", comp, "It does not name an operation on this resource.");
  if (restype !== "") return badQuery("restype", restype, "It does not name a resource of this path.");
  return rejected("InvalidUri");
}

function rowsOf({ queue, messages, messageId }: QueueResource): Readonly<Record<string, Row>> {
  if (messageId !== undefined) return messageRows;
  if (messages) return messagesRows;
  return queue === undefined ? serviceRows : queueRows;
}

function peekOf({ query }: Target): Parsed<QueueOperationName> {
  const text = queryValue(query, "peekonly")?.toLowerCase();
  if (text === undefined || text === "false") return parsed("GetMessages");
  return text === "true" ? parsed("PeekMessages") : badQuery("peekonly", text, "One of true, false.");
}
