/**
 * Traces that clients have begun. Whoever sends `traceparent` says that the request is traced, signed in or not, whatever part of the requests the
 * operator wants traced (`otlpShare`). So only some are followed: anybody could fill the queue of spans else, and spans of others would be
 * dropped.
 *
 * Invariant: a door follows 20 traces a second, and 100 at once after a pause. A request beyond is as one without a `traceparent`.
 */
import type { Clock } from "../clock.ts";
import type { HttpRequest } from "../http.ts";
import { traceparentOf } from "./cause.ts";

const followedPerSecond = 20;
const followedAtOnceMax = 100;

export class ClientTraces {
  readonly #clock: Pick<Clock, "monotonicMs">;
  #left = followedAtOnceMax;
  #filledMs: number;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
    this.#filledMs = clock.monotonicMs();
  }

  /** Returns the span of the client that the request is part of; undefined: the client told none, or none that is followed. */
  parentOf({ headers }: Pick<HttpRequest, "headers">): string | undefined {
    const parent = traceparentOf(headers.traceparent);
    if (parent === undefined || !isSampled(parent)) return parent;
    const nowMs = this.#clock.monotonicMs();
    this.#left = Math.min(followedAtOnceMax, this.#left + ((nowMs - this.#filledMs) * followedPerSecond) / 1_000);
    this.#filledMs = nowMs;
    if (this.#left < 1) return undefined;
    this.#left--;
    return parent;
  }
}

/** A client may also say that it does not trace a request: that fills no queue. */
const isSampled = (traceparent: string): boolean => (Number.parseInt(traceparent.slice(-2), 16) & 1) === 1;
