/** `stamp`: the command line. */
import { FailureError } from "@stamp/base";
import { ConfigError, StartError } from "@stamp/cluster";
import { DiskError } from "@stamp/ports";
import { inWords, isSystemError } from "@stamp/ports-node";
import { Command } from "commander";
import { addAccount } from "./account-command.ts";
import { addCerts } from "./certs-command.ts";
import { addConfig } from "./config-show.ts";
import { CommandError, exitCodes } from "./context.ts";
import { addDrill } from "./drill-command.ts";
import { addExtent } from "./extent-commands.ts";
import { addFsck } from "./fsck/fsck-command.ts";
import { addMetadata } from "./metadata-command.ts";
import { addNode } from "./node-commands.ts";
import { addPartition } from "./partition-command.ts";
import { addRebalance } from "./rebalance-command.ts";
import { addScrub } from "./scrub-command.ts";
import { addStatus } from "./status.ts";
import { addStream } from "./stream-commands.ts";
import { addToken } from "./token-command.ts";
import { addUp } from "./up.ts";

const program = new Command("stamp")
  .description("A self-hosted storage cluster that Azure Storage SDKs work against.")
  .showHelpAfterError("(see --help)")
  .addHelpText(
    "after",
    `
Also: stamp test, stamp check, stamp sim, stamp bench (of this repository).

Exit codes: 0 done, 1 failed, 2 wrong command line or configuration, 3 not running, 4 not ready, 5 a drill found a broken promise.`,
  )
  .configureOutput({ outputError: (text, write) => write(text) });

addUp(program);
addStatus(program);
addStream(program);
addExtent(program);
addNode(program);
addMetadata(program);
addPartition(program);
addRebalance(program);
addConfig(program);
addFsck(program);
addScrub(program);
addDrill(program);
addAccount(program);
addToken(program);
addCerts(program);
exitWithUsageCode(program);

/** commander ends with 1 for a wrong command line; 1 means here that something failed. */
function exitWithUsageCode(command: Command): void {
  command.exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : exitCodes.usage));
  for (const each of command.commands) exitWithUsageCode(each);
}

try {
  await program.parseAsync(process.argv);
} catch (error) {
  if (error instanceof CommandError) {
    console.error(`stamp: ${error.message}`);
    process.exitCode = error.exitCode;
  } else if (error instanceof ConfigError || error instanceof StartError) {
    console.error(`stamp: ${error.message}`);
    process.exitCode = error instanceof ConfigError ? exitCodes.usage : exitCodes.failed;
  } else if (isSystemError(error) || error instanceof DiskError || error instanceof FailureError) {
    console.error(`stamp: ${error instanceof FailureError ? error.failure.message : inWords(error)}`);
    process.exitCode = exitCodes.failed;
  } else {
    throw error;
  }
}
