/**
 * One process makes a bundle of a repository at a time: the one that `.tools/bundle/making` names. A process that has ended loses its turn.
 * Two that believe to have the turn do not harm each other (make-bundle.ts).
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identityOf, isAlive, type ProcessIdentity } from "../supervise/process-identity.ts";
import { bundlesIn } from "./bundle.ts";
import { noBundle } from "./later-bundle.ts";
import { makeBundle, makeFolders } from "./make-bundle.ts";

/** Returns false if this call made no bundle. Never throws: the reason is written to standard error. */
export async function makeBundleInTurn(root: string): Promise<boolean> {
  try {
    if (!takeTurn(root)) return false;
    try {
      return await makeBundle(root);
    } finally {
      rmSync(turnIn(root), { recursive: true, force: true });
    }
  } catch (error) {
    process.stderr.write(`${noBundle((error as Error).message)}\n`);
    return false;
  }
}

export const turnIn = (root: string): string => join(bundlesIn(root), "making");

/** Takes the right to make a bundle; false while another process makes one here. */
function takeTurn(root: string): boolean {
  const turn = turnIn(root);
  makeFolders(root);
  const mine = JSON.stringify(identityOf(process.pid));
  try {
    writeFileSync(turn, mine, { flag: "wx", mode: 0o644 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  if (isHeld(turn)) return false;
  rmSync(turn, { recursive: true, force: true });
  writeFileSync(turn, mine, { mode: 0o644 });
  return true;
}

/** True if a process holds the turn. A folder of this name, as releases before had it, is held by nobody. */
function isHeld(turn: string): boolean {
  try {
    return isAlive(JSON.parse(readFileSync(turn, "utf8")) as ProcessIdentity);
  } catch {
    return false;
  }
}
