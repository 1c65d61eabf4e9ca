/**
 * Files of the data folder that a running supervisor writes again if they go or are damaged: it holds what was in them, and commands and
 * processes that start need them.
 *
 * Invariant: a secret that a rotation or a person has put in place is kept, never undone. Only a file that holds no secret is written again.
 */
import { closeSync, fsyncSync, lstatSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { secretsOf } from "@stamp/ports-node";
import type { ClusterConfig } from "../config.ts";
import { secretFilesOf } from "../secret-files.ts";

/** Returns the text that changes whenever a file is replaced, changed, appears or goes. */
export function fileState(path: string): string {
  const stats = lstatSync(path, { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? "" : [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join("/");
}

export class KeptSecret {
  readonly #path: string | undefined;
  #state = "";
  #text: string | undefined;

  /** A file that the configuration names is somebody else's, and is left alone. */
  constructor(config: Pick<ClusterConfig, "dataDir" | "clusterSecretFile">) {
    this.#path = config.clusterSecretFile === undefined ? secretFilesOf(config).current : undefined;
  }

  /** Remembers the secret, or writes it again. Throws errors of the file system. */
  look(): void {
    const path = this.#path;
    if (path === undefined) return;
    const state = fileState(path);
    if (state === this.#state && this.#text !== undefined) return;
    if (this.#text !== undefined && isWithoutSecret(path)) {
      // A link leads to where the secret is kept.
      if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) return;
      replaceFile(path, this.#text);
      process.stderr.write(`stamp: the supervisor has written ${path} again, which was gone or damaged\n`);
    }
    this.#text = readFileSync(path, "utf8");
    this.#state = fileState(path);
  }
}

/** True if the file is absent or holds no secret. */
function isWithoutSecret(path: string): boolean {
  try {
    return secretsOf({ clusterSecretFile: path }).length === 0;
  } catch {
    return true;
  }
}

function replaceFile(path: string, text: string): void {
  const file = openSync(`${path}.new`, "w", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
}
