import assert from "node:assert/strict";
import { test } from "node:test";
import type { DataClients } from "./clients.ts";
import { dataLists, entityRow } from "./data-lists.ts";

test("entities: values are text with their types, and no digit is lost", () => {
  const row = entityRow({
    etag: "x",
    "odata.metadata": "y",
    partitionKey: "p",
    rowKey: "",
    timestamp: "2026-11-29T00:00:00Z",
    name: "<b>",
    count: { type: "Int64", value: "9007199254740993" },
    small: { type: "Int32", value: "5" },
    bytes: { type: "Binary", value: Buffer.from([1, 2]) },
    yes: true,
  });
  assert.deepEqual(row, {
    partitionKey: "p",
    rowKey: "",
    timestamp: "2026-11-29T00:00:00Z",
    etag: "x",
    properties: [
      { name: "name", type: "String", value: "<b>" },
      { name: "count", type: "Int64", value: "9007199254740993" },
      { name: "small", type: "Int32", value: "5" },
      { name: "bytes", type: "Binary", value: "AQI=" },
      { name: "yes", type: "Boolean", value: "true" },
    ],
  });
});

test("one blob: metadata has the names and the empty values that were written, with the ETag of that moment", async () => {
  const asked: unknown[] = [];
  const item = (name: string) => ({ name, properties: { etag: "0x2" }, metadata: { Author: "A", flag: "" } });
  let items = [item("n"), item("n2")];
  const container = {
    listBlobsFlat: (options: { readonly prefix: string; readonly includeMetadata: boolean }) => {
      asked.push([options.prefix, options.includeMetadata]);
      return {
        byPage: async function* () {
          yield { segment: { blobItems: items } };
        },
      };
    },
  };
  // The SDK makes these of headers.
  const properties = { etag: '"0x1"', contentLength: 1, metadata: { author: "A" } };
  const clients = { blob: async () => ({ getProperties: async () => properties }), container: async () => container };
  const show = () =>
    dataLists(clients as unknown as DataClients)["/api/blob"]?.(
      new URLSearchParams({ account: "a", container: "c", name: "n" }),
      new AbortController().signal,
    ) as Promise<{ readonly etag: string; readonly metadata: unknown }>;
  const { etag, metadata } = await show();
  const written = [
    { name: "Author", value: "A" },
    { name: "flag", value: "" },
  ];
  assert.deepEqual([etag, metadata, asked], ['"0x2"', written, [["n", true]]]);
  items = [item("n2")];
  assert.deepEqual((await show()).etag, '"0x1"');
});
