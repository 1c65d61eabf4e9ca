/** Drills with clients and judges of their own: `stamp drill damage`, `histories`, `slow-clients`. */
import {
  attachCompose,
  type DrillTarget,
  entryText,
  type GeoDrillReport,
  geoDrill,
  geoDrillNames,
  type HistoriesReport,
  historiesDrill,
  ownDrills,
  runSlowClientsDrill,
  type SlowReport,
  startOwn,
  type Verdict,
} from "@stamp/drills";
import type { Command } from "commander";
import { endProcess, exitCodes } from "../exit.ts";
import { toJson } from "../print.ts";
import { say, sayRaw } from "../say.ts";
import { whole } from "../values.ts";
import { damageRoles, runDamageDrill } from "./damage-drill.ts";

const composeText = "on the containers of docker-compose.yml, which run (docker compose up --wait)";

export function addOwnDrills(drill: Command): void {
  addDamage(drill);
  addHistories(drill);
  addSlowClients(drill);
  for (const name of geoDrillNames) addGeoDrill(drill, name);
}

/** Adds a drill about an account at two stamps, which the drill starts. */
function addGeoDrill(drill: Command, name: (typeof geoDrillNames)[number]): void {
  drill
    .command(name)
    .description(ownDrills.find((each) => each.name === name)?.about.replace(/^`[^`]*`: /, "") ?? "")
    .option("--objects <n>", "objects that are there before: nine tenths entities, the others blobs of 1 KiB", whole(0, 99_999_999), "2000")
    .option("--large-blobs <n>", "blobs of 4 MiB besides", whole(0, 99_999_999), "0")
    .option("--strict", "writes that are held up for longer than the aim are an error (exit code 5 instead of 8)")
    .option("--keep", "keep the temporary folder")
    .option("--json", "for tools")
    .addHelpText("after", `\nExample: stamp drill ${name} --objects 100000\nSteps and judgement: stamp drill explain ${name}`)
    .action(async ({ objects, largeBlobs, keep, json, strict }: Readonly<Record<"objects" | "largeBlobs", string>> & DrillFlags) => {
      const report = await geoDrill(name, {
        main: process.argv[1] ?? "",
        objects: Number(objects),
        largeBlobs: Number(largeBlobs),
        keep: keep === true,
        onEntry: (entry) => {
          if (json !== true) say(entryText(entry));
        },
      });
      if (json === true) sayRaw(toJson(report));
      else say(geoSummary(report));
      await endProcess(exitCodeOf([report.verdict], strict === true));
    });
}

function geoSummary({ prepared, acknowledged, errors, readBack, lost, broken, conclusion }: GeoDrillReport): string {
  const seen = Object.entries(errors).map(([what, count]) => `${what} ${count} times`);
  return [
    `  clients      ${acknowledged} writes acknowledged; failed attempts: ${seen.length === 0 ? "none" : seen.join(", ")}`,
    `  read back    ${readBack} objects, ${prepared} of them from before the clients${lost === 0 ? "" : `; ${lost} acknowledged ones were lost`}`,
    ...broken.map((each) => `  BROKEN       ${each}`),
    conclusion,
  ].join("\n");
}

/** Returns the exit code of a run of drills: the worst verdict decides. `strict`: an aim that was missed is an error. */
export function exitCodeOf(verdicts: readonly Verdict[], strict: boolean): number {
  if (verdicts.includes("broken")) return exitCodes.promiseBroken;
  if (!verdicts.includes("slow")) return 0;
  return strict ? exitCodes.promiseBroken : exitCodes.heldUp;
}

/** Adds the drill whose fault is other clients. */
function addSlowClients(drill: Command): void {
  drill
    .command("slow-clients")
    .description(
      "1,000 readers and 1,000 writers of 1 byte to 10 KiB a second beside a normal client: its latency, and what the front-end holds",
    )
    .option("--seconds <n>", "length of each of the three phases", whole(1, 9_999), "20")
    .option("--strict", "latency over the aim is an error (exit code 5 instead of 8)")
    .option("--compose", composeText)
    .option("--keep", "keep the temporary folder")
    .option("--port-base <port>", "port of Blob; the others follow")
    .option("--json", "for tools")
    .action(async ({ seconds, keep, portBase, json, compose, strict }: Readonly<Record<"seconds" | "portBase", string>> & DrillFlags) => {
      const own = (): Promise<DrillTarget> => startOwn(portBase === undefined ? {} : { portBase }, keep === true);
      const target = await (compose === true ? attachCompose() : own());
      try {
        const report = await runSlowClientsDrill(target, Number(seconds) * 1_000, (line) => {
          if (json !== true) say(`  ${line}`);
        });
        if (json === true) sayRaw(toJson(report));
        else say(slowClientsText(report));
        process.exitCode = exitCodeOf([report.verdict], strict === true);
      } finally {
        await target.close();
      }
      await endProcess();
    });
}

function slowClientsText({ verdict, broken, slow, phases }: SlowReport): string {
  const kept = `Every bound was kept in ${phases.length} phases`;
  if (verdict !== "slow") return endOf("slow-clients", broken, kept);
  return [...slow.map((each) => `    ${each}`), `slow-clients: SLOW. ${kept}; ${slow[0]}, on this machine.`].join("\n");
}

/** Adds the drill without writing clients: it hurts files and tables, and shows what fsck said and what was mended. */
function addDamage(drill: Command): void {
  drill
    .command("damage")
    .description("hurt files, tables and journals by hand, one after another; show what fsck says and what is mended")
    .option("--compose", composeText)
    .option("--keep", "keep the temporary folder")
    .option("--port-base <port>", "port of Blob; the others follow")
    .option("--json", "for tools")
    .action(async ({ keep, portBase, json, compose }: { readonly portBase?: string } & DrillFlags) => {
      const own = (): Promise<DrillTarget> =>
        startOwn({ roles: JSON.stringify(damageRoles), ...(portBase === undefined ? {} : { portBase }) }, keep === true);
      const target = await (compose === true ? attachCompose({ roles: damageRoles }) : own());
      try {
        const report = await runDamageDrill(target, (line) => {
          if (json !== true) say(line);
        });
        if (json === true) sayRaw(toJson(report));
        else {
          const { steps, readBack } = report;
          say(endOf("damage", report.broken, `${steps.length} kinds of damage were mended, ${readBack} blobs read back`));
        }
        process.exitCode = report.ok ? 0 : exitCodes.promiseBroken;
      } finally {
        await target.close();
      }
      await endProcess();
    });
}

/** Adds the drill whose clients are the SDKs, and whose judge is the recorded history. */
function addHistories(drill: Command): void {
  drill
    .command("histories")
    .description("clients of the real SDKs record what they see while processes are killed and stopped; is one order of it all possible?")
    .option("--seconds <n>", "work at least so long (the faults take about a minute)", whole(0, 999_999), "0")
    .option("--seed <n>", "of what the clients do", whole(0, 999_999_999_999_999))
    .option("--compose", composeText)
    .option("--keep", "keep the temporary folder")
    .option("--port-base <port>", "port of Blob; the others follow")
    .option("--json", "for tools")
    .action(
      async ({ seconds, seed, keep, portBase, json, compose }: Readonly<Record<"seconds" | "seed" | "portBase", string>> & DrillFlags) => {
        // The SDKs are there in a clone, not in the image.
        const { runHistoriesDrill } = await historiesDrill();
        const own = (): Promise<DrillTarget> => startOwn({ frontEnds: 2, ...(portBase === undefined ? {} : { portBase }) }, keep === true);
        const target = await (compose === true ? attachCompose() : own());
        try {
          const report = await runHistoriesDrill(target, {
            workMs: Number(seconds) * 1_000,
            ...(seed === undefined ? {} : { seed: Number(seed) }),
            onEntry: (entry) => {
              if (json !== true) say(entryText(entry));
            },
          });
          if (json === true) sayRaw(toJson(report));
          else say(historiesSummary(report));
          process.exitCode = report.ok ? 0 : exitCodes.promiseBroken;
        } finally {
          await target.close();
        }
        await endProcess();
      },
    );
}

interface DrillFlags {
  readonly keep?: boolean;
  readonly json?: boolean;
  readonly compose?: boolean;
  readonly strict?: boolean;
}

function historiesSummary(report: HistoriesReport): string {
  const lines = Object.entries(report.counts).map(([name, counts]) => {
    const shown = Object.entries(counts)
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([what, count]) => `${what} ${count}`);
    return `  ${name}: ${shown.join(", ")}`;
  });
  const kept = `${report.operations} operations under ${report.faults} faults are linearizable, every promise about messages was kept`;
  return [...lines, endOf("histories", report.broken, kept)].join("\n");
}

/** Returns what was broken, if anything, and as the last line the conclusion. */
function endOf(drill: string, broken: readonly string[], kept: string): string {
  if (broken.length === 0) return `${drill}: KEPT. ${kept}.`;
  const promises = broken.length === 1 ? "One promise was" : `${broken.length} promises were`;
  return [...broken.map((each) => `    ${each}`), `${drill}: BROKEN. ${promises} broken: ${broken[0]}`].join("\n");
}
