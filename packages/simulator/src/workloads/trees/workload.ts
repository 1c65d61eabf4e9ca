/**
 * Clients make, rename, remove and list files and directories of one tree, through three processes that coordinate as front-ends do
 * (tree-door.ts). Faults stop processes, those too, and split and move the ranges of the tree meanwhile, and the collector is told of
 * directories that are there. A reference tree judges every answer (tree-judge.ts). After the faults everything is settled and collected:
 * what can be reached is whole, of what can't nothing is left.
 */
import type { Prng } from "@stamp/base";
import { rootId } from "@stamp/front-end";
import { until } from "@stamp/histories";
import { routeOf, type TreeAddress, type TreeName } from "@stamp/objects";
import { within } from "@stamp/ports";
import { freed, type Machine, type MachineContext, type Result } from "@stamp/tree";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import { simulatedCluster } from "../cluster.ts";
import type { Focus } from "../faults/fault-kinds.ts";
import { Faults } from "../faults/faults.ts";
import { stageOf } from "../run/stage.ts";
import type { Tally, Workload } from "../run/workload.ts";
import { TreeClient } from "./tree-client.ts";
import { TreeDoor } from "./tree-door.ts";
import { type KnownNode, type ReachedTree, TreeJudge } from "./tree-judge.ts";

const names = ["a", "b", "c"] as const;
const doors = ["front-end-2", "front-end-3", "front-end-4"] as const;
const filesystem = "tree";
const workMs = 60_000;
const readyWithinMs = 60_000;
const healedWithinMs = 120_000;
/** Time after which no request of before is on its way any more. */
const lateMs = 15_000;
const bound = { withinMs: healedWithinMs, pauseMs: 500 };

export const treeWorkload: Workload = async (sim, tally, focus) => {
  const { prng } = sim;
  const cluster = simulatedCluster(sim, { partitionServer: { collectEveryMs: prng.pick([300, 3_000]), collectGoneMs: 8_000 } });
  const restartAfterMs = 100 + prng.below(2_000);
  for (const name of doors) sim.addProcess(name, (world) => new TreeDoor(world, name, cluster.lockService), { restartAfterMs });
  const isReady = (): boolean => cluster.ready() && doors.every((name) => sim.role(name)?.status.ready === true);
  await sim.until(isReady, readyWithinMs, "the cluster is ready");
  const run = new Run(sim, tally, await made(sim, tally, cluster.account));
  const reshapes = { cluster, table: "Blob", key: (chooser: Prng) => run.key(chooser), weight: 10 } as const;
  const faults = new Faults(sim, { targets: [...cluster.processes, ...doors], clients: [], pace: 4, focus, withinMs: workMs, reshapes });
  tally.faults = faults.counts;
  faults.start();
  await run.work(focus);
  await faults.heal();
  await sim.until(isReady, healedWithinMs, "every process is ready after the last fault");
  await sim.sleep(lateMs);
  await run.end();
};

async function made(sim: Simulation, tally: Tally, account: string): Promise<TreeName> {
  let tree: TreeName | undefined;
  sim.world("client-1");
  await until(stageOf(sim, tally), "the filesystem is made", bound, async () => {
    const door = sim.role(doors[0]) as TreeDoor;
    tree = await sim.ask("client-1", doors[0], () => door.filesystem(account, filesystem));
    return tree !== undefined;
  });
  return tree as TreeName;
}

class Run {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #tree: TreeName;
  readonly #judge: TreeJudge;
  readonly #count: (what: string) => void;
  readonly #client: TreeClient;

  constructor(sim: Simulation, tally: Tally, tree: TreeName) {
    this.#sim = sim;
    this.#tally = tally;
    this.#tree = tree;
    this.#judge = new TreeJudge(() => sim.nowMs, names);
    this.#count = stageOf(sim, tally).count;
    this.#client = this.#clientNamed("client-1", false);
  }

  /** Key at which an entry of some directory begins. */
  key(prng: Prng): Uint8Array {
    const id = prng.pick([rootId, ...this.#nodes("directory").map((node) => node.id)]);
    const { account, filesystem: container, incarnation: containerIncarnation } = this.#tree;
    const at = { kind: "entry", id, name: prng.pick(names) };
    return routeOf(this.#sim.rules, { case: "tree", value: { account, container, containerIncarnation, action: "look", at, after: "" } })
      .key;
  }

  async work(focus: Focus | undefined): Promise<void> {
    const endMs = this.#sim.nowMs + (focus?.workMs ?? workMs);
    const removesTrees = this.#sim.prng.chance(0.5);
    const clients = [1, 2, 3, 4].map((number) => this.#clientNamed(`client-${number}`, removesTrees));
    await Promise.all(clients.map((client) => client.work(endMs)));
  }

  async end(): Promise<void> {
    await this.#until("every operation is finished or given up", () => this.#settled());
    const before = await this.#reached();
    await this.#mustBeWhole(before);
    for (const { id } of this.#nodes("directory")) this.#door().collect(this.#tree, id);
    await this.#allGoes(before);
    const after = await this.#reached();
    await this.#mustBeWhole(after);
    const wrong = this.#judge.check(after, () => this.#count("NOT DECIDED histories"));
    if (wrong !== undefined) throw new BrokenPromise(wrong);
    this.#tally.most["files and directories"] = this.#judge.nodes.size;
  }

  #clientNamed(name: string, removesTrees: boolean): TreeClient {
    const options = { names, doors, removesTrees, count: (what: string) => this.#count(what) };
    return new TreeClient(this.#sim, name, this.#tree, this.#judge, options);
  }

  #nodes(kind: KnownNode["kind"]): KnownNode[] {
    return [...this.#judge.nodes.values()].filter((node) => node.kind === kind);
  }

  #door(): TreeDoor {
    return this.#sim.role(doors[0]) as TreeDoor;
  }

  async #run<T>(make: (context: MachineContext) => Machine<T>): Promise<Result<T> | undefined> {
    const { clock } = this.#sim.world("client-1");
    return within(
      clock,
      30_000,
      this.#sim.ask("client-1", doors[0], () => this.#door().run(this.#tree, make, 20_000)),
    );
  }

  #until(what: string, isSo: () => Promise<boolean>): Promise<void> {
    return until(stageOf(this.#sim, this.#tally), what, bound, isSo);
  }

  async #settled(): Promise<boolean> {
    const nodes = [...this.#judge.nodes.values()];
    const entries = [rootId, ...this.#nodes("directory").map(({ id }) => id)].flatMap((directory) =>
      names.map((name) => ({ kind: "entry", directory, name }) as const),
    );
    // Entries last: those that were decided take the marks of other rows with them.
    const rows: TreeAddress[] = [{ kind: "lock" }, ...nodes, ...entries];
    const results = await Promise.all(rows.map((at) => this.#run((context) => freed(context, at))));
    return results.every((result) => result?.ok === true);
  }

  async #reached(): Promise<ReachedTree> {
    const reached = new Map<string, readonly KnownNode[]>();
    const open = [rootId];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (reached.has(id)) throw new BrokenPromise(`${id} has two names`);
      const held = await this.#client.readsAll(id);
      reached.set(id, held);
      for (const each of held) if (each.kind === "directory") open.push(each.id);
    }
    const files = [...reached.values()].flat().filter(({ kind }) => kind === "file");
    if (new Set(files.map(({ id }) => id)).size < files.length) throw new BrokenPromise("a file has two names");
    return reached;
  }

  async #mustBeWhole(reached: ReachedTree): Promise<void> {
    for (const node of [...reached.values()].flat()) {
      const row = await this.#client.look(node);
      if (!row || row.removed) throw new BrokenPromise(`${node.kind} ${node.id} has a name and was ${row ? "removed" : "taken"}`);
    }
  }

  async #allGoes(reached: ReachedTree): Promise<void> {
    const endMs = this.#sim.nowMs + healedWithinMs;
    for (let left = await this.#left(reached); left.length > 0; left = await this.#left(reached)) {
      if (this.#sim.nowMs > endMs) throw new BrokenPromise(`can't be reached, and is left: ${left.join(", ")}`);
      await this.#sim.sleep(bound.pauseMs);
    }
  }

  /** A node whose creation was not decided for certain may stay (docs/design/tree.md, "Limits"). */
  async #left(reached: ReachedTree): Promise<readonly string[]> {
    const inTree = new Set([rootId, ...[...reached.values()].flat().map(({ id }) => id)]);
    const left: string[] = [];
    for (const node of this.#judge.nodes.values()) {
      if (inTree.has(node.id)) continue;
      const row = await this.#client.look(node);
      if (row && (row.removed || this.#judge.wasNamed(node.id))) left.push(`${node.kind} ${node.id}`);
      if (node.kind === "directory" && (await this.#client.holds(node.id))) left.push(`entries of ${node.id}`);
    }
    return left;
  }
}
