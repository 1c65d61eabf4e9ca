import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { FailureError, unknownOutcome } from "@stamp/base";
import type { HttpRequest, HttpResponse } from "@stamp/ports";
import { down, healthy } from "../health/testing/healthy.ts";
import { type ConsoleParts, consoleHandler } from "./console-handler.ts";
import type { DataClients } from "./data/clients.ts";
import type { Lists } from "./lists.ts";
import { LiveStamp } from "./live-stamp.ts";
import { type ConsoleRole, Sessions } from "./sessions.ts";

const host = "127.0.0.1:10010";
const origin = `http://${host}`;

/** An account with one container, of which the blobs are in a map: what the handler asks of the SDK. */
function clientsOf(blobs: Readonly<Record<string, Buffer>>): DataClients {
  const blobOf = (name: string) => ({
    getProperties: async () => ({ contentLength: found(name).length }),
    downloadToBuffer: async (from: number, count: number) => found(name).subarray(from, from + count),
    download: async () => ({ contentLength: found(name).length, readableStreamBody: Readable.from([found(name)]) }),
  });
  function found(name: string): Buffer {
    const content = blobs[name];
    if (content !== undefined) return content;
    if (name === "head") throw Object.assign(new Error(""), { statusCode: 404, details: { errorCode: "BlobNotFound" } });
    throw Object.assign(new Error("The specified blob does not exist.\nRequestId:1"), { code: "BlobNotFound" });
  }
  const none = (): Promise<never> => Promise.reject(new Error("not in this test"));
  return {
    accounts: async () => ({ accounts: [{ name: "acme", createdMs: 5n, keys: ["secret-key"] } as never], nextMarker: "" }),
    account: async (name) =>
      ({ name, createdMs: 5n, keys: ["secret-key"], serviceProperties: {}, encryptionScopes: [{ name: "red", disabled: true }] }) as never,
    blobs: none,
    blob: async (_account, _container, name) => blobOf(name) as never,
    container: none,
    queues: none,
    queue: none,
    tables: none,
    table: none,
    tableSas: none,
  };
}

function world(lists: Lists = { find: () => undefined }, clients: DataClients = clientsOf({})) {
  let facts = healthy;
  let fails: Error | undefined;
  let made = 0;
  const audited: string[] = [];
  const operated: string[] = [];
  const stopped = new AbortController();
  const live = new LiveStamp({
    ask: async () => {
      if (fails !== undefined) throw fails;
      return facts;
    },
    wallMs: () => 1,
    sleep: async () => {},
  });
  const sessions = new Sessions(
    () => 0,
    () => `token-${++made}`,
  );
  const file = { type: "text/html", plain: Buffer.from("page"), compressed: Buffer.from("br") };
  const audit: ConsoleParts["audit"] = (who, what, result, target) => {
    audited.push([who, what, result, ...(target === undefined ? [] : [JSON.stringify(target)])].join(" "));
  };
  const operations = {
    "/api/rotate-key": async (fields: object) => {
      operated.push(JSON.stringify(fields));
      if ("lost" in fields) throw new FailureError(unknownOutcome("deadlineExceeded", "timeout", "no answer in 10 s").failure);
      return { notInForce: "" };
    },
    "/api/add-fault": async () => ({ rule: "fault-1" }),
  };
  const files = new Map([["/", file]]);
  const parts: ConsoleParts = { files, sessions, live, lists, clients, operations, audit, signal: stopped.signal };
  const handler = consoleHandler(parts);
  const send = (
    method: string,
    target: string,
    headers: Record<string, string> = {},
    body: string | AsyncIterable<Buffer> = "",
    signal = new AbortController().signal,
  ) =>
    handler({
      ...{ method, target, headers: { host, ...headers }, remoteAddress: "127.0.0.1", secure: false, signal },
      body: typeof body === "string" ? once(body) : body,
    } satisfies HttpRequest);
  const signIn = async (role: ConsoleRole = "data"): Promise<Record<string, string>> => {
    const answer = await send("POST", "/api/sign-in", { origin }, sessions.makeLink(role));
    assert.equal(answer.status, 200);
    const cookie = String(answer.headers["Set-Cookie"]).split(";")[0] ?? "";
    return { cookie, "x-stamp-key": (jsonOf(answer) as { key: string }).key };
  };
  return {
    live,
    sessions,
    send,
    signIn,
    audited,
    operated,
    stop: () => stopped.abort(),
    see: (next: typeof healthy) => (facts = next),
    fail: (error: Error) => (fails = error),
  };
}

async function* once(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}

const jsonOf = ({ body }: HttpResponse): unknown => JSON.parse(Buffer.from(body as Uint8Array).toString());

/** Reads events of a stream: name and data. */
async function* eventsOf({ body }: HttpResponse): AsyncGenerator<[string, unknown]> {
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    const [, name = "", data = ""] = /^event: (\w+)\ndata: (.*)\n\n$/s.exec(Buffer.from(chunk).toString()) ?? [];
    yield [name, JSON.parse(data)];
  }
}

test("console: without a session the page's files are given, and nothing else is", async () => {
  const { send } = world();
  assert.equal((await send("GET", "/")).status, 200);
  for (const path of [
    "/api/session",
    "/api/live",
    "/api/streams",
    "/api/extents",
    "/api/stream?name=x",
    "/api/ranges",
    "/api/accounts",
    "/api/blobs?account=a&container=c",
    "/api/preview?account=a&container=c&name=n",
    "/api/download?ticket=token-1",
    "/api/other",
    "/x",
  ]) {
    assert.equal((await send("GET", path)).status, 401, path);
  }
  assert.equal((await send("POST", "/api/sign-out", { origin })).status, 401);
});

test("console: a session needs cookie and key, from the console's own page", async () => {
  const { send, signIn } = world();
  const both = await signIn();
  const { cookie = "", "x-stamp-key": key = "" } = both;
  assert.equal((await send("GET", "/api/session", both)).status, 200);
  assert.equal((await send("GET", `/api/session?key=${key}`, { cookie })).status, 200);
  assert.equal((await send("GET", "/api/session", { cookie })).status, 401);
  assert.equal((await send("GET", "/api/session", { "x-stamp-key": key })).status, 401);
  assert.equal((await send("GET", "/api/session", { ...both, host: "evil.example" })).status, 403);
  assert.equal((await send("POST", "/api/sign-out", both)).status, 403, "no origin");
  assert.equal((await send("POST", "/api/sign-out", { ...both, origin: "http://evil.example" })).status, 403);
  assert.equal((await send("POST", "/api/sign-out", { ...both, origin })).status, 200);
  assert.equal((await send("GET", "/api/session", both)).status, 401);
});

test("console: of two browsers that bring one link at the same time, one is signed in", async () => {
  const { send, sessions, audited } = world();
  const link = sessions.makeLink();
  const answers = await Promise.all(Array.from({ length: 4 }, () => send("POST", "/api/sign-in", { origin }, link)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 403, 403, 403]);
  assert.deepEqual(audited.toSorted(), [
    "127.0.0.1 sign-in refused",
    "127.0.0.1 sign-in refused",
    "127.0.0.1 sign-in refused",
    "session-1 sign-in done",
  ]);
});

test("console: sign-in and sign-out are in the audit log, refused ones with the address, and a long body is no token", async () => {
  const { send, signIn, audited } = world();
  assert.equal((await send("POST", "/api/sign-in", { origin }, "guess")).status, 403);
  assert.equal((await send("POST", "/api/sign-in", { origin }, "x".repeat(2_000))).status, 403);
  const session = await signIn();
  await send("POST", "/api/sign-out", { ...session, origin });
  assert.deepEqual(audited, [
    "127.0.0.1 sign-in refused",
    "127.0.0.1 sign-in refused",
    "session-1 sign-in done",
    "session-1 sign-out done",
  ]);
});

test("console: every answer has the headers that keep other sites out", async () => {
  const { send, signIn } = world();
  const session = await signIn();
  const answers = [
    await send("GET", "/"),
    await send("GET", "/api/session"),
    await send("GET", "/api/live", session),
    await send("GET", "/", { host: "x" }),
  ];
  for (const { headers } of answers) {
    assert.match(String(headers["Content-Security-Policy"]), /default-src 'none'/);
    assert.equal(headers["Cache-Control"], "no-store");
  }
});

test("console: a page gets what was kept, then each look; one that reads slowly gets the newest", async () => {
  const { live, send, signIn, see } = world();
  await live.look();
  const events = eventsOf(await send("GET", "/api/live", await signIn()));
  const next = async () => (await events.next()).value as [string, { readonly length: number; readonly state: string }];
  assert.equal((await next())[0], "history");
  assert.equal((await next())[0], "events");
  assert.deepEqual((await next())[1].state, "healthy");
  see(down("extent-node-2")(healthy));
  for (let look = 0; look < 50; look++) await live.look();
  assert.equal((await next())[0], "events");
  assert.notEqual((await next())[1].state, "healthy");
  see(healthy);
  await live.look();
  const names: string[] = [];
  for (let state = ""; state !== "healthy"; ) {
    const [name, data] = await next();
    names.push(name);
    state = data.state;
  }
  assert.deepEqual(names, ["events", "snapshot"], "49 looks were passed over");
});

test("console: the stream ends when its session does, and when the console stops", async () => {
  const { live, send, signIn, stop } = world();
  await live.look();
  const session = await signIn();
  const ended = async (stream: AsyncGenerator<unknown>): Promise<boolean> => {
    for await (const _ of stream);
    return true;
  };
  const first = ended(eventsOf(await send("GET", "/api/live", session)));
  await send("POST", "/api/sign-out", { ...session, origin });
  await live.look();
  assert.equal(await first, true);
  const second = ended(eventsOf(await send("GET", "/api/live", await signIn())));
  await live.look();
  stop();
  assert.equal(await second, true);
});

test("console: 32 pages follow at once, and a page that has gone gives its place back", async () => {
  const { send, signIn } = world();
  const session = await signIn();
  const gone = Array.from({ length: 32 }, () => new AbortController());
  for (const { signal } of gone) assert.equal((await send("GET", "/api/live", session, "", signal)).status, 200);
  assert.equal((await send("GET", "/api/live", session)).status, 503);
  gone[3]?.abort();
  assert.equal((await send("GET", "/api/live", session)).status, 200);
});

test("console: a list that fails says why; the seventeenth at once is refused, and others are served meanwhile", async () => {
  const slow = Promise.withResolvers<never>();
  const lists: Lists = {
    find: (path) =>
      path === "/api/slow"
        ? () => slow.promise
        : path === "/api/bad"
          ? () => Promise.reject(new Error("no stream-manager leads now"))
          : undefined,
  };
  const { send, signIn } = world(lists);
  const session = await signIn();
  const bad = await send("GET", "/api/bad", session);
  assert.deepEqual([bad.status, jsonOf(bad)], [503, { message: "no stream-manager leads now" }]);
  const waiting = Array.from({ length: 16 }, () => send("GET", "/api/slow", session));
  assert.equal((await send("GET", "/api/slow", session)).status, 503);
  assert.equal((await send("GET", "/api/session", session)).status, 200);
  slow.reject(new Error("late"));
  assert.deepEqual(
    (await Promise.all(waiting)).map(({ status }) => status),
    Array.from({ length: 16 }, () => 503),
  );
  assert.equal((await send("GET", "/api/bad", session)).status, 503);
  assert.equal((await send("GET", "/api/__proto__", session)).status, 404);
});

test("console: a stamp that does not run is a state of the page, not an error", async () => {
  const { live, fail } = world();
  fail(new Error("no cluster runs on /data"));
  await live.look();
  assert.equal(live.snapshot?.state, "absent");
  assert.equal(live.snapshot?.sentence, "no cluster runs on /data");
});

test("console: two answers that can't be compared cost the events between them, and the next look goes on", async () => {
  const { live, see } = world();
  await live.look();
  // An answer of a release whose messages have other fields: health copes with them, the comparison does not.
  const strange = { join: () => "x" } as never;
  Object.defineProperty(strange, "length", { get: () => assert.fail("no list") });
  const broken = healthy.processes.map((each) => {
    const { answer } = each;
    return answer === undefined ? each : { ...each, answer: { ...answer, ready: false, waitingFor: strange } };
  });
  see({ ...healthy, processes: broken });
  await live.look();
  see(healthy);
  await live.look();
  assert.equal(live.turn, 3);
  assert.equal(live.snapshot?.state, "healthy");
  assert.match(live.eventsAfter(1)[0]?.text ?? "", /can't be told/);
});

test("console: figures and events of a long time are bounded, and the newest are kept", async () => {
  const { live, see } = world();
  for (let turn = 0; turn < 3_700; turn++) {
    see(turn % 2 === 0 ? healthy : down("extent-node-2")(healthy));
    await live.look();
  }
  assert.equal(live.points.length, 3_600);
  const events = live.eventsAfter(0);
  assert.equal(events.length, 500);
  assert.deepEqual(live.eventsAfter(events.at(-2)?.number ?? 0), [events.at(-1)]);
});

const at = (name: string): string => new URLSearchParams({ account: "acme", container: "c", name }).toString();
async function textOf({ body }: HttpResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body as AsyncIterable<Uint8Array>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test("console: what is stored is for sessions that may, and no key of an account is in an answer", async () => {
  const { send, signIn } = world();
  const reader = await signIn("read");
  for (const name of "accounts containers blobs blob preview tables entities queues messages diverged".split(" "))
    assert.equal((await send("GET", `/api/${name}?${at("n")}`, reader)).status, 403, name);
  assert.equal((await send("POST", "/api/ticket", { ...reader, origin }, at("n"))).status, 403);
  assert.equal((await send("GET", "/api/session", reader)).status, 200);
  const answer = await send("GET", "/api/accounts", await signIn("data"));
  assert.deepEqual(jsonOf(answer), { items: [{ name: "acme", createdMs: 5 }], next: null });
});

test("console: a preview has the type that is in the bytes; HTML and SVG are text, other bytes are nothing", async () => {
  const png = Buffer.from("\x89PNG\r\n\x1a\n0000", "latin1");
  const svg = "<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>";
  const blobs = { png, svg: Buffer.from(svg), raw: Buffer.from([1, 0, 255]), long: Buffer.from("ä".repeat(40_000)), none: Buffer.alloc(0) };
  const { send, signIn } = world(undefined, clientsOf(blobs));
  const session = await signIn();
  const shown = (name: string): Promise<HttpResponse> => send("GET", `/api/preview?${at(name)}`, session);
  assert.equal((await shown("png")).headers["Content-Type"], "image/png");
  assert.deepEqual((await shown("png")).body, png);
  assert.deepEqual(
    [(await shown("svg")).headers["Content-Type"], jsonOf(await shown("svg"))],
    ["application/json", { text: svg, isWhole: true }],
  );
  assert.deepEqual(jsonOf(await shown("raw")), { text: null, isWhole: true });
  assert.deepEqual(jsonOf(await shown("none")), { text: "", isWhole: true });
  const { text, isWhole } = jsonOf(await shown("long")) as { readonly text: string; readonly isWhole: boolean };
  assert.deepEqual([text, isWhole], ["ä".repeat(32_768), false]);
  const missing = await shown("gone");
  assert.deepEqual([missing.status, jsonOf(missing)], [503, { message: "BlobNotFound: The specified blob does not exist." }]);
  assert.deepEqual(jsonOf(await shown("head")), { message: "BlobNotFound: the service answered 404" });
  assert.equal((await send("GET", "/api/preview?account=acme", session)).status, 503);
});

test("console: a download has an address that works once, for its own session, and is a file that opens nowhere", async () => {
  const { send, signIn } = world(undefined, clientsOf({ "a/<b>'\n.html": Buffer.from("<script>") }));
  const [session, other] = [await signIn(), await signIn()];
  const ticketFor = async (name: string): Promise<string> =>
    (jsonOf(await send("POST", "/api/ticket", { ...session, origin }, at(name))) as { readonly ticket: string }).ticket;
  const { cookie = "" } = session;
  const take = (ticket: string, by = cookie): Promise<HttpResponse> => send("GET", `/api/download?ticket=${ticket}`, { cookie: by });
  const ticket = await ticketFor("a/<b>'\n.html");
  assert.equal((await take(ticket, other.cookie)).status, 401);
  const answer = await take(ticket);
  assert.equal(await textOf(answer), "<script>");
  assert.equal(answer.headers["Content-Type"], "application/octet-stream");
  assert.equal(answer.headers["Content-Security-Policy"], "default-src 'none'; sandbox");
  assert.equal(answer.headers["Content-Disposition"], "attachment; filename*=UTF-8''%3Cb%3E%27%0A.html");
  assert.equal((await take(ticket)).status, 401, "a second time");
  const late = await ticketFor("x");
  await send("POST", "/api/sign-out", { ...session, origin });
  assert.equal((await take(late)).status, 401, "after sign-out");
});

test("console: sixteen downloads run at once; one whose client goes before its first byte gives its place back", async () => {
  const { send, signIn } = world(undefined, clientsOf({ n: Buffer.from("content") }));
  const session = await signIn();
  const begin = async (signal = new AbortController().signal): Promise<HttpResponse> => {
    const { ticket } = jsonOf(await send("POST", "/api/ticket", { ...session, origin }, at("n"))) as { readonly ticket: string };
    return send("GET", `/api/download?ticket=${ticket}`, { cookie: session.cookie ?? "" }, "", signal);
  };
  const gone = new AbortController();
  const first = await begin();
  await begin(gone.signal);
  for (let other = 2; other < 16; other++) assert.equal((await begin()).status, 200);
  assert.equal((await begin()).status, 503);
  assert.equal(await textOf(first), "content");
  assert.equal((await begin()).status, 200);
  gone.abort();
  assert.equal((await begin()).status, 200);
  assert.equal((await begin()).status, 503);
});

test("console: only a session with the role operate changes the stamp, and every attempt is in the audit log", async () => {
  const { send, signIn, audited, operated } = world();
  const fields = JSON.stringify({ account: "acme", number: 2, key: "not in the log" });
  const attempt = async (role: ConsoleRole): Promise<number> =>
    (await send("POST", "/api/rotate-key", { ...(await signIn(role)), origin }, fields)).status;
  assert.deepEqual([await attempt("read"), await attempt("data")], [403, 403]);
  assert.deepEqual(operated, []);
  assert.equal(await attempt("operate"), 200);
  assert.deepEqual(operated, [fields]);
  assert.deepEqual(
    audited.filter((line) => !line.includes("sign-in")),
    ["session-1 rotate key refused", "session-2 rotate key refused", 'session-3 rotate key done {"account":"acme","number":2}'],
  );
  const operator = await signIn("operate");
  assert.equal((await send("POST", "/api/rotate-key", { ...operator, origin: "http://evil.example" }, fields)).status, 403);
  await send("POST", "/api/add-fault", { ...operator, origin }, "{}");
  assert.equal(audited.at(-1), 'session-4 add fault done {"rule":"fault-1"}', "a name that the change gave");
  assert.equal((await send("GET", "/api/accounts", operator)).status, 200, "data, too");
});

test("console: an account is told with its settings and without its keys", async () => {
  const { send, signIn } = world();
  const session = await signIn();
  const answer = await send("GET", "/api/account?account=acme", session);
  assert.equal(answer.status, 200);
  assert.deepEqual(jsonOf(answer), {
    ...{ name: "acme", createdMs: 5, versioning: false, publicAccess: true, containerDays: 0, blobDays: 0, defaultServiceVersion: "" },
    ...{ scopes: [{ name: "red", value: "disabled" }], cors: [] },
  });
  assert.equal((await send("GET", "/api/account?account=acme", await signIn("read"))).status, 403);
});

test("console: the audit log calls no change failed that may be made, and has those that did not come whole", async () => {
  const { send, signIn, audited, operated } = world();
  const operator = { ...(await signIn("operate")), origin };
  audited.length = 0;
  const lost = await send("POST", "/api/rotate-key", operator, JSON.stringify({ account: "acme", lost: true }));
  assert.deepEqual([lost.status, jsonOf(lost)], [503, { message: "no answer in 10 s" }]);
  const broken = async function* (): AsyncGenerator<Buffer> {
    yield Buffer.from('{"account":');
    throw new Error("the client went away");
  };
  assert.equal((await send("POST", "/api/rotate-key", operator, broken())).status, 400);
  assert.equal(operated.length, 1);
  assert.deepEqual(audited, ['session-1 rotate key unknown: no answer in 10 s {"account":"acme"}', "session-1 rotate key refused"]);
});
