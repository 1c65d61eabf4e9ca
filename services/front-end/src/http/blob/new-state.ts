/** What a request that makes a blob sets with it: tags, tier, immutability policy, legal hold. */
import { type Parsed, parsed, parseNewBlobState } from "@stamp/azure-rest";
import { toWire } from "@stamp/wire";
import type { LocatedBlob } from "../../objects.ts";
import type { BlobExchange } from "./exchange.ts";

export interface NewStateInit {
  readonly tags: Record<string, string>;
  readonly accessTier: string;
  readonly immutabilityMode: string;
  readonly legalHold: boolean;
  readonly immutableUntilMs?: bigint;
}

export function newStateOf(exchange: BlobExchange): Parsed<NewStateInit> {
  const state = parseNewBlobState(exchange.headers);
  if (!state.ok) return state;
  const { tags, accessTier, immutability, legalHold } = state.value;
  const until = immutability ? { immutableUntilMs: toWire(immutability.untilMs) } : {};
  return parsed({ tags: { ...tags }, accessTier, legalHold, immutabilityMode: immutability?.mode ?? "", ...until });
}

/** Before something inside is protected the container is told, so that it is looked through before it is deleted. */
export async function markProtected(exchange: BlobExchange, name: LocatedBlob): Promise<Parsed<unknown>> {
  const { account, container, containerIncarnation } = name;
  const value = { account, container, incarnation: containerIncarnation };
  return exchange.objects.execute({ case: "markProtected", value }, "done", exchange.limits());
}

export const markIfProtected = (exchange: BlobExchange, name: LocatedBlob, state: NewStateInit): Promise<Parsed<unknown>> =>
  state.legalHold || state.immutableUntilMs !== undefined ? markProtected(exchange, name) : Promise.resolve(parsed(undefined));
