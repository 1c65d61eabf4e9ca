/**
 * Steps of trees as operations, and writes to the blob of a file or directory.
 *
 * Invariants:
 * - Nothing is written to a file that was removed: its node says so, in the order of the row.
 * - Nothing is written while an operation on the name of the file is under way: its conditions were checked, and hold until it is decided.
 */

import type { Conditions } from "../asked-conditions.ts";
import { checkLeaseOfRead, checkLeaseOfWrite } from "../blobs/protect/leases.ts";
import { readBlob, readLiveStaging } from "../blobs/state/blob-state.ts";
import { checkWriteConditions } from "../conditions.ts";
import { refusedByHandles, removalNeed } from "../handles/handle-steps.ts";
import { isShareContainer } from "../object-keys.ts";
import { answer, fail, getRow, type Plan, type PlanContext, refuse } from "../plan.ts";
import type { TreePlace, TreeRoutable, TreeStep } from "./operation.ts";
import { planOfStep } from "./step.ts";
import { nodeKey, partitionOf, type TreeName } from "./tree-keys.ts";
import { type Address, decodeTreeRow } from "./tree-row.ts";

/** Returns undefined for a kind that is none. */
export function addressOfPlace({ kind, id, name }: TreePlace): Address | undefined {
  if (kind === "entry") return { kind, directory: id, name };
  if (kind === "directory" || kind === "file") return { kind, id };
  return kind === "lock" ? { kind } : undefined;
}

export const placeOfAddress = (at: Address): TreePlace =>
  at.kind === "entry"
    ? { kind: at.kind, id: at.directory, name: at.name }
    : { kind: at.kind, id: at.kind === "lock" ? "" : at.id, name: "" };

const treeOf = ({ account, container, containerIncarnation }: TreeRoutable): TreeName => ({
  account,
  filesystem: container,
  incarnation: Number(containerIncarnation),
});

/** Returns the begin of the keys of the step's PartitionName: a file's blob has the same, so both share one order. */
export function partitionOfStep(value: TreeRoutable): Uint8Array {
  const { id = "" } = value.at ?? {};
  const at: Address =
    value.action === "page"
      ? { kind: "entry", directory: id, name: value.after }
      : ((value.at && addressOfPlace(value.at)) ?? { kind: "lock" });
  return partitionOf(treeOf(value), at);
}

export const changesNothing = (action: string): boolean => action === "look" || action === "page";

export function* takeStep(value: TreeStep, context: PlanContext): Plan {
  const tree = treeOf(value);
  const { rules, range } = context;
  const conditionsOf = (at: Address, conditions: Conditions, overLease: boolean) =>
    at.kind === "file" || at.kind === "directory" ? conditionOn(context, { ...nameOf(tree), blob: at.id }, conditions, overLease) : none();
  const decided = yield* planOfStep({ tree, rules, range, conditionsOf }, value.step);
  return answer({ case: "tree", value: decided.answer }, decided.writes);
}

const nameOf = ({ account, filesystem, incarnation }: TreeName) => ({
  account,
  container: filesystem,
  containerIncarnation: incarnation,
});

// biome-ignore lint/correctness/useYield: entries and the lock have no conditions
function* none(): Plan<undefined> {
  return undefined;
}

function* conditionOn(
  context: PlanContext,
  name: Parameters<typeof readBlob>[1],
  conditions: Conditions,
  overLease: boolean,
): Plan<string | undefined> {
  const { prefix, head } = yield* readBlob(context, name);
  const looks = isShareContainer(name.container) && context.rules.on("handlesMarkChecks");
  const held = looks ? yield* refusedByHandles(prefix, removalNeed(conditions.handleId)) : undefined;
  if (held !== undefined) return held;
  const check = overLease ? checkLeaseOfRead : checkLeaseOfWrite;
  // A write that failed takes away the name that it has made, but not what others have begun to write there.
  if (conditions.ifNoneMatch === "*" && !head && (yield* readLiveStaging(context, prefix))) return "ConditionNotMet";
  const error =
    check("Blob", conditions.leaseId, head?.lease, context.leases) ??
    checkWriteConditions({ ...conditions, leaseId: undefined }, head, false);
  return error?.code;
}

/** Returns the plan of a write to the blob of a file or directory. `partition`: with which all its rows begin. */
export function* inTree(partition: Uint8Array, plan: Plan): Plan {
  const file = yield* getRow(nodeKey(partition, "file"));
  const row = file ?? (yield* getRow(nodeKey(partition, "directory")));
  const node = row && decodeTreeRow(row);
  if (!node || node.removed) return fail("BlobNotFound");
  if (node.mark) return refuse("conflict", "an operation on the name of this file is under way: finish it or give it up, then ask again");
  return yield* plan;
}
