/** The console's handler, with clients that record which calls of the SDK reach them. For tests. */
import type { HttpRequest, HttpResponse } from "@stamp/ports";
import { consoleHandler } from "../../console-handler.ts";
import { LiveStamp } from "../../live-stamp.ts";
import { type ConsoleRole, Sessions } from "../../sessions.ts";
import type { DataClients } from "../clients.ts";

const host = "127.0.0.1:10010";
const origin = `http://${host}`;

/** `fail`: what every call of the SDK throws. `isThere`: a table or queue of any name is there already. */
export function world(fail?: Error, isThere = false) {
  const calls: string[] = [];
  const audited: string[] = [];
  const call =
    (name: string, told: object = {}) =>
    async (...args: readonly unknown[]): Promise<object> => {
      calls.push(`${name} ${JSON.stringify(args, (field, value: unknown) => (field === "abortSignal" ? undefined : value))}`);
      if (fail !== undefined) throw fail;
      return told;
    };
  const stageBlock = async (id: string, body: AsyncIterable<Uint8Array>): Promise<object> => {
    for await (const _ of body);
    return call("stageBlock")(id);
  };
  const blob = {
    delete: call("delete"),
    undelete: call("undelete"),
    setMetadata: call("setMetadata"),
    setTags: call("setTags"),
    createSnapshot: call("createSnapshot"),
    withVersion: () => ({ url: "http://x/c/n?versionid=v1", delete: call("deleteVersion") }),
    beginCopyFromURL: call("beginCopyFromURL", { pollUntilDone: async () => {} }),
    getBlockBlobClient: () => ({ commitBlockList: call("commitBlockList"), stageBlock }),
  };
  const table = {
    createEntity: call("createEntity"),
    updateEntity: call("updateEntity"),
    upsertEntity: call("upsertEntity"),
    deleteEntity: call("deleteEntity"),
    createTable: async (options: { readonly onResponse: (answer: { readonly status: number }) => void }): Promise<object> => {
      options.onResponse({ status: isThere ? 409 : 201 });
      return call("createTable")();
    },
    deleteTable: call("deleteTable"),
  };
  const message = { messageId: "1", popReceipt: "2", messageText: "text" };
  const queue = {
    sendMessage: call("sendMessage"),
    receiveMessages: call("receiveMessages", { receivedMessageItems: [message] }),
    deleteMessage: call("deleteMessage"),
    clearMessages: call("clearMessages"),
    create: call("createQueue", { _response: { status: isThere ? 204 : 201 } }),
    delete: call("deleteQueue"),
  };
  const container = { create: call("createContainer"), delete: call("deleteContainer") };
  const none = (): Promise<never> => Promise.reject(new Error("not in this test"));
  const clients: DataClients = {
    accounts: none,
    account: none,
    blobs: none,
    blob: async () => blob as never,
    container: async () => container as never,
    queues: none,
    queue: async () => queue as never,
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
    ...{
      files: new Map(),
      sessions,
      live,
      clients,
      operations: {},
      lists: { find: () => undefined },
      signal: new AbortController().signal,
    },
    audit: (who, what, result, target) => audited.push(`${who} ${what}: ${result} ${JSON.stringify(target ?? {})}`),
  });
  const send = (
    target: string,
    headers: Record<string, string>,
    body: string | HttpRequest["body"],
    method = "POST",
  ): Promise<HttpResponse> =>
    Promise.resolve(
      handler({
        ...{ method, target, headers: { host, "content-length": String(typeof body === "string" ? body.length : 1), ...headers } },
        ...{ remoteAddress: "127.0.0.1", secure: false, signal: new AbortController().signal },
        body: typeof body === "string" ? piecesOf(body) : body,
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

async function* piecesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
