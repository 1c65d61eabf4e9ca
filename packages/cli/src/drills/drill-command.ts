/** `stamp drill list|explain|run`: break something on purpose and see what it does to clients. */
import {
  attach,
  attachCompose,
  type Drill,
  type DrillOptions,
  type DrillReport,
  type DrillTarget,
  drills,
  entryText,
  explain,
  ownDrills,
  runDrill,
  startOwn,
} from "@stamp/drills";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "../context.ts";
import { endProcess } from "../exit.ts";
import { table, toJson } from "../print.ts";
import { say, sayRaw, warn } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { oneOf, whole } from "../values.ts";
import { addOwnDrills, exitCodeOf } from "./own-commands.ts";

export function addDrill(program: Command): void {
  const drill = topLevel(program, "drill");
  drill
    .command("list")
    .description("all drills")
    .option("--json", "for tools")
    .action((options: { json?: boolean }) => {
      if (options.json === true)
        sayRaw(toJson([...drills, ...ownDrills].map((each) => ({ name: each.name, about: each.about, holdUpAimMs: aimOf(each) }))));
      else
        say(
          table(
            ["DRILL", "WRITES HELD UP (AIM)", "WHAT IT DOES"],
            [
              ...drills.map((each) => [each.name, `${each.holdUpAimMs} ms`, each.about]),
              ...ownDrills.map(({ name, about }) => [name, "-", about]),
            ],
          ),
        );
    });
  drill
    .command("explain")
    .argument("<name>", "of `drill list`", oneOf([...drills, ...ownDrills].map(({ name }) => name)))
    .description("what a drill does, step by step, how it is judged, and the terms of its lines")
    .action((name: string) => say(explain(name) ?? unknownDrill(name)));
  addOwnDrills(drill);
  addRun(drill);
}

/** Returns the longest time that the drill allows, in milliseconds; null for a drill that judges by itself. */
const aimOf = (drill: object): number | null => ("holdUpAimMs" in drill ? Number(drill.holdUpAimMs) : null);

interface RunOptions {
  readonly attach?: boolean;
  readonly compose?: boolean;
  readonly keep?: boolean;
  readonly json?: boolean;
  readonly events?: boolean;
  readonly strict?: boolean;
  readonly ranges: string;
}

function addRun(drill: Command): void {
  const run = drill
    .command("run")
    .argument("<names...>", "of `drill list`; all: every one", oneOf(["all", ...drills.map(({ name }) => name)]) as never)
    .description("run drills (`all` for every one) on a cluster of their own in a temporary folder")
    .option("--attach", "on the cluster that runs on the configured data folder instead")
    .option("--compose", "on the containers of docker-compose.yml, which run (docker compose up --wait)")
    .option("--strict", "writes that are held up for longer than the aim are an error (exit code 5 instead of 8)")
    .option("--keep", "keep the temporary folder")
    .option("--ranges <count>", "of the Blob table, for drills that make many", whole(1, 9_999), "20")
    .option("--json", "for tools")
    .option("--events", "for tools: what happens as it happens, a line of JSON each; the reader may go");
  withConfig(run).action(async (names: string[], _options, command: Command) => {
    const options = command.opts<RunOptions>();
    if (options.attach === true && options.compose === true)
      throw new CommandError("--attach and --compose: a drill runs on one cluster", exitCodes.usage);
    // A drill mends what it broke, whoever reads.
    if (options.events === true) process.stdout.on("error", () => {});
    const wanted = wantedOf(names, options);
    const reports: DrillReport[] = [];
    for (const each of wanted) reports.push(await runOne(each, options, command).catch(endIfLeft));
    if (options.json === true) sayRaw(toJson(reports.length === 1 ? reports[0] : reports));
    else if (reports.length > 1) say(reports.map(({ conclusion }) => conclusion).join("\n"));
    // Signal handlers and sockets of the drill's own supervisor must not keep the process.
    await endProcess(
      exitCodeOf(
        reports.map(({ verdict }) => verdict),
        options.strict === true,
      ),
    );
  });
}

/** Ends the process of a drill that was left: the calls that it has under way would keep the process for minutes. */
async function endIfLeft(error: unknown): Promise<never> {
  if (error instanceof CommandError && error.exitCode === exitCodes.left) {
    warn(`stamp: ${error.message}`);
    await endProcess(error.exitCode);
  }
  throw error;
}

function wantedOf(names: readonly string[], { compose, json }: RunOptions): readonly Drill[] {
  const left = drills.filter(({ cluster }) => compose === true && cluster !== undefined);
  if (names.includes("all")) {
    if (left.length > 0 && json !== true) for (const { name } of left) say(`${name} is left out: ${notOnCompose}\n`);
    return drills.filter((each) => !left.includes(each));
  }
  const named = left.find(({ name }) => names.includes(name));
  if (named !== undefined) throw new CommandError(`${named.name}: ${notOnCompose}`, exitCodes.usage);
  return names.map((name) => drills.find((each) => each.name === name) ?? unknownDrill(name));
}

const notOnCompose =
  "it needs seven extent nodes, and docker-compose.yml has four. Without --compose it makes a cluster of its own; --attach takes one that runs";

async function runOne(drill: Drill, options: RunOptions, command: Command): Promise<DrillReport> {
  const told = options.json !== true && options.events !== true;
  if (told) say(`${drill.name}: ${drill.about}`);
  const target = await targetOf(drill, options, command);
  try {
    const unfit = options.attach === true ? await drill.unfit?.(target) : undefined;
    if (unfit !== undefined) throw new CommandError(`${drill.name} can't run here: ${unfit}`);
    const report = await unlessStopped(target, runDrill(drill, target, { ...toldBy(options), ranges: Number(options.ranges) }));
    if (told) say(summary(report));
    if (options.events === true) sayRaw(JSON.stringify({ report: { ...report, timeline: undefined } }));
    return report;
  } finally {
    await target.close();
  }
}

/** Waits for the drill as long as its cluster is there: Ctrl-C stops the cluster, and the rest of the drill would ask it in vain. */
export async function unlessStopped<T>({ stopped }: Pick<DrillTarget, "stopped">, running: Promise<T>): Promise<T> {
  if (stopped === undefined) return running;
  const left = stopped.then((): never => {
    throw new CommandError("the drill was left before its verdict; its cluster is stopped", exitCodes.left);
  });
  left.catch(() => {});
  running.catch(() => {});
  return Promise.race([running, left]);
}

/** Returns the tellers of what happens: to people, to a tool that follows, or to nobody before the end. */
function toldBy({ json, events }: RunOptions): Pick<DrillOptions, "onEntry" | "onWrites"> {
  if (events === true)
    return {
      onEntry: (entry) => sayRaw(JSON.stringify({ entry: { ...entry, atMs: entry.atMs ?? null } })),
      onWrites: (writes) => sayRaw(JSON.stringify({ writes })),
    };
  return json === true ? {} : { onEntry: (entry) => say(entryText(entry)) };
}

/** Returns the cluster for a drill. One that runs already keeps its settings: a drill that needs others is refused. */
async function targetOf(drill: Drill, options: RunOptions, command: Command): Promise<DrillTarget> {
  if (options.compose === true) return attachCompose(drill.roles === undefined ? {} : { roles: drill.roles });
  if (options.attach === true) {
    if (drill.roles !== undefined && options.json !== true && options.events !== true)
      say(`  this drill is meant for a cluster with the settings ${JSON.stringify(drill.roles)}`);
    return attach(configOf(command));
  }
  const flags = Object.fromEntries(Object.entries(command.opts<Record<string, unknown>>()).filter(([name]) => !ofThisCommand.has(name)));
  const roles = drill.roles === undefined ? {} : { roles: JSON.stringify(drill.roles) };
  return startOwn({ ...drill.cluster, ...roles, ...flags }, options.keep === true);
}

/** Options that are no keys of the configuration of a cluster. */
const ofThisCommand: ReadonlySet<string> = new Set(["attach", "compose", "strict", "keep", "json", "events", "ranges", "config", "data"]);

function unknownDrill(name: string): never {
  throw new CommandError(`there is no drill ${name}; see: ./stamp drill list`, exitCodes.usage);
}

function summary(report: DrillReport): string {
  const { small, large, counter } = report;
  const line = (name: string, counts: typeof small): string =>
    `  ${name.padEnd(12)} ${counts.acknowledged} acknowledged, ${counts.unknown} attempts without an answer, ${counts.refused} refused for now`;
  return [
    line("1 KiB", small),
    line("4 MiB", large),
    line("counters", counter),
    `  read back    ${report.readBack} afterwards, ${report.readsWhileRunning} while it ran`,
    `  history      ${report.registerOperations} operations of clients that share blobs`,
    ...report.broken.map((each) => `  BROKEN       ${each}`),
    `${report.conclusion}\n`,
  ].join("\n");
}
