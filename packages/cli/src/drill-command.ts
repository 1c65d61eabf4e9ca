/** `stamp drill list|run`: break something on purpose and see what it does to clients. */
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "./context.ts";
import { runDamageDrill } from "./drills/damage-drill.ts";
import { drills } from "./drills/drills.ts";
import { type DrillReport, runDrill } from "./drills/run-drill.ts";
import { attach, startOwn } from "./drills/target.ts";
import { table, toJson } from "./print.ts";

export function addDrill(program: Command): void {
  const drill = program.command("drill").description("break something on purpose, under writing clients, and check every promise");
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
            drills.map((each) => [each.name, `${each.holdUpAimMs} ms`, each.about]),
          ),
        );
    });
  addDamage(drill);
  const run = drill
    .command("run <names...>")
    .description("run drills (`all` for every one) on a cluster of their own in a temporary folder")
    .option("--attach", "on the cluster that runs on the configured data folder instead")
    .option("--keep", "keep the temporary folder")
    .option("--json", "for tools");
  withConfig(run).action(async (names: string[], _options, command: Command) => {
    const { attach: running, keep, json } = command.opts<{ attach?: boolean; keep?: boolean; json?: boolean }>();
    const wanted = names.includes("all") ? drills : names.map((name) => drills.find((each) => each.name === name) ?? unknownDrill(name));
    const reports: DrillReport[] = [];
    for (const each of wanted) {
      if (json !== true) console.log(`${each.name}: ${each.about}`);
      const { attach: _attach, keep: _keep, json: _json, config: _config, data: _data, ...flags } = command.opts<Record<string, unknown>>();
      const target = running === true ? await attach(configOf(command)) : await startOwn(flags, keep === true);
      try {
        const onEntry = (entry: { atMs: number; what: string }): void => {
          if (json !== true) console.log(`  ${`${(entry.atMs / 1000).toFixed(2)} s`.padStart(9)}  ${entry.what}`);
        };
        const report = await runDrill(each, target, { onEntry });
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
    `  held up      ${report.longestHoldUpMs} ms at most (aim ${report.holdUpAimMs} ms; slowest write before the fault ${report.slowestBeforeMs} ms)`,
    report.ok ? "  every promise kept\n" : `  BROKEN\n${report.broken.map((each) => `    ${each}`).join("\n")}\n`,
  ].join("\n");
}
