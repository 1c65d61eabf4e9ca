/**
 * Paths of the supervisor's socket. The system takes at most about 100 bytes for the path of a socket. Linux reaches a socket in a deeper folder
 * by a descriptor of that folder, so that the socket stands in the data folder: nobody else can make it first, nothing that tidies /tmp
 * removes it, and a command finds it whatever its TMPDIR is.
 */
import { closeSync, openSync } from "node:fs";
import { basename, dirname } from "node:path";

export const socketPathBytesMax = 100;

export const reachesLongPaths = process.platform === "linux";

export interface ReachedPath {
  /** Path that the system takes until `close`. */
  readonly path: string;
  readonly close: () => void;
}

export function reached(path: string): ReachedPath {
  if (!reachesLongPaths || Buffer.byteLength(path) <= socketPathBytesMax) return { path, close: () => {} };
  const folder = openSync(dirname(path), "r");
  return { path: `/proc/self/fd/${folder}/${basename(path)}`, close: () => closeSync(folder) };
}
