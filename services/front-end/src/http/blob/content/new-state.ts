/** Tags, tier, immutability policy and legal hold that a request sets on a new blob. */
import { type Parsed, parsed, parseNewBlobState } from "@stamp/azure-rest";
import { toWire } from "@stamp/wire";
import type { BlobExchange } from "../exchange.ts";

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
