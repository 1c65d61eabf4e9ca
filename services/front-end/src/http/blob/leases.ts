/** Lease Blob and Lease Container. */
import { etagAndTime, type LeaseHeaders, type Parsed, parseConditions, parsed, parseLease } from "@stamp/azure-rest";
import { uuid } from "@stamp/ports";
import { fromWire, type Leased } from "@stamp/wire";
import { conditionsToWire, type WireConditions } from "../../objects/wire-conditions.ts";
import { type Answer, type Exchange, respond } from "../exchange.ts";
import { type BlobExchange, blobOfRequest } from "./exchange.ts";

interface LeaseInit {
  readonly conditions: WireConditions;
  readonly action: string;
  readonly proposedLeaseId: string;
  readonly durationSeconds: number;
  readonly breakPeriodSeconds?: number;
}

/** Returns the lease action; a lease without a proposed id gets one here. */
export function leaseOf(exchange: Exchange): Parsed<{ readonly asked: LeaseHeaders; readonly init: LeaseInit }> {
  const asked = parseLease(exchange.headers);
  if (!asked.ok) return asked;
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const { action, proposedLeaseId } = asked.value;
  const id = action === "acquire" && proposedLeaseId === "" ? uuid(exchange.objects.parts.world.random) : proposedLeaseId;
  return parsed({ asked: asked.value, init: { ...asked.value, proposedLeaseId: id, conditions: conditionsToWire(conditions.value) } });
}

export function leased(exchange: Exchange, { action }: LeaseHeaders, result: Leased): Answer {
  const headers = etagAndTime(exchange.version, { etag: result.etag, lastModifiedMs: fromWire(result.lastModifiedMs) });
  if (action === "break") return respond(202, { ...headers, "x-ms-lease-time": String(result.leftSeconds) });
  const withId = action === "release" ? headers : { ...headers, "x-ms-lease-id": result.leaseId };
  return respond(action === "acquire" ? 201 : 200, withId);
}

export async function leaseBlob(exchange: BlobExchange): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const name = await blobOfRequest(exchange);
  if (!name.ok) return name;
  const value = { ...lease.value.init, name: name.value };
  const result = await exchange.objects.execute({ case: "leaseBlob", value }, "leased", exchange.limits());
  return result.ok ? leased(exchange, lease.value.asked, result.value) : result;
}

export async function leaseContainer(exchange: BlobExchange): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const { account, container = "" } = exchange.target;
  const value = { ...lease.value.init, account, container };
  const result = await exchange.objects.execute({ case: "leaseContainer", value }, "leased", exchange.limits());
  return result.ok ? leased(exchange, lease.value.asked, result.value) : result;
}
