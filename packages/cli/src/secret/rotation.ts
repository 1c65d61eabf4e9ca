/**
 * Leads a rotation of the stamp's secret through its steps (packages/ports-node/src/secrets/secret-rotation.ts). Where it stands is read from the files,
 * so whoever runs the command again goes on where it was left. Before each step every process that runs has to be ready for it:
 *
 *     use     every process accepts the next secret
 *     drop    every process uses the new secret itself, and proves itself to the others with it
 */
import type { RotationState } from "@stamp/ports-node";
import { CommandError } from "../exit.ts";

/** State of the secret at a process, as it told a moment ago. */
export interface ProcessSecret {
  readonly name: string;
  /** State of the process. `down`: it does not run, and reads the files when it starts. */
  readonly state: "answers" | "silent" | "down";
  /** Ids of the secrets that the process accepts, the one that it uses first. */
  readonly ids: readonly string[];
  /** Reason why the process can't read its files, or does not answer. */
  readonly problem: string;
}

export interface RotationDoor {
  readonly state: () => RotationState;
  readonly add: () => void;
  readonly use: () => void;
  readonly dropPrevious: () => void;
  readonly dropNext: () => void;
  readonly processes: () => Promise<readonly ProcessSecret[]>;
  readonly pause: () => Promise<void>;
  readonly nowMs: () => number;
  readonly tell: (how: string) => void;
}

export interface RotationResult {
  /** Id of the secret that is in use now. */
  readonly id: string;
  /** Steps that this call made; a call that went on with a rotation made fewer. */
  readonly steps: readonly ("add" | "use" | "drop")[];
}

/** Throws CommandError if the processes are not ready for a step within `timeoutMs`; what was done until then stands. */
export async function rotateSecret(door: RotationDoor, timeoutMs: number): Promise<RotationResult> {
  const steps: ("add" | "use" | "drop")[] = [];
  let now = door.state();
  // Left over by a loss of power between two files: the step was made.
  if (now.next === now.current) door.dropNext();
  if (now.previous === now.current && now.next === undefined) door.dropPrevious();
  now = door.state();
  if (now.next === undefined && now.previous === undefined) {
    door.add();
    steps.push("add");
    now = door.state();
  }
  const { next } = now;
  if (next !== undefined) {
    await untilAll(door, timeoutMs, "to accept the next secret", (ids) => ids.includes(next));
    door.use();
    steps.push("use");
    now = door.state();
  }
  const { current } = now;
  await untilAll(door, timeoutMs, "to use the new secret", (ids) => ids[0] === current);
  door.dropPrevious();
  steps.push("drop");
  await untilAll(door, timeoutMs, "to let go of the old secret", (ids) => ids.length === 1 && ids[0] === current);
  return { id: current, steps };
}

async function untilAll(door: RotationDoor, timeoutMs: number, what: string, ready: (ids: readonly string[]) => boolean): Promise<void> {
  const endMs = door.nowMs() + timeoutMs;
  for (;;) {
    const processes = await door.processes();
    const missing = processes.filter(({ state, ids }) => state !== "down" && (state === "silent" || !ready(ids)));
    if (missing.length === 0) return;
    const [first] = missing;
    door.tell(`waiting for ${missing.length} of ${processes.length} processes ${what}, first ${first?.name}`);
    if (door.nowMs() >= endMs) throw new CommandError(notReady(what, missing));
    await door.pause();
  }
}

function notReady(what: string, missing: readonly ProcessSecret[]): string {
  const lines = missing.map(({ name, state, ids, problem }) => {
    if (problem !== "") return `  ${name}: ${problem}`;
    if (state === "silent") return `  ${name}: it does not answer`;
    return ids.length === 0
      ? `  ${name}: it tells no secrets (it has none, or is of an older release)`
      : `  ${name}: it has ${ids.join(" and ")}`;
  });
  return [
    `these processes were not ready ${what}:`,
    ...lines,
    "Nothing was taken from them. If they read files of another host, put the same files there (docs/guides/internal-ports.md).",
    "Run the command again: it goes on from here.",
  ].join("\n");
}
