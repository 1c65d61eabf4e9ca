/**
 * Leads a rotation of the master key through its steps (packages/ports-node/src/secrets/master-key-rotation.ts). Where it stands is read from
 * the files, from the partition servers and from the rows, so whoever runs the command again goes on where it was left:
 *
 *     add      every partition server opens with the next key before it is used
 *     use      every partition server seals with the new key before rows are sealed anew
 *     reseal   every row names the new key
 *     forget   asked for apart: the key before is needed by copies and backups that were made before
 *
 * Several hosts have files of their own. The command runs on each: `add` once, on the first, and the next key is copied by a person.
 */
import type { MasterKeyState } from "@stamp/ports-node";
import { CommandError } from "../exit.ts";

/** State of the master keys at a partition server, as it told a moment ago. */
export interface KeyHolder {
  readonly name: string;
  /** State of the process. `down`: it does not run, and reads the files when it starts. */
  readonly state: "answers" | "silent" | "down";
  /** Ids of what it opens with, the one that it seals with first; undefined: it is of a release that does not look at its files. */
  readonly ids: readonly string[] | undefined;
  /** Reason why the process can't read its files, or does not answer. */
  readonly problem: string;
}

/** Number of accounts by the id of the master key that seals their rows; the empty id: rows that are not sealed. */
export type RowsByKey = Readonly<Record<string, number>>;

export interface KeyDoor {
  readonly state: () => MasterKeyState;
  readonly add: () => void;
  readonly use: () => void;
  readonly dropNext: () => void;
  readonly forget: () => void;
  readonly holders: () => Promise<readonly KeyHolder[]>;
  /** Seals every row by this key, and tells how many rows each key seals then. */
  readonly reseal: (keyId: string) => Promise<{ readonly rows: RowsByKey; readonly resealed: number }>;
  /** Returns the id of the key that seals the folder's record of the cluster; undefined: none does. */
  readonly recordSealedBy: () => string | undefined;
  readonly pause: () => Promise<void>;
  readonly nowMs: () => number;
  readonly tell: (how: string) => void;
}

export interface KeyRotated {
  /** Id of the key that seals everything now. */
  readonly id: string;
  /** Id of the key before, which is still kept; undefined if none is. */
  readonly previous: string | undefined;
  /** Steps that this call made. */
  readonly steps: readonly ("add" | "use" | "reseal" | "forget")[];
  readonly rows: RowsByKey;
  readonly resealed: number;
}

/** Throws CommandError if the partition servers are not ready for a step within `timeoutMs`; what was done until then stands. */
export async function rotateMasterKey(door: KeyDoor, timeoutMs: number): Promise<KeyRotated> {
  const steps: KeyRotated["steps"][number][] = [];
  let now = tidied(door);
  if (now.next !== undefined && now.previous !== undefined && now.previous !== now.current)
    throw new CommandError(
      `three master keys are here: ${now.current}, the next one ${now.next} and the one before ${now.previous}. ` +
        "End the rotation before this one first: move the next one away, then stamp keys rotate-master --forget-previous",
    );
  if (now.next === undefined && now.previous === undefined) {
    refuseOtherRotation(now.current, await door.holders());
    door.add();
    steps.push("add");
    now = door.state();
  }
  const { next } = now;
  if (next !== undefined) {
    await untilAll(door, timeoutMs, "to know the next master key", next, (ids) => ids.includes(next));
    door.use();
    steps.push("use");
    now = door.state();
  }
  const sealed = await sealAll(door, now.current, timeoutMs);
  if (sealed.resealed > 0) steps.push("reseal");
  return { id: now.current, previous: door.state().previous, steps, ...sealed };
}

/** Seals what another key seals, and removes the key before. Throws CommandError while it is needed by anything here. */
export async function forgetPreviousKey(door: KeyDoor, timeoutMs: number): Promise<KeyRotated> {
  const now = tidied(door);
  if (now.next !== undefined) throw new CommandError(`a rotation to master key ${now.next} is under way: stamp keys rotate-master`);
  const { current: id, previous } = now;
  if (previous === undefined) throw new CommandError(`no master key before ${id} is kept here`);
  const sealed = await sealAll(door, id, timeoutMs);
  const others = Object.keys(sealed.rows).filter((key) => key !== id && key !== "");
  if (others.length > 0) throw new CommandError(`rows are still sealed by master key ${others.join(" and ")}`);
  door.forget();
  return { id, previous: undefined, steps: sealed.resealed > 0 ? ["reseal", "forget"] : ["forget"], ...sealed };
}

/** Ends what a loss of power between two files has left: the step was made. */
function tidied(door: KeyDoor): MasterKeyState {
  const now = door.state();
  if (now.next === now.current) door.dropNext();
  if (now.previous === now.current && (now.next === undefined || now.next === now.current)) door.forget();
  return door.state();
}

/** Refuses a rotation that began on another host: the stamp would have three keys. */
function refuseOtherRotation(current: string, holders: readonly KeyHolder[]): void {
  for (const { name, ids = [] } of holders) {
    const other = ids.find((id) => id !== current);
    if (other !== undefined)
      throw new CommandError(
        `${name} has master key ${other} besides, or instead of ${current}: a rotation was begun on another host, or its key before is kept there.\n` +
          "Copy master-key.next of that host to the same place here (scp -p), or end that rotation there: stamp keys rotate-master " +
          "--forget-previous. Then run this again.",
      );
  }
}

async function sealAll(door: KeyDoor, id: string, timeoutMs: number): Promise<Awaited<ReturnType<KeyDoor["reseal"]>>> {
  await untilAll(door, timeoutMs, "to seal with the new master key", id, (ids) => ids[0] === id);
  const sealed = await door.reseal(id);
  const endMs = door.nowMs() + timeoutMs;
  for (let by = door.recordSealedBy(); by !== undefined && by !== id; by = door.recordSealedBy()) {
    door.tell("waiting for the supervisor to write cluster.json by the new master key");
    if (door.nowMs() >= endMs)
      throw new CommandError(`cluster.json is still sealed by master key ${by}: the supervisor of this host writes it anew while it runs`);
    await door.pause();
  }
  return sealed;
}

async function untilAll(
  door: KeyDoor,
  timeoutMs: number,
  what: string,
  id: string,
  ready: (ids: readonly string[]) => boolean,
): Promise<void> {
  const endMs = door.nowMs() + timeoutMs;
  for (;;) {
    const holders = await door.holders();
    if (holders.every(({ state }) => state === "down")) throw new CommandError("no partition server runs: start the stamp first");
    const missing = holders.filter(({ state, ids }) => state !== "down" && (state === "silent" || ids === undefined || !ready(ids)));
    if (missing.length === 0) return;
    door.tell(`waiting for ${missing.length} of ${holders.length} partition servers ${what} ${id}, first ${missing[0]?.name}`);
    if (door.nowMs() >= endMs) throw new CommandError(notReady(`${what} ${id}`, missing));
    await door.pause();
  }
}

function notReady(what: string, missing: readonly KeyHolder[]): string {
  const lines = missing.map(({ name, state, ids, problem }) => {
    if (problem !== "") return `  ${name}: ${problem}`;
    if (state === "silent") return `  ${name}: it does not answer`;
    if (ids === undefined) return `  ${name}: it is of an older release, which takes a key at its start only`;
    return `  ${name}: it has ${ids.join(" and ") || "no master key"}`;
  });
  return [
    `these partition servers were not ready ${what}:`,
    ...lines,
    "Nothing was taken from them. If they read files of another host, copy master-key.next to the same place there (scp -p), or run this",
    "command there, too (docs/guides/keys-at-rest.md). Run it here again: it goes on from here.",
  ].join("\n");
}
