import assert from "node:assert/strict";
import { test } from "node:test";
import { blobHistory, deletePast, makeSnapshot, pastOf, restoreBlob } from "./blob-history.ts";
import type { DataClients } from "./clients.ts";

const { signal } = new AbortController();
const path = { account: "acme", container: "photos", name: "a" };

/** A blob whose calls are noted, and a container with these items. */
function world(items: readonly object[] = [], continuationToken = "", copiesNever = false) {
  const calls: string[] = [];
  const blobAt = (url: string): object => ({
    url,
    withVersion: (id: string) => blobAt(`${url}?versionid=${id}`),
    withSnapshot: (id: string) => blobAt(`${url}?snapshot=${id}`),
    delete: async () => calls.push(`delete ${url}`),
    createSnapshot: async () => ({ snapshot: "s9" }),
    beginCopyFromURL: async (from: string, { conditions }: { readonly conditions: { readonly ifMatch: string } }) => {
      calls.push(`copy ${from} over ${conditions.ifMatch}`);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      if (!copiesNever) resolve();
      return { pollUntilDone: () => promise.then(() => calls.push("waited")), stopPolling: () => reject(new Error("stopped")) };
    },
  });
  const container = {
    listBlobsFlat: () => ({
      byPage: async function* () {
        yield { segment: { blobItems: items }, continuationToken };
      },
    }),
  };
  const clients = { blob: async () => blobAt("/a"), container: async () => container } as unknown as DataClients;
  return { clients, calls };
}

test("history: versions and snapshots of the blob are listed, without the current one and without other blobs", async () => {
  const properties = { contentLength: 3, lastModified: new Date(5) };
  const { clients } = world(
    [
      { name: "a", snapshot: "s1", properties },
      { name: "a", versionId: "v1", properties },
      { name: "a", versionId: "v2", isCurrentVersion: true, properties },
      { name: "a", properties },
      { name: "ab", versionId: "v3", properties },
    ],
    "more",
  );
  assert.deepEqual(await blobHistory(clients, path, signal), {
    items: [
      { kind: "snapshot", id: "s1", bytes: 3, modifiedMs: 5 },
      { kind: "version", id: "v1", bytes: 3, modifiedMs: 5 },
    ],
    next: null,
  });
  const { clients: full } = world([{ name: "a", versionId: "v1", properties }], "more");
  assert.equal((await blobHistory(full, path, signal)).next, "more");
});

test("history: a version is copied over the blob that was shown; a version or snapshot is deleted alone", async () => {
  const { clients, calls } = world();
  await restoreBlob(clients, { ...path, kind: "version", id: "v1", etag: "0x1" }, signal);
  await deletePast(clients, { ...path, kind: "snapshot", id: "s1" }, signal);
  assert.deepEqual(calls, ["copy /a?versionid=v1 over 0x1", "waited", "delete /a?snapshot=s1"]);
  assert.deepEqual(await makeSnapshot(clients, path, signal), { id: "s9" });
});

test("history: a copy that takes too long is not asked for any more", async () => {
  const { clients } = world([], "", true);
  const late = new AbortController();
  const restored = restoreBlob(clients, { ...path, kind: "version", id: "v1", etag: "0x1" }, late.signal);
  setTimeout(() => late.abort(), 10);
  await assert.rejects(restored, /stopped/);
});

test("history: a request that names no version never touches the blob itself", async () => {
  const { clients, calls } = world();
  for (const wrong of [{}, { kind: "", id: "v1" }, { kind: "version", id: "" }, { kind: "blob", id: "v1" }, { kind: "version", id: 7 }]) {
    await assert.rejects(deletePast(clients, { ...path, ...wrong }, signal), /names no version/);
    await assert.rejects(restoreBlob(clients, { ...path, etag: "0x1", ...wrong }, signal), /names no version/);
  }
  assert.deepEqual(calls, []);
  const current = await clients.blob("acme", "photos", "a");
  assert.equal(pastOf(current, {}), current);
});
