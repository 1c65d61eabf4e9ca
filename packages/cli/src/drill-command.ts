/** `stamp drill list|run`: break something on purpose and see what it does to clients. */
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "./context.ts";
import { runDamageDrill } from "./drills/damage-drill.ts";
import { drills } from "./drills/drills.ts";
import type { HistoriesReport } from "./drills/histories/histories-drill.ts";
import { type DrillReport, runDrill } from "./drills/run-drill.ts";
import { runSlowClientsDrill } from "./drills/slow-clients-drill.ts";
import { attach, startOwn } from "./drills/target.ts";
import { table, toJson } from "./print.ts";
import { topLevel } from "./top-level.ts";

export function addDrill(program: Command): void {
  const drill = topLevel(program, "drill");
  drill
    .command("list")
    .description("all drills")
    .option("--json", "for tools")
    .action((options: { json?: boolean }) => {
      if (options.json === true) console.log(toJson(drills.map(({ name, about, holdUpAimMs }) => ({ name, about, holdUpAimMs }))));
      else
        console.log(
          table(
            ["DRILL", "WRITES HELD UP (AIM)", "WHAT IT DOES"],
            [
              ...drills.map((each) => [each.name, `${each.holdUpAimMs} ms`, each.about]),
              ...ownCommands.map(([name, about]) => [name, "-", about]),
            ],
          ),
        );
    });
  addDamage(drill);
  addHistories(drill);
  addSlowClients(drill);
  const run = drill
    .command("run <names...>")
    .description("run drills (`all` for every one) on a cluster of their own in a temporary folder")
    .option("--attach", "on the cluster that runs on the configured data folder instead")
    .option("--keep", "keep the temporary folder")
    .option("--ranges <count>", "of the Blob table, for drills that make many", "20")
    .option("--json", "for tools");
  withConfig(run).action(async (names: string[], _options, command: Command) => {
    const { attach: running, keep, json, ranges } = command.opts<{ attach?: boolean; keep?: boolean; json?: boolean; ranges: string }>();
    if (!/^[1-9]\d{0,3}$/.test(ranges)) throw new CommandError(`--ranges ${ranges}: 1 to 9,999`, exitCodes.usage);
    const wanted = names.includes("all") ? drills : names.map((name) => drills.find((each) => each.name === name) ?? unknownDrill(name));
    const reports: DrillReport[] = [];
    for (const each of wanted) {
      if (json !== true) console.log(`${each.name}: ${each.about}`);
      const {
        attach: _attach,
        keep: _keep,
        json: _json,
        ranges: _ranges,
        config: _config,
        data: _data,
        ...flags
      } = command.opts<Record<string, unknown>>();
      const own = each.roles === undefined ? flags : { roles: JSON.stringify(each.roles), ...flags };
      const target = running === true ? await attach(configOf(command)) : await startOwn(own, keep === true);
      try {
        const onEntry = (entry: { atMs: number; what: string }): void => {
          if (json !== true) console.log(`  ${`${(entry.atMs / 1000).toFixed(2)} s`.padStart(9)}  ${entry.what}`);
        };
        const report = await runDrill(each, target, { onEntry, ranges: Number(ranges) });
        reports.push(report);
        if (json !== true) console.log(summary(report));
      } finally {
        await target.close();
      }
    }
    if (json === true) console.log(toJson(reports.length === 1 ? reports[0] : reports));
    // Signal handlers and sockets of the drill's own supervisor must not keep the process.
    process.exit(reports.every((report) => report.ok) ? 0 : exitCodes.promiseBroken);
  });
}

/** Drills with clients and judges of their own: `stamp drill NAME`. */
const ownCommands = [
  ["damage", "`stamp drill damage`: hurt files, tables and journals; show what fsck says and what is mended"],
  ["histories", "`stamp drill histories`: clients of the real SDKs record what they see under faults; one order must explain it"],
  ["slow-clients", "`stamp drill slow-clients`: 1,000 slow readers and 1,000 slow writers beside a normal client"],
] as const;

/** The one whose fault is other clients. */
function addSlowClients(drill: Command): void {
  drill
    .command("slow-clients")
    .description(
      "1,000 readers and 1,000 writers of 1 byte to 10 KiB a second beside a normal client: its latency, and what the front-end holds",
    )
    .option("--seconds <n>", "length of each of the three phases", "20")
    .option("--keep", "keep the temporary folder")
    .option("--port-base <port>", "port of Blob; the others follow")
    .option("--json", "for tools")
    .action(async ({ seconds, keep, portBase, json }: Readonly<Record<"seconds" | "portBase", string>> & DrillFlags) => {
      if (!/^[1-9]\d{0,3}$/.test(seconds)) throw new CommandError(`--seconds: ${seconds} is not a number of seconds`, exitCodes.usage);
      const target = await startOwn(portBase === undefined ? {} : { portBase }, keep === true);
      try {
        const report = await runSlowClientsDrill(target, Number(seconds) * 1_000, (line) => {
          if (json !== true) console.log(`  ${line}`);
        });
        if (json === true) console.log(toJson(report));
        else console.log(report.ok ? "  every bound kept" : `  BROKEN\n${report.broken.map((each) => `    ${each}`).join("\n")}`);
        process.exitCode = report.ok ? 0 : exitCodes.promiseBroken;
      } finally {
        await target.close();
      }
      process.exit();
    });
}

/** The one without writing clients: it hurts files and tables, and shows what fsck said and what was mended. */
function addDamage(drill: Command): void {
  drill
    .command("damage")
    .description(
      "hurt files, tables and journals of a cluster of its own, by hand, one after another; show what fsck says and what is mended",
    )
    .option("--keep", "keep the temporary folder")
    .option("--port-base <port>", "port of Blob; the others follow")
    .option("--json", "for tools")
    .action(async ({ keep, portBase, json }: { keep?: boolean; portBase?: string; json?: boolean }) => {
      const mebibyte = 1024 * 1024;
      // Small extents, so that many are sealed; small journal segments, so that a node that loses one has others.
      const roles = JSON.stringify({
        "partition-server": { extentTargetBytes: 8 * mebibyte },
        "extent-node": { journalSegmentBytes: 9 * mebibyte, journalBatchBytesMax: 4 * mebibyte },
      });
      const target = await startOwn({ roles, ...(portBase === undefined ? {} : { portBase }) }, keep === true);
      try {
        const report = await runDamageDrill(target, (line) => {
          if (json !== true) console.log(line);
        });
        if (json === true) console.log(toJson(report));
        process.exitCode = report.ok ? 0 : exitCodes.promiseBroken;
      } finally {
        await target.close();
      }
      process.exit();
    });
}

/** The one whose clients are the SDKs, and whose judge is the recorded history. */
function addHistories(drill: Command): void {
  drill
    .command("histories")
    .description("clients of the real SDKs record what they see while processes are killed and stopped; is one order of it all possible?")
    .option("--seconds <n>", "work at least so long (the faults take about a minute)", "0")
    .option("--seed <n>", "of what the clients do")
    .option("--keep", "keep the temporary folder")
    .option("--port-base <port>", "port of Blob; the others follow")
    .option("--json", "for tools")
    .action(async ({ seconds, seed, keep, portBase, json }: Readonly<Record<"seconds" | "seed" | "portBase", string>> & DrillFlags) => {
      if (!/^\d{1,6}$/.test(seconds)) throw new CommandError(`--seconds: ${seconds} is not a number of seconds`, exitCodes.usage);
      if (seed !== undefined && !/^\d{1,15}$/.test(seed)) throw new CommandError(`--seed: ${seed} is not a number`, exitCodes.usage);
      // The SDKs are there in a clone, not in the image.
      const { runHistoriesDrill } = await import("./drills/histories/histories-drill.ts");
      const target = await startOwn({ frontEnds: 2, ...(portBase === undefined ? {} : { portBase }) }, keep === true);
      try {
        const report = await runHistoriesDrill(target, {
          workMs: Number(seconds) * 1_000,
          ...(seed === undefined ? {} : { seed: Number(seed) }),
          onEntry: (entry) => {
            if (json !== true) console.log(`  ${`${(entry.atMs / 1000).toFixed(2)} s`.padStart(9)}  ${entry.what}`);
          },
        });
        console.log(json === true ? toJson(report) : historiesSummary(report));
        process.exitCode = report.ok ? 0 : exitCodes.promiseBroken;
      } finally {
        await target.close();
      }
      process.exit();
    });
}

interface DrillFlags {
  readonly keep?: boolean;
  readonly json?: boolean;
}

function historiesSummary(report: HistoriesReport): string {
  const lines = Object.entries(report.counts).map(([name, counts]) => {
    const shown = Object.entries(counts)
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([what, count]) => `${what} ${count}`);
    return `  ${name}: ${shown.join(", ")}`;
  });
  const verdict = report.ok
    ? `  ${report.operations} operations under ${report.faults} faults: linearizable, every promise about messages kept`
    : `  BROKEN\n${report.broken.map((each) => `    ${each}`).join("\n")}`;
  return [...lines, verdict].join("\n");
}

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
    `  held up      ${report.longestHoldUpMs} ms at most (aim ${report.holdUpAimMs} ms; slowest write before the fault ${report.slowestBeforeMs} ms)`,
    report.ok ? "  every promise kept\n" : `  BROKEN\n${report.broken.map((each) => `    ${each}`).join("\n")}\n`,
  ].join("\n");
}
