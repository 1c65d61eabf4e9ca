/**
 * Continuation tokens of queries, which clients give back as they got them: `1!length!base64`, the name or key that was looked at last.
 * The next page begins behind it, so that nothing is skipped or repeated, whatever is written meanwhile.
 */
import { utf8 } from "@stamp/base";
import { fromBase64Url, toBase64Url } from "../base64.ts";
import { badQuery, type Parsed, parsed } from "../rest-error.ts";
import { decodeUtf8, type Query, queryValue } from "../target.ts";

function encodeToken(text: string): string {
  const encoded = toBase64Url(utf8(text));
  return `1!${encoded.length}!${encoded}`;
}

function decodeToken(query: Query, name: string): Parsed<string | undefined> {
  const token = queryValue(query, name.toLowerCase());
  if (token === undefined) return parsed(undefined);
  const [version, length, encoded = "", ...rest] = token.split("!");
  const bytes = version === "1" && Number(length) === encoded.length && rest.length === 0 ? fromBase64Url(encoded) : undefined;
  const text = bytes && decodeUtf8(bytes);
  return text === undefined ? badQuery(name, token, "Not a continuation token of this service.") : parsed(text);
}

export interface EntityPosition {
  readonly partitionKey: string;
  readonly rowKey: string;
}

export const entityContinuation = ({ partitionKey, rowKey }: EntityPosition): Record<string, string> => ({
  "x-ms-continuation-NextPartitionKey": encodeToken(partitionKey),
  "x-ms-continuation-NextRowKey": encodeToken(rowKey),
});

export function parseEntityContinuation(query: Query): Parsed<EntityPosition | undefined> {
  const partitionKey = decodeToken(query, "NextPartitionKey");
  if (!partitionKey.ok) return partitionKey;
  const rowKey = decodeToken(query, "NextRowKey");
  if (!rowKey.ok) return rowKey;
  return parsed(partitionKey.value === undefined ? undefined : { partitionKey: partitionKey.value, rowKey: rowKey.value ?? "" });
}

export const tableContinuation = (table: string): Record<string, string> => ({ "x-ms-continuation-NextTableName": encodeToken(table) });

export function parseTableContinuation(query: Query): Parsed<string | undefined> {
  return decodeToken(query, "NextTableName");
}
