/**
 * Changes of the extent nodes, by path: for sessions with the role "operate". The same calls as `stamp node`.
 *
 * Invariants:
 * - A node is stopped for good only after the stream manager has recorded it as decommissioned, which it does for empty ones only.
 * - No change waits until a node is empty. A removal that comes too early says what the node still holds, and may be repeated.
 */
import type { StampInspector } from "@stamp/cluster";
import { NodeDuty, type NodeInfo } from "@stamp/wire";
import { CommandError } from "../../exit.ts";
import { setDuty } from "../../nodes/node-changes.ts";
import { wordIn } from "../data/fields.ts";
import type { StampChange } from "./account-operations.ts";

export interface NodeOperationsParts {
  readonly inspector: () => Pick<StampInspector, "change" | "nodes">;
  /** Starts one more extent node. Returns its name. */
  readonly add: () => Promise<string>;
  /** Throws if too few nodes would be left. */
  readonly refuseRemoval: (node: string) => Promise<void>;
  /** Stops the process of a decommissioned node. False if no supervisor of ours runs it. */
  readonly stopForGood: (node: string) => Promise<boolean>;
}

/** Returns the changes by path. */
export function nodeOperations({ inspector, add, refuseRemoval, stopForGood }: NodeOperationsParts): Readonly<Record<string, StampChange>> {
  const give = (node: string, duty: NodeDuty) => setDuty(inspector(), node, duty);
  return {
    "/api/add-node": async () => ({ node: await add() }),
    "/api/drain-node": async (fields) => {
      await give(wordIn(fields, "node"), NodeDuty.DRAINING);
      return {};
    },
    "/api/undrain-node": async (fields) => {
      await give(wordIn(fields, "node"), NodeDuty.SERVING);
      return {};
    },
    "/api/remove-node": async (fields) => {
      const node = wordIn(fields, "node");
      await refuseRemoval(node);
      const known = (await inspector().nodes()).find(({ nodeId }) => nodeId === node);
      // A removal that was cut off after this was recorded has not stopped the process.
      if (known?.duty !== NodeDuty.DECOMMISSIONED) {
        const begun = await give(node, NodeDuty.DRAINING);
        if (begun.replicas > 0n) throw new CommandError(notEmptyYet(begun));
        await give(node, NodeDuty.DECOMMISSIONED);
      }
      return { stopped: await stopForGood(node) };
    },
  };
}

/** One line: the page and the audit log show the first line of an error. */
function notEmptyYet({ nodeId, replicas, blocked }: NodeInfo): string {
  const why = blocked.length === 0 ? "" : `: ${blocked.join("; ")}`;
  return `${nodeId} holds ${replicas} replicas still, and is being emptied${why}. Remove it when it holds none, or use it again`;
}
