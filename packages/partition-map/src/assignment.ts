/**
 * Assignment of ranges to servers: decides, for every range, the next step of the partition manager. No I/O and no clock: the manager tells what it has
 * learned (the leases as the lock service gave them, the map as it is durable, what servers answered) and gets back what to do.
 *
 *     unassigned ──assign──> assigned ──load──> loaded
 *         ^                     │                 │  move
 *         │ lease over          │ lease over      v
 *         └─────────────────────┴────────────── closing ──Closed, or lease over──> unassigned
 *
 *   assign   mint an owner epoch, write the map row, then send Load (rule assignmentBeforeLoad: the shell does it in this order)
 *   refuse   the server holds its lease but can't be reached: have the lock service refuse its renewals, and wait for the lease's end
 *
 * Invariants: a range is taken from a server only after its Closed, or when the lock service said that the lease under which it was
 * assigned is over (rules waitForClosed, waitLeaseOut; partition-layer.md "Leases and epochs", model/move.pml). That a lease ended is
 * learned from the lock service, never from a timer here.
 */
import type { Rules } from "@stamp/base";
import type { Range } from "./range.ts";

/** A lease `ps/<server>` as the lock service last said. */
export interface ServerLease {
  readonly server: string;
  readonly address: string;
  readonly leaseEpoch: number;
  readonly ended: boolean;
  readonly renewalsRefused: boolean;
}

/** The manager's knowledge of one range beyond the map; gone with its term. */
export type Progress =
  /** No load or close is under way. */
  | { readonly kind: "idle" }
  /** A command is under way, or is to be repeated later. */
  | { readonly kind: "busy" }
  /** The server said that it serves the range. */
  | { readonly kind: "loaded" }
  /** To be taken from its server: its Closed is awaited. `to`: the server that is to have it, when it is there. */
  | { readonly kind: "closing"; readonly to?: string }
  /** The server said Closed, or that this owner epoch is dead there. */
  | { readonly kind: "closed"; readonly to?: string };

export type AssignmentStep =
  | { readonly kind: "assign"; readonly range: Range; readonly to: ServerLease }
  | { readonly kind: "load"; readonly range: Range }
  | { readonly kind: "close"; readonly range: Range; readonly to?: string }
  | { readonly kind: "refuse"; readonly server: string; readonly leaseEpoch: number }
  /** A split or merge that nobody carries out: given up here, or left by an earlier leader. */
  | { readonly kind: "resolve"; readonly range: Range };

export interface AssignmentState {
  readonly ranges: readonly Range[];
  /** Keyed by range id; absent: idle. */
  readonly progress: ReadonlyMap<string, Progress>;
  readonly leases: readonly ServerLease[];
  /** Servers that are given up, because calls to them failed for long. */
  readonly unreachable: ReadonlySet<string>;
  /** Servers that could not load a range lately: they get none while there is another. */
  readonly avoided: ReadonlySet<string>;
  readonly rules: Rules;
  /** Returns how much a range is asked. Those that are asked most are given away first, so they are spread over the servers too. */
  readonly heatOf: (range: Range) => number;
}

export const isLive = (lease: ServerLease): boolean => lease.leaseEpoch > 0 && !lease.ended && !lease.renewalsRefused;

/** True if the lease under which the range was assigned has ended, by the lock service's word. */
export const leaseOver = (range: Range, leases: readonly ServerLease[]): boolean =>
  isOver(
    range,
    leases.find((one) => one.server === range.server),
  );

/** True if the lease of the range's server has ended; `lease`: that lease. */
const isOver = (range: Range, lease: ServerLease | undefined): boolean =>
  range.server === "" || lease === undefined || lease.leaseEpoch !== range.leaseEpoch || lease.ended;

/** Leases by server. Thousands of ranges look theirs up in each turn. */
type Leases = ReadonlyMap<string, ServerLease>;

const byServer = (leases: readonly ServerLease[]): Leases => new Map(leases.map((lease) => [lease.server, lease]));

/** Returns the number of ranges that each server surely or probably has, by the leases as the lock service last said. */
export function heldCounts(ranges: readonly Range[], leases: readonly ServerLease[]): ReadonlyMap<string, number> {
  const known = byServer(leases);
  const counts = new Map<string, number>();
  for (const range of ranges) {
    if (!isOver(range, known.get(range.server))) counts.set(range.server, (counts.get(range.server) ?? 0) + 1);
  }
  return counts;
}

/**
 * Returns the steps to do now. A busy range is left alone, unless its server's lease is over: nobody there will answer
 * for it.
 */
export function nextSteps(state: AssignmentState): AssignmentStep[] {
  const steps: AssignmentStep[] = [];
  const toAssign: { readonly range: Range; readonly wanted: string | undefined }[] = [];
  const given = new Set<string>();
  const resolved = new Set<string>();
  const leases = byServer(state.leases);
  for (const range of state.ranges) {
    const progress = state.progress.get(range.rangeId) ?? { kind: "idle" };
    if (range.reshape !== undefined) {
      // The streams of its rows are not known before this is over.
      if (progress.kind !== "busy" && !resolved.has(range.rangeId)) {
        steps.push({ kind: "resolve", range });
        if (range.reshape.kind === "merge") for (const id of range.reshape.parents) resolved.add(id);
      }
      continue;
    }
    if (mayReassign(state, range, progress, leases.get(range.server))) {
      toAssign.push({ range, wanted: "to" in progress ? progress.to : undefined });
      continue;
    }
    if (state.unreachable.has(range.server)) {
      const lease = leases.get(range.server);
      if (lease && !lease.renewalsRefused && !given.has(range.server)) {
        given.add(range.server);
        steps.push({ kind: "refuse", server: range.server, leaseEpoch: range.leaseEpoch });
      }
      continue;
    }
    if (progress.kind === "idle") steps.push({ kind: "load", range });
    if (progress.kind === "closing") steps.push({ kind: "close", range, ...(progress.to === undefined ? {} : { to: progress.to }) });
  }
  return [...steps, ...assignments(state, toAssign)];
}

function assignments(
  state: AssignmentState,
  wanted: readonly { readonly range: Range; readonly wanted: string | undefined }[],
): Extract<AssignmentStep, { kind: "assign" }>[] {
  const counts = loadOf(state);
  const live = byServer(state.leases.filter((lease) => isLive(lease) && !state.unreachable.has(lease.server)));
  const byHeat = wanted.map((one) => ({ ...one, heat: state.heatOf(one.range) })).sort((a, b) => b.heat - a.heat);
  return byHeat.flatMap(({ range, wanted }) => {
    const to = chooseServer(state, live, range, counts, wanted);
    if (!to) return [];
    counts.set(to.server, (counts.get(to.server) ?? 0) + 1);
    return [{ kind: "assign", range, to }];
  });
}

function mayReassign(state: AssignmentState, range: Range, progress: Progress, lease: ServerLease | undefined): boolean {
  if (range.server === "" || progress.kind === "closed") return true;
  if (progress.kind === "closing" && !state.rules.on("waitForClosed")) return true;
  if (isOver(range, lease)) return true;
  return state.unreachable.has(range.server) && !state.rules.on("waitLeaseOut");
}

/** Returns the ranges by live server, with those that are surely or probably there. */
function loadOf(state: AssignmentState): Map<string, number> {
  const held = heldCounts(state.ranges, state.leases);
  return new Map(state.leases.filter(isLive).map(({ server }) => [server, held.get(server) ?? 0]));
}

/**
 * Returns the same server under its new lease when it is there again (its ranges were spread already); else the one that serves least of those
 * that are not avoided, by name among equals. `live`: servers that can have ranges.
 */
function chooseServer(
  state: AssignmentState,
  live: Leases,
  range: Range,
  counts: ReadonlyMap<string, number>,
  wanted: string | undefined,
): ServerLease | undefined {
  const asked = wanted === undefined ? undefined : live.get(wanted);
  if (asked) return asked;
  const same = live.get(range.server);
  if (same && same.leaseEpoch > range.leaseEpoch) return same;
  const avoided = ({ server }: ServerLease): number => Number(state.avoided.has(server));
  const held = ({ server }: ServerLease): number => counts.get(server) ?? 0;
  let best: ServerLease | undefined;
  for (const lease of live.values()) {
    const order = best && (avoided(lease) - avoided(best) || held(lease) - held(best) || (lease.server < best.server ? -1 : 1));
    if (order === undefined || order < 0) best = lease;
  }
  return best;
}

export function leastLoaded(state: AssignmentState, besides: string): string | undefined {
  const avoided = (server: string): number => Number(state.avoided.has(server));
  const counts = [...loadOf(state)].filter(([server]) => server !== besides && !state.unreachable.has(server));
  return counts.sort((a, b) => avoided(a[0]) - avoided(b[0]) || a[1] - b[1] || (a[0] < b[0] ? -1 : 1))[0]?.[0];
}

/** Moved first: what is asked least. */
const moveOrder: readonly string[] = ["Message", "Entity", "Account", "Blob"];

/** True if a server could have ranges and has none, and another one has two or more. */
export function hasIdleServer(state: AssignmentState): boolean {
  const counts = [...loadOf(state)].filter(([server]) => !state.unreachable.has(server));
  return counts.some(([server, held]) => held === 0 && !state.avoided.has(server)) && counts.some(([, held]) => held > 1);
}

/**
 * Returns, when a server joined, a range to be moved to even things out, from a server that has at least two more than the one that has least.
 * Undefined when there is nothing to even out or something is under way.
 */
export function rebalance(state: AssignmentState): Range | undefined {
  const settled = (range: Range): boolean => state.progress.get(range.rangeId)?.kind === "loaded";
  if (!state.ranges.every(settled)) return undefined;
  const counts = [...loadOf(state)].filter(([server]) => !state.unreachable.has(server)).sort((a, b) => a[1] - b[1]);
  const least = counts.find(([server]) => !state.avoided.has(server));
  const most = counts.at(-1);
  if (!least || !most || most[1] - least[1] < 2) return undefined;
  return state.ranges
    .filter((range) => range.server === most[0])
    .sort((a, b) => moveOrder.indexOf(a.table) - moveOrder.indexOf(b.table) || (a.rangeId < b.rangeId ? -1 : 1))[0];
}
