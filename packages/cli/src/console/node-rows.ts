/** Extent nodes as the console shows them: what the stream manager knows of each, and what the node itself told. Pure. */
import type { DiskRow, NodeRow } from "@stamp/console-page";
import { NodeDuty } from "@stamp/wire";
import { factAt, numberAt, type StampFacts } from "../health/facts.ts";
import { classes, type DiskFacts, type NodeFacts, takesText } from "../nodes/node-disks.ts";
import { lastPassText, passText, type ScrubFacts } from "../nodes/scrub-command.ts";
import { nameIn } from "../status/status.ts";

/** Findings of scrubbing that a node's row has at most: the newest. */
const findingsMax = 20;

export function nodeRows({ streamLayer, processes }: StampFacts): NodeRow[] {
  const byName = new Map(processes.map((each) => [each.name, each.answer?.facts]));
  // A decommissioned node is known for good, and holds nothing.
  const nodes = (streamLayer?.nodes ?? []).filter(({ duty }) => duty !== NodeDuty.DECOMMISSIONED);
  return nodes.map(({ nodeId, up, duty, faultDomain, freeBytes, totalBytes, freeFiles, replicas, blocked }) => {
    const facts = byName.get(nodeId);
    const p99Ms = factAt(facts, "journalSync.recent.p99Ms");
    return {
      name: nodeId,
      up,
      duty: nameIn(NodeDuty, duty),
      faultDomain,
      freeBytes: Number(freeBytes),
      totalBytes: Number(totalBytes),
      replicas: Number(replicas),
      blocked,
      freeFiles: freeFiles === undefined ? null : Number(freeFiles),
      syncP99Ms: typeof p99Ms === "number" ? p99Ms : null,
      appendsPerSecond: facts === undefined ? null : numberAt(facts, "appendsPerSecond"),
      fragments: facts === undefined ? null : numberAt(facts, "fragments"),
      takes: facts?.takesExtents === undefined ? "" : takesText(facts as unknown as NodeFacts),
      ...ofScrub(facts?.scrub as ScrubFacts | undefined),
      disks: disksOf(facts as NodeFacts | undefined),
    };
  });
}

function ofScrub(scrub: ScrubFacts | undefined): Pick<NodeRow, "scrub" | "scrubFindings"> {
  if (scrub?.enabled === undefined) return { scrub: "", scrubFindings: [] };
  const last = scrub.finished?.endedAtMs === undefined ? "" : `; last pass: ${lastPassText(scrub)}`;
  const found = (scrub.recent ?? []).slice(-findingsMax).map(({ extentId, why }) => `extent ${extentId}: ${why}`);
  return { scrub: `${passText(scrub)}${last}`, scrubFindings: found };
}

/** A node of a release that does not tell its queue has none. */
function disksOf(facts: NodeFacts | undefined): DiskRow[] {
  if (facts?.disk?.heldBack === undefined) return [];
  const own = diskRow("data", facts.disk, facts.freeBytes);
  return facts.journalDisk === undefined ? [own] : [own, diskRow("journal", facts.journalDisk, facts.journalFreeBytes ?? 0)];
}

const diskRow = (name: string, disk: DiskFacts, freeBytes: number): DiskRow => ({
  name,
  freeBytes,
  inHand: disk.inHand,
  waiting: disk.queued,
  oldestMs: disk.oldestQueuedMs,
  refused: disk.refused,
  classes: classes.map((each) => {
    const { started, waitedMs, waitedMsMax } = disk[each];
    return { name: each, started, meanMs: started === 0 ? 0 : waitedMs / started, maxMs: waitedMsMax };
  }),
});
