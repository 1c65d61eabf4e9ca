/** Filesystems, which are the containers of the account. */
import { allParsed, etagAndTime, filesystemsJson, type Parsed, parsed, propertiesText, type ResponseHeaders } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { fromWire, toWire } from "@stamp/wire";
import { conditionsToWire } from "../../objects/wire-conditions.ts";
import { containerOf } from "../../objects/wire-to-rest.ts";
import { scopeOfNew } from "../blob/containers.ts";
import { isHierarchical } from "../blob/exchange.ts";
import { type Answer, type Exchange, respond } from "../exchange.ts";
import { type DataLakeExchange, filesystemOf, metadataOf, rowOf } from "./exchange.ts";
import { decodeToken, encodeToken } from "./tokens.ts";

const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0) & 0xff);

/** Header with the user-defined properties; none if there are none. */
export const propertiesHeader = (metadata: Readonly<Record<string, string>>): ResponseHeaders => {
  const properties = Object.entries(metadata).map(([name, value]) => [name, latin1(value)] as const);
  return properties.length === 0 ? {} : { "x-ms-properties": propertiesText(new Map(properties)) };
};

const namespaceHeader = (exchange: Exchange): ResponseHeaders => ({ "x-ms-namespace-enabled": String(isHierarchical(exchange)) });

/** Marker of a list of containers: its name, and the incarnation from which it goes on. */
function markerOf(continuation: string | undefined): Parsed<{ readonly marker: string; readonly markerStamp: bigint }> {
  if (continuation === undefined) return parsed({ marker: "", markerStamp: 0n });
  const token = decodeToken(continuation, ([marker, stamp]) =>
    typeof marker === "string" && typeof stamp === "number" && stamp >= 0 ? { marker, markerStamp: toWire(stamp) } : undefined,
  );
  return token;
}

export async function listFilesystems(exchange: DataLakeExchange<"ListFilesystems">): Promise<Answer> {
  const { prefix, maxResults, continuation } = exchange.asked;
  const from = markerOf(continuation);
  if (!from.ok) return from;
  const question = { account: exchange.target.account, prefix, ...from.value, maxResults };
  const page = await exchange.objects.listContainers(question, exchange.limits());
  if (!page.ok) return page;
  const { containers, nextMarker, nextMarkerStamp } = page.value;
  const more = nextMarker === "" ? {} : { "x-ms-continuation": encodeToken([nextMarker, fromWire(nextMarkerStamp)]) };
  const text = filesystemsJson(exchange.version, containers.map(containerOf));
  return respond(200, { "Content-Type": "application/json;charset=utf-8", ...more }, utf8(text));
}

export async function createFilesystem(exchange: DataLakeExchange<"CreateFilesystem">): Promise<Answer> {
  const metadata = metadataOf(exchange.asked.properties);
  if (!metadata.ok) return metadata;
  const scope = await scopeOfNew(exchange);
  if (!scope.ok) return scope;
  const { account } = exchange.target;
  const value = { account, container: filesystemOf(exchange), metadata: metadata.value, publicAccess: "", ...scope.value };
  const made = await exchange.objects.execute({ case: "createContainer", value }, "container", exchange.limits());
  if (!made.ok) return made;
  return respond(201, { ...etagAndTime(exchange.version, containerOf(made.value)), ...namespaceHeader(exchange) });
}

export async function setFilesystemProperties(exchange: DataLakeExchange<"SetFilesystemProperties">): Promise<Answer> {
  const asked = allParsed({ metadata: metadataOf(exchange.asked.properties) });
  if (!asked.ok) return asked;
  const conditions = conditionsToWire(exchange.asked.conditions);
  const value = { account: exchange.target.account, container: filesystemOf(exchange), ...asked.value, conditions };
  const changed = await exchange.objects.execute({ case: "setContainerMetadata", value }, "container", exchange.limits());
  return changed.ok ? respond(200, etagAndTime(exchange.version, containerOf(changed.value))) : changed;
}

export async function getFilesystemProperties(exchange: DataLakeExchange<"GetFilesystemProperties">): Promise<Answer> {
  const row = await rowOf(exchange);
  if (!row.ok) return row;
  const container = containerOf(row.value);
  const headers = { ...etagAndTime(exchange.version, container), ...propertiesHeader(container.metadata) };
  return respond(200, { ...headers, ...namespaceHeader(exchange) });
}

export async function deleteFilesystem(exchange: DataLakeExchange<"DeleteFilesystem">): Promise<Answer> {
  const conditions = conditionsToWire(exchange.asked.conditions);
  const value = { account: exchange.target.account, container: filesystemOf(exchange), conditions };
  const gone = await exchange.objects.deleteContainer(value, exchange.limits);
  return gone.ok ? respond(202) : gone;
}
