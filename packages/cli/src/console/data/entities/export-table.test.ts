import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import type { DataClients } from "../clients.ts";
import { exportTable } from "./export-table.ts";

/** A table that lists these pages; `fails`: of how many requests one of the second page fails. */
function tableOf(pages: readonly (readonly object[])[], fails = 0): DataClients {
  let left = fails;
  const listEntities = () => ({
    byPage: ({ continuationToken = "0" }: { readonly continuationToken?: string }) => ({
      next: async () => {
        const at = Number(continuationToken);
        if (at > 0 && left-- > 0) throw new Error("busy");
        return { value: Object.assign([...(pages[at] ?? [])], at + 1 < pages.length ? { continuationToken: String(at + 1) } : {}) };
      },
    }),
  });
  return { table: async () => ({ listEntities }) } as unknown as DataClients;
}

const key = { partitionKey: "p", rowKey: '1,"x"', timestamp: "2026-11-30T00:00:00Z", etag: "e" };
const pages = [
  [{ ...key, a: { type: "Int64", value: "9007199254740993" }, "@etag": "mine" }],
  [{ ...key, rowKey: "2", b: { type: "Double", value: 5 }, c: { type: "Int32", value: -7 }, d: true, e: "" }],
];
const query = new URLSearchParams({ account: "acme", table: "t" });
const { signal } = new AbortController();

const exported = async (clients: DataClients, format: "csv" | "jsonl"): Promise<string> =>
  text(await exportTable(clients, query, format, signal));

test("export of a table: JSON lines as the REST API takes them, over pages of which one is asked for again", async () => {
  const lines = [
    '{"PartitionKey":"p","RowKey":"1,\\"x\\"","Timestamp":"2026-11-30T00:00:00Z","a":"9007199254740993","a@odata.type":"Edm.Int64","etag":"mine"}',
    '{"PartitionKey":"p","RowKey":"2","Timestamp":"2026-11-30T00:00:00Z","b":5,"b@odata.type":"Edm.Double","c":-7,"d":true,"e":""}',
  ];
  assert.equal(await exported(tableOf(pages, 1), "jsonl"), `${lines.join("\n")}\n`);
});

test("export of a table: CSV has a column for each property of any entity, and its type", async () => {
  const lines = [
    "PartitionKey,RowKey,Timestamp,a,a@type,etag,etag@type,b,b@type,c,c@type,d,d@type,e,e@type",
    'p,"1,""x""",2026-11-30T00:00:00Z,9007199254740993,Int64,mine,String,,,,,,,,',
    "p,2,2026-11-30T00:00:00Z,,,,,5,Double,-7,Int32,true,Boolean,,String",
  ];
  assert.equal(await exported(tableOf(pages), "csv"), `${lines.join("\r\n")}\r\n`);
});

test("export of a table: a page that never comes breaks the file off", async () => {
  await assert.rejects(exported(tableOf(pages, 99), "jsonl"), /busy/);
});
