/** Tables and entities over gRPC. What is asked is checked as over HTTP. */
import { checkEntity, checkTableName, entityEtag, type Parsed, parsed, parseFilter, rejected, tablePageMax } from "@stamp/azure-rest";
import type { EntityKey } from "@stamp/objects";
import type { Handlers } from "@stamp/ports";
import { type FrontEnd, type NamedValue, propertyFromWire, propertyToWire, type EntityKey as WireEntityKey } from "@stamp/wire";
import type { Tables } from "../objects/tables.ts";
import type { AuthorizedCall } from "./authorized-call.ts";

type TableHandlers = Pick<Handlers<typeof FrontEnd>, "createTable" | "insertEntity" | "getEntity" | "queryEntities">;

export function tableHandlers(call: AuthorizedCall, tables: Tables): TableHandlers {
  return {
    createTable: call("CreateTable", async ({ account, table }: { account: string; table: string }, limits) => {
      const name = checkTableName(table);
      if (!name.ok) return name;
      const made = await tables.create({ account, table }, limits);
      return made.ok ? parsed({}) : made;
    }),
    insertEntity: call("InsertEntity", async (request: Parameters<TableHandlers["insertEntity"]>[0], limits) => {
      const key = keyOf(request.key);
      if (!key.ok) return key;
      const properties = request.properties.map(propertyFromWire).filter((property): property is NamedValue => property !== undefined);
      if (properties.length < request.properties.length) return rejected("InvalidValueType", { Reason: "A property without a value." });
      const checked = checkEntity({ ...key.value, properties });
      if (!checked.ok) return checked;
      const table = await tables.locate(request, limits);
      if (!table.ok) return table;
      const { partitionKey, rowKey } = key.value;
      const made = await tables.change(table.value, partitionKey, [{ action: "insert", rowKey, properties }], limits);
      if (!made.ok) return made;
      const timestamp = made.value[0] ?? 0n;
      return parsed({ timestamp, etag: entityEtag(timestamp) });
    }),
    getEntity: call("GetEntity", async (request: Parameters<TableHandlers["getEntity"]>[0], limits) => {
      const key = keyOf(request.key);
      if (!key.ok) return key;
      const table = await tables.locate(request, limits);
      if (!table.ok) return table;
      const found = await tables.get(table.value, key.value, request.select, limits);
      return found.ok ? parsed(entityToWire(found.value)) : found;
    }),
    queryEntities: call("QueryEntities", async (request: Parameters<TableHandlers["queryEntities"]>[0], limits) => {
      const filter = parseFilter(request.filter);
      if (!filter.ok) return filter;
      const table = await tables.locate(request, limits);
      if (!table.ok) return table;
      const entitiesMax = request.maxResults < 1 ? tablePageMax : Math.min(request.maxResults, tablePageMax);
      const question = { table: table.value, filter: filter.value, select: request.select, after: request.after, entitiesMax };
      const entities: ReturnType<typeof entityToWire>[] = [];
      const found = await tables.query(question, limits, async (some) => void entities.push(...some.map(entityToWire)));
      if (!found.ok) return found;
      const { next } = found.value;
      const page = { entities };
      return parsed(next ? { ...page, next: { ...next } } : page);
    }),
  };
}

const keyOf = (key: WireEntityKey | undefined): Parsed<EntityKey> =>
  key ? parsed({ partitionKey: key.partitionKey, rowKey: key.rowKey }) : rejected("PropertiesNeedValue");

const entityToWire = ({
  partitionKey,
  rowKey,
  timestamp,
  properties,
}: EntityKey & { timestamp: bigint; properties: readonly NamedValue[] }) => ({
  key: { partitionKey, rowKey },
  timestamp,
  properties: properties.map(propertyToWire),
});
