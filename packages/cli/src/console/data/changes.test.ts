import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpRequest, HttpResponse } from "@stamp/ports";
import { consoleHandler } from "../console-handler.ts";
import { LiveStamp } from "../live-stamp.ts";
import { type ConsoleRole, Sessions } from "../sessions.ts";
import { changes } from "./changes.ts";
import type { DataClients } from "./clients.ts";

const host = "127.0.0.1:10010";
const origin = `http://${host}`;

/** The handler with clients that record which calls of the SDK reach them. */
function world(fail?: Error) {
  const calls: string[] = [];
  const audited: string[] = [];
  const call =
    (name: string, told: object = {}) =>
    async (...args: readonly unknown[]): Promise<object> => {
      calls.push(`${name} ${JSON.stringify(args.map((each) => ((each as { abortSignal?: unknown })?.abortSignal ? "options" : each)))}`);
      if (fail !== undefined) throw fail;
      return told;
    };
  const blob = {
    delete: call("delete"),
    undelete: call("undelete"),
    setMetadata: call("setMetadata"),
    setTags: call("setTags"),
    getBlockBlobClient: () => ({ commitBlockList: call("commitBlockList"), stageBlock: call("stageBlock") }),
  };
  const table = { createEntity: call("createEntity"), updateEntity: call("updateEntity"), deleteEntity: call("deleteEntity") };
  const message = { messageId: "1", popReceipt: "2", messageText: "text" };
  const queue = {
    sendMessage: call("sendMessage"),
    receiveMessages: call("receiveMessages", { receivedMessageItems: [message] }),
    deleteMessage: call("deleteMessage"),
    clearMessages: call("clearMessages"),
  };
  const none = (): Promise<never> => Promise.reject(new Error("not in this test"));
  const clients: DataClients = {
    accounts: none,
    blobs: none,
    blob: async () => blob as never,
    queues: async () => ({ getQueueClient: () => queue }) as never,
    tables: none,
    table: async () => table as never,
    tableSas: async () => "http://x/y?sig=secret",
  };
  let made = 0;
  const sessions = new Sessions(
    () => 0,
    () => `token-${++made}`,
  );
  const live = new LiveStamp({ ask: none, wallMs: () => 1, sleep: async () => {} });
  const handler = consoleHandler({
    ...{ files: new Map(), sessions, live, clients, lists: { find: () => undefined }, signal: new AbortController().signal },
    audit: (who, what, result, target) => audited.push(`${who} ${what}: ${result} ${JSON.stringify(target ?? {})}`),
  });
  const send = (target: string, headers: Record<string, string>, body: string, method = "POST"): Promise<HttpResponse> =>
    Promise.resolve(
      handler({
        ...{ method, target, headers: { host, "content-length": String(body.length), ...headers } },
        ...{ remoteAddress: "127.0.0.1", secure: false, signal: new AbortController().signal },
        body: (async function* () {
          yield Buffer.from(body);
        })(),
      } satisfies HttpRequest),
    );
  const signIn = async (role: ConsoleRole): Promise<Record<string, string>> => {
    const { headers, body } = await send("/api/sign-in", { origin }, sessions.makeLink(role));
    const { key } = JSON.parse(String(body)) as { readonly key: string };
    audited.length = 0;
    return { origin, cookie: String(headers["Set-Cookie"]).split(";")[0] ?? "", "x-stamp-key": key };
  };
  return { send, signIn, calls, audited };
}

const fields = {
  ...{ account: "acme", container: "c", table: "t", queue: "q", name: "n", etag: "e", pairs: [], partitionKey: "p", rowKey: "" },
  ...{ properties: [], text: "content", upload: "0".repeat(32), count: 1, permissions: "r", hours: 1 },
};
const block = `/api/put-block?${new URLSearchParams({ account: "acme", container: "c", name: "n", upload: "0".repeat(32), number: "0" })}`;
const paths = [...Object.keys(changes), block];

test("changes: none without cookie, key, the console's own origin, POST, or the role; nothing reaches the service", async () => {
  const { send, signIn, calls, audited } = world();
  const session = await signIn("data");
  const { origin: _, ...noOrigin } = session;
  const { cookie: __, ...noCookie } = session;
  const { "x-stamp-key": ___, ...noKey } = session;
  const reader = await signIn("read");
  for (const path of paths) {
    const body = JSON.stringify(fields);
    for (const [headers, status] of [
      [noOrigin, 403],
      [{ ...session, origin: "http://127.0.0.1:3000" }, 403],
      [{ ...session, "sec-fetch-site": "same-site" }, 403],
      [{ ...session, host: "evil.example" }, 403],
      [noCookie, 401],
      [noKey, 401],
      [reader, 403],
    ] as const)
      assert.equal((await send(path, headers, body)).status, status, path);
    assert.notEqual((await send(path, session, "", "GET")).status, 200, path);
  }
  assert.deepEqual(calls, []);
  assert.equal(audited.filter((line) => line.startsWith("session-2") && line.includes("refused")).length, paths.length - 1);
});

test("changes: each reaches the service, and is in the audit log with its target and without content", async () => {
  const { send, signIn, calls, audited } = world();
  const session = await signIn("data");
  for (const path of paths) assert.equal((await send(path, session, JSON.stringify(fields))).status, 200, path);
  assert.equal(audited.length, paths.length - 1, "of a block there is no line");
  assert.ok(audited.every((line) => /^session-1 [a-z ]+: done \{"account":"acme",/.test(line)));
  assert.ok(!audited.join().includes("content") && !audited.join().includes("secret"));
  assert.ok(calls.some((call) => call.startsWith('deleteMessage ["1","2"')));
});

test("changes: one that fails says why, to the page and to the audit log", async () => {
  const { send, signIn, audited } = world(Object.assign(new Error("The condition is not met.\nRequestId:1"), { code: "ConditionNotMet" }));
  const { status, body } = await send("/api/delete-blob", await signIn("data"), JSON.stringify(fields));
  assert.deepEqual([status, JSON.parse(String(body))], [503, { message: "ConditionNotMet: The condition is not met." }]);
  assert.match(audited[0] ?? "", /^session-1 delete blob: failed: ConditionNotMet/);
});

test("changes: fields that are missing, twice or not of their type are refused before the service is asked", async () => {
  const { send, signIn, calls } = world();
  const session = await signIn("data");
  const property = (name: string, type: string, value: string) => ({ properties: [{ name, type, value }] });
  const pair = { name: "a", value: "1" };
  for (const [path, some, words] of [
    ["delete-blob", { etag: "" }, /names no etag/],
    ["delete-blob", { name: 5 }, /names no name/],
    ["set-metadata", { pairs: [pair, { name: "A", value: "2" }] }, /A is there twice/],
    ["set-tags", { pairs: [pair, pair] }, /a is there twice/],
    ["put-entity", property("n", "Int32", "2147483648"), /an Int32 is/],
    ["put-entity", property("n", "Int32", ""), /an Int32 is/],
    ["put-entity", property("n", "Int64", "1.5"), /an Int64 is/],
    ["put-entity", property("n", "Double", " "), /a Double is/],
    ["put-entity", property("n", "Boolean", "yes"), /a Boolean is/],
    ["put-entity", property("rowKey", "String", "x"), /can't be named "rowKey"/],
    [
      "put-entity",
      { properties: [...property("n", "String", "").properties, ...property("n", "String", "").properties] },
      /n is there twice/,
    ],
    ["put-entity", { partitionKey: undefined }, /no partitionKey/],
    ["commit-blob", { upload: "../x" }, /32 hexadecimal digits/],
    ["commit-blob", { count: 50_001 }, /count is a whole number/],
    ["make-sas", { hours: 9_000 }, /whole hours/],
    ["make-sas", { hours: 0.5 }, /whole hours/],
  ] as const) {
    const { status, body } = await send(`/api/${path}`, session, JSON.stringify({ ...fields, ...some }));
    assert.equal(status, 503);
    assert.match((JSON.parse(String(body)) as { readonly message: string }).message, words);
  }
  for (const body of ["", "[]", "null", "{"]) assert.equal((await send("/api/delete-blob", session, body)).status, 400);
  assert.equal((await send("/api/put-message", session, JSON.stringify({ text: "x".repeat(5 * 1_024 * 1_024) }))).status, 413);
  assert.deepEqual(calls, []);
});
