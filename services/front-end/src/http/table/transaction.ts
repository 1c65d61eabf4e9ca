/**
 * Entity group transactions. The batch is answered 202 with the answers of its changes, or with one: why nothing was done, and the index
 * of the change that it is about.
 */
import {
  allParsed,
  formatIso,
  type HttpHeaders,
  type JsonForm,
  odataErrorBody,
  type Parsed,
  parsed,
  parseMetadataLevel,
  parsePrefer,
  parseTableResource,
  parseTarget,
  parseTransaction,
  queryValue,
  type RestError,
  recognizeTable,
  rejected,
  type TableResource,
  type Target,
  type TransactionAnswer,
  type TransactionRequest,
  tableAuthorizationOf,
  transactionBytesMax,
  transactionChangesMax,
  transactionResponse,
  withoutEmptyValues,
} from "@stamp/azure-rest";
import { parseAbsoluteForm } from "@stamp/base";
import type { LocatedTable } from "@stamp/objects";
import { Turns, uuid } from "@stamp/ports";
import { type Answer, respond } from "../exchange.ts";
import { type ChangeName, changeOf, isChange, type RequestedChange } from "./changes.ts";
import { changeAnswer, getEntity, queryEntities } from "./entities.ts";
import { checkRange } from "./entity-range.ts";
import { dataServiceHeaders, formOf, type TableExchange, textBody } from "./exchange.ts";

export async function entityGroupTransaction(exchange: TableExchange, hostSuffixes: readonly string[]): Promise<Answer> {
  const body = await textBody(exchange, transactionBytesMax);
  if (!body.ok) return body;
  const batch = parseTransaction(exchange.headers["content-type"], body.value);
  if (!batch.ok) return batch;
  const answers =
    batch.value.kind === "query"
      ? [await queryAnswer(exchange, batch.value.request, hostSuffixes)]
      : await changeSet(exchange, batch.value.requests, hostSuffixes);
  const { random } = exchange.objects.parts.world;
  const { contentType, body: text } = transactionResponse(uuid(random), batch.value.kind, answers);
  return respond(202, { ...dataServiceHeaders, "Content-Type": contentType }, new TextEncoder().encode(text));
}

interface Change extends RequestedChange {
  readonly operation: ChangeName;
  readonly table: string;
  readonly form: JsonForm;
  readonly prefer: "return-content" | "return-no-content" | undefined;
  readonly contentId: string | undefined;
}

async function changeSet(
  exchange: TableExchange,
  requests: readonly TransactionRequest[],
  hostSuffixes: readonly string[],
): Promise<TransactionAnswer[]> {
  const changes: Change[] = [];
  const turns = new Turns(exchange.objects.parts.world.clock);
  for (const [index, request] of requests.entries()) {
    if (turns.over) await turns.next();
    const change = index < transactionChangesMax ? read(exchange, request, hostSuffixes, changes[0]) : tooMany;
    if (!change.ok) return [errorAnswer(exchange, change.error, request, index)];
    changes.push(change.value);
  }
  const first = changes[0] as Change;
  const { account } = exchange.target;
  const table = await exchange.objects.tables.locate({ account, table: first.table }, exchange.limits());
  if (!table.ok) return [errorAnswer(exchange, table.error, requests[0], 0)];
  const wanted = changes.map(({ change }) => change);
  const changed = await exchange.objects.tables.change(table.value, first.partitionKey, wanted, exchange.limits());
  if (!changed.ok) {
    const index = Number(changed.error.details.index ?? 0);
    return [errorAnswer(exchange, changed.error, requests[index], index)];
  }
  return changes.map((change, index) => answerOf(table.value, change, changed.value[index] ?? 0n));
}

const tooMany = rejected(
  "InvalidInput",
  {},
  { message: `The batch request operation exceeds the maximum ${transactionChangesMax} changes per change set.` },
);

function answerOf(table: LocatedTable, change: Change, timestamp: bigint): TransactionAnswer {
  const { operation, form, prefer, contentId } = change;
  // Inside a transaction an insert answers with its content only when that is preferred.
  const answer = changeAnswer(operation, form, table, change, timestamp, prefer ?? "return-no-content");
  return { ...answer, contentId };
}

/** Reads one change, of the table and the PartitionKey of the first. */
function read(
  exchange: TableExchange,
  request: TransactionRequest,
  hostSuffixes: readonly string[],
  first: Change | undefined,
): Parsed<Change> {
  const named = resourceOf(exchange, request, hostSuffixes);
  if (!named.ok) return named;
  const { resource, target, headers } = named.value;
  const operation = recognizeTable(request.method, resource, target.query, headers);
  if (!operation.ok) return operation;
  if (!isChange(operation.value) || !("table" in resource))
    return rejected("InvalidInput", { Reason: `${operation.value} is not a change of an entity.` });
  const asked = allParsed({
    permitted: checkPermission(exchange, operation.value, resource.table),
    level: parseMetadataLevel(headers, target.query),
    prefer: parsePrefer(headers),
    change: changeOf(operation.value, resource, headers, request.body),
  });
  if (!asked.ok) return asked;
  const { level, prefer, change } = asked.value;
  const { partitionKey } = change;
  if (first && (first.partitionKey !== partitionKey || first.table.toLowerCase() !== resource.table.toLowerCase())) {
    return rejected("CommandsInBatchActOnDifferentPartitions");
  }
  const inside = checkRange(exchange.access.entityRange, { partitionKey, rowKey: change.change.rowKey });
  if (!inside.ok) return inside;
  return parsed({
    ...change,
    operation: operation.value,
    table: resource.table,
    form: formOf(exchange, level),
    prefer,
    contentId: request.contentId,
  });
}

/** Checks an operation inside a batch: a SAS or role must be enough for it, too. */
function checkPermission(exchange: TableExchange, operation: ChangeName | "QueryEntities" | "GetEntity", table: string): Parsed<void> {
  const signedFor = exchange.access.by === "sas" ? queryValue(exchange.target.query, "tn") : undefined;
  if (signedFor !== undefined && signedFor.toLowerCase() !== table.toLowerCase()) return rejected("AuthorizationFailure");
  return exchange.access.allows(operation, tableAuthorizationOf(operation));
}

/** Returns the resource of a URL inside the batch: absolute, from the root, or from the account, which is the batch's. */
function resourceOf(
  exchange: TableExchange,
  { url, headers }: TransactionRequest,
  hostSuffixes: readonly string[],
): Parsed<{ resource: TableResource; target: Target; headers: HttpHeaders }> {
  const absolute = parseAbsoluteForm(url);
  const { account, addressing } = exchange.target;
  const root = addressing === "path" ? `/${account}/` : "/";
  const path = absolute?.originForm ?? (url.startsWith("/") ? url : root + url);
  const host = absolute?.authority ?? exchange.headers.host ?? "";
  const target = parseTarget(path, host, { hostSuffixes });
  if (!target.ok) return target;
  if (target.value.account !== account) return rejected("InvalidInput", { Reason: "A request inside the batch is for another account." });
  const resource = parseTableResource(target.value.resource);
  if (!resource.ok) return resource;
  const said = withoutEmptyValues(target.value, headers);
  return said.ok ? parsed({ resource: resource.value, ...said.value }) : said;
}

async function queryAnswer(
  exchange: TableExchange,
  request: TransactionRequest,
  hostSuffixes: readonly string[],
): Promise<TransactionAnswer> {
  const answer = await serveQuery(exchange, request, hostSuffixes);
  if (!answer.ok) return errorAnswer(exchange, answer.error, request, 0);
  const headers = Object.fromEntries(Object.entries(answer.value.headers).map(([name, value]) => [name, String(value)]));
  const { body } = answer.value;
  return {
    status: answer.value.status,
    headers,
    body: body instanceof Uint8Array ? new TextDecoder().decode(body) : "",
    contentId: request.contentId,
  };
}

async function serveQuery(exchange: TableExchange, request: TransactionRequest, hostSuffixes: readonly string[]): Promise<Answer> {
  const named = resourceOf(exchange, request, hostSuffixes);
  if (!named.ok) return named;
  const { resource, target, headers } = named.value;
  const operation = recognizeTable(request.method, resource, target.query, headers);
  if (!operation.ok) return operation;
  const name = operation.value;
  if (name !== "QueryEntities" && name !== "GetEntity") return rejected("InvalidInput", { Reason: `${name} can't be in a batch.` });
  const permitted = checkPermission(exchange, name, "table" in resource ? resource.table : "");
  if (!permitted.ok) return permitted;
  const inner: TableExchange = {
    ...exchange,
    headers: { ...headers, host: exchange.headers.host ?? "" },
    target,
    resource,
    operation: name,
  };
  return name === "GetEntity" ? getEntity(inner) : queryEntities(inner);
}

function errorAnswer(exchange: TableExchange, error: RestError, request: TransactionRequest | undefined, index: number): TransactionAnswer {
  const { world } = exchange.objects.parts;
  const about = { requestId: exchange.cause["request-id"], time: formatIso(world.clock.wallMs()), index: String(index) };
  return {
    status: error.status,
    headers: {
      ...dataServiceHeaders,
      "x-ms-error-code": error.code,
      "Content-Type": "application/json;odata=minimalmetadata;streaming=true;charset=utf-8",
    },
    body: odataErrorBody(error, about),
    contentId: request?.contentId,
  };
}
