/**
 * `stamp fsck`: extent tables, extent files and the stream manager against one another, both ways. On a running cluster it asks the nodes;
 * on a stopped one it reads their data folders.
 */
import { FailureError } from "@stamp/base";
import { type ClusterConfig, DataFolder, type StampInspector } from "@stamp/cluster";
import type { Transport } from "@stamp/ports";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "../context.ts";
import { table } from "../print.ts";
import { withProgress } from "../progress.ts";
import { inspect, tell } from "../running.ts";
import { topLevel } from "../top-level.ts";
import { compare, type Problem, problemKey } from "./compare.ts";
import { type FsckFacts, gatherRunning, gatherStopped, type RebuiltTable, rebuildStopped } from "./gather.ts";

export interface FsckReport {
  readonly mode: "running" | "stopped";
  readonly deep: boolean;
  readonly extents: number;
  readonly nodes: number;
  readonly replicas: number;
  readonly fragments: number;
  readonly rebuilt: readonly RebuiltTable[];
  readonly problems: readonly Problem[];
  readonly notes: readonly string[];
}

/** Changes that were under way at the first look are over by the second. */
const secondLookMs = 2_500;

export function addFsck(program: Command): void {
  const command = topLevel(program, "fsck")
    .option("--deep", "read every byte and compare checksums")
    .option("--rebuild", "make the extent tables of a stopped cluster anew from files and journal")
    .option("--node <name>", "with --rebuild: only of this node")
    .option("--json", "for tools");
  withConfig(command, ["dataDir"]).action(async (_options, command: Command) => {
    const { deep = false, rebuild = false, node } = command.opts<{ deep?: boolean; rebuild?: boolean; node?: string }>();
    const report = await fsck(command, { deep, rebuild, node });
    tell(command, report, fsckText);
    process.exitCode = report.problems.length === 0 ? 0 : exitCodes.failed;
  });
}

interface Options {
  readonly deep: boolean;
  readonly rebuild: boolean;
  readonly node: string | undefined;
}

async function fsck(command: Command, options: Options): Promise<FsckReport> {
  const config = configOf(command);
  const { supervisor, orphans } = new DataFolder(config.dataDir).running();
  const stopped = (process.env.STAMP_PROCESSES ?? "") === "" && supervisor === undefined && orphans.length === 0;
  if (options.rebuild && !stopped)
    throw new CommandError("stop the cluster first: the extent tables of running nodes are in use", exitCodes.usage);
  const afterwards = options.rebuild
    ? "A table that is not whole is made anew when its node starts."
    : "Nothing goes on. Replicas that were found damaged are made again by themselves: ./stamp repair status";
  return withProgress({ what: "comparing nodes and metadata", afterwards }, (tellProgress) =>
    stopped
      ? fsckStopped(config, options, tellProgress)
      : inspect(command, (inspector, transport) => fsckRunning(inspector, transport, options.deep, tellProgress)),
  );
}

export async function fsckStopped(config: ClusterConfig, options: Options, onStep: (what: string) => void): Promise<FsckReport> {
  try {
    const rebuilt = options.rebuild ? await rebuildStopped(config, options.node) : [];
    const gathered = await gatherStopped(config, options.deep, onStep);
    const failed = rebuilt.filter((each) => each.problem !== "");
    const problems: Problem[] = failed.map(({ node, problem }) => ({
      kind: "table",
      node,
      what: `not rebuilt: ${problem}`,
      cure: "see above",
    }));
    return reportOf(
      "stopped",
      options.deep,
      gathered,
      [...problems, ...gathered.problems, ...compare(gathered.extents, gathered.nodes)],
      rebuilt,
    );
  } catch (error) {
    throw error instanceof FailureError ? new CommandError(error.failure.message) : error;
  }
}

export async function fsckRunning(
  inspector: StampInspector,
  transport: Transport,
  deep: boolean,
  onStep: (what: string) => void = () => {},
): Promise<FsckReport> {
  const first = await gatherRunning(inspector, transport, deep, onStep);
  let problems = compare(first.extents, first.nodes);
  if (problems.length > 0) {
    await new Promise((resolve) => setTimeout(resolve, secondLookMs));
    const second = await gatherRunning(inspector, transport, false);
    const still = new Set(compare(second.extents, second.nodes).map(problemKey));
    // A node's finding on its own disk is true even when it is mended by now.
    problems = problems.filter((each) => still.has(problemKey(each)) || foundOnDisk(each));
  }
  return reportOf("running", deep, first, problems, []);
}

const foundOnDisk = (problem: Problem): boolean =>
  problem.kind === "replica" || problem.kind === "damagedReplica" || problem.kind === "damagedFragment" || problem.kind === "node";

function reportOf(
  mode: FsckReport["mode"],
  deep: boolean,
  gathered: FsckFacts,
  problems: readonly Problem[],
  rebuilt: readonly RebuiltTable[],
): FsckReport {
  const replicas = gathered.nodes.reduce((sum, node) => sum + node.replicas.size, 0);
  const fragments = gathered.nodes.reduce((sum, node) => sum + node.fragments.length, 0);
  // A damaged replica is found by its disk and by the comparison.
  const seen = new Set<string>();
  const once = problems.filter((each) => {
    const key = `${each.node ?? ""} ${each.extent ?? ""} ${each.what}`;
    if (each.extent !== undefined && seen.has(key)) return false;
    seen.add(key);
    return true;
  });
  // Nothing is wrong with what is only not deleted yet.
  const leftOver = once.filter((each) => each.kind === "leftOver");
  const notes = [...gathered.notes, ...leftOver.map((each) => `${each.node}: extent ${each.extent}: ${each.what}: ${each.cure}`)];
  const wrong = once.filter((each) => each.kind !== "leftOver");
  return {
    mode,
    deep,
    extents: gathered.extents.length,
    nodes: gathered.nodes.length,
    replicas,
    fragments,
    rebuilt,
    problems: wrong,
    notes,
  };
}

export function fsckText(report: FsckReport): string {
  const { mode, deep, extents, replicas, fragments, nodes, problems, notes, rebuilt } = report;
  const lines: string[] = [];
  for (const each of rebuilt.filter((one) => one.problem === "")) {
    lines.push(
      `${each.node}: table rebuilt: ${each.extents} extents (${each.damaged} damaged), ${each.replayedRecords} journal records replayed`,
    );
  }
  for (const note of notes) lines.push(`note: ${note}`);
  if (problems.length > 0) {
    lines.push(
      table(
        ["NODE", "EXTENT", "PROBLEM", "WHAT", "WHAT MENDS IT"],
        problems.map((each) => [each.node ?? "", each.extent ?? "", each.kind, each.what, each.cure]),
      ),
    );
  }
  const how = `${mode === "running" ? "the running cluster" : "the stopped cluster"}${deep ? ", every byte read" : ""}`;
  const found = problems.length === 0 ? "nothing is wrong" : `${problems.length} problem${problems.length === 1 ? "" : "s"}`;
  lines.push(
    `${how}: ${extents} extents, ${replicas} replicas${fragments === 0 ? "" : ` and ${fragments} fragments`} on ${nodes} nodes: ${found}`,
  );
  return lines.join("\n");
}
