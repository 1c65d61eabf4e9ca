/**
 * Enforces immutability policies and legal holds. This is the only place that does: the plans of operations and the
 * collector decide without a thought of it, and `guarded` lets no commit through that removes, hides or changes a protected state.
 *
 * Invariants, for a state (the head row, or the kept row of a snapshot or version) that is protected at the moment of a commit:
 *   - the commit leaves it in its row, or moves it into the kept row of a version, under the same ETag and content;
 *   - it is not deleted softly; its policy and its hold stay, except by the operations that are there to change them;
 *   - its time is never over: a protected state that has expired is there until its protection ends.
 * Tags, tier and lease of a protected state may change: they are no part of what is protected (docs/api/outcomes.md).
 */
import { compareBytes, type Rules } from "@stamp/base";
import { serviceError } from "../../errors.ts";
import { headKey, keptPrefix } from "../../object-keys.ts";
import { errorAnswer, getRow, type Plan, type RowEntry, type RowWrite } from "../../plan.ts";
import { decodeHead, type HeadState } from "../state/head-row.ts";
import { isPurged } from "./retention.ts";

/** When and by which rules a state is looked at. */
export interface Moment {
  readonly rules: Rules;
  readonly wallMs: number;
}

export type Protection = "BlobImmutableDueToLegalHold" | "BlobImmutableDueToPolicy";

/** Fields of a state that say if it can be found, and if it is protected. */
export type ProtectedFields = Pick<HeadState, "expiresMs" | "deleted" | "legalHold" | "immutability">;

/** Returns the code of the refusal for whoever would change or remove this state; undefined if nothing protects it. */
export function protectionOf({ legalHold, immutability }: ProtectedFields, { rules, wallMs }: Moment): Protection | undefined {
  if (!rules.on("protectedStatesStay")) return undefined;
  if (legalHold) return "BlobImmutableDueToLegalHold";
  return immutability !== undefined && immutability.untilMs > wallMs ? "BlobImmutableDueToPolicy" : undefined;
}

export const hasExpired = ({ expiresMs }: Pick<ProtectedFields, "expiresMs">, wallMs: number): boolean =>
  expiresMs !== undefined && expiresMs <= wallMs;

/** True if the state is found by nobody any more and may go: it expired, or was deleted softly and kept for long enough. */
export const isOver = (state: ProtectedFields, moment: Moment): boolean =>
  (hasExpired(state, moment.wallMs) || isPurged(state.deleted, moment.wallMs)) && protectionOf(state, moment) === undefined;

/** The parts of a protection that an operation may change. */
export interface MayChange {
  readonly hold: boolean;
  readonly policy: boolean;
}

/** Returns the plan, refused if it would remove or change a protected state. `prefix`: with which all rows of the blob begin. */
export function* guarded(prefix: Uint8Array, moment: Moment, mayChange: MayChange, plan: Plan): Plan {
  const head = headKey(prefix);
  const kept = keptPrefix(prefix);
  const isState = (key: Uint8Array): boolean =>
    compareBytes(key, head) === 0 || (key.length > kept.length && compareBytes(key.subarray(0, kept.length), kept) === 0);
  const seen: { readonly key: Uint8Array; readonly value: Uint8Array | undefined }[] = [];
  let step = plan.next();
  while (!step.done) {
    const read = step.value;
    const found = yield read;
    if (read.kind === "get" && found.kind === "get" && isState(read.key)) seen.push({ key: read.key, value: found.value });
    step = plan.next(found);
  }
  const decision = step.value;
  const states = decision.writes.filter(({ key }) => isState(key));
  for (const { key } of states) {
    const known = seen.find((row) => compareBytes(row.key, key) === 0);
    const before = known ? known.value : yield* getRow(key);
    if (before === undefined) continue;
    const state = decodeHead(before);
    const protection = protectionOf(state, moment);
    if (protection && !survives({ key, value: before }, state, states, moment, mayChange)) return errorAnswer(serviceError(protection));
  }
  return decision;
}

/** True if the state is still there, unchanged, after these writes. */
function survives(row: RowEntry, state: HeadState, writes: readonly RowWrite[], moment: Moment, mayChange: MayChange): boolean {
  return writes.some((write) => {
    if (write.kind === "delete") return false;
    const inPlace = compareBytes(write.key, row.key) === 0;
    const after = decodeHead(write.value);
    if (after.deleted !== undefined && state.deleted === undefined) return false;
    if (!keepsProtection(state, after, moment, mayChange)) return false;
    // Nothing of a pending copy is shown yet: it ends as it may, in its place.
    if (inPlace && state.copy?.status === "pending") return true;
    // Only the blob itself moves: its snapshots and versions may share its content and ETag, and none stands for another.
    return isSame(state, after) && (inPlace || (state.role === "base" && after.role !== "base"));
  });
}

const isSame = (a: HeadState, b: HeadState): boolean =>
  a.etagSequence === b.etagSequence && a.generation === b.generation && a.expiresMs === b.expiresMs;

function keepsProtection(before: HeadState, after: HeadState, { wallMs }: Moment, mayChange: MayChange): boolean {
  if (before.legalHold && !after.legalHold && !mayChange.hold) return false;
  const [old, next] = [before.immutability, after.immutability];
  if (old === undefined || old.untilMs <= wallMs) return true;
  if (mayChange.policy && old.mode !== "Locked") return true;
  // A locked policy can only be extended.
  return next !== undefined && next.untilMs >= old.untilMs && (old.mode !== "Locked" || next.mode === "Locked");
}
