/**
 * Sign-in to the console: links that work once, and the sessions that they open. A session has two secrets. The token is in a cookie, which
 * no script reads, but which the browser sends to every port of the host. The key is in the page's own storage, which other ports do not see. Everything is in memory: who restarts the console signs in
 * anew. Only digests of tokens and keys are kept.
 *
 * Invariants:
 * - A link opens one session, within ten minutes of being made. The oldest links and sessions give way beyond a fixed number.
 * - A session ends after twelve hours, whatever its page does.
 */
import { createHash } from "node:crypto";

const linkLastsMs = 10 * 60_000;
const sessionLastsMs = 12 * 3_600_000;
const linksMax = 16;
const sessionsMax = 16;

export interface Session {
  /** For the audit log: `session-1`, … */
  readonly name: string;
  readonly endsMs: number;
  /** Digest of the key that the page sends beside the cookie. */
  readonly keyDigest: string;
}

export class Sessions {
  readonly #nowMs: () => number;
  readonly #token: () => string;
  /** Digest of a link's token → when the link ends, in the order in which links were made. */
  readonly #links = new Map<string, number>();
  readonly #sessions = new Map<string, Session>();
  #opened = 0;

  /** `nowMs`: monotonic time. `token`: 256 bits that nobody can guess, as text that a URL and a cookie take unchanged. */
  constructor(nowMs: () => number, token: () => string) {
    this.#nowMs = nowMs;
    this.#token = token;
  }

  /** Returns the token of a new link. */
  makeLink(): string {
    const token = this.#token();
    this.#links.set(digest(token), this.#nowMs() + linkLastsMs);
    dropOldest(this.#links, linksMax);
    return token;
  }

  /** Opens a session with the token of a link, which works no more. Undefined: the token is not that of a link, or was used, or is too old. */
  open(linkToken: string): { readonly token: string; readonly key: string; readonly session: Session } | undefined {
    const link = digest(linkToken);
    const endsMs = this.#links.get(link);
    this.#links.delete(link);
    if (endsMs === undefined || endsMs <= this.#nowMs()) return undefined;
    const [token, key] = [this.#token(), this.#token()];
    const session = { name: `session-${++this.#opened}`, endsMs: this.#nowMs() + sessionLastsMs, keyDigest: digest(key) };
    this.#sessions.set(digest(token), session);
    dropOldest(this.#sessions, sessionsMax);
    return { token, key, session };
  }

  /** The session of a token and a key; undefined if there is none, or it has ended. */
  find(token: string, key: string): Session | undefined {
    const session = this.#sessions.get(digest(token));
    if (session === undefined) return undefined;
    if (session.endsMs > this.#nowMs()) return session.keyDigest === digest(key) ? session : undefined;
    this.close(token);
    return undefined;
  }

  close(token: string): void {
    this.#sessions.delete(digest(token));
  }
}

const digest = (token: string): string => createHash("sha256").update(token).digest("base64");

function dropOldest(all: Map<string, unknown>, max: number): void {
  for (const key of all.keys()) {
    if (all.size <= max) return;
    all.delete(key);
  }
}
