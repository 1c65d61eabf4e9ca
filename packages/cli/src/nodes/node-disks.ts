/** `stamp node disks`: what waits for the disk of every extent node, and how the rules of its I/O scheduler bore on it. */
import { Status } from "@stamp/wire";
import type { Command } from "commander";
import { bytesText, table } from "../print.ts";
import { inspect, make, nodesToAsk, tell } from "../running.ts";

const askTimeoutMs = 2_000;
export const classes = ["journal", "append", "read", "repair", "scrub"] as const;

interface ClassFacts {
  readonly started: number;
  readonly waitedMs: number;
  readonly waitedMsMax: number;
}

/** Facts about a disk, as an extent node tells them (`DiskQueue.facts`). */
export type DiskFacts = Readonly<Record<(typeof classes)[number], ClassFacts>> & {
  readonly inHand: number;
  readonly queued: number;
  readonly expectedMs: number;
  readonly oldestInHandMs: number;
  readonly oldestQueuedMs: number;
  readonly refused: number;
  readonly heldBack: { readonly expected: number; readonly overdue: number; readonly hands: number };
};

export interface NodeFacts {
  readonly disk: DiskFacts;
  /** Facts about the journal's disk, if the journal has a disk of its own. */
  readonly journalDisk?: DiskFacts;
  readonly freeBytes: number;
  /** Free inodes; undefined: the file system has no fixed number, or the node is of a release that does not tell. */
  readonly freeFiles?: number;
  readonly journalFreeBytes?: number;
  readonly takesExtents: boolean;
  readonly diskFull: boolean;
}

interface NodeDisks {
  readonly node: string;
  readonly facts: NodeFacts | undefined;
  readonly problem: string;
}

export function addNodeDisks(node: Command): void {
  make(node, "disks", "what waits for the disk of every extent node, what was held back or refused, and what room is left").action(
    async (_options, command: Command) => {
      const nodes = await inspect(command, async (inspector, transport) =>
        Promise.all(
          (await nodesToAsk(inspector)).map(async ({ nodeId, address }): Promise<NodeDisks> => {
            const answer = await transport.client(address, Status).getStatus({}, { timeoutMs: askTimeoutMs });
            if (!answer.ok) return { node: nodeId, facts: undefined, problem: answer.failure.message };
            return { node: nodeId, facts: answer.value.facts as unknown as NodeFacts, problem: "" };
          }),
        ),
      );
      tell(command, nodes, disksText);
    },
  );
}

export function disksText(nodes: readonly NodeDisks[]): string {
  const disks = nodes.flatMap(({ node, facts }) => {
    if (facts?.disk?.heldBack === undefined) return [];
    const inodes = facts.freeFiles === undefined ? "-" : String(facts.freeFiles);
    const own = { name: node, disk: facts.disk, freeBytes: facts.freeBytes, inodes, takes: takesText(facts) };
    if (facts.journalDisk === undefined) return [own];
    return [own, { name: `${node}: journal`, disk: facts.journalDisk, freeBytes: facts.journalFreeBytes ?? 0, inodes: "-", takes: "" }];
  });
  const now = disks.map(({ name, disk, freeBytes, inodes, takes }) => [
    name,
    takes,
    bytesText(freeBytes),
    inodes,
    `${disk.inHand}, ${disk.expectedMs} ms`,
    `${disk.oldestInHandMs} ms`,
    disk.queued,
    `${disk.oldestQueuedMs} ms`,
    `${disk.heldBack.expected} / ${disk.heldBack.overdue} / ${disk.heldBack.hands}`,
    disk.refused,
  ]);
  const since = disks.map(({ name, disk }) => [name, ...classes.map((each) => waitText(disk[each]))]);
  return [
    table(
      ["DISK", "TAKES", "FREE", "INODES", "IN HAND", "OLDEST", "WAITING", "LONGEST", "HELD BACK: 100 MS / 200 MS / HANDS", "REFUSED"],
      now,
    ),
    "\nOperations since the start, what they waited for the disk on average and at most",
    table(["DISK", ...classes.map((each) => each.toUpperCase())], since),
    ...nodes.filter(({ facts }) => facts?.disk?.heldBack === undefined).map(({ node, problem }) => `${node} tells nothing: ${problem}`),
  ].join("\n");
}

export const takesText = ({ diskFull, takesExtents }: NodeFacts): string =>
  diskFull ? "nothing: full" : takesExtents ? "everything" : "no new extents";

const waitText = ({ started, waitedMs, waitedMsMax }: ClassFacts): string =>
  started === 0 ? "-" : `${started}: ${(waitedMs / started).toFixed(1)}, ${waitedMsMax} ms`;
