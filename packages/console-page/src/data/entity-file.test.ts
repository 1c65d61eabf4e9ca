/** Files of entities: what is read, and which line is wrong. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type EntityFormat, entitiesIn, type FileEntity, formatOf } from "./entity-file.ts";

async function* piecesOf(text: string, size: number): AsyncGenerator<string> {
  const characters = [...text];
  for (let at = 0; at < characters.length; at += size) yield characters.slice(at, at + size).join("");
}

async function read(text: string, format: EntityFormat, size = 7): Promise<FileEntity[]> {
  const all: FileEntity[] = [];
  for await (const entity of entitiesIn(piecesOf(text, size), format)) all.push(entity);
  return all;
}

test("files of entities: JSON lines give each property its type, and numbers as they are written", async () => {
  const text = [
    '{"PartitionKey":"p","RowKey":"1","Timestamp":"2026-11-30T00:00:00Z","a":"text","b":true,"c":-7,"d":5.0,"e":1e3,"none":null}',
    "",
    '{"odata.etag":"x","PartitionKey":"","RowKey":"\\n","n@odata.type":"Edm.Int64","n":"9007199254740993","f@odata.type":"Edm.Double","f":5}\r',
    '{"PartitionKey":"p","RowKey":"2","__proto__":"x"}',
  ].join("\n");
  for (const size of [1, 7, 10_000]) {
    assert.deepEqual(await read(text, "jsonl", size), [
      {
        ...{ line: 1, partitionKey: "p", rowKey: "1" },
        properties: [
          { name: "a", type: "String", value: "text" },
          { name: "b", type: "Boolean", value: "true" },
          { name: "c", type: "Int32", value: "-7" },
          { name: "d", type: "Double", value: "5.0" },
          { name: "e", type: "Double", value: "1e3" },
        ],
      },
      {
        ...{ line: 3, partitionKey: "", rowKey: "\n" },
        properties: [
          { name: "n", type: "Int64", value: "9007199254740993" },
          { name: "f", type: "Double", value: "5" },
        ],
      },
      { line: 4, partitionKey: "p", rowKey: "2", properties: [{ name: "__proto__", type: "String", value: "x" }] },
    ]);
  }
});

test("files of entities: CSV has quotes, commas and line ends inside of cells, and properties that an entity lacks", async () => {
  const text = 'PartitionKey,RowKey,Timestamp,a,a@type,b\r\np,"1,""x""\r\n😀",now,7,Edm.Int32,\r\n\r\n"",2,,"",String,"  b "';
  for (const size of [1, 3, 10_000]) {
    assert.deepEqual(await read(text, "csv", size), [
      { line: 2, partitionKey: "p", rowKey: '1,"x"\r\n😀', properties: [{ name: "a", type: "Int32", value: "7" }] },
      {
        ...{ line: 5, partitionKey: "", rowKey: "2" },
        properties: [
          { name: "a", type: "String", value: "" },
          { name: "b", type: "String", value: "  b " },
        ],
      },
    ]);
  }
});

test("files of entities: what is wrong is told with its line", async () => {
  for (const [format, text, words] of [
    ["jsonl", '{"PartitionKey":"p","RowKey":"r"}\n{', /^Error: line 2: no JSON/],
    ["jsonl", "[]", /^Error: line 1: no entity/],
    ["jsonl", "5", /^Error: line 1: no entity/],
    ["jsonl", '{"PartitionKey":"p","RowKey":5}', /^Error: line 1: the entity has no RowKey that is a text/],
    ["jsonl", '{"PartitionKey":"p","RowKey":"r","a":{"text":"5"}}', /^Error: line 1: a is a list or an object/],
    ["jsonl", `{"${"x".repeat(9_000_000)}`, /^Error: line 1: longer than an entity can be/],
    ["csv", "PartitionKey,a\n", /^Error: line 1: no column RowKey/],
    ["csv", "PartitionKey,RowKey,a,a\n", /^Error: line 1: column "a" is there twice/],
    ["csv", "PartitionKey,RowKey,a@type\n", /^Error: line 1: column a@type has no column of values/],
    ["csv", 'PartitionKey,RowKey\n"p\n",r\np', /^Error: line 4: 1 cells, but the first line has 2/],
    ["csv", 'PartitionKey,RowKey\np,"r', /^Error: line 2: a quote is never closed/],
    ["csv", 'PartitionKey,RowKey\np,"r"x', /^Error: line 2: a text behind a closing quote/],
    ["csv", `PartitionKey,RowKey\np,"${"x".repeat(9_000_000)}`, /^Error: line 2: longer than an entity can be/],
  ] as const)
    await assert.rejects(read(text, format, 100_000), words);
});

test("files of entities: the name of a file tells its format", () => {
  assert.deepEqual(["A.CSV", "a.jsonl", "a.ndjson", "a.json", "a.txt", "csv"].map(formatOf), [
    ...(["csv", "jsonl", "jsonl", "jsonl"] as const),
    undefined,
    undefined,
  ]);
});
