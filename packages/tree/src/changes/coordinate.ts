/** The coordinator of an operation, from its beginning at the primary to its end. */
import type { TreeAddress as Address, Conditions, EntryAddress, HeldEntry, TreeOperation as Operation, Participant } from "@stamp/objects";
import { askOne, attemptsMax, type Machine, type MachineContext, once, type Refusal, Refused } from "../machine.ts";
import { finish, freed } from "../settle.ts";

export interface Change {
  readonly primary: EntryAddress;
  /** Id of what the primary holds before; undefined: nothing. */
  readonly expectedId: string | undefined;
  readonly next?: HeldEntry | undefined;
  readonly participants: readonly Participant[];
}

/**
 * Begins the operation at its primary, has `prepare` mark and check, and decides. A refusal of `prepare` takes everything back. The order is
 * the safety: no mark is older than its operation, so that an operation that was given up can't be decided later.
 */
export function* coordinate(context: MachineContext, change: Change, prepare: (operation: Operation) => Machine<void>): Machine<void> {
  const { primary, next, participants } = change;
  const operation: Operation = { id: context.newId(), beganMs: context.nowMs, ...(next && { next }), participants };
  if (!context.rules.on("treeBegunBeforeMarks")) yield* prepare(operation);
  yield* begin(context, change, operation);
  try {
    if (context.rules.on("treeBegunBeforeMarks")) yield* prepare(operation);
  } catch (error) {
    if (error instanceof Refused) yield* takeBack(primary, operation);
    throw error;
  }
  yield* decide(primary, operation);
  if (participants.length > 0) yield* finish(context, primary, operation);
}

/** Sent once: a second sending may arrive when the operation was given up, and bring it to life while its marks are gone. */
function* begin({ rules }: MachineContext, { primary, expectedId }: Change, operation: Operation): Machine<void> {
  const step = { kind: "begin", at: primary, operation, expectedId } as const;
  let begun = yield* once(step);
  if (!begun && !rules.on("treeAttemptsFresh")) begun = yield* once(step);
  if (!begun?.done) throw new Refused("busy");
}

/** If an answer was lost, a later refusal may mean that others have ended the operation already. */
function* decide(primary: EntryAddress, operation: Operation): Machine<void> {
  let lost = false;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const decided = yield* once({ kind: "decide", at: primary, operation });
    if (decided?.done) return;
    lost ||= decided === undefined;
    if (decided === undefined) continue;
    yield* release(operation);
    break;
  }
  throw new Refused(lost ? "unknown" : "busy");
}

function* takeBack(primary: EntryAddress, operation: Operation): Machine<void> {
  yield* askOne({ kind: "giveUp", at: primary, operation: operation.id });
  yield* release(operation);
}

function* release({ id, participants }: Operation): Machine<void> {
  for (const { at, fate } of participants) if (fate !== "condemn") yield* askOne({ kind: "release", at, operation: id });
}

/** Marks a row that belongs to no operation. Refuses with `otherwise` if it does not hold `expectedId`, or is gone. */
export function* mark(
  context: MachineContext,
  at: Address,
  operation: Operation,
  primary: EntryAddress,
  expected: {
    readonly id?: string | undefined;
    readonly conditions?: Conditions | undefined;
    readonly overLease?: boolean | undefined;
    readonly otherwise: Refusal;
  },
): Machine<void> {
  const step = {
    kind: "mark",
    at,
    mark: { operation: operation.id, primary },
    expectedId: expected.id,
    conditions: expected.conditions,
    overLease: expected.overLease,
  } as const;
  let marked = yield* askOne(step);
  if (!marked.done && marked.refused === undefined && marked.row?.mark) {
    yield* freed(context, at);
    marked = yield* askOne(step);
  }
  if (marked.refused !== undefined) throw new Refused("conditionNotMet", marked.refused);
  if (!marked.done) throw new Refused(expected.otherwise);
}
