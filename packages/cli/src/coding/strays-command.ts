/** `stamp coding strays list|delete`: fragments on extent nodes that no record explains. */
import type { ListStrayFragmentsResponse } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, exitCodes } from "../context.ts";
import { table } from "../print.ts";
import { inspect, make, tell } from "../running.ts";

/** Time that every extent node gets to name its fragments, in milliseconds. */
const listTimeoutMs = 60_000;

export function addStrays(coding: Command): void {
  const strays = coding
    .command("strays")
    .description("fragments on nodes that no record explains, as after metadata were restored; nothing deletes them but you")
    .addHelpText(
      "after",
      `
Examples:
  stamp coding strays list                                which there are, and which of them may be deleted
  stamp coding strays delete extent-node-3 17 4 --yes     delete the fragment of extent 17, version 4, on extent-node-3`,
    );
  make(strays, "list", "which there are, and which of them may be deleted").action(async (_options, command: Command) => {
    const found = await inspect(command, (inspector) =>
      inspector.ask((manager, timeoutMs) => manager.listStrayFragments({}, { timeoutMs }), listTimeoutMs),
    );
    tell(command, found, straysText);
  });
  make(strays, "delete <node> <extent> <version>", "delete one fragment for good")
    .option("--yes", "do it")
    .action(async (nodeId: string, id: string, version: string, _options, command: Command) => {
      if (command.opts<{ yes?: boolean }>().yes !== true)
        throw new CommandError(
          `this deletes the fragment of extent ${id}, version ${version}, on ${nodeId} for good; say --yes`,
          exitCodes.usage,
        );
      const request = { nodeId, extentId: BigInt(id), version: BigInt(version) };
      await inspect(command, (inspector) => inspector.change((manager, timeoutMs) => manager.deleteStrayFragment(request, { timeoutMs })));
      tell(command, { deleted: true }, () => `deleted the fragment of extent ${id}, version ${version}, on ${nodeId}`);
    });
}

/** Returns the output of `strays list` for people. */
export function straysText({ fragments, more, unreached }: ListStrayFragmentsResponse): string {
  const away = unreached.map((node) => `${node} did not answer: nothing is known of its fragments`);
  if (fragments.length === 0) return ["every fragment that was found is explained by a record", ...away].join("\n");
  const rows = fragments.map(({ nodeId, extentId, version, index, keptBecause }) => [
    nodeId,
    extentId,
    version,
    index,
    keptBecause === "" ? "may be deleted" : keptBecause,
  ]);
  const lines = [table(["NODE", "EXTENT", "VERSION", "INDEX", "STATE"], rows), ...(more ? ["… and more than are listed"] : []), ...away];
  return lines.join("\n");
}
