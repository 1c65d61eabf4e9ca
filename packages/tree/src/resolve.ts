/**
 * A path, one name after another from the root, each row read after the request arrived. Whoever remembers a chain reads all its entries at
 * once and walks from the first that changed.
 */
import type { EntryAddress, HeldEntry } from "@stamp/objects";
import { ask, type Machine, type MachineContext, mustBeAdmitted, Refused } from "./machine.ts";
import { keyName, pathProblem } from "./names.ts";
import { shown } from "./settle.ts";

export interface Link {
  readonly at: EntryAddress;
  readonly held: HeldEntry;
}

/** Returns the entries on the way, the last of them what the path names; none for the root. */
export function* resolve(context: MachineContext, path: readonly string[], remembered: readonly Link[] = []): Machine<readonly Link[]> {
  const links = yield* reach(context, path, remembered);
  if (links.length < path.length) throw new Refused(links.at(-1)?.held.kind === "file" ? "notDirectory" : "notFound");
  mustBeAdmitted(context, links.at(-1)?.held.id ?? context.root);
  return links;
}

/** Returns the entries on the way as far as they are there, down to a file at most. */
export function* reach(context: MachineContext, path: readonly string[], remembered: readonly Link[] = []): Machine<readonly Link[]> {
  const problem = pathProblem(context.names, path);
  if (problem) throw new Refused(problem);
  const links = [...(yield* stillThere(context, path, remembered))];
  let directory = links.at(-1)?.held.id ?? context.root;
  for (const name of path.slice(links.length)) {
    if (links.at(-1)?.held.kind === "file") break;
    const at: EntryAddress = { kind: "entry", directory, name: keyName(context.names, name) };
    const held = yield* shown(context, at);
    if (!held) break;
    links.push({ at, held });
    directory = held.id;
  }
  return links;
}

/** Reads the entries of a remembered chain at once; returns those from the root on that are as they were, as far as they are on the path. */
function* stillThere(context: MachineContext, path: readonly string[], remembered: readonly Link[]): Machine<readonly Link[]> {
  let directory = context.root;
  const chain: Link[] = [];
  for (const [index, link] of remembered.slice(0, path.length).entries()) {
    if (link.at.directory !== directory || link.at.name !== keyName(context.names, path[index] as string)) break;
    chain.push(link);
    directory = link.held.id;
  }
  if (chain.length === 0) return [];
  const answers = yield* ask(...chain.map(({ at }) => ({ kind: "look", at }) as const));
  const links: Link[] = [];
  for (const [index, { at, held }] of chain.entries()) {
    const now = yield* shown(context, at, { row: answers[index]?.row });
    if (!now) return links;
    links.push({ at, held: now });
    if (now.id !== held.id) break;
  }
  return links;
}

/** A name in the directory that the path before it leads to. */
export interface Place {
  readonly at: EntryAddress;
  readonly written: string;
  /** Ids of the directories above, from the root on. */
  readonly above: readonly string[];
}

/** Resolves all but the last name, which may be there or not. Refuses the root. */
export function* placeOf(context: MachineContext, path: readonly string[]): Machine<Place> {
  const written = path.at(-1);
  if (written === undefined) throw new Refused("isRoot");
  const problem = pathProblem(context.names, path);
  if (problem) throw new Refused(problem);
  const links = yield* resolve(context, path.slice(0, -1));
  const last = links.at(-1)?.held;
  if (last?.kind === "file") throw new Refused("notDirectory");
  const directory = last?.id ?? context.root;
  const above = [context.root, ...links.map(({ held }) => held.id)];
  return { at: { kind: "entry", directory, name: keyName(context.names, written) }, written, above };
}
