/**
 * An operation on an account that the location service carries on by itself (docs/design/geo.md "Operations"). The
 * command begins it, tells how far it is, and ends when the operation has ended. Whoever leaves the command stops nothing.
 */
import type { Outcome } from "@stamp/base";
import { type LocatedAccount, LocationService } from "@stamp/wire";
import type { Command } from "commander";
import { call, leavesQueuesOut, onLocation } from "../accounts/location-command.ts";
import { CommandError } from "../exit.ts";
import { withProgress } from "../progress.ts";
import type { Transport } from "../running.ts";

export type LocationClient = ReturnType<typeof locationAt>;
export const locationAt = (transport: Transport, at: string) => transport.client(at, LocationService);

const pollMs = 500;
/** Time without an answer of a location service after which the command gives up watching, in milliseconds. */
const silentMaxMs = 120_000;

export interface WantedOperation {
  readonly account: string;
  /** The operation in words, e.g. "failover of account acme". */
  readonly what: string;
  readonly begin: (client: LocationClient) => Promise<Outcome<LocatedAccount>>;
  /** True if the account is as the operation was to make it. `begun`: the account when the operation was recorded. */
  readonly reached: (account: LocatedAccount, begun: LocatedAccount) => boolean;
  /** True to copy the account's queues, too. */
  readonly withQueues?: boolean;
  /** True: the command ends as soon as that is reached, though the operation goes on with what it does afterwards. */
  readonly endsWhenReached?: boolean;
  /** Advice for the case that the operation does not go on. */
  readonly otherwise?: string;
}

/**
 * Begins an operation and watches it to its end. Returns the account as it is then, or, with `--no-wait`, as it was when
 * the operation was recorded. Throws if the operation was taken back.
 */
export async function operate(
  command: Command,
  { account, what, begin, reached, withQueues, endsWhenReached, otherwise = "" }: WantedOperation,
): Promise<LocatedAccount> {
  return onLocation(command, async (transport, { at }) => {
    const client = locationAt(transport, at);
    const begun = await begin(client);
    if (begun.ok && withQueues === true && !begun.value.queues)
      throw new CommandError(`the ${what} has begun, and queues are ${leavesQueuesOut}. To take it back: ./stamp geo give-up ${account}`);
    const orElse = otherwise === "" ? "" : `. ${otherwise}`;
    if (!begun.ok && orElse !== "") return { ok: false, failure: { ...begun.failure, message: `${begun.failure.message}${orElse}` } };
    if (!begun.ok || command.opts<{ wait?: boolean }>().wait === false) return begun;
    const afterwards = `The location service goes on with it by itself: ./stamp geo status ${account}`;
    const isEnough = (now: LocatedAccount): boolean => endsWhenReached === true && reached(now, begun.value);
    const watched = await withProgress({ what, afterwards }, (tell) =>
      watch(client, begun.value, isEnough, (now) => tell(`${what}: ${stepText(now)}${now.trouble === "" ? "" : orElse}`)),
    );
    if (!reached(watched.account, begun.value)) {
      const why = watched.trouble === "" ? "" : `: ${watched.trouble}`;
      throw new CommandError(
        `the ${what} was taken back${why}. ${account} is at stamp ${watched.account.stamp}, as before${why === "" ? "" : orElse}`,
      );
    }
    return { ok: true, value: watched.account };
  });
}

interface Watched {
  /** Account without the operation, or as it was when the wanted state was reached. */
  readonly account: LocatedAccount;
  /** The last trouble that the operation had; empty: none was seen. */
  readonly trouble: string;
}

async function watch(
  client: LocationClient,
  begun: LocatedAccount,
  isEnough: (now: LocatedAccount) => boolean,
  tell: (now: LocatedAccount) => void,
): Promise<Watched> {
  let trouble = "";
  let answeredMs = performance.now();
  for (let now = begun; ; ) {
    // A migration that drained for too long goes on under another number.
    const goesOn = now.kind === "migrate" && begun.kind === "migrate" && now.target === begun.target;
    const isOver = now.kind === "" || (now.operation !== begun.operation && !goesOn);
    if (isOver || isEnough(now)) return { account: now, trouble };
    if (now.trouble !== "") ({ trouble } = now);
    tell(now);
    await new Promise((resolve) => setTimeout(resolve, pollMs));
    const asked = await client.getAccount({ account: begun.name }, call);
    if (asked.ok) {
      now = asked.value;
      answeredMs = performance.now();
    } else if (performance.now() - answeredMs > silentMaxMs) {
      const still = `It goes on by itself when one leads again: ./stamp geo status ${begun.name}`;
      throw new CommandError(`no location service answers any more: ${asked.failure.message}. ${still}`);
    }
  }
}

/** Returns the step of the operation under way and what it waits for; empty: none is under way. */
export function stepText({ kind, step, givenUp, trouble }: LocatedAccount): string {
  if (kind === "") return "";
  return `${kind}, ${step}${givenUp ? ", taken back" : ""}${trouble === "" ? "" : `: ${trouble}`}`;
}
