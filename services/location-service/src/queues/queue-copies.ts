/**
 * Checks about an account's queues before the account gets a second stamp or moves (docs/design/geo-shipping.md "Queues"). What the stamps decide again
 * when they get the command is in the partition manager (role-commands.ts): a stamp refuses what its feature level does not allow.
 */
import { neededLevels, type Outcome, ok, refused } from "@stamp/base";
import type { AccountRecord, MigrationChoices, StampRecord } from "@stamp/geo";
import type { StampLink } from "../stamp-link.ts";
import type { Stamps } from "../stamps.ts";

/** Function that asks a stamp, unless another one answers at its address. */
type Asks = Pick<Stamps, "onStamp" | "levelOf">;

/** Choices of whoever wants a copy. */
export interface ProtectionChoices {
  /** Name of the second stamp; empty: the emptiest one of `location`. */
  readonly stamp: string;
  readonly location: string;
  /** True to copy the account's queues, too. */
  readonly withQueues: boolean;
}

/** Refuses to copy queues if a stamp has too low a feature level, or the second one has queues of its own. `at`: primary and second stamp. */
export async function mayCopyQueues(stamps: Asks, account: string, at: readonly StampRecord[]): Promise<Outcome<void>> {
  const [, target] = at;
  for (const stamp of at) {
    const level = await stamps.levelOf(stamp);
    if (!level.ok) return level;
    if (level.value < neededLevels.queueCopies) return belowLevel(stamp, level.value);
  }
  if (target === undefined) return ok();
  const role = await stamps.onStamp(target, (link) => link.role(account));
  if (!role.ok) return role.failure.code === "notFound" ? ok() : role;
  // They are a copy, or are being deleted.
  if (role.value.queues === true || role.value.dropsQueues === true) return ok();
  const queues = await queuesAt(stamps, target, account);
  return queues.ok && queues.value.length > 0 ? replacesQueues(account, target, queues.value) : dropped(queues);
}

/** Refuses to move an account with queues, unless they move, too, or are given up. */
export async function mayLeaveQueues(
  stamps: Asks,
  account: AccountRecord | undefined,
  primary: StampRecord | undefined,
  { dropQueues, withQueues }: MigrationChoices,
): Promise<Outcome<void>> {
  if (primary === undefined || account === undefined || dropQueues === true || withQueues === true) return ok();
  const { name, running } = account;
  // The operation under way has made its choice, or keeps the migration from its beginning.
  if (running !== undefined && (running.kind !== "migrate" || account.queues === true || running.dropQueues === true)) return ok();
  const queues = await queuesAt(stamps, primary, name);
  if (!queues.ok || queues.value.length === 0) return dropped(queues);
  const first =
    running === undefined ? "" : `its migration under way leaves them behind: take it back (./stamp geo give-up ${name}), then `;
  const message = `account ${name} has queues (${queues.value.join(", ")}): ${first}move them with --with-queues, or give them up with --drop-queues`;
  return refused("failedPrecondition", "conflict", message);
}

const queuesAt = (stamps: Asks, stamp: StampRecord, account: string): Promise<Outcome<readonly string[]>> =>
  stamps.onStamp(stamp, (link: StampLink) => link.queues(account));

const dropped = (outcome: Outcome<unknown>): Outcome<void> => (outcome.ok ? ok() : outcome);

const belowLevel = ({ name }: StampRecord, level: number) =>
  refused(
    "failedPrecondition",
    "newerFormat",
    `stamp ${name} has feature level ${level}, and copies of queues need level ${neededLevels.queueCopies}: upgrade it, and raise its level (./stamp upgrade finalize)`,
  );

const replacesQueues = (account: string, { name }: StampRecord, queues: readonly string[]) =>
  refused(
    "failedPrecondition",
    "conflict",
    `stamp ${name} has queues of account ${account} from an earlier time (${queues.join(", ")}), which a copy would replace: ` +
      `delete them first, with stamp geo protect ${account} --to ${name} and stamp geo unprotect ${account} --drop-queues`,
  );
