/** Operation of a request to the Queue service: a table by resource, method and `comp`, like blob/operations.ts. */
import { badQuery, type Parsed, parsed, rejected } from "../rest-error.ts";
import { refuseStatistics } from "../secondary.ts";
import { queryValue, type Target } from "../target.ts";
import type { QueueResource } from "./resource.ts";

export const queueOperationNames = [
  "ListQueues",
  "GetQueueServiceProperties",
  "SetQueueServiceProperties",
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

/** Served, or refused as the service refuses it for an account of this kind. */
type Row = QueueOperationName | { readonly refused: string; readonly refuse: typeof refuseStatistics };

const serviceRows: Readonly<Record<string, Row>> = {
  "GET comp=list": "ListQueues",
  "GET restype=service comp=properties": "GetQueueServiceProperties",
  "PUT restype=service comp=properties": "SetQueueServiceProperties",
  "GET restype=service comp=stats": { refused: "Get Queue Service Stats", refuse: refuseStatistics },
  "POST restype=service comp=userdelegationkey": "GetUserDelegationKey",
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
  const rows = rowsOf(target);
  const { restype, comp, query } = asked(target);
  const row = Object.hasOwn(rows, method + query) ? rows[method + query] : undefined;
  if (row === "GetMessages") return peekOf(target);
  if (row !== undefined) return typeof row === "string" ? parsed(row) : row.refuse();
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

/** A kind of request that the service has: its name, and the status of a refusal, if it is not served. */
export interface QueueRequest {
  readonly title: string;
  readonly resource: "service" | "queue" | "messages" | "message";
  /** `PUT comp=metadata` */
  readonly request: string;
  readonly served: boolean;
  /** HTTP status of the refusal; undefined: 501. */
  readonly refusedWith?: number;
}

const wordsOf = (operation: string): string => operation.replace(/(?<=[a-z])(?=[A-Z])/g, " ");
const titleOf = (row: Row): string => (typeof row === "string" ? wordsOf(row) : row.refused);
const peekRequest = { title: wordsOf("PeekMessages"), resource: "messages", request: "GET peekonly=true", served: true } as const;

/** Every row of the tables. */
export function queueRequests(): QueueRequest[] {
  const requests: QueueRequest[] = [];
  for (const [resource, rows] of [
    ["service", serviceRows],
    ["queue", queueRows],
    ["messages", messagesRows],
    ["message", messageRows],
  ] as const) {
    for (const [request, row] of Object.entries(rows)) {
      const refusedWith = typeof row === "string" ? {} : { refusedWith: row.refuse().error.status };
      requests.push({ title: titleOf(row), resource, request, served: typeof row === "string", ...refusedWith });
    }
  }
  return [...requests, peekRequest];
}

/** The title of the row that a request fits; undefined: none. */
export function queueRequestTitle(method: string, target: Target & QueueResource): string | undefined {
  const rows = rowsOf(target);
  const key = method + asked(target).query;
  const row = Object.hasOwn(rows, key) ? rows[key] : undefined;
  if (row !== "GetMessages") return row && titleOf(row);
  const operation = peekOf(target);
  return operation.ok ? wordsOf(operation.value) : undefined;
}
