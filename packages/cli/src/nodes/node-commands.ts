/** `stamp node list|disks|add|drain|undrain|remove` and `stamp repair status`. */
import { control, DataFolder, type ProcessStatus, type StampInspector } from "@stamp/cluster";
import { NodeDuty, type NodeInfo, type RepairStatus } from "@stamp/wire";
import type { Command } from "commander";
import { recordOf } from "../cluster/known-record.ts";
import { CommandError, configOf } from "../context.ts";
import { counted } from "../health/counted.ts";
import { bytesText } from "../print.ts";
import { withProgress } from "../progress.ts";
import { inspect, make, tell } from "../running.ts";
import { warn } from "../say.ts";
import { nodeTable } from "../status/status.ts";
import { topLevel } from "../top-level.ts";
import { addNodeTo, refuseBadRemoval, setDuty, stopForGood } from "./node-changes.ts";
import { addNodeDisks } from "./node-disks.ts";

const pollMs = 500;
/** Time that a node which was added gets to become ready before the command ends. */
const addedReadyMs = 30_000;

export function addNode(program: Command): void {
  const node = topLevel(program, "node");
  make(node, "list", "the extent nodes as the stream manager sees them")
    .option("--all", "those that were removed, too: their names are not used again")
    .action(async (_options, command: Command) => {
      const all = command.opts<{ all?: boolean }>().all === true;
      const { nodes, removed } = listedNodes(await inspect(command, (inspector) => inspector.nodes()), all);
      tell(command, nodes, () =>
        [nodesText(nodes), ...(removed === 0 ? [] : [`${counted(removed, "removed node")} more: --all`])].join("\n"),
      );
    });
  addNodeDisks(node);
  make(
    node,
    "add [node]",
    "start one more extent node, now and at every later start: the next one, or one that the last start left out",
  ).action(async (name: string | undefined, _options, command: Command) => {
    const added = await addNodeNow(command, name);
    tell(command, added, () => `${added.name} is added and ${added.ready ? "ready" : `not ready yet: ./stamp health`}`);
  });
  make(node, "drain <node>", "give it nothing new and make its replicas again elsewhere")
    .option("--wait", "until it is empty")
    .action(async (nodeId: string, _options, command: Command) => {
      const wait = command.opts<{ wait?: boolean }>().wait === true;
      const drained = await inspect(command, async (inspector) => {
        const begun = await setDuty(inspector, nodeId, NodeDuty.DRAINING);
        return wait ? untilEmpty(inspector, nodeId, `./stamp node drain ${nodeId} --wait`) : begun;
      });
      tell(command, drained, (one) => nodesText([one]));
    });
  make(node, "undrain <node>", "use it again; what was made elsewhere stays there").action(
    async (nodeId: string, _options, command: Command) => {
      const node = await inspect(command, (inspector) => setDuty(inspector, nodeId, NodeDuty.SERVING));
      tell(command, node, (one) => nodesText([one]));
    },
  );
  addRemove(node);
  addRepair(program);
}

function addRemove(node: Command): void {
  make(node, "remove <node>", "drain it, wait until it is empty, forget it and stop it: no later start brings it back")
    .alias("decommission")
    .option("--no-wait", "fail when it is not empty yet, and say what it waits for")
    .action(async (nodeId: string, _options, command: Command) => {
      const { wait } = command.opts<{ wait: boolean }>();
      const config = configOf(command);
      await refuseBadRemoval(config, nodeId);
      const gone = await inspect(command, async (inspector) => {
        const known = (await inspector.nodes()).find((each) => each.nodeId === nodeId);
        // A command that was left after this was recorded has not stopped the process.
        if (known?.duty === NodeDuty.DECOMMISSIONED) return known;
        const begun = await setDuty(inspector, nodeId, NodeDuty.DRAINING);
        if (begun.replicas > 0n && !wait) {
          const why = begun.blocked.join("\n  ");
          throw new CommandError(
            `${nodeId} still holds ${begun.replicas} replicas and is being emptied (stop that: node undrain):\n  ${why}`,
          );
        }
        await untilEmpty(inspector, nodeId, `./stamp node remove ${nodeId}`);
        return setDuty(inspector, nodeId, NodeDuty.DECOMMISSIONED);
      });
      const stopped = await stopForGood(config, nodeId);
      const then = stopped ? "was stopped, and no start of this folder brings it back" : "may be switched off for ever";
      tell(command, gone, () => `${nodeId} is decommissioned: it holds nothing that is needed, and ${then}`);
    });
}

function addRepair(program: Command): void {
  const repair = topLevel(program, "repair");
  make(repair, "status", "how many, how fast, how long still")
    .option("--wait", "until no replica and no fragment waits to be made again")
    .action(async (_options, command: Command) => {
      const wait = command.opts<{ wait?: boolean }>().wait === true;
      const status = await inspect(command, (inspector) => (wait ? untilRepaired(inspector) : repairOf(inspector)));
      tell(command, status, repairText);
    });
}

export const repairOf = (inspector: StampInspector): Promise<RepairStatus> =>
  inspector.ask((manager, timeoutMs) => manager.getRepairStatus({}, { timeoutMs }));

function untilRepaired(inspector: StampInspector): Promise<RepairStatus> {
  const about = { what: "replicas are made again", afterwards: "Replicas go on being made again: ./stamp repair status" };
  return withProgress(about, async (tellProgress) => {
    for (;;) {
      const status = await repairOf(inspector);
      const { replicasWaiting, replicasInGrace, fragmentsWaiting, fragmentsInGrace } = status;
      if (replicasWaiting + replicasInGrace + fragmentsWaiting + fragmentsInGrace === 0n) return status;
      tellProgress(repairText(status).replaceAll("\n", "; "));
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  });
}

/** Starts an extent node and waits until it is ready, for a while: it goes on by itself. */
async function addNodeNow(command: Command, name: string | undefined): Promise<ProcessStatus> {
  const config = configOf(command);
  const added = await addNodeTo(config, name);
  const { extentNodes } = config;
  const recorded = recordOf(config.dataDir)?.config.extentNodes;
  if (recorded !== extentNodes)
    warn(
      `stamp: the data folder remembers ${recorded} extent nodes, but the file or environment gives extentNodes ${extentNodes}: change it there`,
    );
  const about = { what: `${added.name} starts`, afterwards: `${added.name} goes on starting: ./stamp health` };
  return withProgress(about, async (tellProgress) => {
    let now = added;
    for (const endMs = performance.now() + addedReadyMs; !now.ready && performance.now() < endMs; ) {
      tellProgress(`${added.name} is ${now.state}${now.waitingFor.length === 0 ? "" : ` and waits for ${now.waitingFor.join(", ")}`}`);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
      const { processes } = await control(new DataFolder(config.dataDir).control, { do: "status" });
      now = processes.find((each) => each.name === added.name) ?? now;
    }
    return now;
  });
}

/** Prints what the drain waits for; `again`: command that goes on waiting. */
export function untilEmpty(inspector: StampInspector, nodeId: string, again: string): Promise<NodeInfo> {
  const about = {
    what: `${nodeId} is being emptied`,
    afterwards: `${nodeId} goes on being emptied (./stamp node list). Wait on: ${again}; stop it: ./stamp node undrain ${nodeId}`,
  };
  return withProgress(about, async (tellProgress) => {
    for (let most = 0n; ; ) {
      const node = (await inspector.nodes()).find((each) => each.nodeId === nodeId);
      if (node === undefined) throw new CommandError(`there is no extent node ${nodeId}`);
      if (node.duty !== NodeDuty.DRAINING) throw new CommandError(`somebody else changed the duty of ${nodeId}`);
      if (node.replicas === 0n) return node;
      if (node.replicas > most) most = node.replicas;
      const why = node.blocked.length === 0 ? "" : `: ${node.blocked.join("; ")}`;
      tellProgress(`${nodeId} holds ${node.replicas} of ${counted(most, "replica")} still${why}`);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  });
}

/** Returns the nodes that are shown, and the number of removed ones that are left out. The stream manager keeps those for ever. */
export function listedNodes(nodes: readonly NodeInfo[], all: boolean): { readonly nodes: readonly NodeInfo[]; readonly removed: number } {
  const shown = all ? nodes : nodes.filter(({ duty }) => duty !== NodeDuty.DECOMMISSIONED);
  return { nodes: shown, removed: nodes.length - shown.length };
}

function nodesText(nodes: readonly NodeInfo[]): string {
  const blocked = nodes.filter((node) => node.blocked.length > 0).map((node) => `${node.nodeId} is not empty: ${node.blocked.join("; ")}`);
  return [nodeTable({ nodes }), ...blocked].join("\n");
}

export function repairText(status: RepairStatus): string {
  const lines = [
    status.replicasWaiting === 0n
      ? "no replica waits to be made again"
      : `${status.replicasWaiting} replicas (${bytesText(status.bytesWaiting)}) wait to be made again, ${status.copiesRunning} are being copied`,
  ];
  if (status.endangered > 0n) lines.push(`${status.endangered} of them are of extents with one intact copy left`);
  if (status.replicasDone > 0n) {
    const seconds = Number(status.runningMs) / 1000;
    const after = seconds === 0 ? "" : ` in ${seconds.toFixed(1)} s`;
    lines.push(`done: ${status.replicasDone} replicas, ${bytesText(status.bytesDone)}${after}`);
  }
  if (status.etaMs !== undefined) lines.push(`about ${(Number(status.etaMs) / 1000).toFixed(1)} s left at this rate`);
  if (status.replicasInGrace > 0n) lines.push(`${status.replicasInGrace} extents miss a node that may still come back`);
  if (status.unreachable > 0n) lines.push(`${status.unreachable} SEALED EXTENTS HAVE NO REPLICA THAT CAN BE REACHED`);
  lines.push(...fragmentLines(status));
  for (const why of status.blocked) lines.push(`can't be made now: ${why}`);
  lines.push(`at most ${bytesText(status.bytesPerSecondMax)}/s`);
  return lines.join("\n");
}

/** Returns lines about coded extents; none if they are whole. */
export function fragmentLines(status: RepairStatus): string[] {
  const { fragmentsWaiting, fragmentsInGrace, fragmentsUnreachable, fragmentsEndangered, fragmentsDone } = status;
  const lines: string[] = [];
  if (fragmentsWaiting > 0n) {
    const { fragmentBytesWaiting: bytes, fragmentRepairsRunning: running, fragmentEtaMs: etaMs } = status;
    const left = etaMs === undefined ? "" : `, about ${(Number(etaMs) / 1000).toFixed(1)} s left at this rate`;
    const wait = counted(fragmentsWaiting, "coded extent", ["waits", "wait"]);
    lines.push(`${wait} for a fragment to be made again: ${bytesText(bytes)}, ${running} being made${left}`);
  }
  if (fragmentsEndangered > 0n)
    lines.push(`${counted(fragmentsEndangered, "coded extent", ["bears", "bear"])} no further loss for certain`);
  if (fragmentsDone > 0n) lines.push(`done: ${counted(fragmentsDone, "fragment")} since this stream manager leads${episodeText(status)}`);
  if (fragmentsInGrace > 0n) lines.push(`${counted(fragmentsInGrace, "coded extent", ["misses", "miss"])} a node that may still come back`);
  if (fragmentsUnreachable > 0n)
    lines.push(`${fragmentsUnreachable} CODED EXTENTS CAN'T BE COMPUTED FROM THE FRAGMENTS THAT CAN BE REACHED`);
  return lines;
}

/** Returns size and time of the repair's running or last episode. */
function episodeText({ fragmentBytesDone: bytes, fragmentBytesRead: read, fragmentRunningMs: runningMs }: RepairStatus): string {
  if (bytes === 0n) return "";
  const seconds = (Number(runningMs) / 1000).toFixed(1);
  return `; this time ${bytesText(bytes)} in ${seconds} s, ${(Number(read) / Number(bytes)).toFixed(2)} bytes read for a byte`;
}
