/**
 * The location service's record of an account, and the operations that change it (docs/design/geo.md "Operations").
 * State in, state out: nothing is read, written or sent here.
 *
 * An operation is a list of steps. Each step but `seeding` is one command to one stamp, repeated until the stamp
 * answers.
 *
 * Invariants (docs/design/model/geo-failover.pml):
 * - An account has one operation at a time. Its number is above that of every earlier operation, also of one that was
 *   given up.
 * - The step is recorded before its command is sent (rule `geoStepRecorded`).
 * - A promotion that is not forced comes after the drained primary has shipped everything it acknowledged.
 * - An operation is not given up once its promotion is recorded.
 */
import type { Outcome, Rules } from "@stamp/base";
import { assert, ok, refused } from "@stamp/base";
import type { GeoPoint, RoleCommand } from "./account-role.ts";

export type GeoOperationKind = "create" | "protect" | "unprotect" | "failover" | "forced" | "migrate";

/** `seeding` waits for the primary's word; each other step is a command of `account-role.ts`. */
export type OperationStep =
  | "creating"
  | "following"
  | "pairing"
  | "seeding"
  | "draining"
  | "undraining"
  | "promoting"
  | "demoting"
  | "unpairing"
  | "removing";

export interface RunningOperation {
  readonly kind: GeoOperationKind;
  readonly step: OperationStep;
  /** Stamp that was primary when the operation began; of `create`, the stamp that becomes primary. */
  readonly source: string;
  /**
   * Stamp that becomes primary, secondary or, in `unprotect`, nothing any more. Undefined in a `create` without a
   * secondary.
   */
  readonly target?: string;
  /** SHA-256 of the keys and settings that the drained primary and its copy have, hexadecimal; undefined before they are compared, or never. */
  readonly settingsTag?: string;
  /** Point at which the promotion found the target; undefined before its answer. */
  readonly point?: GeoPoint;
  /**
   * Last Sync Time that the person accepted in a forced failover, in milliseconds since 1970; undefined: none was
   * known.
   */
  readonly acceptedSyncMs?: number;
  /** True if queues that are at one stamp only are given up. */
  readonly dropQueues?: boolean;
  /** True if a migration drains its primary also while the copy is far behind. */
  readonly anyway?: boolean;
  /** True if the operation is being taken back. */
  readonly givenUp?: boolean;
  /**
   * True in a migration that is `undraining` because its primary was drained for too long: it goes back to `seeding`. `givenUp` is true
   * then, too: a release that does not know this field gives the migration up, which loses nothing.
   */
  readonly drainsAgain?: boolean;
}

export interface GeoAccount {
  readonly name: string;
  readonly primary: string;
  readonly secondary?: string;
  /** Role epoch: number of the operation that made `primary` primary. */
  readonly epoch: number;
  /** Number of the last operation. */
  readonly operation: number;
  /** True if queues are copied to the second stamp, too, or move with the account. Undefined: they are at one stamp only. */
  readonly queues?: true;
  /** True if the secondary's copy was complete at some time under this role epoch. */
  readonly seeded: boolean;
  readonly running?: RunningOperation;
  /** Commands, in order, that are owed to stamps which were declared lost. */
  readonly owed?: readonly StampCommand[];
}

export type AccountState = "creating" | "single" | "seeding" | "protected" | "draining" | "switching" | "migrating" | "removing";

/** Returns the state for people. */
export function operationState({ running, secondary, seeded }: GeoAccount): AccountState {
  if (running === undefined) return secondary === undefined ? "single" : seeded ? "protected" : "seeding";
  switch (running.kind) {
    case "create":
      return "creating";
    case "protect":
      return "seeding";
    case "migrate":
      return "migrating";
    case "unprotect":
      return "removing";
    default:
      return running.step === "draining" || running.step === "undraining" ? "draining" : "switching";
  }
}

const conflict = (message: string) => refused("aborted", "conflict", message);
const wrong = (message: string) => refused("invalidArgument", "badRequest", message);

/** Begins to create an account on `primary`, with a copy on `secondary` if it is given; `withQueues`: its queues are copied, too. */
export function planCreate(name: string, primary: string, secondary?: string, withQueues = false): Outcome<GeoAccount> {
  if (primary === secondary) return wrong(`account ${name} needs two different stamps, not ${primary} twice`);
  if (withQueues && secondary === undefined) return wrong(`account ${name} has no second stamp that its queues could be copied to`);
  const running: RunningOperation = { kind: "create", step: "creating", source: primary, ...(secondary ? { target: secondary } : {}) };
  return ok({ name, primary, ...copying(withQueues), epoch: 1, operation: 1, seeded: false, running });
}

const copying = (withQueues: boolean): Pick<GeoAccount, "queues"> => (withQueues ? { queues: true } : {});

/** Returns the account with another choice: its copy, or the next one, has queues or not. */
function choosing(account: GeoAccount, withQueues: boolean): GeoAccount {
  const { queues: _queues, ...rest } = account;
  return { ...rest, ...copying(withQueues) };
}

/** Begins to keep a copy on `target`; `withQueues`: queues are copied, too. */
export function planProtect(account: GeoAccount, target: string, withQueues = false): Outcome<GeoAccount> {
  return beginAlone(choosing(account, withQueues), "protect", target);
}

/** Choices of whoever moves an account. */
export interface MigrationChoices {
  /** True to delete the source's queues at the end. */
  readonly dropQueues?: boolean;
  /** True to move the queues, too. */
  readonly withQueues?: boolean;
  /** True to drain the primary also while the copy is far behind. */
  readonly anyway?: boolean;
}

/** Begins to move the account to stamp `target`. At the end the source stamp removes its copy. */
export function planMigrate(
  account: GeoAccount,
  target: string,
  { dropQueues = false, withQueues = false, anyway = false }: MigrationChoices = {},
): Outcome<GeoAccount> {
  if (dropQueues && withQueues) return wrong(`the queues of account ${account.name} either move or are deleted`);
  const { running } = account;
  // A migration to the same stamp that waits for its copy need not begin anew to be told that it may drain.
  const isWaiting = running?.kind === "migrate" && running.target === target && running.givenUp !== true;
  if (anyway && isWaiting && (running.step === "following" || running.step === "pairing" || running.step === "seeding")) {
    if ((withQueues && account.queues !== true) || (dropQueues && running.dropQueues !== true)) return otherQueues(account, running);
    return ok(running.anyway === true ? account : at(account, { ...running, anyway: true }));
  }
  const choices = { ...(dropQueues ? { dropQueues } : {}), ...(anyway ? { anyway } : {}) };
  return beginAlone(choosing(account, withQueues), "migrate", target, choices);
}

/** Refuses a second choice about queues: a migration has the one that it began with. */
function otherQueues({ name, operation, queues }: GeoAccount, { dropQueues }: RunningOperation): Outcome<never> {
  const choice = queues === true ? "with --with-queues" : dropQueues === true ? "with --drop-queues" : "without queues";
  return conflict(
    `operation ${operation} (migrate) of account ${name} was begun ${choice}: take it back first (./stamp geo give-up ${name}), then begin it anew`,
  );
}

type Choices = Pick<RunningOperation, "dropQueues" | "anyway">;

function beginAlone(account: GeoAccount, kind: "protect" | "migrate", target: string, choices: Choices = {}): Outcome<GeoAccount> {
  const idle = needsIdle(account);
  if (!idle.ok) return idle;
  if (account.secondary !== undefined) {
    return conflict(`account ${account.name} has a secondary, stamp ${account.secondary}: remove that first, or fail over to it`);
  }
  if (account.primary === target) return wrong(`stamp ${target} is the primary of account ${account.name} already`);
  return ok(begun(account, { kind, step: "following", source: account.primary, target, ...choices }));
}

const dropping = (dropQueues: boolean): Pick<RunningOperation, "dropQueues"> => (dropQueues ? { dropQueues } : {});

/** Begins to give up the secondary and its copy. */
export function planUnprotect(account: GeoAccount, dropQueues = false): Outcome<GeoAccount> {
  const both = needsSecondary(account);
  if (!both.ok) return both;
  return ok(begun(account, { kind: "unprotect", step: "unpairing", source: account.primary, target: both.value, ...dropping(dropQueues) }));
}

/** Begins a planned failover: primary and secondary change places and nothing is lost. */
export function planFailover(account: GeoAccount): Outcome<GeoAccount> {
  const target = needsSeeded(account);
  if (!target.ok) return target;
  return ok(begun(account, { kind: "failover", step: "draining", source: account.primary, target: target.value }));
}

/**
 * Begins a forced failover: the secondary becomes primary as it is. A planned failover that still drains is taken over, and so is the end of a
 * protection whose primary has not answered.
 * `acceptedSyncMs`: Last Sync Time that the person has seen and accepted; undefined if none is known.
 */
export function planForcedFailover(account: GeoAccount, acceptedSyncMs: number | undefined): Outcome<GeoAccount> {
  const { running } = account;
  const drains =
    (running?.kind === "failover" && running.step === "draining") || (running?.kind === "unprotect" && running.step === "unpairing");
  const { running: _running, ...idle } = account;
  const target = needsSeeded(drains ? idle : account);
  if (!target.ok) return target;
  const accepted = acceptedSyncMs === undefined ? {} : { acceptedSyncMs };
  return ok(begun(account, { kind: "forced", step: "promoting", source: account.primary, target: target.value, ...accepted }));
}

/**
 * Takes an operation back: a failover or a migration whose promotion is not recorded yet, or a copy that is not recorded
 * yet. An account that was created stays at its primary.
 */
export function planGiveUp(account: GeoAccount): Outcome<GeoAccount> {
  const { running } = account;
  if (running === undefined) return conflict(`account ${account.name} has no operation under way`);
  if (running.drainsAgain === true) {
    const { drainsAgain: _drainsAgain, ...taken } = running;
    return ok(at(account, taken));
  }
  if (running.givenUp === true) return ok(account);
  const { kind, step } = running;
  if (kind === "failover" && step === "draining") return ok(at(account, { ...running, step: "undraining", givenUp: true }));
  if (kind === "migrate" && step === "draining") return ok(at(account, { ...running, step: "undraining", givenUp: true }));
  const makesCopy = kind === "migrate" || kind === "protect" || kind === "create";
  if (makesCopy && (step === "pairing" || step === "seeding")) return ok(at(account, { ...running, step: "unpairing", givenUp: true }));
  if (makesCopy && step === "following") return ok(at(account, { ...running, step: "removing", givenUp: true }));
  return conflict(`operation ${account.operation} (${kind}) of account ${account.name} is at step ${step}: it can only go on`);
}

/**
 * Ends a drain that takes too long, so that the primary takes writes again. A failover is taken back. A migration keeps its copy, and drains
 * again later.
 */
export function planDrainLate(account: GeoAccount): Outcome<GeoAccount> {
  const { running } = account;
  if (running?.kind !== "migrate" || running.step !== "draining") return planGiveUp(account);
  return ok(at(account, { ...running, step: "undraining", givenUp: true, drainsAgain: true }));
}

function needsIdle(account: GeoAccount): Outcome<void> {
  const { running } = account;
  if (running === undefined) return ok();
  return conflict(
    `operation ${account.operation} (${running.kind}) of account ${account.name} is under way, at step ${running.step}; geo status tells what it waits for`,
  );
}

function needsSecondary(account: GeoAccount): Outcome<string> {
  const idle = needsIdle(account);
  if (!idle.ok) return idle;
  if (account.secondary === undefined) return refused("failedPrecondition", "notSeeded", `account ${account.name} has no secondary`);
  return ok(account.secondary);
}

function needsSeeded(account: GeoAccount): Outcome<string> {
  const target = needsSecondary(account);
  if (!target.ok || account.seeded) return target;
  const message = `the copy of account ${account.name} at stamp ${target.value} is not complete: it is still seeded`;
  return refused("failedPrecondition", "notSeeded", message);
}

const begun = (account: GeoAccount, running: RunningOperation): GeoAccount => ({ ...account, operation: account.operation + 1, running });
const at = (account: GeoAccount, running: RunningOperation): GeoAccount => ({ ...account, running });

function ended(account: GeoAccount, change: Partial<GeoAccount> = {}): GeoAccount {
  const { running: _running, queues, ...rest } = account;
  const idle = { ...rest, ...change };
  return idle.secondary === undefined || queues !== true ? idle : { ...idle, queues };
}

const alone = (account: GeoAccount): GeoAccount => {
  const { secondary: _secondary, queues: _queues, ...rest } = ended(account, { seeded: false });
  return rest;
};

export interface StampCommand {
  readonly stamp: string;
  readonly command: RoleCommand;
}

/** Returns the command of the account's step; undefined if no operation is under way or the step waits for seeding. */
export function commandOf({ operation, epoch, running, queues }: GeoAccount): StampCommand | undefined {
  if (running === undefined) return undefined;
  const both = queues === true ? { queues } : {};
  const { source, point } = running;
  const target = running.target ?? source;
  const secondHalf = running.kind === "migrate" && running.givenUp !== true;
  switch (running.step) {
    case "creating":
      return { stamp: source, command: { kind: "create", operation } };
    case "following":
      return { stamp: target, command: { kind: "follow", operation, epoch, peer: source, ...both } };
    case "pairing":
      return { stamp: source, command: { kind: "pair", operation, peer: target, ...both } };
    case "seeding":
      return undefined;
    case "draining":
      return { stamp: source, command: { kind: "drain", operation } };
    case "undraining":
      return { stamp: source, command: { kind: "undrain", operation } };
    case "promoting":
      return { stamp: target, command: { kind: "promote", operation, peer: source } };
    case "demoting":
      assert(point !== undefined, "a promotion that was answered has a point");
      return { stamp: source, command: { kind: "demote", operation, peer: target, point, ...both } };
    case "unpairing":
      return { stamp: secondHalf ? target : source, command: { kind: "unpair", operation } };
    case "removing":
      return { stamp: secondHalf ? source : target, command: { kind: "remove", operation } };
  }
}

/**
 * Returns the command that may be sent. `recorded` is durable; `planned` is what a transaction that is under way would make of it.
 */
export function commandToSend(recorded: GeoAccount, planned: GeoAccount, rules: Rules): StampCommand | undefined {
  return commandOf(rules.on("geoStepRecorded") ? recorded : planned);
}

/** Answer of a stamp to the command of a step. */
export interface StepAnswer {
  readonly operation: number;
  readonly step: OperationStep;
  /** Answer while `draining`: number of commits that the target has not acknowledged; 0: it has everything. */
  readonly pendingCommits?: number;
  /** Answer while `draining`: SHA-256 of the settings that both stamps have, hexadecimal; undefined: not compared. */
  readonly settingsTag?: string;
  /** Answer while `promoting`: end of the target's copy. */
  readonly point?: GeoPoint;
  /** Answer while `promoting`: true if the target's copy had queues; undefined: as the record says. */
  readonly queues?: boolean;
}

/** Returns the record after an answer. An answer to another step or operation changes nothing. */
export function planAnswer(account: GeoAccount, answer: StepAnswer): Outcome<GeoAccount> {
  const { running } = account;
  if (running === undefined || answer.operation !== account.operation || answer.step !== running.step) return ok(account);
  if (running.step === "promoting") {
    const { point } = answer;
    if (point === undefined) return wrong("the answer to a promotion says where the copy ended");
    return ok(promoted(choosing(account, answer.queues ?? account.queues === true), running, point));
  }
  if (running.step !== "draining") return ok(afterStep(account, running));
  const { pendingCommits, settingsTag } = answer;
  return ok(pendingCommits === 0 ? afterStep(account, { ...running, ...(settingsTag !== undefined && { settingsTag }) }) : account);
}

function promoted(account: GeoAccount, running: RunningOperation, point: GeoPoint): GeoAccount {
  const { target, source } = running;
  assert(target !== undefined, "a promotion has a target");
  const secondary = running.kind === "migrate" ? {} : { secondary: source };
  const { secondary: _secondary, ...rest } = account;
  return {
    ...rest,
    ...secondary,
    primary: target,
    epoch: account.operation,
    seeded: false,
    running: { ...running, step: "demoting", point },
  };
}

function afterStep(account: GeoAccount, running: RunningOperation): GeoAccount {
  const { kind, target, givenUp } = running;
  const next = (step: OperationStep): GeoAccount => at(account, { ...running, step });
  switch (running.step) {
    case "creating":
      return target === undefined ? ended(account) : next("following");
    case "following":
      return next("pairing");
    case "pairing":
      if (kind === "migrate") return next("seeding");
      return ended(account, target === undefined ? {} : { secondary: target });
    case "draining":
      return next("promoting");
    case "undraining":
      if (running.drainsAgain === true) return seedingAgain(account, running);
      return kind === "migrate" ? next("unpairing") : ended(account);
    case "demoting":
      return kind === "migrate" ? next("unpairing") : ended(account);
    case "unpairing":
      return next("removing");
    case "removing":
      return givenUp === true || kind === "migrate" ? ended(account) : alone(account);
    default:
      return account;
  }
}

/** Plans the seeding anew under another number, because the source obeys one `drain` of each operation. The copy stays. */
function seedingAgain(account: GeoAccount, { givenUp: _givenUp, drainsAgain: _drainsAgain, ...running }: RunningOperation): GeoAccount {
  return begun(account, { ...running, step: "seeding" });
}

/** Plans the record after the primary under `epoch` said that the copy at `target` is complete. A late word changes nothing. */
export function planSeeded(account: GeoAccount, epoch: number, target: string): GeoAccount {
  if (epoch !== account.epoch) return account;
  const { running } = account;
  if (running?.kind === "migrate" && running.step === "seeding" && running.target === target)
    return at(account, { ...running, step: "draining" });
  return account.secondary === target && !account.seeded && running === undefined ? { ...account, seeded: true } : account;
}
