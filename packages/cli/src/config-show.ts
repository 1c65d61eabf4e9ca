/** `stamp config show`: the configuration as it holds, and where each key can be given. */
import { clusterConfigSchema, configKeys, environmentName, flagName } from "@stamp/cluster";
import type { Command } from "commander";
import { configOf, withConfig } from "./context.ts";
import { table, toJson } from "./print.ts";

export function addConfig(program: Command): void {
  const config = program.command("config").description("configuration of the cluster");
  withConfig(config.command("show").description("every key, its value now, and how to give it").option("--json", "for tools")).action(
    (_options, command: Command) => {
      const values = configOf(command);
      if (command.opts<{ json?: boolean }>().json === true) {
        console.log(toJson({ ...values, accounts: values.accounts.map((each) => ({ name: each.name, keys: "…" })) }));
        return;
      }
      const show = (key: (typeof configKeys)[number]): string =>
        key === "accounts"
          ? values.accounts.map((each) => each.name).join(", ")
          : typeof values[key] === "object"
            ? JSON.stringify(values[key])
            : String(values[key]);
      console.log(
        table(
          ["KEY", "VALUE", "FLAG", "ENVIRONMENT"],
          configKeys.map((key) => [key, show(key), flagName(key), environmentName(key)]),
        ),
      );
      console.log("\nMeaning");
      for (const key of configKeys) console.log(`  ${key}: ${clusterConfigSchema.shape[key].description ?? ""}`);
      console.log("\nFile: stamp.config.json, a JSON object with these keys. A flag wins over the environment, that over the file.");
    },
  );
}
