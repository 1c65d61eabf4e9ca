/** `stamp config show|forget`: the configuration as it holds, where each key can be given, and what the data folder shall not remember. */
import {
  type ClusterConfig,
  clusterConfigSchema,
  configKeys,
  environmentName,
  flagName,
  planCluster,
  type RoleName,
  roles,
  writeClusterRecord,
} from "@stamp/cluster";
import type { Command } from "commander";
import { CommandError, checkNothingRuns, configOf, exitCodes, withConfig } from "../context.ts";
import { scrapeText } from "../health/guide.ts";
import { table, toJson } from "../print.ts";
import { say, sayRaw, warn } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { oneOf } from "../values.ts";
import { recordOf } from "./known-record.ts";
import { checkRoleSettings, roleSettings, unknownSettings } from "./role-settings.ts";

export function addConfig(program: Command): void {
  const config = topLevel(program, "config");
  const show = config
    .command("show")
    .argument("[role]", `what \`roles\` can give to the processes of one role: ${roles.join(", ")}`, oneOf(roles))
    .description("every key, its value now, and how to give it")
    .option("--json", "for tools");
  withConfig(show).action(async (role: RoleName | undefined, _options, command: Command) => {
    const values = configOf(command);
    const json = command.opts<{ json?: boolean }>().json === true;
    for (const line of await unknownSettings(process.env)) warn(`stamp: ${line}`);
    await checkRoleSettings(values);
    if (role !== undefined) await showRole(values, role, json);
    else if (json) sayRaw(toJson({ ...values, accounts: values.accounts.map((each) => ({ name: each.name, keys: "…" })) }));
    else showAll(values);
  });
  addForget(config);
  const prometheus = config.command("prometheus").description("a configuration of Prometheus that asks every process of this cluster");
  withConfig(prometheus).action((_options, command: Command) => {
    const values = configOf(command);
    const { processes } = planCluster(values, recordOf(values.dataDir));
    sayRaw(scrapeText(processes).trimEnd());
  });
}

function addForget(config: Command): void {
  const forget = config
    .command("forget")
    .argument("<key...>", "keys whose default shall hold again from the next start on")
    .description("what the data folder remembers of keys of the last start; the cluster must be stopped");
  withConfig(forget, ["dataDir"]).action((keys: readonly string[], _options, command: Command) => {
    const { dataDir } = checkedStopped(configOf(command, { withoutRecord: true }));
    const record = recordOf(dataDir);
    if (record === undefined) throw new CommandError(`${dataDir} remembers nothing`);
    const unknown = keys.filter((key) => !(key in record.config));
    if (unknown.length > 0) {
      const known = Object.keys(record.config).join(", ");
      throw new CommandError(`${dataDir} does not remember ${unknown.join(", ")}; it remembers ${known}`, exitCodes.usage);
    }
    const left = Object.fromEntries(Object.entries(record.config).filter(([key]) => !keys.includes(key)));
    writeClusterRecord(dataDir, { ...record, config: left });
    say(`${dataDir} does not remember ${keys.join(", ")} any more`);
  });
}

function checkedStopped(config: ClusterConfig): ClusterConfig {
  checkNothingRuns(config, `the cluster of ${config.dataDir} runs: stop it first: ./stamp down`);
  return config;
}

function showAll(values: ClusterConfig): void {
  const show = (key: (typeof configKeys)[number]): string =>
    key === "accounts"
      ? values.accounts.map((each) => each.name).join(", ")
      : typeof values[key] === "object"
        ? JSON.stringify(values[key])
        : String(values[key] ?? "-");
  say(
    table(
      ["KEY", "VALUE", "FLAG", "ENVIRONMENT"],
      configKeys.map((key) => [key, show(key), flagName(key), environmentName(key)]),
    ),
  );
  say("\nMeaning");
  for (const key of configKeys) say(`  ${key}: ${clusterConfigSchema.shape[key].description ?? ""}`);
  say(`
File: stamp.config.json, a JSON object with these keys. A flag wins over the environment, that over the file, the file over what the data folder remembers.
${rememberedIn(values.dataDir)}
What \`roles\` can give to processes of a role: ./stamp config show ROLE (${roles.join(", ")})`);
}

function rememberedIn(dataDir: string): string {
  const record = recordOf(dataDir);
  if (record === undefined) return `${dataDir} remembers nothing: no cluster was started on it.`;
  const gone = record.retired.length === 0 ? "" : ` Decommissioned: ${record.retired.join(", ")}.`;
  return `${dataDir} remembers: ${Object.keys(record.config).join(", ")} (./stamp config forget KEY).${gone}`;
}

async function showRole(values: ClusterConfig, role: RoleName, json: boolean): Promise<void> {
  const settings = await roleSettings(values, role);
  if (json) {
    sayRaw(toJson(settings));
    return;
  }
  say(
    table(
      ["KEY", "VALUE", "DEFAULT"],
      settings.map(({ key, value, byDefault }) => [key, value, byDefault]),
    ),
  );
  say("\nMeaning");
  for (const { key, meaning } of settings) say(`  ${key}: ${meaning}`);
  say(
    `\nGiven in stamp.config.json: {"roles":{"${role}":{"KEY":VALUE}}}, or by --roles or STAMP_ROLES as JSON; holds from the next start on.`,
  );
}
