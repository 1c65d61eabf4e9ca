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
const ticketLastsMs = 60_000;
const ticketsMax = 64;

/** `read`: look at the stamp. `data`: look at what is stored in it, and change that, too. `operate`: change the stamp, too. Each has the rights before it. */
export const consoleRoles = ["read", "data", "operate"] as const;
export type ConsoleRole = (typeof consoleRoles)[number];

/** True if the role has the rights of `needed`. */
export const mayDo = (role: ConsoleRole, needed: ConsoleRole): boolean => consoleRoles.indexOf(role) >= consoleRoles.indexOf(needed);

interface Ticket {
  readonly endsMs: number;
  readonly tokenDigest: string;
  readonly what: string;
}

export interface Session {
  /** For the audit log: `session-1`, … */
  readonly name: string;
  readonly endsMs: number;
  readonly role: ConsoleRole;
  /** Digest of the key that the page sends beside the cookie. */
  readonly keyDigest: string;
}

export class Sessions {
  readonly #nowMs: () => number;
  readonly #token: () => string;
  /** By the digest of a link's token, in the order in which links were made. */
  readonly #links = new Map<string, { readonly endsMs: number; readonly role: ConsoleRole }>();
  readonly #tickets = new Map<string, Ticket>();
  readonly #sessions = new Map<string, Session>();
  #opened = 0;

  /** `nowMs`: monotonic time. `token`: 256 bits that nobody can guess, as text that a URL and a cookie take unchanged. */
  constructor(nowMs: () => number, token: () => string) {
    this.#nowMs = nowMs;
    this.#token = token;
  }

  /** Returns the token of a new link, whose session has the role. */
  makeLink(role: ConsoleRole = "data"): string {
    const token = this.#token();
    this.#links.set(digest(token), { endsMs: this.#nowMs() + linkLastsMs, role });
    dropOldest(this.#links, linksMax);
    return token;
  }

  /** Opens a session with the token of a link, which works no more. Undefined: the token is not that of a link, or was used, or is too old. */
  open(linkToken: string): { readonly token: string; readonly key: string; readonly session: Session } | undefined {
    const link = digest(linkToken);
    const found = this.#links.get(link);
    this.#links.delete(link);
    if (found === undefined || found.endsMs <= this.#nowMs()) return undefined;
    const [token, key] = [this.#token(), this.#token()];
    const { role } = found;
    const session = { name: `session-${++this.#opened}`, endsMs: this.#nowMs() + sessionLastsMs, role, keyDigest: digest(key) };
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

  /** Returns a ticket for one download, within a minute: it stands for the key where the browser itself asks, by an address that it keeps. */
  makeTicket(token: string, what: string): string {
    const ticket = this.#token();
    this.#tickets.set(digest(ticket), { endsMs: this.#nowMs() + ticketLastsMs, tokenDigest: digest(token), what });
    dropOldest(this.#tickets, ticketsMax);
    return ticket;
  }

  /** Returns what a ticket is for, which is used up; undefined if it is not of this session, or was used, or is too old. */
  takeTicket(token: string, ticket: string): string | undefined {
    const found = this.#tickets.get(digest(ticket));
    const session = this.#sessions.get(digest(token));
    if (found === undefined || session === undefined || found.tokenDigest !== digest(token)) return undefined;
    this.#tickets.delete(digest(ticket));
    return Math.min(found.endsMs, session.endsMs) > this.#nowMs() ? found.what : undefined;
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
