/**
 * One stream of snapshots for all tabs of a browser. A browser opens six connections to a server at most: with a stream in each, the seventh
 * tab would wait without end. The tab that holds the lock `stamp-console` follows the console and tells the others. When that tab closes, the
 * lock goes to another one.
 */
import type { Point, Snapshot, StampEvent } from "./model.ts";
import { type Connection, connection, events, happened, lost, points, snapshot, took } from "./store.ts";

export type Told =
  | { readonly type: "history"; readonly data: readonly Point[] }
  | { readonly type: "events"; readonly data: readonly StampEvent[] }
  | { readonly type: "snapshot"; readonly data: Snapshot }
  | { readonly type: "connection"; readonly data: Connection };

/** Question of a tab to the others: for all that is known, to follow again after somebody has signed in, or no longer. */
type Asked = { readonly type: "hello" } | { readonly type: "signed-in" } | { readonly type: "signed-out" };

/** Snapshots come every second, a slow one after five. After this time without any, the connection counts as lost. */
const silentMs = 12_000;

const channel = new BroadcastChannel("stamp-console");
let leads = false;
let endFollowing = (): void => {};
let silence: ReturnType<typeof setTimeout> | undefined;

/** Takes what the console told, and passes it on to the other tabs. */
export function tell(told: Told): void {
  take(told);
  channel.postMessage(told);
}

function take({ type, data }: Told): void {
  clearTimeout(silence);
  if (type === "history") points.value = data;
  else if (type === "events") happened(data);
  else if (type === "snapshot") took(data);
  else if (data === "lost") lost();
  else connection.value = data;
  if (!leads && connection.value === "live") silence = setTimeout(lost, silentMs);
}

/** Calls `follow` when this tab has to follow the console itself, and again if another tab has signed in since; `end` when one has signed out. */
export function share(follow: () => void, end: () => void): void {
  endFollowing = end;
  channel.onmessage = ({ data }: MessageEvent<Told | Asked>) => {
    if (data.type !== "hello" && data.type !== "signed-in" && data.type !== "signed-out") return leads ? undefined : take(data);
    if (!leads) return;
    if (data.type === "signed-out") leaveAll();
    else if (data.type === "signed-in" && connection.value === "signed-out") follow();
    else tellAll();
  };
  channel.postMessage({ type: "hello" } satisfies Asked);
  void navigator.locks.request("stamp-console", () => {
    leads = true;
    clearTimeout(silence);
    follow();
    return new Promise(() => {});
  });
}

export const askAgain = (): void => channel.postMessage({ type: "signed-in" } satisfies Asked);

/** Ends what any tab follows: nobody is signed in any more. */
export function signedOut(): void {
  if (leads) {
    leaveAll();
    return;
  }
  connection.value = "signed-out";
  channel.postMessage({ type: "signed-out" } satisfies Asked);
}

function leaveAll(): void {
  endFollowing();
  tell({ type: "connection", data: "signed-out" });
}

function tellAll(): void {
  const now = snapshot.value;
  const all: readonly Told[] = [
    { type: "history", data: points.value },
    { type: "events", data: events.value },
    ...(now === undefined ? [] : [{ type: "snapshot", data: now } as const]),
    { type: "connection", data: connection.value },
  ];
  for (const told of all) channel.postMessage(told);
}
