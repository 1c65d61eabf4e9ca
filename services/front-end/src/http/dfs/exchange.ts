/** A request of Data Lake Storage whose operation is known. */
import {
  badHeader,
  type ConditionHeaders,
  type ContentHeaders,
  type DataLakeOperationName,
  type DataLakeRequest,
  type DataLakeResource,
  type Parsed,
  type PathProperties,
  parsed,
  queryValue,
} from "@stamp/azure-rest";
import type { TreeName } from "@stamp/objects";
import { type BlobHeaders, type Container, fromWire } from "@stamp/wire";
import { conditionsToWire } from "../../objects/wire-conditions.ts";
import { type BlobExchange, withContainerRow } from "../blob/exchange.ts";
import type { Answer, Exchange } from "../exchange.ts";

export interface DataLakeExchange<Name extends DataLakeOperationName> extends Exchange {
  readonly resource: DataLakeResource;
  readonly asked: Extract<DataLakeRequest, { readonly operation: Name }>;
}

export type DataLakeHandler<Name extends DataLakeOperationName> = (exchange: DataLakeExchange<Name>) => Promise<Answer>;
/** Any request on a filesystem, or on a path in it. */
export type OnPath = Exchange & { readonly resource: DataLakeResource };

/** Names on the way from the root. */
export const namesOf = (path: string | undefined): string[] => (path === undefined || path === "" ? [] : path.split("/"));

export const filesystemOf = ({ resource }: OnPath): string => resource.filesystem ?? "";

export const rowOf = (exchange: OnPath): Promise<Parsed<Container>> =>
  exchange.objects.container(exchange.target.account, filesystemOf(exchange), exchange.limits());

export const treeNameOf = (exchange: OnPath, row: Container): TreeName => ({
  account: exchange.target.account,
  filesystem: row.name,
  incarnation: fromWire(row.incarnation),
});

export async function treeOf(exchange: OnPath): Promise<Parsed<TreeName>> {
  const row = await rowOf(exchange);
  return row.ok ? parsed(treeNameOf(exchange, row.value)) : row;
}

/** True if the caller's right is a SAS for one path: what is below a directory is not the directory. */
export const coversOnePath = ({ access, target }: OnPath): boolean =>
  access.by === "sas" && queryValue(target.query, "sr")?.startsWith("b") === true;

/** The request as one of the Blob service on the same path. */
export const asBlob = (exchange: OnPath, operation: BlobExchange["operation"], row: Container): BlobExchange =>
  withContainerRow(
    {
      ...exchange,
      target: { ...exchange.target, container: filesystemOf(exchange), blob: exchange.resource.path ?? "" },
      operation,
      key: undefined,
      sourceKey: undefined,
      containerRow: undefined,
    },
    row,
  );

const none = new Uint8Array(0);
export const emptyBody = { inline: none, places: [] };

export type PlainHeaders = Omit<BlobHeaders, "$typeName" | "$unknown">;

export const noContent: ContentHeaders = {
  contentType: undefined,
  contentEncoding: undefined,
  contentLanguage: undefined,
  contentDisposition: undefined,
  cacheControl: undefined,
  contentMd5: undefined,
};

/** `held`: those of properties that the request does not name. */
export const contentOf = (content: ContentHeaders, held?: BlobHeaders): PlainHeaders => ({
  contentType: content.contentType ?? held?.contentType ?? "",
  contentEncoding: content.contentEncoding ?? held?.contentEncoding ?? "",
  contentLanguage: content.contentLanguage ?? held?.contentLanguage ?? "",
  contentDisposition: content.contentDisposition ?? held?.contentDisposition ?? "",
  cacheControl: content.cacheControl ?? held?.cacheControl ?? "",
  contentMd5: content.contentMd5 ?? none,
  contentTypeCleared: content.contentType === undefined && (held?.contentTypeCleared ?? false),
});

/** Values are characters of ISO 8859-1; those that no header can have are refused. */
export function metadataOf(properties: PathProperties | undefined): Parsed<Record<string, string>> {
  const metadata: Record<string, string> = {};
  for (const [name, bytes] of properties ?? []) {
    if (bytes.some((byte) => byte < 0x20 || byte === 0x7f)) return badHeader("x-ms-properties", name, "Its value has a control character.");
    metadata[name] = String.fromCharCode(...bytes);
  }
  return parsed(metadata);
}

/** Conditions on the root directory are those on its filesystem, whose ETag and time it shows. */
export async function rootUnder(exchange: OnPath, conditions: ConditionHeaders, row: Container): Promise<Parsed<Container>> {
  if (!isConditional(conditions)) return parsed(row);
  const value = { account: exchange.target.account, container: row.name, conditions: conditionsToWire(conditions) };
  return exchange.objects.execute({ case: "getContainer", value }, "container", exchange.limits());
}

export const isConditional = (conditions: ConditionHeaders): boolean => Object.keys(conditions).length > 0;
