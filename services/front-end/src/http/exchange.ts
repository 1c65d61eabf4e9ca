/** One request on its way through the door: what was found out about it so far. */
import { type HttpHeaders, type OperationName, type Parsed, parsed, type ResponseHeaders, restError, type Target } from "@stamp/azure-rest";
import type { HttpRequest, HttpResponse } from "@stamp/ports";
import type { Container } from "@stamp/wire";
import type { BlobAddress, LocatedBlob, Objects } from "../objects.ts";
import type { CallLimits } from "../router.ts";

export interface Exchange {
  readonly objects: Objects;
  readonly request: HttpRequest;
  readonly headers: HttpHeaders;
  readonly target: Target;
  readonly operation: OperationName;
  readonly version: string;
  /** Without Authorization: only what the container's public access allows. */
  readonly anonymous: boolean;
  /** What is left of the time for this request, counted from now on. */
  readonly limits: () => CallLimits;
}

/** What an operation answers; the door adds what every answer has. */
export type Answer = Parsed<HttpResponse>;
export type OperationHandler = (exchange: Exchange) => Promise<Answer>;

export const respond = (status: number, headers: ResponseHeaders = {}, body?: HttpResponse["body"]): Answer =>
  parsed(body === undefined ? { status, headers } : { status, headers, body });

/** What a request without authorization may do, by the container's public access. */
const anonymousNeeds: Partial<Record<OperationName, "blob" | "container">> = {
  GetBlob: "blob",
  GetBlobProperties: "blob",
  GetBlobMetadata: "blob",
  GetBlockList: "blob",
  GetContainerProperties: "container",
  GetContainerMetadata: "container",
  ListBlobs: "container",
};

export const mayBeAnonymous = (operation: OperationName): boolean => anonymousNeeds[operation] !== undefined;

/** The container of the request, by a read of its row that is sent now or later. */
export async function containerOfRequest(exchange: Exchange): Promise<Parsed<Container>> {
  const { account, container = "$root" } = exchange.target;
  const row = await exchange.objects.container(account, container, exchange.limits());
  if (!exchange.anonymous) return row;
  const needs = anonymousNeeds[exchange.operation];
  const allowed = row.ok && needs !== undefined && (row.value.publicAccess === "container" || row.value.publicAccess === needs);
  // Strangers are not told whether it is there.
  if (row.ok ? allowed : row.error.status >= 500) return row;
  return { ok: false, error: restError("ResourceNotFound") };
}

export async function blobOfRequest(exchange: Exchange): Promise<Parsed<LocatedBlob>> {
  const container = await containerOfRequest(exchange);
  if (!container.ok) return container;
  const { account, container: name = "$root", blob = "" } = exchange.target;
  const address: BlobAddress = { account, container: name, blob };
  return parsed(exchange.objects.located(address, container.value));
}

/** `http://host/` or `http://host/account/`, as lists show it. */
export function serviceEndpoint(exchange: Exchange): string {
  const scheme = exchange.request.secure ? "https" : "http";
  const host = exchange.headers.host ?? "localhost";
  return exchange.target.addressing === "host" ? `${scheme}://${host}/` : `${scheme}://${host}/${exchange.target.account}/`;
}
