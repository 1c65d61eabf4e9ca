/**
 * The secret of a stamp: what its processes prove themselves with to each other (docs/guides/internal-ports.md). Given as text in the
 * environment, or in a file of its own (one line, mode 0600). Any text of at least `secretCharactersMin` characters is one; made here
 * it is 32 random bytes in base64url.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, linkSync, lstatSync, mkdirSync, readFileSync, readlinkSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Caller } from "@stamp/wire";
import { openCredential, SecretCredential } from "../grpc/credentials/secret-credential.ts";
import { ConfigError } from "../process/config.ts";
import { inWords, isSystemError } from "../process/in-words.ts";

export const secretCharactersMin = 32;
/** A larger file is no secret, in bytes. */
const fileBytesMax = 4_096;
const secretBytes = 32;
const writableByAll = 0o002;

export interface SecretSources {
  readonly clusterSecret?: string | undefined;
  readonly clusterSecretFile?: string | undefined;
  /** True to make the file if it is absent: at the first start of a stamp. */
  readonly clusterSecretMake?: boolean;
  readonly clusterSecretPrevious?: string | undefined;
  /** File with the previous secret (default: `clusterSecretFile` with `.previous` behind it). */
  readonly clusterSecretPreviousFile?: string | undefined;
}

/** Paths of the files that hold secrets, by what they are for; empty if no secret is read from there. Only `current` must exist. */
export interface SecretFiles {
  /** The secret that a process uses itself. */
  readonly current: string;
  /** The secret that follows during a rotation; accepted besides. */
  readonly next: string;
  /** The secret before, during a rotation; accepted besides. */
  readonly previous: string;
}

/** Returns the names of the files beside the one with the secret. */
export const secretFilesBeside = (current: string): SecretFiles => ({ current, next: `${current}.next`, previous: `${current}.previous` });

/** Returns the credential that these name: open when they name none. Throws ConfigError for a secret that can't be read or is too short. */
export const credentialOf = (sources: SecretSources, caller?: Caller): SecretCredential => credentialWith(secretsOf(sources), caller);

/** Returns the credential of a process with these secrets, which claims this role. */
export const credentialWith = (secrets: readonly string[], caller?: Caller): SecretCredential =>
  secrets.length === 0 ? openCredential : new SecretCredential(secrets, undefined, undefined, undefined, caller);

/** Returns the paths of the files; empty where a secret does not come from a file. */
export function filesOf({ clusterSecretFile = "", clusterSecretPreviousFile = "" }: SecretSources): SecretFiles {
  if (clusterSecretFile === "") return { current: "", next: "", previous: clusterSecretPreviousFile };
  const beside = secretFilesBeside(clusterSecretFile);
  return clusterSecretPreviousFile === "" ? beside : { ...beside, previous: clusterSecretPreviousFile };
}

/** Returns the secrets that these name, the preferred one first: none, one, or two during a rotation. Throws ConfigError. */
export function secretsOf(sources: SecretSources): readonly string[] {
  const { clusterSecret = "", clusterSecretFile = "", clusterSecretPrevious = "" } = sources;
  if (clusterSecret !== "" && clusterSecretFile !== "") {
    throw new ConfigError("clusterSecret and clusterSecretFile are both given: which of them counts?");
  }
  const files = filesOf(sources);
  if (clusterSecretFile !== "" && sources.clusterSecretMake === true) makeSecretFile(clusterSecretFile);
  const current = clusterSecret !== "" ? checked(clusterSecret, "clusterSecret") : secretIn(files.current);
  if (current === undefined && clusterSecretFile !== "") throw new ConfigError(`clusterSecretFile: ${clusterSecretFile} does not exist`);
  const previous = clusterSecretPrevious !== "" ? checked(clusterSecretPrevious, "clusterSecretPrevious") : secretIn(files.previous);
  if (current === undefined) {
    if (previous !== undefined) throw new ConfigError("a previous cluster secret is given, and no current one");
    return [];
  }
  const secrets = [...new Set([current, secretIn(files.next) ?? current, previous ?? current])];
  if (secrets.length > 2) {
    throw new ConfigError(
      `${files.current}, ${files.next} and ${files.previous} hold three secrets, and a process accepts two: remove the one that is no longer used`,
    );
  }
  return secrets;
}

/**
 * Returns the secret of a file; undefined when there is no such file. A symbolic link is followed, because secrets of Kubernetes are mounted as
 * links. Throws ConfigError for what can't be read, is no file, or could be written by everybody.
 */
export function secretIn(path: string): string | undefined {
  if (path === "") return undefined;
  const target = linked(path);
  const named = target === undefined ? path : `${path} (a link to ${target})`;
  let text: string;
  try {
    const stats = statSync(path);
    // A pipe would be waited for, a device has no end.
    if (!stats.isFile())
      throw new ConfigError(`the cluster secret ${named} is ${stats.isDirectory() ? "a folder, not a file" : "no regular file"}`);
    if ((stats.mode & writableByAll) !== 0)
      throw new ConfigError(`the cluster secret ${named} can be written by everybody on this machine, who could set it: chmod 600 ${path}`);
    if (stats.size > fileBytesMax) throw new ConfigError(`the cluster secret ${named} has ${stats.size} bytes: that is no secret`);
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    if (isSystemError(error) && error.code === "ENOENT") {
      if (target === undefined) return undefined;
      throw new ConfigError(`the cluster secret ${path} is a link to ${target}, which does not exist`);
    }
    throw new ConfigError(`the cluster secret ${inWords(error, path)}`);
  }
  return checked(text.trim(), named);
}

/** Returns the link's target like `linkOf`, for a read, whose failure explains itself. */
function linked(path: string): string | undefined {
  try {
    return linkOf(path);
  } catch {
    return undefined;
  }
}

/** Returns where the symbolic link points; undefined if the path is none. */
export function linkOf(path: string): string | undefined {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return undefined;
  return resolve(dirname(path), readlinkSync(path));
}

function checked(text: string, where: string): string {
  if (text.length >= secretCharactersMin) return text;
  throw new ConfigError(`${where}: a cluster secret has at least ${secretCharactersMin} characters, this one ${text.length}`);
}

/** Returns a new secret, as its file holds it. */
export const newSecret = (): string => `${randomBytes(secretBytes).toString("base64url")}\n`;

/** Makes the file with a new secret unless it is there. Whole or not at all; of two that do it at the same time one wins. */
export function makeSecretFile(path: string): void {
  const made = `${path}.${process.pid}.${randomBytes(6).toString("hex")}.new`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(made, newSecret(), { flag: "wx", mode: 0o600, flush: true });
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
