/**
 * State that everything inside one leader's term shares. The term ends as a whole: whoever waits sees `ended` and does
 * nothing more.
 */
import type { Failure, SmTerm } from "@stamp/base";
import type { StoreAge } from "@stamp/metadata-store";
import type { Client, World } from "@stamp/ports";
import type { StreamState } from "@stamp/stream";
import { ExtentNode } from "@stamp/wire";
import type { StreamManagerConfig } from "../config.ts";
import type { StampLevel } from "../feature-level/stamp-level.ts";
import type { NodeTable } from "../nodes/node-table.ts";
import type { Ledger } from "./ledger.ts";

/**
 * Number of terms above a leader's own that later leaders can have had by the time the leader hears of them. Extent nodes obey as many
 * terms without asking the lock service (`unvouchedTermsMax`).
 */
export const followedTermsMax = 16;

export interface Term {
  readonly world: World;
  readonly config: StreamManagerConfig;
  readonly number: SmTerm;
  readonly stampId: string;
  readonly state: StreamState;
  readonly ledger: Ledger;
  readonly nodes: NodeTable;
  readonly age: StoreAge;
  readonly level: StampLevel;
  /** Lineage of the metadata store (@stamp/metadata-store lineage-record.ts); 0: it was never restored. */
  readonly lineage: number;
  readonly ended: AbortSignal;
  /** `above`: the term that ends this one, if it is known. */
  readonly end: (why: string, above?: number) => void;
}

/** Returns undefined while the node's address is not known. */
export function extentNode(term: Term, nodeId: string): Client<typeof ExtentNode> | undefined {
  const address = term.nodes.address(nodeId);
  return address === undefined ? undefined : term.world.transport.client(address, ExtentNode);
}

/**
 * Looks at a node's refusal of a command. If the node obeys a newer term, the leader's term is over. A node that obeys a term far above
 * the leader's, which no later leader can have reached, ends nothing: the leader goes on without it (rule `farTermsEndNothing`).
 * The refusal says how new the node's copy of the metadata is: the leader may be one by an older store.
 */
export function endIfStale(term: Term, { reason, message, details }: Failure): void {
  if (reason !== "staleTerm") return;
  const obeyed = Number(details?.currentTerm);
  const nodeId = details?.nodeId ?? "";
  const known = term.state.node(nodeId) !== undefined && details?.stampId === term.stampId;
  if (known) term.age.reported(nodeId, Number(details?.metadataVersion ?? 0));
  if (!known || !(obeyed > term.number + followedTermsMax) || !term.world.rules.on("farTermsEndNothing")) {
    term.end(`an extent node obeys a newer stream manager (${message})`, obeyed);
    return;
  }
  if (!term.nodes.obeysFarTerm(nodeId, { term: obeyed, diskId: details?.diskId ?? "", incarnation: Number(details?.incarnation ?? 0) }))
    return;
  term.world.logger.error("an extent node obeys a stream manager term that no leader can have", {
    node: nodeId,
    obeyed,
    term: term.number,
  });
}
