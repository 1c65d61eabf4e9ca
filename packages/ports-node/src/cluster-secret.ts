/**
 * The secret of a stamp: what its processes prove themselves with to each other (docs/guides/internal-ports.md). Given as text in the
 * environment, or in a file of its own (one line, mode 0600). Any text of at least `secretCharactersMin` characters is one; made here
 * it is 32 random bytes in base64url.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "./config.ts";
import { openCredential, SecretCredential } from "./grpc/secret-credential.ts";
import { inWords } from "./in-words.ts";

export const secretCharactersMin = 32;
const secretBytes = 32;

export interface SecretSources {
  readonly clusterSecret?: string | undefined;
  readonly clusterSecretFile?: string | undefined;
  /** Makes the file when it is not there: at the first start of a stamp. */
  readonly clusterSecretMake?: boolean;
  readonly clusterSecretPrevious?: string | undefined;
  readonly clusterSecretPreviousFile?: string | undefined;
}

/** The credential that these name: open when they name none. Throws ConfigError for a secret that can't be read or is too short. */
export function credentialOf(sources: SecretSources): SecretCredential {
  const { clusterSecret = "", clusterSecretFile = "", clusterSecretPrevious = "", clusterSecretPreviousFile = "" } = sources;
  if (clusterSecret !== "" && clusterSecretFile !== "") {
    throw new ConfigError("clusterSecret and clusterSecretFile are both given: which of them counts?");
  }
  if (clusterSecretFile !== "" && sources.clusterSecretMake === true) makeSecretFile(clusterSecretFile);
  const current = clusterSecret !== "" ? checked(clusterSecret, "clusterSecret") : secretIn(clusterSecretFile);
  if (current === undefined && clusterSecretFile !== "") throw new ConfigError(`clusterSecretFile: ${clusterSecretFile} does not exist`);
  const previous =
    clusterSecretPrevious !== "" ? checked(clusterSecretPrevious, "clusterSecretPrevious") : secretIn(clusterSecretPreviousFile);
  if (current === undefined) {
    if (previous !== undefined) throw new ConfigError("a previous cluster secret is given, and no current one");
    return openCredential;
  }
  return new SecretCredential(previous === undefined || previous === current ? [current] : [current, previous]);
}

/** The secret of a file; undefined when there is no such file. Throws ConfigError. */
function secretIn(path: string): string | undefined {
  if (path === "") return undefined;
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new ConfigError(`the cluster secret ${inWords(error, path)}`);
  }
  return checked(text.trim(), path);
}

function checked(text: string, where: string): string {
  if (text.length >= secretCharactersMin) return text;
  throw new ConfigError(`${where}: a cluster secret has at least ${secretCharactersMin} characters, this one ${text.length}`);
}

/** Makes the file with a new secret unless it is there. Whole or not at all; of two that do it at the same time one wins. */
export function makeSecretFile(path: string): void {
  const made = `${path}.${process.pid}.${randomBytes(6).toString("hex")}.new`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(made, `${randomBytes(secretBytes).toString("base64url")}\n`, { flag: "wx", mode: 0o600, flush: true });
    // Whatever the umask was.
    chmodSync(made, 0o600);
    try {
      linkSync(made, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      unlinkSync(made);
    }
  } catch (error) {
    throw new ConfigError(`the cluster secret can't be made: ${inWords(error, path)}`);
  }
}
