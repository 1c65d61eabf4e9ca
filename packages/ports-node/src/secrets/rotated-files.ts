/** Replaces files that hold secrets, in one go: a reader finds the old one or the new one, whole, also after a loss of power. */
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, closeSync, fsyncSync, linkSync, openSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "../process/config.ts";
import { inWords } from "../process/in-words.ts";

/** Writes a whole file for the user and the mode that the file `like` has, and puts it at its place with `put`. */
export function placeFile(like: string, text: string, path: string, put: (from: string, to: string) => void): void {
  const made = `${path}.${process.pid}.${randomBytes(6).toString("hex")}.new`;
  const { uid, gid, mode } = statSync(like);
  try {
    writeFileSync(made, text, { flag: "wx", mode: 0o600, flush: true });
    // Root may rotate what processes of another user read.
    if (uid !== process.getuid?.() || gid !== process.getgid?.()) chownSync(made, uid, gid);
    chmodSync(made, mode & 0o777);
    put(made, path);
  } finally {
    rmSync(made, { force: true });
  }
}

export function linkIfAbsent(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  unlinkSync(from);
}

/** Makes names in the folder of the file durable. */
export function syncFolder(path: string): void {
  const folder = openSync(dirname(path), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Runs `work`. Throws ConfigError in words: `what` can't be changed. */
export function changed(what: string, path: string, work: () => void): void {
  try {
    work();
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError(`${what} can't be changed: ${inWords(error, path)}`);
  }
}
