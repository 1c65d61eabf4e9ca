/**
 * The steps by which the master key of a stamp is replaced while its processes run, in the files beside it:
 *
 *     add     a new key in `.next`: every partition server opens with it within a second, and none seals with it yet
 *     use     `.next` takes the place of the key; the one before goes to `.previous` and still opens
 *     (rows are sealed anew: services/partition-manager/src/accounts/reseal.ts)
 *     forget  `.previous` is removed: what it has sealed opens no more
 *
 * Invariants:
 * - At every moment, and after a loss of power in between, each key that has sealed a row is in one of the files until `forget`.
 * - Each step is made in one go (link or rename), and a step that was made before is left as it is.
 */
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { ConfigError } from "../process/config.ts";
import { linkOf } from "./cluster-secret.ts";
import { goneText, keyIn, type MasterKeyFiles, masterKeyId, masterKeyIdFile, newMasterKey, noteMasterKeyIds } from "./master-key.ts";
import { changed, linkIfAbsent, placeFile, syncFolder } from "./rotated-files.ts";

/** Ids of the keys in the files; undefined where there is none. */
export interface MasterKeyState {
  readonly current: string;
  readonly next: string | undefined;
  readonly previous: string | undefined;
}

/** Throws ConfigError if a file can't be used, or can't be replaced. */
export function masterKeyState(files: MasterKeyFiles): MasterKeyState {
  for (const path of Object.values<string>({ ...files })) {
    const target = linkOf(path);
    if (target !== undefined)
      throw new ConfigError(`${path} is a link to ${target}: change the key where it is kept; partition servers take it within a second`);
  }
  if (!existsSync(files.current)) throw new ConfigError(goneText(files.current));
  const idIn = (path: string): string | undefined => (existsSync(path) ? masterKeyId(keyIn(path)) : undefined);
  return { current: masterKeyId(keyIn(files.current)), next: idIn(files.next), previous: idIn(files.previous) };
}

/** Does nothing if a next key is there. */
export function addNextMasterKey(files: MasterKeyFiles): void {
  written(files.next, () => placeFile(files.current, newMasterKey(), files.next, linkIfAbsent));
}

export function useNextMasterKey(files: MasterKeyFiles): void {
  written(files.current, () => {
    placeFile(files.current, readFileSync(files.current, "utf8"), files.previous, renameSync);
    // The name of the previous key is durable before the current one is replaced: rows are sealed by it.
    syncFolder(files.previous);
    renameSync(files.next, files.current);
    noted(files);
  });
}

/** Removes a next key that was not used yet. */
export function dropNextMasterKey(files: MasterKeyFiles): void {
  written(files.next, () => rmSync(files.next, { force: true }));
}

/** Removes the file with the previous key. */
export function forgetPreviousMasterKey(files: MasterKeyFiles): void {
  written(files.previous, () => {
    rmSync(files.previous, { force: true });
    noted(files);
  });
}

/** Notes the ids beside the key, where they are noted: processes in containers note them in folders of their own. */
function noted(files: MasterKeyFiles): void {
  const idPath = masterKeyIdFile(files.current);
  if (existsSync(idPath)) noteMasterKeyIds(files, idPath);
}

function written(path: string, work: () => void): void {
  changed("the master key", path, () => {
    work();
    syncFolder(path);
  });
}
