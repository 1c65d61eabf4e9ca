/**
 * Follows the requests of every front-end of a stamp. A front-end that is away is asked again until it is back. A front-end that joins is
 * followed from then on.
 */
import { FailureError } from "@stamp/base";
import type { Transport } from "@stamp/ports";
import { inWords } from "@stamp/ports-node";
import { type EndedRequest, type FollowRequest, Requests } from "@stamp/wire";

const againMs = 1_000;
const lookEveryMs = 2_000;
/** A call has an end. After it the next one begins. */
const callMs = 24 * 3_600_000;

export type WantedRequests = Omit<FollowRequest, "$typeName" | "$unknown">;

export interface FrontEndPlace {
  readonly name: string;
  /** Address of the front-end's internal port. */
  readonly grpc: string;
}

export interface FollowPlaces {
  readonly transport: Pick<Transport, "client">;
  readonly frontEnds: readonly FrontEndPlace[];
  /** Returns the front-ends that the stamp has now. May throw, e.g. while the supervisor restarts: it is asked again. */
  readonly frontEndsNow: () => Promise<readonly FrontEndPlace[]>;
  /** Shows a request. The front-end's next one is asked for when the promise has resolved. */
  readonly told: (request: EndedRequest, frontEnd: string) => Promise<void>;
  /** Takes a sentence: a front-end that is away or back, requests that are missing. */
  readonly note: (text: string) => void;
  /** Resolves after the time, or at once when the signal is aborted. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly signal: AbortSignal;
}

/** Goes on until the signal is aborted, or no front-end can tell requests. Returns the number of front-ends that could. */
export async function followRequests(wanted: WantedRequests, places: FollowPlaces): Promise<number> {
  const followed = new Map<string, ReturnType<typeof followOne>>();
  const follow = (frontEnds: readonly FrontEndPlace[]): void => {
    for (const each of frontEnds) {
      const place = `${each.name} ${each.grpc}`;
      if (!followed.has(place)) followed.set(place, followOne(wanted, each, places));
    }
  };
  follow(places.frontEnds);
  const over = new AbortController();
  const looking = lookForMore(follow, places, AbortSignal.any([places.signal, over.signal]));
  let ends: readonly ("could" | "could not")[] = [];
  while (ends.length < followed.size) ends = await Promise.all(followed.values());
  over.abort();
  await looking;
  return ends.filter((end) => end === "could").length;
}

async function lookForMore(
  follow: (frontEnds: readonly FrontEndPlace[]) => void,
  { frontEndsNow, sleep }: FollowPlaces,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(lookEveryMs, signal);
    if (signal.aborted) return;
    const found = await frontEndsNow().catch(() => []);
    if (signal.aborted) return;
    follow(found);
  }
}

/** Returns what tells the first `count` requests, whichever front-ends they come from. Calls `done` when the last of them was told. */
export function firstOf(count: number, tell: FollowPlaces["told"], done: () => void): FollowPlaces["told"] {
  let begun = 0;
  let ended = 0;
  return async (request, frontEnd) => {
    // Counted before the wait: front-ends are followed side by side.
    if (begun >= count) return;
    begun++;
    await tell(request, frontEnd);
    if (++ended >= count) done();
  };
}

async function followOne(
  wanted: WantedRequests,
  { name, grpc }: FrontEndPlace,
  { transport, told, note, sleep, signal }: FollowPlaces,
): Promise<"could" | "could not"> {
  let isAway = false;
  while (!signal.aborted) {
    try {
      for await (const { requests, missed } of transport.client(grpc, Requests).follow(wanted, { timeoutMs: callMs, signal })) {
        if (isAway) note(`${name} is back`);
        isAway = false;
        for (const request of requests) {
          if (signal.aborted) return "could";
          await told(request, name);
        }
        if (missed > 0n) note(`${missed} requests of ${name} are missing here: they came faster than they were read`);
      }
    } catch (error) {
      if (signal.aborted) return "could";
      if (error instanceof FailureError && error.failure.reason === "unknownMethod") {
        note(`${name} is of a release that does not tell its requests`);
        return "could not";
      }
      if (!isAway) note(`${name} can't be followed, and is asked again every second: ${reasonOf(error)}`);
      isAway = true;
    }
    await sleep(againMs, signal);
  }
  return "could";
}

const reasonOf = (error: unknown): string => (error instanceof FailureError ? error.failure.message : inWords(error));
