/**
 * Records of extent nodes: which disk, address and incarnation a node has, and what it is meant for.
 *
 * Invariant: no report makes a record that the node itself can't replace. A number that its node can't have reached yet, or that is lower
 * than a known one, is believed only from the node's own answer (`isDoubtful`, rule `reportsVouched`).
 */
import type { Outcome, Rules } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { nodeKey } from "./codec.ts";
import type { NodeDuty, NodeRecord } from "./records.ts";
import type { TransactionPlan } from "./state/changes.ts";
import type { StreamState } from "./state.ts";

/** Number of starts of a node that the manager may have missed without asking the node. */
export const unvouchedIncarnationsMax = 16;
/** Number of reports of a node that the stream manager may have missed before it asks the node; a node sends about one a second. */
export const unvouchedReportsMax = 1_000;

/** Numbers that order the reports of one disk: those of an earlier start, or earlier ones of the same start, are stale. */
export interface ReportNumbers {
  readonly diskId: string;
  readonly incarnation: number;
  readonly reportNumber: number;
  /** Transaction of the newest copy of the metadata on the node; absent: not looked at. */
  readonly metadataVersion?: number;
}

/**
 * True if the node must be asked before this report is taken: its numbers are below the known ones, or so far above that it may not be the
 * node's. Taken unasked, a far number would make every later report of the node a stale one. `recorded` is the node's record, `heard` the
 * numbers of its last report to this leader. A copy of the metadata beyond `storeVersion`, the last known transaction, is doubtful as well:
 * two such reports make the leader refuse its store, and with it every later report.
 */
export function isDoubtful(
  recorded: Pick<NodeRecord, "diskId" | "incarnation"> | undefined,
  heard: ReportNumbers | undefined,
  report: ReportNumbers,
  rules: Rules,
  storeVersion: number = Number.POSITIVE_INFINITY,
): boolean {
  if (!rules.on("reportsVouched")) return false;
  const incarnation = recorded?.diskId === report.diskId ? recorded.incarnation : 0;
  const sameStart = heard?.diskId === report.diskId && heard.incarnation === report.incarnation;
  const reportNumber = sameStart ? heard.reportNumber : 0;
  const ahead = report.incarnation > incarnation + unvouchedIncarnationsMax || report.reportNumber > reportNumber + unvouchedReportsMax;
  const copyAhead = (report.metadataVersion ?? 0) > storeVersion;
  return ahead || copyAhead || report.incarnation < incarnation || report.reportNumber <= reportNumber;
}

/**
 * Records what a node reports of itself. A node that is to be emptied stays that; one that was forgotten and comes with a new disk is a new
 * one. `asked`: the node itself gave this answer to a question, which was asked when this incarnation was recorded. If it still is, the
 * answer holds although it is lower: the process that answers has the lock of its disk, so no later one has started.
 */
export function planNode(state: StreamState, reported: Omit<NodeRecord, "duty">, asked?: number): Outcome<TransactionPlan> {
  const known = state.node(reported.nodeId);
  const forgotten = known?.duty === "decommissioned" && known.diskId !== reported.diskId;
  const record: NodeRecord = known?.duty === undefined || forgotten ? reported : { ...reported, duty: known.duty };
  // A new disk starts its count of incarnations again.
  const older = known?.diskId === record.diskId && record.incarnation < known.incarnation;
  if (older && known.incarnation !== asked) {
    return refused(
      "aborted",
      "conflict",
      `node ${record.nodeId} was seen with incarnation ${known.incarnation}, this is ${record.incarnation}`,
    );
  }
  const same =
    known?.address === record.address &&
    known.diskId === record.diskId &&
    known.faultDomain === record.faultDomain &&
    known.incarnation === record.incarnation;
  return ok({ changes: same ? [] : [{ kind: "node", record }], reads: [] });
}

/** Plans a change of a node's duty; `decommissioned` only for a node that was to be emptied and is empty. */
export function planNodeDuty(state: StreamState, nodeId: string, duty: NodeDuty): Outcome<TransactionPlan> {
  const record = state.node(nodeId);
  if (record === undefined) return refused("notFound", "badRequest", `there is no extent node ${nodeId}`);
  const current = record.duty ?? "serving";
  if (current === duty) return ok({ changes: [], reads: [nodeKey(nodeId)] });
  if (current === "decommissioned") {
    return refused("failedPrecondition", "conflict", `node ${nodeId} was decommissioned; with a new disk it is a new node`);
  }
  const held = duty === "decommissioned" ? state.replicasOn(nodeId) : 0;
  if (duty === "decommissioned" && (current !== "draining" || held > 0)) {
    return refused("failedPrecondition", "conflict", `node ${nodeId} is ${current} and holds ${held} replicas: drain it first`);
  }
  return ok({ changes: [{ kind: "node", record: { ...record, duty } }], reads: [] });
}
