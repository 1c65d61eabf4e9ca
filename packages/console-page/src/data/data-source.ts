/** Asks the console about data, over HTTP. */

import { answerOf, page, shownOnly } from "../source.ts";
import type { AccountDetails, BlobDetails, BlobPath, Block, DataSource, Preview, UsagePage } from "./data-model.ts";

async function preview(path: BlobPath): Promise<Preview> {
  const answer = await answerOf("/api/preview", { ...path }, shownOnly());
  if (answer.headers.get("Content-Type")?.startsWith("image/") === true) return { image: await answer.blob() };
  return (await answer.json()) as Preview;
}

/** The browser itself takes the bytes, of any number, by an address that works once: the key of the session stays out of its history. */
async function download(what: Readonly<Record<string, string>>): Promise<void> {
  const answer = await answerOf("/api/ticket", {}, { method: "POST", body: new URLSearchParams(what).toString() });
  const { ticket } = (await answer.json()) as { readonly ticket: string };
  const link = document.createElement("a");
  link.href = `/api/download?ticket=${ticket}`;
  link.download = "";
  link.click();
}

/** The console gives the body of a change 30 s, and the change 30 more. */
const changeTimeoutMs = 65_000;

const changing = (fields: Readonly<Record<string, unknown>>): RequestInit => ({
  method: "POST",
  body: JSON.stringify(fields),
  signal: AbortSignal.timeout(changeTimeoutMs),
});

export const dataSource: DataSource = {
  accounts: (after) => page("/api/accounts", { after }),
  account: async (account) => (await (await answerOf("/api/account", { account }, shownOnly())).json()) as AccountDetails,
  containers: (account, after) => page("/api/containers", { account, after }),
  blobs: (account, container, prefix, withDeleted, after) =>
    page("/api/blobs", { account, container, prefix, after, deleted: withDeleted ? "yes" : "" }),
  blob: async (path) => (await (await answerOf("/api/blob", { ...path }, shownOnly())).json()) as BlobDetails,
  places: (path, after) => page("/api/blob-places", { ...path, after }),
  past: (path, after) => page("/api/blob-past", { ...path, after }),
  usage: async (account, container, after) =>
    (await (await answerOf("/api/usage", { account, container, after }, shownOnly())).json()) as UsagePage,
  preview,
  download: (path) => download({ ...path }),
  tables: (account, after) => page("/api/tables", { account, after }),
  entities: (account, table, filter, after) => page("/api/entities", { account, table, filter, after }),
  async exportTable(account, table, filter, format) {
    // Tells here why the filter is wrong: the browser says nothing of a download that fails.
    await page("/api/entities", { account, table, filter, after: "" });
    await download({ account, table, filter, format });
  },
  queues: (account, after) => page("/api/queues", { account, after }),
  messages: (account, queue) => page("/api/messages", { account, queue }),
  change: async (what, fields) => (await (await answerOf(`/api/${what}`, {}, changing(fields))).json()) as Record<string, unknown>,
  blocks: async (path, upload) =>
    ((await (await answerOf("/api/blocks", { ...path, upload })).json()) as { readonly blocks: readonly Block[] }).blocks,
  async putBlock(path, upload, { number, digest }, bytes, signal) {
    await answerOf("/api/put-block", { ...path, upload, digest, number: String(number) }, { method: "POST", body: bytes, signal });
  },
};
