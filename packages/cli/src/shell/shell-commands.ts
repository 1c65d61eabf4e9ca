/** `stamp completion bash|zsh|fish`, `stamp man-page`: both from the commands themselves. */
import { writeFileSync } from "node:fs";
import { release } from "@stamp/base";
import type { Command } from "commander";
import { sayRaw } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { commandTree } from "./command-tree.ts";
import { completionOf, shells } from "./completions.ts";
import { manPage } from "./man-page.ts";

export function addShellCommands(program: Command): void {
  const completion = topLevel(program, "completion");
  for (const shell of shells)
    completion
      .command(shell)
      .description(`the script for ${shell}; how it is used is in its first lines`)
      .action(async () => sayRaw(completionOf(shell, await commandTree()).trimEnd()));
  topLevel(program, "man-page")
    .option("--out <file>", "write it there; without it to standard output, as for: stamp man-page | man -l -")
    .action(async ({ out }: { out?: string }) => {
      const page = manPage(await commandTree(), release);
      if (out === undefined) sayRaw(page.trimEnd());
      else writeFileSync(out, page);
    });
}
