/** Compares two snapshots of a stamp and tells the differences in words: the console's list of events. Pure. */
import type { Finding, NodeRow, ProcessRow, Snapshot, StampEvent } from "@stamp/console-page";

type Happened = Omit<StampEvent, "number" | "atMs">;

/** Returns what is different now. `before` is undefined for the first look, which tells how the stamp was found. */
export function eventsBetween(before: Snapshot | undefined, now: Snapshot): Happened[] {
  if (before === undefined) return [change("", `the console began to watch: ${now.sentence}`)];
  if (now.state === "absent" || before.state === "absent") {
    if (now.state === before.state) return [];
    return now.state === "absent"
      ? [bad("", `the stamp can't be asked: ${now.sentence}`)]
      : [good("", `the stamp answers: ${now.sentence}`)];
  }
  return [
    ...pairs(before.processes, now.processes).flatMap(([old, each]) => ofProcess(old, each)),
    ...pairs(before.nodes, now.nodes).flatMap(([old, each]) => ofNode(old, each)),
    ...ofFindings(before.findings, now.findings),
    ...(before.state === now.state ? [] : [(now.state === "healthy" ? good : change)("", now.sentence)]),
  ];
}

const good = (subject: string, text: string): Happened => ({ kind: "good", subject, text });
const bad = (subject: string, text: string): Happened => ({ kind: "bad", subject, text });
const change = (subject: string, text: string): Happened => ({ kind: "change", subject, text });

function ofProcess(old: ProcessRow | undefined, now: ProcessRow): Happened[] {
  const { name } = now;
  if (old === undefined) return [change(name, `is part of the stamp now (${now.state})`)];
  const events: Happened[] = [];
  if (now.restarts > old.restarts) {
    const why = now.lastExit === "" ? "" : ` with ${now.lastExit}`;
    events.push(bad(name, `ended${why}; the supervisor starts it again`));
    if (old.ready && now.ready) events.push(good(name, `has started again: ${now.state}`));
  }
  if (old.ready && !now.ready) events.push(bad(name, `is not ready: ${now.state}${waits(now)}`));
  if (!old.ready && now.ready) events.push(good(name, `is ready: ${now.state}`));
  if (old.ready && now.ready && old.state !== now.state) events.push(change(name, `was ${old.state}, is ${now.state}`));
  return events;
}

const waits = ({ waitingFor }: ProcessRow): string => (waitingFor.length === 0 ? "" : `, waits for ${waitingFor.join(", ")}`);

function ofNode(old: NodeRow | undefined, now: NodeRow): Happened[] {
  const { name } = now;
  if (old === undefined) return [change(name, "is known to the stream manager")];
  const events: Happened[] = [];
  if (old.up !== now.up)
    events.push(now.up ? good(name, "reports to the stream manager again") : bad(name, "is taken for down by the stream manager"));
  if (old.duty !== now.duty) events.push(change(name, `was ${old.duty}, is ${now.duty}`));
  return events;
}

const keyOf = ({ code, subject }: Finding): string => `${code} ${subject}`;

/** A finding whose numbers change stays the same finding. */
function ofFindings(before: readonly Finding[], now: readonly Finding[]): Happened[] {
  const old = new Set(before.map(keyOf));
  const kept = new Set(now.map(keyOf));
  return [
    ...now
      .filter((each) => !old.has(keyOf(each)))
      .map(({ severity, subject, cause }) => (severity === "note" ? change : bad)(subject, cause)),
    ...before.filter((each) => !kept.has(keyOf(each))).map(({ subject, cause }) => good(subject, `over: ${cause}`)),
  ];
}

function pairs<T extends { readonly name: string }>(before: readonly T[], now: readonly T[]): [T | undefined, T][] {
  const old = new Map(before.map((each) => [each.name, each]));
  // A list that is empty was not told: no manager that leads answered.
  return before.length === 0 ? [] : now.map((each) => [old.get(each.name), each]);
}
