/** Tells a process from a later one that was given the same pid. */
import { readFileSync } from "node:fs";

/** Returns when a process began, in clock ticks since boot; undefined where the system does not say, or it is gone. */
export function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command's name stands in parentheses and may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

export interface ProcessIdentity {
  readonly pid: number;
  readonly start: string | undefined;
}

export const identityOf = (pid: number): ProcessIdentity => ({ pid, start: startOf(pid) });

/** True while this very process runs. */
export function isAlive({ pid, start }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM" && startOf(pid) === start;
  }
  return process.platform !== "linux" || startOf(pid) === start;
}

/** Sends a signal if the pid still belongs to the same process. */
export function signal(identity: ProcessIdentity, name: NodeJS.Signals): void {
  if (!isAlive(identity)) return;
  try {
    process.kill(identity.pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
