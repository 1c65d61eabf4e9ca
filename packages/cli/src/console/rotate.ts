/** Rotation of the console's log. Several consoles may write it, each in a process of its own. */
import { mkdirSync, renameSync, rmdirSync, statSync } from "node:fs";

/** A folder that a console has left behind by its death counts no more after this time, in milliseconds. */
const turnMaxMs = 60_000;

/**
 * Lets a log that has reached its limit take the place of the older one, as the logs of processes do. One console at a time: the second of two
 * that saw the log full would put the new one, of one line, into the place of the older one. The one whose turn it is not lets the log grow on.
 */
export function rotateAt(path: string, bytesMax: number): void {
  if (!isFull(path, bytesMax) || !takeTurn(`${path}.turn`)) return;
  try {
    if (isFull(path, bytesMax)) renameSync(path, `${path}.1`);
  } finally {
    rmdirSync(`${path}.turn`);
  }
}

function isFull(path: string, bytesMax: number): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && found.size >= bytesMax;
}

/** A folder is made by one process only. */
function takeTurn(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const found = statSync(folder, { throwIfNoEntry: false });
  // The next line takes the turn.
  if (found !== undefined && Date.now() - found.mtimeMs > turnMaxMs) rmdirSync(folder);
  return false;
}
