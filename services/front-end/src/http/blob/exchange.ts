/** A request of the Blob service whose operation is known. */
import {
  type BlobOperationName,
  type BlobResource,
  blobAuthorization,
  type Parsed,
  parsed,
  restError,
  type Target,
} from "@stamp/azure-rest";
import type { Container } from "@stamp/wire";
import type { BlobAddress, LocatedBlob } from "../../objects.ts";
import type { Answer, Exchange } from "../exchange.ts";

export interface BlobExchange extends Exchange {
  readonly target: Target & BlobResource;
  readonly operation: BlobOperationName;
}

export type BlobOperationHandler = (exchange: BlobExchange) => Promise<Answer>;

const isPublicFor = (needs: "always" | "blob" | "container", publicAccess: string): boolean =>
  needs === "always" || publicAccess === "container" || publicAccess === needs;

/** The container of the request, by a read of its row that is sent now or later. */
export async function containerOfRequest(exchange: BlobExchange): Promise<Parsed<Container>> {
  const { account, container = "$root" } = exchange.target;
  const row = await exchange.objects.container(account, container, exchange.limits());
  if (!exchange.anonymous) return row;
  const needs = blobAuthorization[exchange.operation].anonymous;
  const allowed = row.ok && needs !== undefined && isPublicFor(needs, row.value.publicAccess);
  // Strangers are not told whether it is there.
  if (row.ok ? allowed : row.error.status >= 500) return row;
  return { ok: false, error: restError("ResourceNotFound") };
}

export async function blobOfRequest(exchange: BlobExchange): Promise<Parsed<LocatedBlob>> {
  const container = await containerOfRequest(exchange);
  if (!container.ok) return container;
  const { account, container: name = "$root", blob = "" } = exchange.target;
  const address: BlobAddress = { account, container: name, blob };
  return parsed(exchange.objects.located(address, container.value));
}
