/**
 * Attempts at ranges that are not served: how often each was assigned, and since when its loads fail. So servers that
 * come and go are not chased with one owner epoch after another, and a server that can't load is not asked without
 * pause. A server that can't load for long loses the range to another, and is given no range while others can take them.
 */
import type { Range, ServerLease } from "@stamp/partition-map";
import { jittered, type World } from "@stamp/ports";

const restAfterAssignmentMs = { first: 100, most: 5_000 } as const;
const restAfterLoadMs = { first: 100, most: 1_000 } as const;
/** Longer than a load may take at a server. It doubles with every server that could not either: then it is not the server. */
const elsewhereAfterMs = { first: 30_000, most: 600_000 } as const;
/** Time for which a server that could not load a range is given no other; it ends at once when the server loads one. */
const avoidedMs = 600_000;

interface Tried {
  /** Number of assignments since the range was last served. */
  assigned: number;
  untilMs: number;
  /** Number of failed loads since the last assignment. */
  failed: number;
  failingSinceMs: number;
  /** True if a server could not load the range for so long that another one was to try. */
  givenUp: boolean;
}

const untried: Readonly<Tried> = { assigned: 0, untilMs: 0, failed: 0, failingSinceMs: 0, givenUp: false };

export class Attempts {
  readonly #world: Pick<World, "clock" | "random" | "rules">;
  readonly #tried = new Map<string, Tried>();
  /** Keyed by server and lease epoch: until when. */
  readonly #avoided = new Map<string, number>();

  constructor(world: Pick<World, "clock" | "random" | "rules">) {
    this.#world = world;
  }

  mayAssign(rangeId: string): boolean {
    return (this.#tried.get(rangeId)?.untilMs ?? 0) <= this.#world.clock.monotonicMs();
  }

  /** Notes an assignment. Returns the number of assignments since the range was last served, and the pause before the next. */
  assigned(rangeId: string): { readonly assigned: number; readonly restMs: number } {
    const before = this.#tried.get(rangeId) ?? untried;
    const assigned = before.assigned + 1;
    const restMs = assigned === 1 ? 0 : doubled(restAfterAssignmentMs, assigned - 2);
    const untilMs = this.#world.clock.monotonicMs() + jittered(this.#world.random, restMs);
    this.#tried.set(rangeId, { ...before, assigned, untilMs, failed: 0 });
    return { assigned, restMs };
  }

  /** Returns how long to wait before the next attempt, and whether to ask another server then. */
  loadFailed(range: Range): { readonly restMs: number; readonly elsewhere: boolean } {
    const nowMs = this.#world.clock.monotonicMs();
    const tried = this.#tried.get(range.rangeId) ?? { ...untried };
    this.#tried.set(range.rangeId, tried);
    if (tried.failed++ === 0) tried.failingSinceMs = nowMs;
    const givenUpAfterMs = doubled(elsewhereAfterMs, Math.max(tried.assigned - 1, 0));
    const elsewhere = this.#world.rules.on("loadElsewhere") && nowMs - tried.failingSinceMs >= givenUpAfterMs;
    if (elsewhere) {
      tried.givenUp = true;
      this.#avoided.set(keyOf(range), nowMs + avoidedMs);
    }
    return { restMs: jittered(this.#world.random, doubled(restAfterLoadMs, tried.failed - 1)), elsewhere };
  }

  /** True if nobody can tell when it will be served: what is done while all are served need not wait for it. */
  isGivenUp(rangeId: string): boolean {
    return this.#tried.get(rangeId)?.givenUp ?? false;
  }

  loaded(range: Range): void {
    this.#tried.delete(range.rangeId);
    this.#avoided.delete(keyOf(range));
  }

  /** Returns the servers that could not load a range under their present lease. */
  avoided(leases: readonly ServerLease[]): ReadonlySet<string> {
    if (this.#avoided.size === 0) return none;
    const nowMs = this.#world.clock.monotonicMs();
    const held = new Map(leases.map((lease) => [keyOf(lease), lease.server]));
    for (const [key, untilMs] of this.#avoided) if (untilMs <= nowMs || !held.has(key)) this.#avoided.delete(key);
    return new Set([...this.#avoided.keys()].map((key) => held.get(key) as string));
  }

  keepOnly(here: ReadonlySet<string>): void {
    for (const rangeId of this.#tried.keys()) if (!here.has(rangeId)) this.#tried.delete(rangeId);
  }
}

const none: ReadonlySet<string> = new Set();

const keyOf = ({ server, leaseEpoch }: Pick<Range, "server" | "leaseEpoch">): string => `${server} ${leaseEpoch}`;

const doubled = ({ first, most }: { readonly first: number; readonly most: number }, times: number): number =>
  Math.min(first * 2 ** times, most);
