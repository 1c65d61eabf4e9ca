/**
 * HTTP of the console: the files of its page, sign-in, the stream of snapshots, lists in pages, content of blobs, and changes of data.
 *
 * Invariants:
 * - Only the page's files, which hold no data of the stamp, are given without a session.
 * - No answer is waited for without end: a list has five seconds, a change 30 for its body and 30 for the rest. At most 16 lists are asked
 *   for at once, 16 changes and 16 blocks are read or made, 16 downloads run, and 32 pages follow.
 * - A change that came whole only after its session had ended is not made.
 * - What is stored is given to sessions with the role "data" or "operate" only, and changed by no other; a ticket for a download is made for no
 *   other. The stamp and its accounts are changed by sessions with the role "operate" only.
 * - Each change is in the audit log with its result and without content, refused ones among them. A block of an upload is none: the call
 *   that makes a blob of blocks is.
 * - A page that reads slowly gets the newest snapshot next, not all that it missed.
 */
import { FailureError } from "@stamp/base";
import type { HttpHandler, HttpRequest, HttpResponse } from "@stamp/ports";
import { inWords } from "@stamp/ports-node";
import { changes, targetOf } from "./data/changes.ts";
import type { DataClients } from "./data/clients.ts";
import { download, preview } from "./data/content.ts";
import { dataLists } from "./data/data-lists.ts";
import { FieldError, type Fields, fieldsOf } from "./data/fields.ts";
import { putBlock } from "./data/uploads.ts";
import { cookieOf, refusalOf, securityHeaders, tokenIn } from "./guard.ts";
import type { Lists } from "./lists.ts";
import type { LiveStamp } from "./live-stamp.ts";
import type { StampChange } from "./operate/account-operations.ts";
import type { PageFile } from "./page-files.ts";
import { type ConsoleRole, mayDo, type Sessions } from "./sessions.ts";

const listTimeoutMs = 5_000;
/** Putting an upload's blocks together, or clearing a long queue, may take its time. The page waits longer than this. */
const changeTimeoutMs = 30_000;
const atOnceMax = 16;
const followersMax = 32;
const downloadsMax = 16;
const blockTimeoutMs = 120_000;
/** Time for a body that is no block. */
const bodyTimeoutMs = 30_000;
/** An entity has up to 1 MiB, of which JSON can make more. */
const changeBytesMax = 4 * 1_024 * 1_024;
/** A token is 43 characters; the name of a blob has up to 1,024, each of up to nine bytes in a query. */
const bodyBytesMax = 16 * 1_024;

export interface ConsoleParts {
  readonly files: ReadonlyMap<string, PageFile>;
  readonly sessions: Sessions;
  readonly live: LiveStamp;
  readonly lists: Lists;
  readonly clients: DataClients;
  /** Changes of the stamp, by path. */
  readonly operations: Readonly<Record<string, StampChange>>;
  /** Writes a line of the audit log: who did what, with which result. */
  readonly audit: (who: string, what: string, result: string, target?: Fields) => void;
  /** Aborted when the console stops: streams of snapshots end. */
  readonly signal: AbortSignal;
}

export function consoleHandler(parts: ConsoleParts): HttpHandler {
  const counts = { lists: 0, changes: 0, followers: 0, downloads: 0, blocks: 0 };
  const data = dataLists(parts.clients);
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
    if (request.method === "GET" && url.pathname === "/api/download") {
      const what = parts.sessions.takeTicket(token, url.searchParams.get("ticket") ?? "");
      if (what === undefined) return said(401, "the address of a download works once, within a minute: begin the download anew");
      return downloadAnswer(what, parts.clients, request.signal, counts);
    }
    // An event source sends no headers of its own.
    const key = request.headers["x-stamp-key"] ?? url.searchParams.get("key") ?? "";
    const session = parts.sessions.find(token, key);
    if (session === undefined) return said(401, "no session; a link that signs in: ./stamp console");
    if (request.method === "POST" && url.pathname === "/api/sign-out") {
      parts.sessions.close(token);
      parts.audit(session.name, "sign-out", "done");
      return json(200, {}, { "Set-Cookie": cookieOf("", request) });
    }
    const change = changeAt(url.pathname, parts);
    const isList = Object.hasOwn(data, url.pathname) || url.pathname === "/api/preview";
    const needed = change?.needs ?? (isList || otherDataPaths.includes(url.pathname) ? "data" : "read");
    if (!mayDo(session.role, needed)) {
      if (change !== undefined) parts.audit(session.name, wordsOf(url.pathname), "refused");
      return said(403, lacks[needed]);
    }
    if (request.method === "POST" && change !== undefined) {
      const isSignedIn = (): boolean => parts.sessions.find(token, key) !== undefined;
      return changeAnswer(request, change.run, counts, isSignedIn, (result, target) =>
        parts.audit(session.name, wordsOf(url.pathname), result, target),
      );
    }
    if (request.method === "POST" && url.pathname === "/api/put-block") return blockAnswer(request, url.searchParams, parts, counts);
    if (request.method === "POST" && url.pathname === "/api/ticket") {
      const what = await textOf(request);
      return what === undefined ? said(413, "no name of a blob is so long") : json(200, { ticket: parts.sessions.makeTicket(token, what) });
    }
    if (request.method !== "GET") return said(405, "GET only");
    if (url.pathname === "/api/session") return json(200, { name: session.name, role: session.role });
    if (url.pathname === "/api/live") return follow(parts, () => parts.sessions.find(token, key) !== undefined, request.signal, counts);
    const answered = data[url.pathname];
    if (isList) {
      return listInTime(request, counts, (signal) =>
        answered === undefined
          ? preview(parts.clients, url.searchParams, signal)
          : answered(url.searchParams, signal).then((page) => json(200, page)),
      );
    }
    const list = parts.lists.find(url.pathname);
    if (list === undefined) return said(404, "no such path");
    return listInTime(request, counts, () => list(url.searchParams).then((page) => json(200, page)));
  };
}

const otherDataPaths = ["/api/ticket", "/api/put-block", "/api/diverged", "/api/blob-places", "/api/extent-users"];

const lacks: Readonly<Record<ConsoleRole, string>> = {
  read: "this session may do nothing",
  data: "this session may look at the stamp, not at what is stored in it; a link to that, without --role read: ./stamp console",
  operate: "this session may not change the stamp or its accounts; a link to that: ./stamp console --role operate",
};

/** The change at a path, and the role that it needs; undefined for a path without one. */
function changeAt(
  path: string,
  { clients, operations }: ConsoleParts,
): { readonly needs: ConsoleRole; readonly run: StampChange } | undefined {
  const [change, operation] = [Object.hasOwn(changes, path) && changes[path], Object.hasOwn(operations, path) && operations[path]];
  if (change) return { needs: "data", run: (fields, signal) => change(clients, fields, signal) };
  return operation ? { needs: "operate", run: operation } : undefined;
}

/** "delete blob" for "/api/delete-blob". */
const wordsOf = (path: string): string => path.slice("/api/".length).replace("-", " ");

async function changeAnswer(
  request: HttpRequest,
  change: StampChange,
  counts: { changes: number },
  isSignedIn: () => boolean,
  note: (result: string, target?: Fields) => void,
): Promise<HttpResponse> {
  const refused = (status: number, message: string, target?: Fields): HttpResponse => {
    note("refused", target);
    return said(status, message);
  };
  if (counts.changes >= atOnceMax) return refused(503, `${atOnceMax} changes are under way: try again`);
  counts.changes++;
  try {
    const body = await textOf(request, changeBytesMax).catch((): typeof brokenOff => brokenOff);
    if (body === brokenOff) return refused(400, "the change did not come whole");
    if (body === undefined)
      return refused(413, `a change has at most ${changeBytesMax} bytes, which come within ${bodyTimeoutMs / 1_000} s`);
    const fields = fieldsOf(body);
    if (fields === undefined) return refused(400, "a change is an object of JSON: load the page again");
    if (!isSignedIn()) return refused(401, "the session has ended; a link that signs in: ./stamp console", targetOf(fields));
    return await inTime(async (signal) => {
      try {
        const told = await change(fields, signal);
        // A rule or a node that is made gets its name by the change.
        note("done", targetOf({ ...told, ...fields }));
        return json(200, told);
      } catch (error) {
        note(signal.aborted ? "unknown: no answer in time" : failureOf(error), targetOf(fields));
        throw error;
      }
    }, changeTimeoutMs);
  } catch (error) {
    return said(503, reasonOf(error));
  } finally {
    counts.changes--;
  }
}

/** A block may come slowly, and takes a place while it does. What is left of it after its time goes nowhere. */
async function blockAnswer(
  request: HttpRequest,
  query: URLSearchParams,
  { clients }: ConsoleParts,
  counts: { blocks: number },
): Promise<HttpResponse> {
  if (counts.blocks >= atOnceMax) return said(503, `${atOnceMax} uploads are under way: try again`);
  counts.blocks++;
  try {
    return await inTime(async (signal) => {
      const bytes = Number(request.headers["content-length"]);
      await putBlock(clients, Object.fromEntries(query), request.body, bytes, AbortSignal.any([request.signal, signal]));
      return json(200, {});
    }, blockTimeoutMs);
  } finally {
    counts.blocks--;
  }
}

async function signIn(request: HttpRequest, { sessions, audit }: ConsoleParts): Promise<HttpResponse> {
  const body = await textOf(request);
  const opened = body === undefined ? undefined : sessions.open(body);
  if (opened === undefined) {
    audit(request.remoteAddress, "sign-in", "refused");
    return said(
      403,
      "the link was used before, or is older than ten minutes: for another link press Enter in the terminal of the console (./stamp console)",
    );
  }
  audit(opened.session.name, "sign-in", "done");
  return json(200, { key: opened.key }, { "Set-Cookie": cookieOf(opened.token, request) });
}

/** Stands for a body whose client went away before its end. */
const brokenOff = Symbol("broken off");

/** Undefined: the body is longer, or comes too slowly. */
async function textOf(request: HttpRequest, bytesMax: number = bodyBytesMax): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), bodyTimeoutMs);
  const body = request.body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([body.next(), late.promise]);
      if (next?.done === true) return Buffer.concat(chunks).toString();
      bytes += next?.value.length ?? 0;
      if (next === undefined || bytes > bytesMax) return undefined;
      chunks.push(next.value);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** The download holds its place until its last byte was taken, or the client has gone. */
async function downloadAnswer(
  what: string,
  clients: DataClients,
  signal: AbortSignal,
  counts: { downloads: number },
): Promise<HttpResponse> {
  if (counts.downloads >= downloadsMax) return said(503, `${downloadsMax} downloads are under way: try again`);
  counts.downloads++;
  // Once: the client may go before the first byte is read, when the body's own end is never reached.
  let isHeld = true;
  const giveBack = (): void => {
    if (isHeld) counts.downloads--;
    isHeld = false;
  };
  try {
    const { body, ...answer } = await download(clients, new URLSearchParams(what), signal);
    const held = (async function* () {
      try {
        yield* body as AsyncIterable<Uint8Array>;
      } finally {
        giveBack();
      }
    })();
    if (signal.aborted) giveBack();
    else signal.addEventListener("abort", giveBack);
    return { ...answer, body: held };
  } catch (error) {
    giveBack();
    return said(503, reasonOf(error));
  }
}

/** Ends also when the page has gone to another view. */
async function listInTime(
  { signal: gone }: HttpRequest,
  counts: { lists: number },
  work: (signal: AbortSignal) => Promise<HttpResponse>,
): Promise<HttpResponse> {
  if (counts.lists >= atOnceMax) return said(503, "the console has many lists under way: try again");
  counts.lists++;
  try {
    return await inTime((signal) => work(AbortSignal.any([gone, signal])), listTimeoutMs);
  } finally {
    counts.lists--;
  }
}

/** Answers within a time, whatever is asked. The signal is aborted then, so that nothing goes on for a page that was told "late". */
async function inTime(work: (signal: AbortSignal) => Promise<HttpResponse>, timeoutMs: number): Promise<HttpResponse> {
  const late = Promise.withResolvers<HttpResponse>();
  const ended = new AbortController();
  const timer = setTimeout(() => {
    late.resolve(said(504, `no answer within ${timeoutMs / 1_000} s; load again to see how things are`));
    ended.abort();
  }, timeoutMs);
  try {
    return await Promise.race([work(ended.signal), late.promise]);
  } catch (error) {
    return said(503, reasonOf(error));
  } finally {
    clearTimeout(timer);
  }
}

/** Characters of a reason in the audit log. */
const auditReasonMax = 200;

/** Result of a change that failed, for the audit log, which has no content: with the service's code. */
function failureOf(error: unknown): string {
  if (error instanceof FieldError) return "failed: a field is missing or wrong";
  if (error instanceof FailureError && error.failure.applied !== "no") return `unknown: ${error.failure.message.slice(0, auditReasonMax)}`;
  const { code, details } = error as Partial<SdkError>;
  // The service may have made the change before the connection to it was lost.
  if (code === "REQUEST_SEND_ERROR") return "unknown: the connection to the service was lost";
  const name = typeof code === "string" ? code : details?.errorCode;
  return `failed: ${(name ?? reasonOf(error)).slice(0, auditReasonMax)}`;
}

/** Errors of the SDKs have several lines, with the whole request behind the first. An answer to HEAD has no words, only a code in its head. */
function reasonOf(error: unknown): string {
  if (error instanceof FailureError) return error.failure.message;
  const { message, code, details, statusCode } = error as Partial<SdkError>;
  const [first = ""] = message === "" && statusCode !== undefined ? [`the service answered ${statusCode}`] : inWords(error).split("\n");
  const name = typeof code === "string" ? code : details?.errorCode;
  return name === undefined || first.includes(name) ? first : `${name}: ${first}`;
}

interface SdkError {
  readonly message: string;
  readonly code: unknown;
  readonly details: { readonly errorCode?: string };
  readonly statusCode: number;
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
