/**
 * The secret of the stamp as a running process knows it: read from its files at the start, and again when one of them changes, without a
 * restart. So a secret is rotated while the stamp serves (`stamp secret rotate`, docs/guides/internal-ports.md).
 *
 * Invariants:
 * - Files that can't be used change nothing: the secrets before stay, and `facts.problem` says why until the files can be used again.
 * - A process that started with a secret never becomes open.
 * - A token that was used stays used when the secrets change.
 */
import { statSync } from "node:fs";
import type { Logger, SecretFacts } from "@stamp/ports";
import { silentLogger } from "@stamp/ports";
import type { Caller } from "@stamp/wire";
import type { SecretCredential } from "../grpc/credentials/secret-credential.ts";
import { ConfigError } from "../process/config.ts";
import { inWords } from "../process/in-words.ts";
import { sharedInterval } from "../time/shared-interval.ts";
import { credentialWith, filesOf, type SecretFiles, type SecretSources, secretsOf } from "./cluster-secret.ts";
import { revokedTokens } from "./issued-tokens.ts";

/** Time between two looks at the files of the secret, in milliseconds. */
export const secretLookEveryMs = 1_000;

export class WatchedSecret {
  readonly #sources: SecretSources;
  readonly #files: SecretFiles;
  readonly #logger: Logger;
  #credential: SecretCredential;
  /** State of the files when they were read last, as a text. */
  #seen: string;
  #problem = "";
  /** Fault of the list of tokens for tools, in words; empty if nothing is. */
  #tokensProblem = "";

  /** `caller`: role of the process, which it says to those it calls. Throws ConfigError for a secret that can't be used. */
  constructor(sources: SecretSources, logger: Logger = silentLogger, caller?: Caller) {
    // Made once: a running process whose file is gone keeps what it knows, and makes no other secret.
    this.#sources = { ...sources, clusterSecretMake: false };
    this.#files = filesOf(sources);
    this.#logger = logger;
    const secrets = secretsOf(sources);
    this.#seen = stateOf(this.#files);
    this.#credential = credentialWith(secrets, caller);
    // A file that changed in between is read at the first look.
    if (secretsOf(this.#sources).join() !== secrets.join()) this.#seen = "";
    this.#lookAtTokens();
  }

  get credential(): SecretCredential {
    return this.#credential;
  }

  get facts(): SecretFacts {
    return { ids: this.#credential.accepts, madeMs: madeMsOf(this.#files.current), problem: this.#problem };
  }

  /** Reads the files again if one of them has changed. */
  look(): void {
    this.#lookAtTokens();
    const state = stateOf(this.#files);
    if (state === this.#seen) return;
    this.#seen = state;
    try {
      const secrets = secretsOf(this.#sources);
      if (secrets.length === 0) {
        // Without any file named there is nothing to look at; a previous one alone is refused above.
        if (!this.#credential.open) this.#refuse("the files of the secret are gone");
        return;
      }
      const next = this.#credential.withSecrets(secrets);
      const changed = next.accepts.join() !== this.#credential.accepts.join();
      if (changed) {
        this.#credential = next;
        this.#logger.info("the secret of the stamp was changed", { accepts: next.accepts });
      } else if (this.#problem !== "") this.#logger.info("the files of the secret can be used again", { accepts: next.accepts });
      this.#problem = "";
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#refuse(inWords(error));
    }
  }

  /** Looks every `everyMs`; returns what ends that. Keeps no process alive. */
  watch(everyMs: number = secretLookEveryMs): () => void {
    return sharedInterval(everyMs, () => this.look());
  }

  /** Reads the whole list: a folder's time does not tell two changes within a tick of the clock apart. What was revoked stays revoked. */
  #lookAtTokens(): void {
    if (this.#credential.open || this.#files.current === "") return;
    const { ids, problem } = revokedTokens(this.#files.current);
    this.#credential.revoke(ids);
    if (problem === this.#tokensProblem) return;
    this.#tokensProblem = problem;
    if (problem === "") this.#logger.info("the list of tokens can be used again");
    else this.#logger.error("the list of tokens can't be trusted; tokens revoked since may still be taken", { problem });
  }

  #refuse(problem: string): void {
    if (problem !== this.#problem)
      this.#logger.error("the secret of the stamp can't be read again; the one before stays in use", { problem });
    this.#problem = problem;
  }
}

/** Returns a text that changes when a file is written, replaced or removed, or its readers change. */
function stateOf(files: SecretFiles): string {
  return Object.values(files).map(stateOfFile).join(" ");
}

function stateOfFile(path: string): string {
  try {
    const stats = path === "" ? undefined : statSync(path, { throwIfNoEntry: false, bigint: true });
    return stats === undefined ? "-" : [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join("/");
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

/** Returns when the file was written last, in milliseconds since 1970; undefined if there is none. */
function madeMsOf(path: string): number | undefined {
  if (path === "") return undefined;
  try {
    return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  } catch {
    return undefined;
  }
}
