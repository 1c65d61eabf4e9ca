/**
 * The master keys of a stamp as a running process knows them: read at the start, and again when one of their files changes, without a restart.
 * So the master key is rotated while the stamp serves (`stamp keys rotate-master`, docs/guides/keys-at-rest.md).
 *
 * Invariants:
 * - Files that can't be used change nothing: the keys before stay, and `problem` says why until the files can be used again.
 * - A process that started with a master key never stores secrets openly.
 */
import { statSync } from "node:fs";
import type { Logger } from "@stamp/ports";
import { silentLogger } from "@stamp/ports";
import { ConfigError } from "../process/config.ts";
import { inWords } from "../process/in-words.ts";
import { sharedInterval } from "../time/shared-interval.ts";
import { type MasterKeyFiles, type MasterKeySources, masterKeyFilesOf, masterKeyId, masterKeysOf, noteMasterKeyIds } from "./master-key.ts";

/** Time between two looks at the files of the master key, in milliseconds. */
const lookEveryMs = 1_000;

export class WatchedMasterKey {
  readonly #sources: MasterKeySources;
  readonly #files: MasterKeyFiles;
  readonly #idPath: string | undefined;
  readonly #logger: Logger;
  #keys: readonly Uint8Array[];
  #seen: string;
  #problem = "";

  /**
   * `idPath`: file of this process with the ids of the keys that it needs, kept up to date. Throws ConfigError for keys that can't be used.
   */
  constructor(sources: MasterKeySources, logger: Logger = silentLogger, idPath?: string) {
    this.#sources = sources;
    this.#files = masterKeyFilesOf(sources);
    this.#idPath = idPath;
    this.#logger = logger;
    this.#seen = stateOf(this.#files);
    this.#keys = masterKeysOf(sources);
  }

  /** 32 bytes each, the one that seals first. The list is another object only after a change. */
  get keys(): readonly Uint8Array[] {
    return this.#keys;
  }

  /** Returns when the file with the current key was written last, in milliseconds since 1970; undefined if the key is in no file. */
  get madeMs(): number | undefined {
    const { current } = this.#files;
    if (current === "") return undefined;
    try {
      return statSync(current, { throwIfNoEntry: false })?.mtimeMs;
    } catch {
      return undefined;
    }
  }

  /** Returns why the files can't be used; empty if they can. */
  get problem(): string {
    return this.#problem;
  }

  /** Reads the files again if one of them has changed. A key of the environment or of a command stays. */
  look(): void {
    if (this.#files.current === "") return;
    const state = stateOf(this.#files);
    if (state === this.#seen) return;
    this.#seen = state;
    try {
      const keys = masterKeysOf(this.#sources);
      const ids = keys.map(masterKeyId);
      const changed = ids.join() !== this.#keys.map(masterKeyId).join();
      if (changed) {
        this.#keys = keys;
        this.#logger.info("the master keys of the stamp were changed", { seals: ids[0], opens: ids });
      } else if (this.#problem !== "") this.#logger.info("the files of the master key can be used again", { opens: ids });
      this.#problem = "";
      if (this.#idPath !== undefined) noteMasterKeyIds(this.#files, this.#idPath);
    } catch (error) {
      const problem = inWords(error);
      if (!(error instanceof ConfigError) && (error as NodeJS.ErrnoException).code === undefined) throw error;
      if (problem !== this.#problem)
        this.#logger.error("the master keys of the stamp can't be read again; those before stay in use", { problem });
      this.#problem = problem;
    }
  }

  /** Looks every `everyMs`; returns what ends that. Keeps no process alive. */
  watch(everyMs: number = lookEveryMs): () => void {
    return sharedInterval(everyMs, () => this.look());
  }
}

/** Changes whenever a file is written, replaced or removed. */
const stateOf = (files: MasterKeyFiles): string =>
  Object.values<string>({ ...files })
    .map((path) => {
      try {
        const stats = path === "" ? undefined : statSync(path, { throwIfNoEntry: false, bigint: true });
        return stats === undefined ? "-" : [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join("/");
      } catch (error) {
        return String((error as NodeJS.ErrnoException).code);
      }
    })
    .join(" ");
