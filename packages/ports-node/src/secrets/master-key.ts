/**
 * The master key of a stamp, which seals the secrets of accounts at rest (docs/guides/keys-at-rest.md): 32 random bytes as base64 or
 * base64url, one line. Given by a file, by the environment, or by a command that prints it (a key service, a password store).
 *
 * Beside a file FILE that `stamp up` has made lies FILE.id, the key's id. It goes along with every copy of the folder, also with one that leaves
 * the key out; so a start without the key is refused by name instead of storing secrets openly.
 */
import { execFileSync } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { chmodSync, existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "../process/config.ts";
import { inWords } from "../process/in-words.ts";

const keyBytes = 32;
const fileBytesMax = 4_096;
/** Longest time that a command may take to print a key, in milliseconds. */
const commandTimeoutMs = 10_000;

export interface MasterKeySources {
  /** Master key as text: 32 bytes in base64 or base64url. Absent if a file or a command gives the key. */
  readonly masterKey?: string;
  readonly masterKeyFile?: string;
  /** A command line for `/bin/sh` that prints the key. */
  readonly masterKeyCommand?: string;
  /** File with the key before, which opens what it has sealed; it need not exist. `masterKeyFile` with `.previous` behind it if this is not given. */
  readonly masterKeyPreviousFile?: string;
}

/** Paths of the files that hold master keys, by what they are for; empty if no key is read from there. Only `current` must exist. */
export interface MasterKeyFiles {
  /** File with the key that seals. */
  readonly current: string;
  /** File with the key that comes next, during a rotation; it opens, too. */
  readonly next: string;
  /** File with the previous key, which still opens. */
  readonly previous: string;
}

/** Returns the names of the files beside the one with the master key. */
export const masterKeyFilesBeside = (current: string): MasterKeyFiles => ({
  current,
  next: `${current}.next`,
  previous: `${current}.previous`,
});

/** Returns the paths of the files; empty where a key does not come from a file. */
export function masterKeyFilesOf({ masterKeyFile = "", masterKeyPreviousFile = "" }: MasterKeySources): MasterKeyFiles {
  if (masterKeyFile === "") return { current: "", next: "", previous: masterKeyPreviousFile };
  const beside = masterKeyFilesBeside(masterKeyFile);
  return masterKeyPreviousFile === "" ? beside : { ...beside, previous: masterKeyPreviousFile };
}

/** Returns the keys, the one that seals first; none if none is given. Throws ConfigError for a key that can't be used. */
export function masterKeysOf(sources: MasterKeySources, timeoutMs: number = commandTimeoutMs): readonly Uint8Array[] {
  const { masterKey = "", masterKeyFile = "", masterKeyCommand = "" } = sources;
  const given = Object.entries({ masterKey, masterKeyFile, masterKeyCommand }).filter(([, value]) => value !== "");
  if (given.length > 1) throw new ConfigError(`${given.map(([name]) => name).join(" and ")} are given: which of them counts?`);
  const files = masterKeyFilesOf(sources);
  const [next, previous] = [files.next, files.previous].map((path) => (path !== "" && existsSync(path) ? [keyIn(path)] : []));
  const current = currentKey(masterKey, masterKeyFile, masterKeyCommand, timeoutMs);
  if (current === undefined) {
    if (previous !== undefined && previous.length > 0) throw new ConfigError("a previous master key is given, and no current one");
    return [];
  }
  const keys = [current, ...(next ?? []), ...(previous ?? [])];
  return keys.filter((key, at) => keys.findIndex((each) => Buffer.from(each).equals(key)) === at);
}

function currentKey(text: string, file: string, command: string, timeoutMs: number): Uint8Array | undefined {
  if (text !== "") return decoded(text, "masterKey");
  if (file !== "") return keyIn(file);
  return command === "" ? undefined : decoded(printedBy(command, timeoutMs), "masterKeyCommand");
}

/** Returns the key in a file. Throws ConfigError if there is none, or if it can't be used. */
export function keyIn(path: string): Uint8Array {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") throw new ConfigError(goneText(path));
    throw new ConfigError(`the master key ${inWords(error, path)}`);
  }
  return decoded(text.length > fileBytesMax ? "" : text, path);
}

function printedBy(command: string, timeoutMs: number): string {
  try {
    const stdio = ["ignore", "pipe", "inherit"] as const;
    return execFileSync("/bin/sh", ["-c", command], {
      encoding: "utf8",
      timeout: timeoutMs,
      // A command that does not end by SIGTERM would hold the start of the process for ever.
      killSignal: "SIGKILL",
      maxBuffer: fileBytesMax,
      stdio: [...stdio],
    });
  } catch (error) {
    const { status, code } = error as { readonly status?: number | null; readonly code?: string };
    // Neither its output nor its command line: both may hold secrets.
    throw new ConfigError(`masterKeyCommand failed: ${whyFailed(status, code, timeoutMs)}`);
  }
}

function whyFailed(status: number | null | undefined, code: string | undefined, timeoutMs: number): string {
  if (code === "ETIMEDOUT") return `it has not ended, or its output was still open, after ${timeoutMs} ms`;
  if (code === "ENOBUFS") return `it printed more than ${fileBytesMax} bytes`;
  return typeof status === "number" ? `exit code ${status}` : (code ?? "it was killed");
}

function decoded(text: string, where: string): Uint8Array {
  const trimmed = text.trim();
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed);
  const key = isBase64 ? new Uint8Array(Buffer.from(trimmed, "base64")) : undefined;
  if (key?.length === keyBytes) return key;
  throw new ConfigError(`${where}: a master key is 32 random bytes in base64, one line (openssl rand -base64 32)`);
}

/** Returns the id of a key, which sealed rows name: 16 hex digits. */
export const masterKeyId = (key: Uint8Array): string => createHmac("sha256", key).update("stamp master key id").digest("hex").slice(0, 16);

/** Returns the file with the id of the key in `path`. */
export const masterKeyIdFile = (path: string): string => `${path}.id`;

/** Returns why a start without the key in `path` is refused, and what a person does. */
export function goneText(path: string, idPath: string = masterKeyIdFile(path)): string {
  const id = idIn(idPath);
  return (
    `the master key ${path} is gone${id === undefined ? "" : ` (id ${id})`}: without it nobody can read the keys of accounts. ` +
    "Put it back from where you keep a copy. If there is none, the accounts have to be made anew, and content under encryption scopes is lost " +
    "(docs/guides/keys-at-rest.md)"
  );
}

/** Returns the ids in the file, those of a rotation joined in words; undefined if there is no such file. */
function idIn(idPath: string): string | undefined {
  try {
    return readFileSync(idPath, "utf8").trim().split(/\s+/).join(" and ");
  } catch {
    return undefined;
  }
}

/** Returns a new key, as its file holds it. */
export const newMasterKey = (): string => `${randomBytes(keyBytes).toString("base64")}\n`;

/**
 * Writes the ids of the keys that this folder needs, one a line: the current one first, then the one before as long as it is kept. Whole, or not at
 * all.
 */
export function noteMasterKeyIds({ current, previous }: Pick<MasterKeyFiles, "current" | "previous">, idPath: string): void {
  const keys = [keyIn(current), ...(previous !== "" && existsSync(previous) ? [keyIn(previous)] : [])];
  const text = `${[...new Set(keys.map(masterKeyId))].join("\n")}\n`;
  if (existsSync(idPath) && readFileSync(idPath, "utf8") === text) return;
  writeFileSync(`${idPath}.new`, text, { mode: 0o600, flush: true });
  renameSync(`${idPath}.new`, idPath);
}

/** Makes the file with a new key, and the one with its id, unless they are there. The id last: it says that there was a key. */
export function makeMasterKeyFile(path: string): void {
  const made = `${path}.${process.pid}.${randomBytes(6).toString("hex")}.new`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(made, newMasterKey(), { flag: "wx", mode: 0o600, flush: true });
    chmodSync(made, 0o600);
    try {
      linkSync(made, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      rmSync(made, { force: true });
    }
    noteMasterKeyIds(masterKeyFilesBeside(path), masterKeyIdFile(path));
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError(`the master key can't be made: ${inWords(error, path)}`);
  }
}

/**
 * Makes the master key for a process that starts, unless it is there: all processes that seal see the same file. `idPath` lies in the folder of
 * the process itself and names the key from then on. Throws ConfigError if it names one and the key is gone.
 */
export function makeMasterKeyOnce(path: string, idPath: string): void {
  if (!existsSync(path) && existsSync(idPath)) throw new ConfigError(goneText(path, idPath));
  makeMasterKeyFile(path);
  try {
    mkdirSync(dirname(idPath), { recursive: true });
    noteMasterKeyIds(masterKeyFilesBeside(path), idPath);
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError(`the id of the master key can't be kept: ${inWords(error, idPath)}`);
  }
}
