/**
 * `stamp geo status|protect|unprotect|failover|failback|diverged|give-up`: copies of accounts at a second stamp, by the location
 * service (docs/guides/geo.md).
 */
import type { LocatedAccount } from "@stamp/wire";
import type { Command } from "commander";
import { call, everyAccount, onLocation, withLocation } from "../accounts/location-command.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { bytesText, table } from "../print.ts";
import { tell } from "../running.ts";
import { topLevel } from "../top-level.ts";
import { forgetDiverged, showDiverged } from "./diverged.ts";
import { keptText, lagText, pendingText, shippingFacts } from "./figures.ts";
import { getDiverged } from "./get-diverged.ts";
import { locationAt, operate, stepText } from "./operation.ts";

interface ProtectOptions {
  readonly to: string;
  readonly location: string;
  readonly withQueues?: boolean;
}

interface FailoverOptions {
  readonly planned?: boolean;
  readonly forced?: boolean;
  readonly acceptLoss?: boolean;
  readonly anyway?: boolean;
  readonly to: string;
}

export function addGeo(program: Command): void {
  const geo = topLevel(program, "geo");
  const make = (name: string, about: string, example: string): Command =>
    withLocation(geo.command(name).description(about).option("--json", "for tools")).addHelpText(
      "after",
      `\nExample: stamp geo ${example}`,
    );
  /** Makes a command that begins an operation. */
  const makeOperation = (name: string, about: string, example: string): Command => withWait(make(name, about, example));

  make("status [account]", "accounts with a second stamp or an operation under way, or one account", "status acme").action(
    async (name: string | undefined, _options, command: Command) => {
      const accounts = await onLocation(command, async (transport, { at }) => {
        if (name === undefined) return everyAccount(transport, at);
        const found = await locationAt(transport, at).getAccount({ account: name }, call);
        return found.ok ? { ok: true, value: [found.value] } : found;
      });
      const shown =
        name === undefined
          ? accounts.filter(({ secondary, kind, removals }) => secondary !== "" || kind !== "" || removals.length > 0)
          : accounts;
      tell(command, shown.map(geoFacts), () => accountsText(shown));
    },
  );
  makeOperation("protect <account>", "keep a copy of the account at a second stamp", "protect acme --location south")
    .option("--to <stamp>", "the second stamp", "")
    .option("--location <name>", "location whose emptiest stamp gets the copy", "")
    .option("--with-queues", "copy queues and messages, too; without it they are at one stamp only")
    .action(async (account: string, { to: stamp, location, withQueues = false }: ProtectOptions, command: Command) => {
      if ((stamp === "") === (location === "")) throw new CommandError("either --to STAMP or --location NAME", exitCodes.usage);
      const begin = (client: ReturnType<typeof locationAt>) => client.protectAccount({ account, stamp, location, withQueues }, call);
      const reached = (now: LocatedAccount, begun: LocatedAccount) => now.secondary === begun.target;
      show(command, await operate(command, { account, what: `protection of account ${account}`, begin, reached, withQueues }));
    });
  makeOperation("unprotect <account>", "give up the copy at the second stamp; that stamp deletes it", "unprotect acme")
    .option("--drop-queues", "also queues that only that stamp has; otherwise they stay there, out of reach")
    .action(async (account: string, { dropQueues = false }: { dropQueues?: boolean }, command: Command) => {
      const begin = (client: ReturnType<typeof locationAt>) => client.unprotectAccount({ account, dropQueues }, call);
      const reached = (now: LocatedAccount) => now.secondary === "";
      show(command, await operate(command, { account, what: `end of the protection of account ${account}`, begin, reached }));
    });
  makeOperation("failover <account>", "make the copy the primary; --forced if the primary is lost", "failover acme --planned")
    .option("--planned", "ship everything first: nothing is lost")
    .option("--forced", "at once: what was not shipped is lost")
    .option("--accept-loss", "needed with --forced")
    .option("--anyway", "with --planned: also if the copy is far behind, so that it is likely to be given up")
    .option("--to <stamp>", "refuse if the copy is at another stamp: a repeated command does not go back", "")
    .action(async (account: string, { planned, forced, acceptLoss, anyway, to }: FailoverOptions, command: Command) => {
      if ((planned === true) === (forced === true)) throw new CommandError("either --planned or --forced", exitCodes.usage);
      if (acceptLoss === true && forced !== true) throw new CommandError("--accept-loss goes with --forced only", exitCodes.usage);
      if (anyway === true && forced === true) throw new CommandError("--anyway goes with --planned only", exitCodes.usage);
      await failOver(command, account, { forced: forced === true, acceptLoss: acceptLoss === true, stamp: to, anyway: anyway === true });
    });
  makeOperation("failback <account>", "after a failover: back to the stamp that was primary before", "failback acme --to north-1")
    .requiredOption("--to <stamp>", "the stamp that was primary before, and has the copy now")
    .option("--anyway", "also if the copy is far behind, so that it is likely to be given up")
    .action((account: string, { to: stamp, anyway = false }: { to: string; anyway?: boolean }, command: Command) =>
      failOver(command, account, { forced: false, acceptLoss: false, stamp, anyway }),
    );
  make(
    "diverged <account>",
    "what only a stamp had that a forced failover deposed: rows that the new primary lacked",
    "diverged acme --json",
  )
    .option("--stamp <stamp>", "only what this stamp had", "")
    .option("--forget", "delete the report of --stamp: nobody can read it afterwards")
    .option(
      "--get <container/blob>",
      "at the stamp of --data: write the content of a blob that its report names into a file (newest write)",
    )
    .option("--out <file>", "with --get: the file, which must not exist (default: the last part of the blob's name)")
    .action((account: string, { stamp, forget, get, out }: DivergedOptions, command: Command) => {
      if (get !== undefined && forget === true) throw new CommandError("either --get or --forget", exitCodes.usage);
      if (out !== undefined && get === undefined) throw new CommandError("--out goes with --get only", exitCodes.usage);
      if (get !== undefined) return getDiverged(command, { account, get, out });
      if (forget !== true) return showDiverged(command, account, stamp);
      if (stamp === "") throw new CommandError("--forget needs --stamp NAME: the stamp whose report is deleted", exitCodes.usage);
      return forgetDiverged(command, account, stamp);
    });
  make("give-up <account>", "take an operation back, as long as no other stamp was promoted", "give-up acme").action(
    async (account: string, _options, command: Command) =>
      show(command, await onLocation(command, (transport, { at }) => locationAt(transport, at).giveUpOperation({ account }, call))),
  );
}

interface DivergedOptions {
  readonly stamp: string;
  readonly forget?: boolean;
  readonly get?: string;
  readonly out?: string;
}

/** Adds the option of commands that watch an operation. */
export const withWait = (command: Command): Command => command.option("--no-wait", "end when the operation is recorded");

interface Failover {
  readonly forced: boolean;
  readonly acceptLoss: boolean;
  /** Stamp that must have the copy; empty if any may. */
  readonly stamp: string;
  /** True to begin a planned failover that is likely to be given up. */
  readonly anyway: boolean;
}

async function failOver(command: Command, account: string, how: Failover): Promise<void> {
  const begin = (client: ReturnType<typeof locationAt>) => client.failOverAccount({ account, ...how }, call);
  // A planned failover may have been taken over by a forced one, which has a higher number.
  const reached = (now: LocatedAccount, begun: LocatedAccount) => now.epoch >= begun.operation;
  const what = `${how.forced ? "forced " : ""}failover of account ${account}`;
  // The old primary may be away for long, or for ever: the new one takes writes without it.
  const otherwise = how.forced
    ? {}
    : { otherwise: `if the primary is lost: ./stamp geo failover ${account} --forced --accept-loss (what was not shipped is lost)` };
  show(command, await operate(command, { account, what, begin, reached, endsWhenReached: how.forced, ...otherwise }));
}

function show(command: Command, account: LocatedAccount): void {
  tell(command, geoFacts(account), () => accountsText([account]));
}

export function accountsText(accounts: readonly LocatedAccount[]): string {
  const rows = accounts.map((account) => {
    const { name, stamp, secondary, state, seeded } = account;
    const copy = secondary === "" ? "-" : secondary;
    const complete = secondary === "" ? "-" : seeded ? "yes" : "no";
    const isCopied = secondary !== "" || account.shipping !== undefined;
    const [lag, pending] = isCopied ? [lagText(account), pendingText(account)] : ["-", "-"];
    const queues = account.queues ? "copied" : "-";
    return [name, stamp, copy, state, complete, lag, pending, queues, stepOf(account)];
  });
  const troubles = accounts.flatMap(({ name, trouble, shipping }) =>
    [...new Set([trouble, shipping?.trouble ?? ""])].filter((text) => text !== "").map((text) => `${name}: ${text}`),
  );
  const losses = accounts.filter(({ kind }) => kind === "forced").map(forcedText);
  return [
    table(["ACCOUNT", "PRIMARY", "COPY", "STATE", "COMPLETE", "LAG", "PENDING", "QUEUES", "STEP"], rows),
    ...losses,
    ...troubles,
    ...removalLines(accounts),
  ].join("\n");
}

/** Says which writes a forced failover under way keeps, and where the lost ones will be told. */
function forcedText(account: LocatedAccount): string {
  const { name, secondary, stamp, step } = account;
  const kept = keptText(acceptedSync(account));
  const listed = step === "demoting" ? `. When ${secondary} is back, see them: ./stamp geo diverged ${name}; ${stamp} takes writes` : "";
  return `${name}: ${kept}${listed}`;
}

const acceptedSync = ({ acceptedSyncMs }: LocatedAccount): string | null =>
  acceptedSyncMs === undefined ? null : new Date(Number(acceptedSyncMs)).toISOString();

const stepOf = (account: LocatedAccount): string => (account.kind === "" ? "-" : stepText({ ...account, trouble: "" }));

/** Returns lines about stamps that still delete data of removed accounts. */
export const removalLines = (accounts: readonly LocatedAccount[]): string[] =>
  accounts.flatMap(({ name, removals }) =>
    removals.map(({ stamp, rows, bytesLeft, rangesLeft, trouble }) => {
      const left = `${bytesText(Number(bytesLeft))} left in ${rangesLeft} ranges`;
      return `${name}: stamp ${stamp} deletes what it had of it: ${rows} rows deleted, ${left}${trouble === "" ? "" : `; ${trouble}`}`;
    }),
  );

export const removalFacts = ({ removals }: LocatedAccount) =>
  removals.map(({ stamp, rows, bytesLeft, rangesLeft, trouble }) => ({
    stamp,
    rowsDeleted: Number(rows),
    bytesLeft: Number(bytesLeft),
    rangesLeft,
    trouble,
  }));

/** Returns facts for tools. A number that no stamp tells is null. */
export function geoFacts(account: LocatedAccount) {
  const { name, stamp, secondary, seeded, state, kind, step, target, givenUp, trouble } = account;
  return {
    name,
    stamp,
    secondary,
    seeded,
    /** True if queues are copied to the second stamp, or move with the account. */
    queues: account.queues,
    state,
    epoch: Number(account.epoch),
    operation: Number(account.operation),
    kind,
    step,
    target,
    givenUp,
    trouble,
    /** Last Sync Time that a forced failover under way began with. */
    acceptedSync: acceptedSync(account),
    /** Stamps that still delete the account's data. */
    removals: removalFacts(account),
    ...shippingFacts(account),
  };
}
