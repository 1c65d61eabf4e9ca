/** A request of the Table service whose operation is known. */
import {
  decodeUtf8,
  type JsonForm,
  type MetadataLevel,
  type Parsed,
  parsed,
  parseMetadataLevel,
  rejected,
  type TableOperationName,
  type TableResource,
} from "@stamp/azure-rest";
import type { LocatedTable } from "@stamp/objects";
import { documentBody } from "../body.ts";
import { type Answer, type Exchange, serviceEndpoint } from "../exchange.ts";

export interface TableExchange extends Exchange {
  readonly resource: TableResource;
  readonly operation: TableOperationName;
}

export type TableOperationHandler = (exchange: TableExchange) => Promise<Answer>;

/** Returns the table of a request that names one. */
export const tableOf = ({ resource }: TableExchange): string => ("table" in resource ? resource.table : "");

export const addressOf = (exchange: TableExchange): { account: string; table: string } => ({
  account: exchange.target.account,
  table: tableOf(exchange),
});

/** Returns the table of the request, by a read of its row that is sent now or later. */
export const locate = (exchange: TableExchange): Promise<Parsed<LocatedTable>> =>
  exchange.objects.tables.locate(addressOf(exchange), exchange.limits());

export const dataServiceHeaders: Readonly<Record<string, string>> = {
  DataServiceVersion: "3.0;",
  "Cache-Control": "no-cache",
  "X-Content-Type-Options": "nosniff",
};

/** Returns the form in which the answer is written. */
export function formOf(exchange: Exchange, metadata: MetadataLevel): JsonForm {
  return { metadata, endpoint: serviceEndpoint(exchange), account: exchange.target.account };
}

export function wantedForm(exchange: Exchange): Parsed<JsonForm> {
  const level = parseMetadataLevel(exchange.headers, exchange.target.query);
  return level.ok ? parsed(formOf(exchange, level.value)) : level;
}

export async function textBody(exchange: Exchange, bytesMax: number): Promise<Parsed<string>> {
  const body = await documentBody(exchange, bytesMax);
  if (!body.ok) return body;
  const text = decodeUtf8(body.value);
  if (text === undefined) return rejected("InvalidInput", { Reason: "The body is not UTF-8." });
  // A mark of the encoding in front of a document is no part of it.
  return parsed(text.startsWith("\ufeff") ? text.slice(1) : text);
}
