/**
 * Tokens for tools that were made (`stamp token --internal`), in a file beside the secret: one line of JSON each, and one for each that was
 * revoked. Whoever makes or revokes a token adds a line. Processes read the file when it changes, and refuse what it revokes.
 *
 * Invariants:
 * - A line that can't be read revokes nothing and hides no other line: two that write at once leave whole lines.
 * - Lines of tokens that have ended go when the next one is made.
 */
import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";

export interface IssuedToken {
  /** Nonce of the token. */
  readonly id: string;
  /** Role that its holder says to have, e.g. "operator". */
  readonly role: string;
  /** When it was made and when it ends, in milliseconds since 1970. */
  readonly madeMs: number;
  readonly endsMs: number;
  readonly revoked: boolean;
}

/** Names the file beside the one with the secret. */
export const issuedTokensBeside = (current: string): string => `${current}.tokens`;

/** Returns the facts in the text of a token for tools; undefined if it is none. */
export function issuedTokenOf(text: string): IssuedToken | undefined {
  const [, , kind, ends, , id = "", role = "", made] = text.split(".");
  if (kind !== "tool" || id === "") return undefined;
  return { id, role, madeMs: Number(made), endsMs: Number(ends), revoked: false };
}

/** Returns the tokens that the file lists, in the order in which they were made; none if there is no file. Throws if it can't be read. */
export function issuedTokens(path: string): readonly IssuedToken[] {
  const found = new Map<string, IssuedToken>();
  for (const line of linesOf(path)) {
    const { id, revoked, role, madeMs, endsMs } = line;
    if (typeof id !== "string") continue;
    const held = found.get(id);
    if (revoked === true) found.set(id, { role: "", madeMs: 0, endsMs: 0, ...held, id, revoked: true });
    else if (typeof role === "string" && typeof madeMs === "number" && typeof endsMs === "number")
      found.set(id, { id, role, madeMs, endsMs, revoked: held?.revoked ?? false });
  }
  return [...found.values()];
}

/** Adds a token to the file, and takes out those that have ended. Throws if the file can't be written. */
export function noteIssuedToken(path: string, token: IssuedToken, nowMs: number): void {
  const kept = issuedTokens(path).filter(({ endsMs }) => endsMs > nowMs);
  const lines = [...kept, token].flatMap(({ revoked, ...each }) => [each, ...(revoked ? [{ id: each.id, revoked }] : [])]);
  const whole = `${path}.${process.pid}.new`;
  writeFileSync(whole, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600, flush: true });
  renameSync(whole, path);
}

/** Revokes a token that the file lists; false if it lists none of this id. */
export function revokeIssuedToken(path: string, id: string): boolean {
  if (!issuedTokens(path).some((token) => token.id === id)) return false;
  appendFileSync(path, `${JSON.stringify({ id, revoked: true })}\n`, { mode: 0o600, flush: true });
  return true;
}

/** Returns the ids that the file revokes. Throws if it can't be read. */
export const revokedTokens = (path: string): ReadonlySet<string> =>
  new Set(issuedTokens(path).flatMap(({ id, revoked }) => (revoked ? [id] : [])));

function linesOf(path: string): readonly Readonly<Record<string, unknown>>[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  return text.split("\n").flatMap((line) => {
    try {
      const value: unknown = JSON.parse(line);
      return typeof value === "object" && value !== null ? [value as Readonly<Record<string, unknown>>] : [];
    } catch {
      return [];
    }
  });
}
