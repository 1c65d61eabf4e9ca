/**
 * A lock file that names the process which holds the lock. If that process was killed, the next one takes the lock over.
 *
 * Invariant: nobody reads a half-written lock. The content goes into a file of another name, and link() then gives it the name of the lock in one
 * step, or fails because somebody holds the lock.
 */
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { identityOf, isAlive, type ProcessIdentity } from "@stamp/cluster";
import { inWords } from "@stamp/ports-node";
import { CommandError, exitCodes } from "../exit.ts";

type Holder = ProcessIdentity & { readonly host: string };

/** Number of locks of dead processes that are taken over before others seem to take them over at the same time. */
const tries = 10;

/** Locks `path` by a file beside it. Returns what unlocks it. Throws a CommandError if another process has it, or nothing can be written there. */
export async function lockFile(path: string): Promise<() => Promise<void>> {
  const lock = `${path}.lock`;
  const mine = `${lock}.${process.pid}`;
  const holder: Holder = { ...identityOf(process.pid), host: hostname() };
  const text = `${JSON.stringify(holder)}\n`;
  try {
    await rm(mine, { force: true });
    await writeFile(mine, text, { flag: "wx", mode: 0o600 });
  } catch (error) {
    throw new CommandError(
      `how far the import is can't be written to ${dirname(path)} (${inWords(error)}): name a file elsewhere with --state FILE`,
      exitCodes.usage,
    );
  }
  try {
    for (let tried = 1; !(await linked(mine, lock)); tried++) {
      const found = await textOf(lock);
      if (found === undefined) continue;
      refuse(path, lock, found, tried);
      await removeSame(lock, found, `${mine}.old`);
    }
  } finally {
    await rm(mine, { force: true });
  }
  return async () => removeSame(lock, text, `${mine}.old`);
}

/** Refuses a lock unless its process is gone. */
function refuse(path: string, lock: string, found: string, tried: number): void {
  let holder: Partial<Holder> = {};
  try {
    holder = JSON.parse(found) as Partial<Holder>;
  } catch {
    // Said below.
  }
  const { pid, host, start } = holder;
  if (typeof pid === "number" && host === hostname()) {
    if (!isAlive({ pid, start }) && tried < tries) return;
    throw new CommandError(`another import runs with ${path} (process ${pid}): wait until it has ended`);
  }
  throw new CommandError(
    `another import may run with ${path}${host === undefined ? "" : `, on ${host.slice(0, 100)}`}: if none does, remove ${lock}`,
  );
}

/** Removes the lock if it still has this text: another process may have taken it over. */
async function removeSame(lock: string, text: string, aside: string): Promise<void> {
  try {
    await rename(lock, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if ((await textOf(aside)) !== text) await linked(aside, lock);
  await rm(aside, { force: true });
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
