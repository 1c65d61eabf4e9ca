/** Operations on entities: one at a time, and queries. */
import {
  EntitiesBytes,
  EntitiesJson,
  entityContinuation,
  entityEtag,
  entityJson,
  entityPath,
  type JsonForm,
  jsonContentType,
  parsed,
  parseEntityContinuation,
  parsePrefer,
  parseTableQuery,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { Entity, LocatedTable, PackedEntities } from "@stamp/objects";
import { type Answer, respond, respondText } from "../exchange.ts";
import { TextWriter } from "../turns.ts";
import { type ChangeName, changeOf, type RequestedChange } from "./changes.ts";
import { checkRange, filterOfRange, narrowedFilter } from "./entity-range.ts";
import { dataServiceHeaders, locate, type TableExchange, tableOf, textBody, wantedForm } from "./exchange.ts";

/** An entity of 1 MiB may be longer in JSON. */
const bodyBytesMax = 4 * 1024 * 1024;
/** Bytes of JSON for each byte of a stored page, about: entities of 1 KiB have one and a quarter. Longer texts grow. */
const jsonPerStored = 1.25;

export async function queryEntities(exchange: TableExchange): Promise<Answer> {
  const form = wantedForm(exchange);
  if (!form.ok) return form;
  const query = parseTableQuery(exchange.target.query);
  if (!query.ok) return query;
  const after = parseEntityContinuation(exchange.target.query);
  if (!after.ok) return after;
  const table = await locate(exchange);
  if (!table.ok) return table;
  const { select, top } = query.value;
  const filter = narrowedFilter(query.value.filter, filterOfRange(exchange.access.entityRange));
  const question = { table: table.value, filter, select, after: after.value, entitiesMax: top };
  const { world, texts } = exchange.objects.parts;
  const text = new TextWriter(world.clock, texts);
  const json = new EntitiesJson(form.value, tableOf(exchange), select);
  await text.add([json.start]);
  const write = async (entities: IteratorObject<Entity>, storedBytes: number): Promise<void> => {
    text.expect(storedBytes * jsonPerStored);
    await text.add(entities.map((entity) => json.entity(entity)));
  };
  const writePacked = async (entities: PackedEntities): Promise<void> => {
    text.expect(entities.bytes.length * jsonPerStored);
    const bytes = new EntitiesBytes(form.value, json, text.sink);
    await text.steps(() => {
      if (!entities.next()) return false;
      bytes.add(entities);
      return true;
    });
  };
  const takePacked = EntitiesBytes.writes(form.value) ? writePacked : undefined;
  const { tables } = exchange.objects;
  const found = top === 0 ? parsed({ next: undefined }) : await tables.query(question, exchange.limits(), write, takePacked);
  if (!found.ok) return found;
  const { next } = found.value;
  const headers = {
    ...dataServiceHeaders,
    "Content-Type": jsonContentType(form.value.metadata),
    ...(next === undefined ? {} : entityContinuation(next)),
  };
  await text.add([json.end]);
  return respondText(headers, text.finish());
}

export async function getEntity(exchange: TableExchange): Promise<Answer> {
  const form = wantedForm(exchange);
  if (!form.ok) return form;
  const { resource } = exchange;
  const query = parseTableQuery(exchange.target.query);
  if (!query.ok) return query;
  if (resource.kind !== "entity") return queryEntities(exchange);
  const inside = checkRange(exchange.access.entityRange, resource);
  if (!inside.ok) return inside;
  const table = await locate(exchange);
  if (!table.ok) return table;
  const { partitionKey, rowKey } = resource;
  const found = await exchange.objects.tables.get(table.value, { partitionKey, rowKey }, query.value.select, exchange.limits());
  if (!found.ok) return found;
  const headers = {
    ...dataServiceHeaders,
    "Content-Type": jsonContentType(form.value.metadata),
    ETag: entityEtag(found.value.timestamp),
  };
  return respond(200, headers, utf8(entityJson(form.value, tableOf(exchange), found.value, query.value.select)));
}

/** Changes an entity: Insert, Update, Merge, Delete Entity, Insert Or Replace, Insert Or Merge. */
export async function changeEntity(exchange: TableExchange, operation: ChangeName): Promise<Answer> {
  const form = wantedForm(exchange);
  if (!form.ok) return form;
  const prefer = parsePrefer(exchange.headers);
  if (!prefer.ok) return prefer;
  const body = operation === "DeleteEntity" ? parsed("") : await textBody(exchange, bodyBytesMax);
  if (!body.ok) return body;
  const requested = changeOf(operation, exchange.resource, exchange.headers, body.value);
  if (!requested.ok) return requested;
  const { partitionKey, change } = requested.value;
  const inside = checkRange(exchange.access.entityRange, { partitionKey, rowKey: change.rowKey });
  if (!inside.ok) return inside;
  const table = await locate(exchange);
  if (!table.ok) return table;
  const changed = await exchange.objects.tables.change(table.value, partitionKey, [change], exchange.limits());
  if (!changed.ok) return changed;
  const answer = changeAnswer(operation, form.value, table.value, requested.value, changed.value[0] ?? 0n, prefer.value);
  return respond(answer.status, answer.headers, answer.body === "" ? undefined : utf8(answer.body));
}

/** Returns the answer of a change, alone and inside a transaction. */
export function changeAnswer(
  operation: ChangeName,
  form: JsonForm,
  { table }: LocatedTable,
  { partitionKey, change }: RequestedChange,
  timestamp: bigint,
  prefer: "return-content" | "return-no-content" | undefined,
): { readonly status: number; readonly headers: Record<string, string>; readonly body: string } {
  const headers: Record<string, string> = { ...dataServiceHeaders };
  if (operation === "DeleteEntity") return { status: 204, headers, body: "" };
  headers.ETag = entityEtag(timestamp);
  if (operation !== "InsertEntity") return { status: 204, headers, body: "" };
  const entity: Entity = { partitionKey, rowKey: change.rowKey, timestamp, properties: change.properties };
  const location = form.endpoint + entityPath(table, entity);
  headers.Location = location;
  if (prefer !== undefined) headers["Preference-Applied"] = prefer;
  if (prefer === "return-no-content") return { status: 204, headers: { ...headers, DataServiceId: location }, body: "" };
  return {
    status: 201,
    headers: { ...headers, "Content-Type": jsonContentType(form.metadata) },
    body: entityJson(form, table, entity, []),
  };
}
