/**
 * An operation as a machine: a generator that asks for steps, several at once where their order does not matter, and ends with a result.
 * It does no I/O and looks at no clock. Whoever runs it may stop anywhere: others finish or give up what it left (settle.ts).
 */

import type { Rules } from "@stamp/base";
import type { TreeOperation as Operation, Step, StepAnswer } from "@stamp/objects";
import type { NameRules, PathProblem } from "./names.ts";

/** Undefined: no answer; the step happened, or will happen, or never does. */
export type Machine<T> = Generator<readonly Step[], T, readonly (StepAnswer | undefined)[]>;

export interface MachineContext {
  readonly rules: Rules;
  readonly names: NameRules;
  /** Id of the root directory. */
  readonly root: string;
  /** Makes an id that is never used again. */
  readonly newId: () => string;
  /** Start of the request by the wall clock, in milliseconds since 1970. Nothing but politeness depends on it. */
  readonly nowMs: number;
  /** True if the coordinator of this operation has been silent for its term, so that others may give the operation up. */
  readonly mayGiveUp: (operation: Operation) => boolean;
  /** Told, perhaps more than once, of a directory that an operation has removed, whoever began it: the collector is owed its rows. */
  readonly removed?: ((directory: string) => void) | undefined;
  /** False for a file or directory that the door has not looked at, where it has decided by lists of access control. Undefined: all are. */
  readonly admits?: ((id: string) => boolean) | undefined;
}

export type Refusal =
  | "notFound"
  /** Something on the way is a file. */
  | "notDirectory"
  | "exists"
  | "notEmpty"
  | "isDirectory"
  | "isFile"
  /** The directory would come to lie below itself. */
  | "cycle"
  | "isRoot"
  /** The list has to be asked for anew. */
  | "badContinuation"
  | "conditionNotMet"
  /** The path names something else than the door has looked at. Nothing happened. */
  | "changed"
  /** Another operation is under way here. Nothing happened; ask again. */
  | "busy"
  /** Whether it happened is not known. */
  | "unknown"
  | PathProblem;

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: Refusal; readonly condition?: string };

export const good = <T>(value: T): Result<T> => ({ ok: true, value });
export const refusal = (refusal: Refusal, condition?: string): { ok: false; refusal: Refusal; condition?: string } =>
  condition === undefined ? { ok: false, refusal } : { ok: false, refusal, condition };

/** Number of times that a step is sent until it is answered, and that a row is looked at again because it changed meanwhile. */
export const attemptsMax = 8;

/** Thrown inside of machines, and caught by `machine`: the operation ends with this refusal. */
export class Refused extends Error {
  readonly result: { ok: false; refusal: Refusal; condition?: string };

  constructor(of: Refusal, condition?: string) {
    super(of);
    this.result = refusal(of, condition);
  }
}

/** Ends the operation if the door has not looked at this file or directory. */
export function mustBeAdmitted({ admits }: MachineContext, id: string): void {
  if (admits && !admits(id)) throw new Refused("changed");
}

export function* ended<T>(work: Machine<T>): Machine<Result<T>> {
  try {
    return good(yield* work);
  } catch (error) {
    if (error instanceof Refused) return error.result;
    throw error;
  }
}

/** Steps that change nothing when they are sent a second time, at once. */
export function* ask(...steps: readonly Step[]): Machine<StepAnswer[]> {
  const answers: (StepAnswer | undefined)[] = steps.map(() => undefined);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const open = steps.map((_, index) => index).filter((index) => answers[index] === undefined);
    if (open.length === 0) break;
    const given = yield open.map((index) => steps[index] as Step);
    for (const [at, index] of open.entries()) answers[index] = given[at];
  }
  if (answers.includes(undefined)) throw new Refused("unknown");
  return answers as StepAnswer[];
}

export function* askOne(step: Step): Machine<StepAnswer> {
  return (yield* ask(step))[0] as StepAnswer;
}

/** A step that is sent once; undefined: no answer. */
export function* once(step: Step): Machine<StepAnswer | undefined> {
  return (yield [step])[0];
}
