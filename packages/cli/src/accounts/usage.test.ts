/** Usage of containers, from lists as the SDK gives them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DataClients } from "../console/data/clients.ts";
import { type ContainerUsage, usageOf, usagePage } from "./usage.ts";
import { usageText } from "./usage-command.ts";

const entry = (contentLength: number, more: object = {}) => ({ name: "n", properties: { contentLength }, ...more });

/** Pages of the entries of each container. */
function clientsOf(pages: Readonly<Record<string, readonly object[][]>>, asked: unknown[] = []) {
  const container = (name: string) => ({
    listBlobsFlat: (options: object) => ({
      byPage: async function* ({ continuationToken = "0" }: { readonly continuationToken?: string }) {
        asked.push([name, continuationToken, options]);
        const at = Number(continuationToken);
        const all = pages[name] ?? [];
        yield { segment: { blobItems: all[at] ?? [] }, continuationToken: at + 1 < all.length ? `${at + 1}` : "" };
      },
    }),
  });
  const service = {
    listContainers: async function* () {
      for (const name of Object.keys(pages)) yield { name };
    },
  };
  return { blobs: async () => service, container: async (_account: string, name: string) => container(name) } as unknown as DataClients;
}

const { signal } = new AbortController();

test("usage: blobs with their bytes; versions, snapshots and deleted ones beside them; empty containers, too", async () => {
  const full = [
    [entry(5, { versionId: "1" }), entry(6, { versionId: "2", isCurrentVersion: true })],
    [entry(6, { snapshot: "2026" }), entry(7, { deleted: true }), entry(0)],
  ];
  const asked: unknown[] = [];
  const clients = clientsOf({ empty: [], full }, asked);
  const counted: ContainerUsage[] = [];
  for await (const each of usageOf(clients, "acme", undefined, signal)) counted.push(each);
  assert.deepEqual(counted, [
    { container: "empty", blobs: 0, bytes: 0, kept: 0, keptBytes: 0 },
    { container: "full", blobs: 2, bytes: 6, kept: 3, keptBytes: 18 },
  ]);
  const all = { abortSignal: signal, includeSnapshots: true, includeVersions: true, includeDeleted: true };
  assert.deepEqual(asked.at(-1), ["full", "1", all]);
  assert.match(usageText(counted), /^full +2 +6 B +3 +18 B$/m);
  assert.match(usageText(counted), /^all +2 +6 B +3 +18 B$/m);
});

test("usage: one container only, and one page only, with the mark of the next", async () => {
  const clients = clientsOf({ a: [[entry(1)], [entry(2)]], b: [[entry(4)]] });
  const counted: ContainerUsage[] = [];
  for await (const each of usageOf(clients, "acme", "b", signal)) counted.push(each);
  assert.deepEqual(counted, [{ container: "b", blobs: 1, bytes: 4, kept: 0, keptBytes: 0 }]);
  const page = await usagePage(clients, { account: "acme", container: "a", after: "" }, signal);
  assert.deepEqual(page, { blobs: 1, bytes: 1, kept: 0, keptBytes: 0, next: "1" });
});
