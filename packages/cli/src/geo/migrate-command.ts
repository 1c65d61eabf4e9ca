/** `stamp account migrate`: moves an account to another stamp, by the location service. */
import type { LocatedAccount } from "@stamp/wire";
import type { Command } from "commander";
import { call, withLocation } from "../accounts/location-command.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { tell } from "../running.ts";
import { accountsText, geoFacts, withWait } from "./geo-command.ts";
import { type LocationClient, operate } from "./operation.ts";

/** Moves the account and waits for the end. */
export function moveAccount(
  command: Command,
  name: string,
  stamp: string,
  { dropQueues = false, withQueues = false, anyway = false } = {},
): Promise<LocatedAccount> {
  const begin = (client: LocationClient) => client.migrateAccount({ account: name, stamp, dropQueues, withQueues, anyway }, call);
  const reached = (now: LocatedAccount, begun: LocatedAccount) => now.epoch >= begun.operation;
  return operate(command, { account: name, what: `migration of account ${name}`, begin, reached, withQueues });
}

interface MigrateOptions {
  readonly to: string;
  readonly dropQueues?: boolean;
  readonly withQueues?: boolean;
  readonly anyway?: boolean;
}

export function addMigrate(account: Command): void {
  const about =
    "move an account to another stamp; it serves all the time, but for some seconds without writes at the end; an account that has queues is refused without --with-queues or --drop-queues";
  const command = withLocation(account.command("migrate <account>").description(about).option("--json", "for tools"));
  withWait(command)
    .requiredOption("--to <stamp>", "the stamp that it goes to")
    .option("--with-queues", "queues and messages move, too")
    .option("--drop-queues", "move also an account that has queues, and delete them")
    .option("--anyway", "refuse writes also while the copy is far behind; also for a migration under way that waits for it")
    .addHelpText("after", "\nExample: stamp account migrate acme --to north-2")
    .action(async (name: string, { to: stamp, ...how }: MigrateOptions, command: Command) => {
      if (how.dropQueues === true && how.withQueues === true)
        throw new CommandError("either --with-queues or --drop-queues", exitCodes.usage);
      const moved = await moveAccount(command, name, stamp, how);
      tell(command, geoFacts(moved), () => accountsText([moved]));
    });
}
