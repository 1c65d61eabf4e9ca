/** `stamp account migrate`: moves an account to another stamp, by the location service. */
import type { LocatedAccount } from "@stamp/wire";
import type { Command } from "commander";
import { call, withLocation } from "../accounts/location-command.ts";
import { tell } from "../running.ts";
import { accountsText, geoFacts, withWait } from "./geo-command.ts";
import { type LocationClient, operate } from "./operation.ts";

/** Moves the account and waits for the end. */
export function moveAccount(
  command: Command,
  name: string,
  stamp: string,
  { dropQueues = false, anyway = false } = {},
): Promise<LocatedAccount> {
  const begin = (client: LocationClient) => client.migrateAccount({ account: name, stamp, dropQueues, anyway }, call);
  const reached = (now: LocatedAccount, begun: LocatedAccount) => now.epoch >= begun.operation;
  return operate(command, { account: name, what: `migration of account ${name}`, begin, reached });
}

export function addMigrate(account: Command): void {
  const about =
    "move an account to another stamp; it serves all the time, but for some seconds without writes at the end; an account that has queues is refused: they do not move";
  const command = withLocation(account.command("migrate <account>").description(about).option("--json", "for tools"));
  withWait(command)
    .requiredOption("--to <stamp>", "the stamp that it goes to")
    .option("--drop-queues", "move also an account that has queues, and delete them")
    .option("--anyway", "refuse writes also while the copy is far behind; also for a migration under way that waits for it")
    .addHelpText("after", "\nExample: stamp account migrate acme --to north-2")
    .action(async (name: string, { to: stamp, ...how }: { to: string; dropQueues?: boolean; anyway?: boolean }, command: Command) => {
      const moved = await moveAccount(command, name, stamp, how);
      tell(command, geoFacts(moved), () => accountsText([moved]));
    });
}
