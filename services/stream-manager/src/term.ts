/** What everything inside one leader's term shares. It ends as a whole: whoever waited sees `ended` and does nothing more. */
import type { Failure, SmTerm } from "@stamp/base";
import type { StoreAge } from "@stamp/metadata-store";
import type { Client, World } from "@stamp/ports";
import type { StreamState } from "@stamp/stream";
import { ExtentNode } from "@stamp/wire";
import type { StreamManagerConfig } from "./config.ts";
import type { Ledger } from "./ledger.ts";
import type { NodeTable } from "./node-table.ts";

export interface Term {
  readonly world: World;
  readonly config: StreamManagerConfig;
  readonly number: SmTerm;
  readonly stampId: string;
  readonly state: StreamState;
  readonly ledger: Ledger;
  readonly nodes: NodeTable;
  readonly age: StoreAge;
  readonly ended: AbortSignal;
  readonly end: (why: string) => void;
}

/** Undefined while the node's address is not known. */
export function extentNode(term: Term, nodeId: string): Client<typeof ExtentNode> | undefined {
  const address = term.nodes.address(nodeId);
  return address === undefined ? undefined : term.world.transport.client(address, ExtentNode);
}

/** A node obeys a newer term: this one is over. */
export function endIfStale(term: Term, failure: Failure): void {
  if (failure.reason === "staleTerm") term.end(`an extent node obeys a newer stream manager (${failure.message})`);
}
