/**
 * HTTP of the console: the files of its page, sign-in, the stream of snapshots, and lists in pages.
 *
 * Invariants:
 * - Only the page's files, which hold no data of the stamp, are given without a session.
 * - No answer is waited for without end: a list has five seconds. At most 16 lists are asked for at once, and 32 pages follow.
 * - A page that reads slowly gets the newest snapshot next, not all that it missed.
 */
import type { HttpHandler, HttpRequest, HttpResponse } from "@stamp/ports";
import { inWords } from "@stamp/ports-node";
import { cookieOf, refusalOf, securityHeaders, tokenIn } from "./guard.ts";
import type { Lists } from "./lists.ts";
import type { LiveStamp } from "./live-stamp.ts";
import type { PageFile } from "./page-files.ts";
import type { Sessions } from "./sessions.ts";

const listTimeoutMs = 5_000;
const listsAtOnceMax = 16;
const followersMax = 32;
/** A token is 43 characters. */
const bodyBytesMax = 1_024;

export interface ConsoleParts {
  readonly files: ReadonlyMap<string, PageFile>;
  readonly sessions: Sessions;
  readonly live: LiveStamp;
  readonly lists: Lists;
  /** Writes a line of the audit log: who did what, with which result. */
  readonly audit: (who: string, what: string, result: string) => void;
  /** Aborted when the console stops: streams of snapshots end. */
  readonly signal: AbortSignal;
}

export function consoleHandler(parts: ConsoleParts): HttpHandler {
  const counts = { lists: 0, followers: 0 };
  return async (request) => {
    const refusal = refusalOf(request);
    if (refusal !== undefined) return said(403, refusal);
    const url = URL.parse(request.target, "http://console");
    if (url === null) return said(400, "the path can't be read");
    const file = parts.files.get(url.pathname);
    if (file !== undefined)
      return request.method === "GET" || request.method === "HEAD" ? fileAnswer(file, request) : said(405, "GET only");
    if (request.method === "POST" && url.pathname === "/api/sign-in") return signIn(request, parts);
    const token = tokenIn(request);
    // An event source sends no headers of its own.
    const key = request.headers["x-stamp-key"] ?? url.searchParams.get("key") ?? "";
    const session = parts.sessions.find(token, key);
    if (session === undefined) return said(401, "no session: ./stamp console prints a link that signs in");
    if (request.method === "POST" && url.pathname === "/api/sign-out") {
      parts.sessions.close(token);
      parts.audit(session.name, "sign-out", "done");
      return json(200, {}, { "Set-Cookie": cookieOf("", request) });
    }
    if (request.method !== "GET") return said(405, "GET only");
    if (url.pathname === "/api/session") return json(200, { name: session.name });
    if (url.pathname === "/api/live") return follow(parts, () => parts.sessions.find(token, key) !== undefined, request.signal, counts);
    return listAnswer(url, parts.lists, counts);
  };
}

async function signIn(request: HttpRequest, { sessions, audit }: ConsoleParts): Promise<HttpResponse> {
  const body = await textOf(request);
  const opened = body === undefined ? undefined : sessions.open(body);
  if (opened === undefined) {
    audit(request.remoteAddress, "sign-in", "refused");
    return said(403, "the link was used before, or is older than ten minutes: press Enter where ./stamp console runs, for another link");
  }
  audit(opened.session.name, "sign-in", "done");
  return json(200, { key: opened.key }, { "Set-Cookie": cookieOf(opened.token, request) });
}

/** Undefined: the body is longer than any token. */
async function textOf(request: HttpRequest): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of request.body) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

async function listAnswer(url: URL, lists: Lists, counts: { lists: number }): Promise<HttpResponse> {
  const list = lists.find(url.pathname);
  if (list === undefined) return said(404, "no such path");
  if (counts.lists >= listsAtOnceMax) return said(503, "the console has many lists under way: try again");
  counts.lists++;
  try {
    const late = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => late.resolve(undefined), listTimeoutMs);
    const page = await Promise.race([list(url.searchParams), late.promise]).finally(() => clearTimeout(timer));
    return page === undefined ? said(504, `no answer within ${listTimeoutMs / 1_000} s`) : json(200, page);
  } catch (error) {
    return said(503, inWords(error));
  } finally {
    counts.lists--;
  }
}

/** Server-sent events: first what was kept, then each snapshot. Ends with the session, so that a signed-out page gets nothing more. */
function follow(parts: ConsoleParts, isSignedIn: () => boolean, gone: AbortSignal, counts: { followers: number }): HttpResponse {
  if (counts.followers >= followersMax) return said(503, `${followersMax} pages follow the stamp already: close one`);
  counts.followers++;
  const signal = AbortSignal.any([gone, parts.signal]);
  // Once: at the end of the stream, or when the client goes before its body is read.
  let released = false;
  const release = (): void => {
    if (!released) counts.followers--;
    released = true;
  };
  const body = (async function* () {
    const { live } = parts;
    let turn = 0;
    let lastEvent = 0;
    let wake = Promise.withResolvers<void>();
    const unfollow = live.follow(() => wake.resolve());
    const onAbort = (): void => wake.resolve();
    signal.addEventListener("abort", onAbort);
    try {
      yield encoded("history", live.points);
      while (!signal.aborted && isSignedIn()) {
        if (live.turn === turn) {
          await wake.promise;
          wake = Promise.withResolvers<void>();
          continue;
        }
        turn = live.turn;
        const events = live.eventsAfter(lastEvent);
        lastEvent = events.at(-1)?.number ?? lastEvent;
        if (events.length > 0) yield encoded("events", events);
        yield encoded("snapshot", live.snapshot);
      }
    } finally {
      unfollow();
      signal.removeEventListener("abort", onAbort);
      release();
    }
  })();
  if (signal.aborted) release();
  else signal.addEventListener("abort", release);
  return { status: 200, headers: { ...securityHeaders, "Content-Type": "text/event-stream" }, body };
}

const encoded = (event: string, data: unknown): Uint8Array => Buffer.from(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);

function fileAnswer({ type, plain, compressed }: PageFile, { headers, method }: HttpRequest): HttpResponse {
  const takesBrotli = /\bbr\b/.test(headers["accept-encoding"] ?? "");
  const body = takesBrotli ? compressed : plain;
  return {
    status: 200,
    headers: { ...securityHeaders, "Content-Type": type, Vary: "Accept-Encoding", ...(takesBrotli ? { "Content-Encoding": "br" } : {}) },
    ...(method === "HEAD" ? {} : { body }),
  };
}

function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  const body = Buffer.from(JSON.stringify(value));
  return { status, headers: { ...securityHeaders, "Content-Type": "application/json", ...headers }, body };
}

const said = (status: number, message: string): HttpResponse => json(status, { message });
