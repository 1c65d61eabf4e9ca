/** The questions that the lock service holds: how long each of them waits (waits.ts). Afterwards it is judged in a turn, as any other. */

import type { LeaseTable } from "@stamp/lease";
import type { CallContext } from "@stamp/ports";
import type { Committer } from "./committer.ts";

/** The part of an opened store that waits look at. */
export interface WatchedStore {
  readonly committer: Committer;
  readonly leases: LeaseTable;
  /** Returns monotonic time, in milliseconds. */
  readonly nowMs: () => number;
  /** Id of this start of the lock service. */
  readonly instance: string;
}

/** Resolves when the lease has ended or has another epoch, and after `waitMs` at the latest. */
export async function leaseNews(store: WatchedStore, name: string, epoch: number, waitMs: number, context: CallContext): Promise<void> {
  const { committer, leases, nowMs } = store;
  const waits = committer.leaseWaits;
  const endMs = waits.endMs(waitMs, context);
  for (;;) {
    const since = waits.changes;
    const view = leases.peek(name, nowMs());
    if (view === undefined || view.ended || view.epoch !== epoch || nowMs() >= endMs || context.aborted) return;
    const ended = await waits.next((changed) => changed === name, Math.min(endMs, nowMs() + view.remainingMs), since, context);
    if (ended === "refused") return;
  }
}

/** Returns a text for the leases of an answer, which differs after every change of a lease. */
export const leasesState = ({ committer, instance }: WatchedStore): string => `${instance}/${committer.leaseWaits.changes}`;

/** Resolves when a lease with the prefix was granted or has ended since the answer with `state`, and after `waitMs` at the latest. */
export async function leasesNews(store: WatchedStore, prefix: string, state: string, waitMs: number, context: CallContext): Promise<void> {
  const { committer, leases, nowMs } = store;
  const waits = committer.leaseWaits;
  const endMs = waits.endMs(waitMs, context);
  const since = waits.changes;
  if (state !== leasesState(store)) return;
  while (nowMs() < endMs && !context.aborted && waits.changes === since) {
    let firstMs = endMs;
    for (const name of leases.names(prefix)) {
      const view = leases.peek(name, nowMs());
      // An end that is not recorded yet: the answer records it.
      if (view !== undefined && view.ended !== leases.recordedEnd(name)) return;
      if (view !== undefined && !view.ended) firstMs = Math.min(firstMs, nowMs() + view.remainingMs);
    }
    if ((await waits.next((changed) => changed.startsWith(prefix), firstMs, since, context)) === "refused") return;
  }
}

/** Resolves when a key with the prefix was written by a transaction after `known`, and after `waitMs` at the latest. */
export async function keyNews(
  { committer }: WatchedStore,
  prefix: string,
  known: number,
  waitMs: number,
  context: CallContext,
): Promise<void> {
  const waits = committer.keyWaits;
  const since = waits.changes;
  if (committer.wroteNothingSince(known, prefix))
    await waits.next((key) => key.startsWith(prefix), waits.endMs(waitMs, context), since, context);
}
