/** Operations on tables. */
import {
  allParsed,
  checkContentType,
  checkTableName,
  jsonContentType,
  parsed,
  parsePrefer,
  parseSignedIdentifiers,
  parseTableContinuation,
  parseTableName,
  parseTableQuery,
  signedIdentifiersXml,
  tableContinuation,
  tableJson,
  tablePath,
  tablesJson,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { documentBody } from "../body.ts";
import { type Answer, respond } from "../exchange.ts";
import { addressOf, dataServiceHeaders, type TableExchange, textBody, wantedForm } from "./exchange.ts";

const bodyBytesMax = 64 * 1024;

export async function queryTables(exchange: TableExchange): Promise<Answer> {
  const form = wantedForm(exchange);
  if (!form.ok) return form;
  const query = parseTableQuery(exchange.target.query);
  if (!query.ok) return query;
  const after = parseTableContinuation(exchange.target.query);
  if (!after.ok) return after;
  const { account } = exchange.target;
  const question = { account, filter: query.value.filter, after: after.value ?? "", tablesMax: query.value.top };
  // An empty page has no continuation: a client that follows it would never end.
  const empty = parsed({ tables: [], next: undefined });
  const found = query.value.top === 0 ? empty : await exchange.objects.tables.list(question, exchange.limits());
  if (!found.ok) return found;
  const { tables, next } = found.value;
  const headers = {
    ...dataServiceHeaders,
    "Content-Type": jsonContentType(form.value.metadata),
    ...(next === undefined ? {} : tableContinuation(next)),
  };
  return respond(
    200,
    headers,
    utf8(
      tablesJson(
        form.value,
        tables.map(({ name }) => name),
      ),
    ),
  );
}

export async function createTable(exchange: TableExchange): Promise<Answer> {
  const asked = allParsed({
    form: wantedForm(exchange),
    prefer: parsePrefer(exchange.headers),
    type: checkContentType(exchange.headers),
  });
  if (!asked.ok) return asked;
  const { form, prefer } = asked.value;
  const body = await textBody(exchange, bodyBytesMax);
  if (!body.ok) return body;
  const named = parseTableName(body.value);
  if (!named.ok) return named;
  const name = checkTableName(named.value);
  if (!name.ok) return name;
  const made = await exchange.objects.tables.create({ account: exchange.target.account, table: name.value }, exchange.limits());
  if (!made.ok) return made;
  const location = form.endpoint + tablePath(name.value);
  const headers: Record<string, string> = { ...dataServiceHeaders, Location: location };
  if (prefer !== undefined) headers["Preference-Applied"] = prefer;
  if (prefer === "return-no-content") return respond(204, { ...headers, DataServiceId: location });
  return respond(201, { ...headers, "Content-Type": jsonContentType(form.metadata) }, utf8(tableJson(form, name.value)));
}

export async function getTable(exchange: TableExchange): Promise<Answer> {
  const form = wantedForm(exchange);
  if (!form.ok) return form;
  const found = await exchange.objects.tables.find(addressOf(exchange), exchange.limits());
  if (!found.ok) return found;
  const headers = { ...dataServiceHeaders, "Content-Type": jsonContentType(form.value.metadata) };
  return respond(200, headers, utf8(tableJson(form.value, found.value.name)));
}

export async function deleteTable(exchange: TableExchange): Promise<Answer> {
  const gone = await exchange.objects.tables.delete(addressOf(exchange), exchange.limits());
  return gone.ok ? respond(204, dataServiceHeaders) : gone;
}

export async function getTableAcl(exchange: TableExchange): Promise<Answer> {
  const found = await exchange.objects.tables.find(addressOf(exchange), exchange.limits());
  if (!found.ok) return found;
  return respond(200, { "Content-Type": "application/xml" }, utf8(signedIdentifiersXml(found.value.signedIdentifiers)));
}

export async function setTableAcl(exchange: TableExchange): Promise<Answer> {
  const body = await documentBody(exchange, bodyBytesMax);
  if (!body.ok) return body;
  const identifiers = parseSignedIdentifiers(body.value, "table");
  if (!identifiers.ok) return identifiers;
  const changed = await exchange.objects.tables.setAcl(addressOf(exchange), identifiers.value, exchange.limits());
  return changed.ok ? respond(204) : changed;
}
