/**
 * Tokens for tools that were made (`stamp token --internal`), in a folder beside the secret: a file for each, `ID.json`, and an empty one,
 * `ID.revoked`, for each that was revoked. Processes read the names once a second, and refuse what they revoke.
 *
 * Invariants:
 * - A command that makes or revokes a token adds one file, whole or not at all, and changes no other file. So commands may run at once or be
 *   killed without a lock, and no line is lost.
 * - A file leaves when it is older than any token may become, so it says nothing of a token that is still good.
 */
import { chmodSync, chownSync, mkdirSync, opendirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isCaller } from "@stamp/wire";
import { clockSkewMs, toolTokenMsMax } from "../grpc/credentials/secret-credential.ts";
import { ConfigError } from "../process/config.ts";
import { inWords } from "../process/in-words.ts";
import { placeFile, syncFolder } from "./rotated-files.ts";

/** Most tokens on the list: none is made beyond. */
const tokensMax = 1_000;
/** Most names that are read in the folder. A token has two, and a command that was killed leaves one more. */
const namesMax = 4 * tokensMax;
/** Size of the largest file that describes a token, in bytes. */
const fileBytesMax = 4_096;
const writableByOthers = 0o022;

export interface IssuedToken {
  /** Id of the token: its nonce. */
  readonly id: string;
  /** Role that the token's holder claims, e.g. "operator". */
  readonly role: string;
  /** Times of the token's making and end, in milliseconds since 1970. */
  readonly madeMs: number;
  readonly endsMs: number;
  readonly revoked: boolean;
}

/** Returns the name of the folder beside the file with the secret. */
export const issuedTokensBeside = (secretFile: string): string => `${secretFile}.tokens`;

/** Returns the facts in the text of a token for tools; undefined if it is none. */
export function issuedTokenOf(text: string): IssuedToken | undefined {
  const [, , kind, ends, , id = "", role = "", made] = text.split(".");
  if (kind !== "tool" || id === "") return undefined;
  return { id, role, madeMs: Number(made), endsMs: Number(ends), revoked: false };
}

/**
 * Returns the tokens in the folder that have not ended, in the order in which they were made; none if there is no folder. Throws ConfigError if others
 * could change the folder or it holds too much, and what the system says if it can't be read.
 */
export function issuedTokens(secretFile: string, nowMs: number): readonly IssuedToken[] {
  const folder = issuedTokensBeside(secretFile);
  const { names, problem } = namesIn(folder);
  if (problem !== "") throw new ConfigError(problem);
  const found = [...names].flatMap((name) => (name.endsWith(".json") ? tokenIn(folder, name, names) : []));
  return found.filter(({ endsMs }) => endsMs > nowMs).sort((a, b) => a.madeMs - b.madeMs);
}

/** Lists a token. Throws ConfigError if the list may not be used or is full, and what the system says if it can't be written. */
export function noteIssuedToken(secretFile: string, token: IssuedToken, nowMs: number): void {
  const folder = issuedTokensBeside(secretFile);
  const { mode, uid, gid } = statSync(secretFile);
  // The list is for everybody who may read the secret. Root may make tokens for processes of another user.
  if (mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined) {
    if (uid !== process.getuid?.() || gid !== process.getgid?.()) chownSync(folder, uid, gid);
    chmodSync(folder, 0o700 | (((mode & 0o044) * 5) / 4));
    syncFolder(folder);
  }
  if (issuedTokens(secretFile, nowMs).length >= tokensMax)
    throw new ConfigError(`${folder} lists ${tokensMax} tokens that have not ended: wait for their end, or rotate the secret`);
  forgetEnded(folder, nowMs);
  const { id, role, madeMs, endsMs } = token;
  added(secretFile, `${id}.json`, `${JSON.stringify({ id, role, madeMs, endsMs })}\n`);
}

/** Revokes a token that is listed; false if none of this id is. Throws as listing and noting do. */
export function revokeIssuedToken(secretFile: string, id: string, nowMs: number): boolean {
  if (!issuedTokens(secretFile, nowMs).some((token) => token.id === id)) return false;
  added(secretFile, `${id}.revoked`, "");
  return true;
}

/**
 * Returns the ids of revoked tokens, and what is wrong with the list, in words; an empty text if nothing is. A list that others can change revokes
 * all the same: to refuse is the safe side.
 */
export function revokedTokens(secretFile: string): { readonly ids: ReadonlySet<string>; readonly problem: string } {
  const folder = issuedTokensBeside(secretFile);
  try {
    const { names, problem } = namesIn(folder);
    return { ids: new Set([...names].flatMap((name) => (name.endsWith(".revoked") ? [idIn(name)] : []))), problem };
  } catch (error) {
    return { ids: new Set(), problem: inWords(error, folder) };
  }
}

const idIn = (name: string): string => name.slice(0, name.indexOf("."));

/** Adds a file that whoever reads the secret may read. A loss of power takes it no more. */
function added(secretFile: string, name: string, text: string): void {
  const path = join(issuedTokensBeside(secretFile), name);
  placeFile(secretFile, text, path, renameSync);
  syncFolder(path);
}

/** Returns the names of files of this list, and why it may not be used. Throws if the folder can't be read. */
function namesIn(folder: string): { readonly names: ReadonlySet<string>; readonly problem: string } {
  const names = new Set<string>();
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) return { names, problem: "" };
  const opened = opendirSync(folder);
  try {
    for (let read = 0; ; read++) {
      const entry = opened.readSync();
      if (entry === null) break;
      if (read === namesMax) return { names, problem: `${folder} holds more than ${namesMax} files: remove those that are no tokens` };
      if (/^[0-9a-f]{32}\.(?:json|revoked)(?:\.[\w.]+\.new)?$/.test(entry.name)) names.add(entry.name);
    }
  } finally {
    opened.closeSync();
  }
  const problem = `${folder} can be changed by others on this machine, who could take revocations back: chmod go-w ${folder}`;
  return { names, problem: (stats.mode & writableByOthers) === 0 ? "" : problem };
}

function tokenIn(folder: string, name: string, names: ReadonlySet<string>): readonly IssuedToken[] {
  const path = join(folder, name);
  try {
    const stats = statSync(path);
    if (!stats.isFile() || stats.size > fileBytesMax) return [];
    const { role, madeMs, endsMs } = JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<string, unknown>>;
    if (!isCaller(String(role)) || !Number.isFinite(madeMs) || !Number.isFinite(endsMs)) return [];
    const id = idIn(name);
    return [{ id, role: String(role), madeMs: Number(madeMs), endsMs: Number(endsMs), revoked: names.has(`${id}.revoked`) }];
  } catch (error) {
    // Another command may have removed it, and what is no JSON was written by no command.
    if (error instanceof SyntaxError || error instanceof TypeError || (error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Removes files of tokens older than a day, which have ended whatever they say. */
function forgetEnded(folder: string, nowMs: number): void {
  for (const name of namesIn(folder).names) {
    const path = join(folder, name);
    const madeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? nowMs;
    if (nowMs - madeMs > toolTokenMsMax + clockSkewMs) rmSync(path, { force: true });
  }
}
