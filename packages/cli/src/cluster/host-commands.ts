/** `stamp host list|drain|undrain|remove`: the hosts of a topology, and taking one out of service for a while or for good. */
import { renameSync, writeFileSync } from "node:fs";
import { type ClusterConfig, ownTransport, processesOf, readTopology, type StampInspector, type Topology } from "@stamp/cluster";
import { NodeDuty, type NodeInfo } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes } from "../context.ts";
import { counted } from "../health/counted.ts";
import type { StampFacts } from "../health/facts.ts";
import { fewNames } from "../health/few.ts";
import { gather } from "../health/gather.ts";
import { setDuty } from "../nodes/node-changes.ts";
import { untilEmpty } from "../nodes/node-commands.ts";
import { table } from "../print.ts";
import { inspect, make, tell } from "../running.ts";
import { nameIn } from "../status/status.ts";
import { topLevel } from "../top-level.ts";

export interface HostLine {
  readonly host: string;
  readonly address: string;
  readonly faultDomain: string;
  readonly upgradeDomain: string;
  readonly processes: number;
  /** Processes that do not answer, or are not ready. */
  readonly notReady: readonly string[];
  readonly replicas: number;
  /** Duty of the host's extent nodes: serving, draining, decommissioned; several if they differ. */
  readonly duty: string;
}

export function addHost(program: Command): void {
  const host = topLevel(program, "host");
  make(host, "list", "all hosts of the topology, and what runs on each").action(async (_options, command: Command) => {
    const { config, topology } = withTopology(command);
    const transport = ownTransport(config);
    const facts = await gather(config, transport, { view: false }).finally(() => transport.close());
    tell(command, hostLines(topology, facts), hostTable);
  });
  make(host, "drain <name>", "give its extent nodes nothing new, and make their replicas again on other hosts")
    .option("--wait", "until they are empty")
    .action(async (name: string, _options, command: Command) => {
      const wait = command.opts<{ wait?: boolean }>().wait === true;
      const drained = await drain(command, name, wait);
      tell(command, drained, () => drainedText(name, drained));
    });
  make(host, "undrain <name>", "use its extent nodes again; what was made elsewhere stays there").action(
    async (name: string, _options, command: Command) => {
      const nodes = nodesOn(withTopology(command).topology, name);
      const serving = await inspect(command, (inspector) => each(nodes, (node) => setDuty(inspector, node, NodeDuty.SERVING)));
      tell(command, serving, () => `the extent nodes of ${name} take replicas again: ${nodes.join(", ")}`);
    },
  );
  make(host, "remove <name>", "for good, also a dead one: its replicas are made again elsewhere, then the topology forgets it").action(
    async (name: string, _options, command: Command) => {
      const removed = await remove(command, name);
      tell(command, removed, () => removedText(name, withTopology(command).config, removed));
    },
  );
}

function withTopology(command: Command): { readonly config: ClusterConfig; readonly topology: Topology } {
  const config = configOf(command);
  if (config.topology === undefined)
    throw new CommandError("this stamp has one host: there is no topology (docs/guides/deploy.md)", exitCodes.usage);
  return { config, topology: readTopology(config.topology) };
}

/** Returns a line for each host: state and contents. Pure. */
export function hostLines({ hosts }: Topology, facts: Pick<StampFacts, "processes" | "streamLayer">): HostLine[] {
  return Object.entries(hosts).map(([host, { address, faultDomain = host, upgradeDomain = host, processes }]) => {
    const nodes = (facts.streamLayer?.nodes ?? []).filter(({ nodeId }) => processes.includes(nodeId));
    const ready = new Set(facts.processes.filter(({ answer }) => answer?.ready === true).map(({ name }) => name));
    const duties = new Set(nodes.map(({ duty }) => nameIn(NodeDuty, duty)));
    return {
      ...{ host, address, faultDomain, upgradeDomain },
      processes: processes.length,
      notReady: processes.filter((name) => !ready.has(name)),
      replicas: nodes.reduce((sum, { replicas }) => sum + Number(replicas), 0),
      duty: [...duties].join(", ") || "-",
    };
  });
}

const hostTable = (lines: readonly HostLine[]): string =>
  table(
    ["HOST", "ADDRESS", "FAULT DOMAIN", "UPGRADE DOMAIN", "PROCESSES", "REPLICAS", "EXTENT NODES", "NOT READY"],
    lines.map(({ host, address, faultDomain, upgradeDomain, processes, replicas, duty, notReady }) => [
      ...[host, address, faultDomain, upgradeDomain, `${processes - notReady.length} of ${processes} ready`, replicas, duty],
      notReady.length === 0 ? "-" : fewNames(notReady),
    ]),
  );

function nodesOn(topology: Topology, name: string): string[] {
  const host = topology.hosts[name];
  if (host === undefined)
    throw new CommandError(`there is no host ${name} in the topology: ${Object.keys(topology.hosts).join(", ")}`, exitCodes.usage);
  return processesOf(host).flatMap((process) => (process.role === "extent-node" ? [process.name] : []));
}

/** Returns why a host can't be emptied; undefined: it can. Pure. `nodes`: extent nodes, as the stream manager sees them. */
export function refuseDrain(
  config: Pick<ClusterConfig, "minCopies" | "copies">,
  leaving: readonly string[],
  nodes: readonly Pick<NodeInfo, "nodeId" | "up" | "duty">[],
): string | undefined {
  const left = nodes.filter(({ nodeId, up, duty }) => up && duty === NodeDuty.SERVING && !leaving.includes(nodeId)).length;
  const held = nodes.some(({ nodeId, duty }) => leaving.includes(nodeId) && duty !== NodeDuty.DECOMMISSIONED);
  if (!held || left >= config.copies) return undefined;
  return (
    `without it ${counted(left, "extent node")} would take replicas, and copies is ${config.copies}: its replicas have nowhere to go. ` +
    "Add a host first: name it in the topology, and start it there: ./stamp up -d --host NAME --data DIR"
  );
}

/** Returns the extent nodes of a host that have reported to the stream manager. */
async function known(inspector: StampInspector, nodes: readonly string[]): Promise<NodeInfo[]> {
  return (await inspector.nodes()).filter(({ nodeId }) => nodes.includes(nodeId));
}

function drain(command: Command, name: string, wait: boolean): Promise<NodeInfo[]> {
  const { config, topology } = withTopology(command);
  const nodes = nodesOn(topology, name);
  return inspect(command, async (inspector) => {
    const why = refuseDrain(config, nodes, await inspector.nodes());
    if (why !== undefined) throw new CommandError(why);
    const serving = (await known(inspector, nodes)).filter(({ duty }) => duty !== NodeDuty.DECOMMISSIONED);
    const begun = await each(serving, ({ nodeId }) => setDuty(inspector, nodeId, NodeDuty.DRAINING));
    return wait ? each(begun, ({ nodeId }) => untilEmpty(inspector, nodeId, `./stamp node drain ${nodeId} --wait`)) : begun;
  });
}

function drainedText(name: string, nodes: readonly NodeInfo[]): string {
  const left = nodes.filter(({ replicas }) => replicas > 0n);
  const waits = left.flatMap(({ nodeId, blocked }) => blocked.map((why) => `\n  ${nodeId}: ${why}`));
  if (left.length === 0)
    return `the extent nodes of ${name} hold nothing: it can be stopped for as long as you want (there: ./stamp down --data DIR)`;
  return `${name} is being emptied; wait for it: ./stamp host drain ${name} --wait; stop it: ./stamp host undrain ${name}${waits.join("")}`;
}

async function remove(command: Command, name: string): Promise<NodeInfo[]> {
  const { config, topology } = withTopology(command);
  const nodes = nodesOn(topology, name);
  if (name === config.host)
    throw new CommandError(`this command runs on ${name} itself, whose topology it would change: run it on another host`, exitCodes.usage);
  const left = Object.entries(topology.hosts).filter(([host]) => host !== name);
  if (left.length === 0) throw new CommandError(`${name} is the only host`, exitCodes.usage);
  await drain(command, name, true);
  const gone = await inspect(command, async (inspector) =>
    each(
      (await known(inspector, nodes)).filter(({ duty }) => duty !== NodeDuty.DECOMMISSIONED),
      ({ nodeId }) => setDuty(inspector, nodeId, NodeDuty.DECOMMISSIONED),
    ),
  );
  const path = config.topology as string;
  writeFileSync(`${path}.new`, `${JSON.stringify({ ...topology, hosts: Object.fromEntries(left) }, null, 2)}\n`);
  renameSync(`${path}.new`, path);
  return gone;
}

function removedText(name: string, { topology }: ClusterConfig, gone: readonly NodeInfo[]): string {
  return `${name} is removed: ${gone.map(({ nodeId }) => nodeId).join(", ") || "no extent node"} will never be used again, and ${topology} has forgotten the host.
Now: stop it if it runs (there: ./stamp down --data DIR); copy the topology to the other hosts; take its member out of etcd (etcdctl member remove)
and its address out of etcdEndpoints. The other hosts forget its lock service at their next start.`;
}

/** Runs the work for one item after the other, so that a failure names its item. */
async function each<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (const item of items) done.push(await work(item));
  return done;
}
