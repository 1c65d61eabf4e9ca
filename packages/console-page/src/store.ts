/** State of the page: signals that the source fills and the components read. Nothing in here asks for anything. */
import { type Signal, signal } from "@preact/signals";
import type { Point, Snapshot, StampEvent } from "./model.ts";

export type Connection = "connecting" | "live" | "lost" | "signed-out";

const pointsMax = 3_600;
const eventsMax = 500;

export const connection: Signal<Connection> = signal("connecting");
/** Why the sign-in failed; empty if it did not. */
export const signInProblem: Signal<string> = signal("");
/** When the connection was lost, in milliseconds since 1970. */
export const lostAtMs: Signal<number> = signal(0);
export const snapshot: Signal<Snapshot | undefined> = signal(undefined);
export const points: Signal<readonly Point[]> = signal([]);
/** The oldest first. */
export const events: Signal<readonly StampEvent[]> = signal([]);
/** Parts of the path behind `#/`, decoded. */
export const route: Signal<readonly string[]> = signal([]);

export function took(next: Snapshot): void {
  const last = points.value.at(-1);
  if (last === undefined || last.atMs < next.figures.atMs) points.value = [...points.value, next.figures].slice(-pointsMax);
  snapshot.value = next;
  connection.value = "live";
}

export function happened(some: readonly StampEvent[]): void {
  const last = events.value.at(-1)?.number ?? 0;
  const first = some[0]?.number ?? 0;
  // Numbers that begin anew are those of a console that was started again.
  const known = first <= last && (some.at(-1)?.number ?? 0) < last ? [] : events.value;
  const newest = known.at(-1)?.number ?? 0;
  events.value = [...known, ...some.filter(({ number }) => number > newest)].slice(-eventsMax);
}

export function lost(): void {
  if (connection.value !== "lost") lostAtMs.value = Date.now();
  connection.value = "lost";
}

export function readRoute(hash: string): void {
  route.value = hash
    .replace(/^#\/?/, "")
    .split("/")
    .filter((part) => part !== "")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

/** The hash of a path. */
export const to = (...parts: readonly string[]): string => `#/${parts.map((part) => encodeURIComponent(part.toWellFormed())).join("/")}`;
