/** Changes of the extent nodes of a stamp: for `stamp node` and for the console. Failures are CommandErrors, in words for people. */
import {
  type ClusterConfig,
  control,
  DataFolder,
  nodesLeftOut,
  type ProcessStatus,
  refuseRemoval,
  type StampInspector,
} from "@stamp/cluster";
import { inWords } from "@stamp/ports-node";
import type { NodeDuty, NodeInfo } from "@stamp/wire";
import { recordOf } from "../cluster/known-record.ts";
import { CommandError, exitCodes, runningCluster } from "../context.ts";

/** True if no supervisor of ours runs the processes. */
const inContainers = (): boolean => (process.env.STAMP_PROCESSES ?? "") !== "";

export const setDuty = (inspector: Pick<StampInspector, "change">, nodeId: string, duty: NodeDuty): Promise<NodeInfo> =>
  inspector.change((manager, timeoutMs) => manager.setNodeDuty({ nodeId, duty }, { timeoutMs }));

/** Starts one more extent node, now and at every later start: the named one, or the next. It may not be ready yet. */
export async function addNodeTo(config: ClusterConfig, name: string | undefined): Promise<ProcessStatus> {
  if (inContainers())
    throw new CommandError("these processes are run by containers: add the node there (docker-compose.yml)", exitCodes.usage);
  const before = new Set((await runningCluster(config)).processes.map((each) => each.name));
  const request = { do: "add-node", ...(name === undefined ? {} : { name }) } as const;
  const { processes } = await control(new DataFolder(config.dataDir).control, request).catch((error: Error) => {
    throw new CommandError(inWords(error));
  });
  const added = processes.find((each) => !before.has(each.name));
  if (added === undefined) throw new CommandError("another command changed the cluster in this moment; see ./stamp node list");
  return added;
}

/** Throws if too few extent nodes would be left for a write. */
export async function refuseBadRemoval(config: ClusterConfig, nodeId: string): Promise<void> {
  if (inContainers()) return;
  const running = (await runningCluster(config)).processes.map(({ name }) => name);
  const why = refuseRemoval(config, nodeId, running);
  if (why !== undefined) throw new CommandError(why);
}

/** Stops the process of a decommissioned node, and has the data folder remember it. False where no supervisor of ours runs it. */
export async function stopForGood(config: ClusterConfig, nodeId: string): Promise<boolean> {
  if (inContainers()) return false;
  const { processes } = await runningCluster(config);
  const names = processes.map(({ name }) => name);
  // A node that was not started has a disk here too, and would be missed at every later start.
  const leftOut = nodesLeftOut(config.dataDir, names, recordOf(config.dataDir)?.retired ?? []);
  if (!names.includes(nodeId) && !leftOut.includes(nodeId)) return false;
  await control(new DataFolder(config.dataDir).control, { do: "retire", name: nodeId });
  return true;
}
