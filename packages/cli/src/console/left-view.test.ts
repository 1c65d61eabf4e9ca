/** A list whose page has gone to another view. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { consoleHandler } from "./console-handler.ts";
import { Sessions } from "./sessions.ts";

test("console: a list that nobody waits for any more ends at the service, too", async () => {
  let made = 0;
  const sessions = new Sessions(
    () => 0,
    () => `token-${++made}`,
  );
  const untilAborted = (abortSignal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => abortSignal.addEventListener("abort", () => reject(new Error("the service ended it"))));
  const service = {
    listContainers: ({ abortSignal }: { readonly abortSignal: AbortSignal }) => ({
      byPage: () => ({ next: () => untilAborted(abortSignal) }),
    }),
  };
  const signal = new AbortController().signal;
  const clients = { blobs: async () => service };
  const parts = { files: new Map(), sessions, lists: { find: () => undefined }, clients, operations: {}, audit: () => {}, signal };
  const handler = consoleHandler(parts as never);
  const opened = sessions.open(sessions.makeLink("data"));
  assert.ok(opened);
  const headers = { host: "127.0.0.1:10010", cookie: `stamp-console-10010=${opened.token}`, "x-stamp-key": opened.key };
  const left = new AbortController();
  const body = (async function* (): AsyncGenerator<Buffer> {})();
  const where = { method: "GET", target: "/api/containers?account=acme", headers, remoteAddress: "127.0.0.1", secure: false };
  const answering = handler({ ...where, signal: left.signal, body });
  setTimeout(() => left.abort(), 10);
  assert.match(Buffer.from((await answering).body as Uint8Array).toString(), /the service ended it/);
});
