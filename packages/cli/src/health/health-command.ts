/**
 * `stamp health`: how the stamp is, in one sentence, and then what a person should know, each with the command that
 * helps.
 */
import { composeCluster, ownTransport } from "@stamp/cluster";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, withConfig } from "../context.ts";
import { toJson, toLine } from "../print.ts";
import { say, sayRaw } from "../say.ts";
import { severalIn } from "../stamps/several.ts";
import { healthOfStamps } from "../stamps/stamps-commands.ts";
import { topLevel } from "../top-level.ts";
import { number, secondsMax } from "../values.ts";
import { type Health, healthOf } from "./findings.ts";
import { gather } from "./gather.ts";
import { healthText } from "./health-text.ts";

const exitCodeOf: Readonly<Record<Health["state"], number>> = {
  healthy: 0,
  degraded: exitCodes.degraded,
  unknown: exitCodes.degraded,
  danger: exitCodes.danger,
  stopped: exitCodes.danger,
};

export function addHealth(program: Command): void {
  const command = topLevel(program, "health")
    .option("--json", "for tools")
    .option("--watch [seconds]", "again and again, until Ctrl-C; printed when something has changed", number(1, secondsMax));
  withConfig(command, ["dataDir"]).action(async (_options, command: Command) => {
    const { json = false, watch } = command.opts<{ json?: boolean; watch?: string | true }>();
    const config = configOf(command);
    const several = composeCluster() === undefined ? severalIn(config) : undefined;
    if (several !== undefined) {
      if (watch !== undefined) throw new CommandError("--watch: name one stamp of the folder with --data", exitCodes.usage);
      process.exitCode = await healthOfStamps(several, json);
      return;
    }
    const transport = ownTransport(config);
    try {
      if (watch === undefined) {
        const facts = await gather(config, transport, { view: false });
        const health = healthOf(facts);
        if (json) sayRaw(toJson(health));
        else say(healthText(health));
        process.exitCode = exitCodeOf[health.state];
      } else await watchHealth(config, transport, everyMsOf(watch), json);
    } finally {
      await transport.close();
    }
  });
}

const defaultEveryMs = 5_000;

const everyMsOf = (watch: string | true): number => (watch === true ? defaultEveryMs : Number(watch) * 1_000);

/**
 * Prints a line of JSON, or the text, whenever the state or a finding changes. Numbers within causes change all the
 * time and don't count.
 */
async function watchHealth(
  config: Parameters<typeof gather>[0],
  transport: Parameters<typeof gather>[1],
  everyMs: number,
  json: boolean,
): Promise<never> {
  let before = "";
  for (;;) {
    const facts = await gather(config, transport, { view: false });
    const health = healthOf(facts);
    const now = JSON.stringify([health.state, health.findings.map(({ code, subject }) => `${code} ${subject}`).sort()]);
    if (now !== before) {
      const at = new Date(facts.nowMs).toISOString();
      if (json) sayRaw(toLine({ at, ...health }));
      else say(`${before === "" ? "" : "\n"}${at}\n${healthText(health)}`);
    }
    before = now;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
