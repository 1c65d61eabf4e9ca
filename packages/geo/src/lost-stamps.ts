/**
 * A stamp that a person declared lost (docs/design/geo.md "A lost stamp"): operations that wait for it end without it, and what it was not told
 * is owed to it. State in, state out.
 *
 * Invariants (docs/design/model/geo-failover.pml, rule `OWED`):
 * - The account has a primary that is not lost, or is left as it was.
 * - Every command that the lost stamp was not told is recorded before the operation goes on without it, in the order in which it is to be told.
 * - What is owed to a stamp leaves it without a role of the account, whatever it obeyed before, also a promotion that it did not answer.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { type GeoAccount, planUnprotect, type RunningOperation, type StampCommand } from "./operations.ts";

/** Returns the commands that are owed to a lost stamp about an account, in order. */
export const owedTo = ({ owed = [] }: GeoAccount, stamp: string): readonly StampCommand[] => owed.filter((one) => one.stamp === stamp);

/** Plans the record after the stamp obeyed the first command that was owed to it. */
export function planTold(account: GeoAccount, told: StampCommand): GeoAccount {
  const { owed = [], ...rest } = account;
  const at = owed.findIndex(({ stamp, command }) => stamp === told.stamp && isSame(command, told.command));
  if (at < 0) return account;
  const left = owed.filter((_, i) => i !== at);
  return left.length === 0 ? rest : { ...rest, owed: left };
}

const isSame = (a: StampCommand["command"], b: StampCommand["command"]): boolean => a.kind === b.kind && a.operation === b.operation;

/**
 * Returns the account without the lost stamp; the same record if it does not wait for it. Refused if the stamp is its primary: a copy is to be
 * promoted first.
 */
export function planLost(account: GeoAccount, lost: string): Outcome<GeoAccount> {
  const { running, primary, secondary, name } = account;
  if (primary === lost)
    return refused("failedPrecondition", "conflict", `stamp ${lost} is the primary of account ${name}: promote its copy, if it has one`);
  if (running === undefined) return secondary === lost ? planUnprotect(account, true) : ok(account);
  if (running.target === lost) return withoutTarget(account, running, lost);
  if (running.source === lost && running.step === "demoting") return withoutSource(account, running, lost);
  return running.source === lost && running.step === "removing" ? ok(ended(owing(account, removal(account, lost)))) : ok(account);
}

const removal = ({ operation }: GeoAccount, stamp: string): StampCommand => ({ stamp, command: { kind: "remove", operation } });

const owing = (account: GeoAccount, ...commands: readonly StampCommand[]): GeoAccount => ({
  ...account,
  owed: [...(account.owed ?? []), ...commands],
});

function ended(account: GeoAccount): GeoAccount {
  const { running: _running, queues, ...rest } = account;
  return rest.secondary === undefined || queues !== true ? rest : { ...rest, queues };
}

function alone(account: GeoAccount): GeoAccount {
  const { secondary: _secondary, queues: _queues, ...rest } = ended(account);
  return { ...rest, seeded: false };
}

/** Plans the operation without its target, which is lost: the source takes writes alone. */
function withoutTarget(account: GeoAccount, running: RunningOperation, lost: string): Outcome<GeoAccount> {
  const { step, source } = running;
  if (step === "removing") return ok(alone(owing(account, removal(account, lost))));
  // The source is asked; what comes next is the removal, or the copy, at the lost stamp.
  if (step === "unpairing" || step === "undraining" || step === "creating") return ok(account);
  const operation = account.operation + 1;
  const begun: GeoAccount = {
    ...account,
    operation,
    running: { kind: "unprotect", step: "unpairing", source, target: lost, dropQueues: true },
  };
  // It may have obeyed the promotion, and be primary: `demote` makes it none, whatever it was.
  if (step !== "promoting") return ok(begun);
  return ok(owing(begun, { stamp: lost, command: { kind: "demote", operation, peer: source, point: [] } }));
}

/** Plans the end of an operation whose target is primary already and whose source is lost. */
function withoutSource(account: GeoAccount, running: RunningOperation, lost: string): Outcome<GeoAccount> {
  const { kind, target = account.primary, point = [] } = running;
  const owed = owing(account, { stamp: lost, command: { kind: "demote", operation: account.operation, peer: target, point } });
  return kind === "migrate" ? ok({ ...owed, running: { ...running, step: "unpairing" } }) : planUnprotect(ended(owed), true);
}
