/** `stamp upgrade status|finalize`: the feature level of a stamp (docs/guides/upgrade.md). */
import { type ClusterConfig, ownTransport } from "@stamp/cluster";
import { LeaderCalls } from "@stamp/metadata-store";
import { inWords, NodeClock, NodeRandom } from "@stamp/ports-node";
import { FeatureLevels } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes } from "../context.ts";
import { gather } from "../health/gather.ts";
import { table } from "../print.ts";
import { withProgress } from "../progress.ts";
import { make, type Transport, tell } from "../running.ts";
import { topLevel } from "../top-level.ts";
import { whole } from "../values.ts";
import { finalize, type RaisedLevel } from "./finalize.ts";
import { levelText, type UpgradeState, upgradeStateOf } from "./upgrade-state.ts";

const askEveryMs = 500;
const recordTimeoutMs = 15_000;

export function addUpgrade(program: Command): void {
  const upgrade = topLevel(program, "upgrade").addHelpText(
    "after",
    `
Examples:
  stamp upgrade status                    the feature level, and who stands in the way of the next one
  stamp upgrade finalize --timeout 120    give up the way back, and write what this release brings

A stamp on one machine (stamp up without a topology) finalizes by itself. How to upgrade: docs/guides/upgrade.md.`,
  );
  make(upgrade, "status", "the feature level of the stamp, the one that is possible, and who stands in the way").action(
    async (_options, command: Command) => {
      const config = configOf(command);
      const transport = ownTransport(config);
      const state = await stateOf(config, transport).finally(() => transport.close());
      tell(command, state, statusText);
      if (state.level === undefined) process.exitCode = exitCodes.notReady;
    },
  );
  make(upgrade, "finalize", "raise the feature level, for ever: no process of the release before can be started again afterwards")
    .option("--timeout <s>", "longest wait for processes, in seconds", whole(1, 99_999), "60")
    .addHelpText("after", "\nExample:\n  stamp upgrade finalize --timeout 120")
    .action(async (_options, command: Command) => {
      const { timeout } = command.opts<{ timeout: string }>();
      const config = configOf(command);
      const transport = ownTransport(config);
      const done = await run(config, transport, Number(timeout) * 1_000).finally(() => transport.close());
      tell(command, done, finalizedText);
    });
}

function run(config: ClusterConfig, transport: Transport, timeoutMs: number): Promise<RaisedLevel> {
  const about = { what: "looking at the processes", afterwards: "What is recorded stays recorded; run the command again to go on." };
  return withProgress(about, (say) =>
    finalize(
      {
        state: () => stateOf(config, transport),
        record: (level) => record(config, transport, level),
        pause: () => new Promise((resolve) => setTimeout(resolve, askEveryMs)),
        nowMs: () => performance.now(),
        tell: say,
      },
      timeoutMs,
    ),
  );
}

/** Asks all processes. Each call has the whole deadline: a command may run for long. */
async function stateOf(config: ClusterConfig, transport: Transport): Promise<UpgradeState> {
  return upgradeStateOf(await gather(config, transport, { view: false, nowMs: () => 0 }));
}

async function record(config: ClusterConfig, transport: Transport, level: number): Promise<void> {
  const { cluster } = await gather(config, transport, { view: false, nowMs: () => 0 });
  const world = { clock: new NodeClock(), random: new NodeRandom(), transport };
  const calls = new LeaderCalls(world, { lockService: cluster.lockService, leaseName: "stream-manager" });
  const set = await calls.call(
    recordTimeoutMs,
    (address, timeoutMs) => transport.client(address, FeatureLevels).setFeatureLevel({ level }, { timeoutMs }),
    { idempotent: true, mayLackMethod: true },
  );
  if (!set.ok) throw new CommandError(`${inWords(set.failure.message)}; see ./stamp upgrade status`);
}

function statusText(state: UpgradeState): string {
  const besides = state.besides.map(
    ({ process, role, release, knows }) => `besides   ${process} (${role}, release ${release}) knows level ${knows}`,
  );
  return [levelsText(state), ...besides].join("\n");
}

function levelsText(state: UpgradeState): string {
  const { inTheWay, level, possible, target, toHear } = state;
  if (level === undefined) return "no stream manager that leads answered; why: ./stamp health";
  const head = [`level     ${levelText(level)}`, `possible  ${levelText(possible)}`];
  if (inTheWay.length > 0)
    return [
      ...head,
      "",
      level === target ? "too old for the level of the stamp:" : `in the way of level ${levelText(target)}:`,
      table(
        ["PROCESS", "RELEASE", "KNOWS LEVEL", "WHY"],
        inTheWay.map(({ process, release, knows, why }) => [process, release || "-", knows ?? "-", why]),
      ),
    ].join("\n");
  if (level < target) return [...head, "", "every process knows it; to give up the way back: ./stamp upgrade finalize"].join("\n");
  return [...head, ...(toHear.length > 0 ? [`not heard yet by ${toHear.join(", ")}`] : [])].join("\n");
}

const finalizedText = ({ before, level }: RaisedLevel): string =>
  before === level
    ? `the feature level is ${levelText(level)}; there was nothing to do`
    : `the feature level is ${levelText(level)}, before ${before}. No process of an older release can be started any more.`;
