/**
 * The steps by which the secret of a stamp is replaced while its processes run, in the files beside it:
 *
 *     add    a new secret in `.next`: every process accepts it within a second, and none uses it yet
 *     use    `.next` takes the place of the secret; the one before goes to `.previous` and is still accepted
 *     drop   `.previous` is removed: what was proven with it ends
 *
 * Invariants:
 * - At every moment, and after a loss of power in between, the files hold at most two different secrets, and at least one that every process
 *   which has done the step before knows.
 * - Each step is made in one go (link or rename), and a step that was made before is left as it is.
 */
import { readFileSync, renameSync, rmSync } from "node:fs";
import { type ProofId, proofIdOfSecret } from "../grpc/credentials/secret-credential.ts";
import { ConfigError } from "../process/config.ts";
import { linkOf, newSecret, type SecretFiles, secretIn } from "./cluster-secret.ts";
import { changed, linkIfAbsent, placeFile } from "./rotated-files.ts";

/** Ids of the secrets in the files; undefined where there is none. */
export interface RotationState {
  readonly current: ProofId;
  readonly next: ProofId | undefined;
  readonly previous: ProofId | undefined;
}

/** Throws ConfigError if a file can't be used, or can't be replaced. */
export function rotationState(files: SecretFiles): RotationState {
  for (const path of Object.values<string>({ ...files })) {
    const target = linkOf(path);
    if (target !== undefined)
      throw new ConfigError(`${path} is a link to ${target}: change the secret where it is kept; processes take it within a second`);
  }
  const idIn = (path: string): ProofId | undefined => {
    const secret = secretIn(path);
    return secret === undefined ? undefined : proofIdOfSecret(secret);
  };
  const current = idIn(files.current);
  if (current === undefined) throw new ConfigError(`${files.current} does not exist: there is no secret in a file that could be changed`);
  return { current, next: idIn(files.next), previous: idIn(files.previous) };
}

/** Does nothing if a next secret is there. */
export function addNextSecret(files: SecretFiles): void {
  written(files.next, () => placeFile(files.current, newSecret(), files.next, linkIfAbsent));
}

export function useNextSecret(files: SecretFiles): void {
  written(files.current, () => {
    placeFile(files.current, readFileSync(files.current, "utf8"), files.previous, renameSync);
    renameSync(files.next, files.current);
  });
}

export function dropPreviousSecret(files: SecretFiles): void {
  written(files.previous, () => rmSync(files.previous, { force: true }));
}

/** Removes a next secret that was not used yet. */
export function dropNextSecret(files: SecretFiles): void {
  written(files.next, () => rmSync(files.next, { force: true }));
}

const written = (path: string, work: () => void): void => changed("the cluster secret", path, work);
