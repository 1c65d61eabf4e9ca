/** Entity group transactions: all or nothing, the failed change named, what the SDK never sends refused. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TransactionAction } from "@azure/data-tables";
import { all, refusal, type TableClients } from "./target.ts";

interface InnerChange {
  readonly method: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

export function transactionSuite(clients: () => TableClients): void {
  /** A body as clients write it, by hand; sent to /$batch. */
  const submit = async (changes: readonly InnerChange[], options: { query?: boolean; raw?: string; contentType?: string } = {}) => {
    const { accountName, endpoint } = clients().target;
    const part = ({ method, path, headers = {}, body }: InnerChange): string =>
      [
        "Content-Type: application/http",
        "Content-Transfer-Encoding: binary",
        "",
        `${method} ${path.startsWith("http") ? path : `${endpoint}/${accountName}${path}`} HTTP/1.1`,
        "Accept: application/json;odata=minimalmetadata",
        "Content-Type: application/json",
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
        "",
        body === undefined ? "" : JSON.stringify(body),
      ].join("\r\n");
    const inner = changes.map((change) => `--${options.query ? "batch_1" : "changeset_1"}\r\n${part(change)}\r\n`).join("");
    const text =
      options.raw ??
      (options.query
        ? `${inner}--batch_1--\r\n`
        : `--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n${inner}--changeset_1--\r\n--batch_1--\r\n`);
    const answer = await clients().raw("POST", "/$batch", {
      headers: { "content-type": options.contentType ?? "multipart/mixed; boundary=batch_1" },
      body: text,
    });
    const body = await answer.text();
    const inside = [...body.matchAll(/HTTP\/1\.1 (\d{3}) [^\r]*\r\n/g)].map(([, status]) => Number(status));
    const error = /"code":"(\w+)","message":\{"lang":"en-US","value":"(\d+):/.exec(body);
    return { status: answer.status, body, inside, error: error ? `${error[2]}:${error[1]}` : undefined };
  };
  const insert = (table: string, partitionKey: string, rowKey: string): InnerChange => ({
    method: "POST",
    path: `/${table}`,
    body: { PartitionKey: partitionKey, RowKey: rowKey },
  });

  describe("transactions", () => {
    test("an empty If-Match in a transaction is no upsert", async () => {
      const table = await clients().table();
      await table.createEntity({ partitionKey: "p", rowKey: "r", kept: 1 });
      const path = `/${table.tableName}(PartitionKey='p',RowKey='r')`;
      const answer = await submit([
        insert(table.tableName, "p", "new"),
        { method: "PUT", path, headers: { "If-Match": "" }, body: { lost: 1 } },
      ]);
      assert.deepEqual([answer.inside, answer.error], [[400], "1:InvalidHeaderValue"]);
      const prefers = await submit([
        { method: "PUT", path, headers: { "If-Match": "*", Prefer: "", "x-ms-version": "" }, body: { kept: 2 } },
      ]);
      assert.deepEqual(prefers.inside, [204]);
      assert.deepEqual(
        (await all(table.listEntities())).map(({ rowKey, kept }) => [rowKey, kept]),
        [["r", 2]],
      );
    });

    test("every action in one transaction, each with its own answer", async () => {
      const table = await clients().table();
      for (const rowKey of ["update", "merge", "delete"]) await table.createEntity({ partitionKey: "p", rowKey, old: 1 });
      const { etag } = await table.getEntity("p", "update");
      const actions: TransactionAction[] = [
        ["create", { partitionKey: "p", rowKey: "create", a: 1 }],
        ["update", { partitionKey: "p", rowKey: "update", a: 1 }, "Replace", { etag }],
        ["update", { partitionKey: "p", rowKey: "merge", a: 1 }, "Merge"],
        ["upsert", { partitionKey: "p", rowKey: "replaced", a: 1 }, "Replace"],
        ["upsert", { partitionKey: "p", rowKey: "merged", a: 1 }, "Merge"],
        ["delete", { partitionKey: "p", rowKey: "delete" }],
      ];
      const answer = await table.submitTransaction(actions);
      assert.deepEqual(
        answer.subResponses.map(({ status }) => status),
        [204, 204, 204, 204, 204, 204],
      );
      assert.ok(answer.subResponses.slice(0, 5).every(({ etag: now }) => now?.startsWith("W/")));
      const found = await all(table.listEntities());
      assert.deepEqual(
        found.map(({ rowKey, a, old }) => `${rowKey} ${a ?? "-"} ${old ?? "-"}`),
        ["create 1 -", "merge 1 1", "merged 1 -", "replaced 1 -", "update 1 -"],
      );
      assert.equal(found.find(({ rowKey }) => rowKey === "create")?.etag, answer.subResponses[0]?.etag);
    });

    test("a transaction of 100 with a conflict at index 57 applies nothing and names 57", async () => {
      const table = await clients().table();
      await table.createEntity({ partitionKey: "p", rowKey: "r57" });
      const actions = Array.from({ length: 100 }, (_, i): TransactionAction => ["create", { partitionKey: "p", rowKey: `r${i}` }]);
      assert.equal(await refusal(table.submitTransaction(actions)), "409 57:EntityAlreadyExists");
      assert.equal((await all(table.listEntities())).length, 1);
      await table.deleteEntity("p", "r57");
      await table.submitTransaction(actions);
      assert.equal((await all(table.listEntities())).length, 100);
    });

    test("If-Match is honoured inside: a stale ETag fails all of it, by its index", async () => {
      const table = await clients().table();
      const { etag } = await table.createEntity({ partitionKey: "p", rowKey: "r" });
      await table.upsertEntity({ partitionKey: "p", rowKey: "r", a: 1 });
      const actions: TransactionAction[] = [
        ["create", { partitionKey: "p", rowKey: "new" }],
        ["update", { partitionKey: "p", rowKey: "r", a: 2 }, "Merge", { etag: etag ?? "" }],
      ];
      assert.equal(await refusal(table.submitTransaction(actions)), "412 1:UpdateConditionNotSatisfied");
      assert.equal(await refusal(table.getEntity("p", "new")), "404 ResourceNotFound");
      const missing: TransactionAction[] = [["delete", { partitionKey: "p", rowKey: "none" }]];
      assert.equal(await refusal(table.submitTransaction(missing)), "404 0:ResourceNotFound");
    });

    test("one PartitionKey, one table, each entity once, 100 of them, 4 MiB", async () => {
      const { tableName } = await clients().table();
      const other = await clients().table();
      assert.equal(
        (await submit([insert(tableName, "p", "1"), insert(tableName, "q", "2")])).error,
        "1:CommandsInBatchActOnDifferentPartitions",
      );
      assert.equal(
        (await submit([insert(tableName, "p", "1"), insert(other.tableName, "p", "2")])).error,
        "1:CommandsInBatchActOnDifferentPartitions",
      );
      const twice = await submit([insert(tableName, "p", "1"), insert(tableName, "p", "2"), insert(tableName, "p", "1")]);
      assert.deepEqual([twice.status, twice.inside, twice.error], [202, [400], "2:InvalidDuplicateRow"]);
      const many = await submit(Array.from({ length: 101 }, (_, i) => insert(tableName, "p", String(i))));
      assert.equal(many.error, "100:InvalidInput");
      const large = await submit([], { raw: "x".repeat(4 * 1024 * 1024 + 1) });
      assert.equal(large.status, 413);
      assert.equal((await clients().json("GET", `/${tableName}`)).body.value.length, 0);
    });

    test("a transaction of nearly 4 MiB is kept whole or refused clearly, never in part", async () => {
      const table = await clients().table();
      const of = (count: number, text: string) =>
        Array.from({ length: count }, (_, i): TransactionAction => ["create", { partitionKey: "p", rowKey: String(i), text }]);
      await table.submitTransaction(of(100, "x".repeat(32_000)));
      assert.equal((await all(table.listEntities())).length, 100);
    });

    test("URLs inside may be absolute, from the root, or from the account", async () => {
      const { tableName } = await clients().table();
      const { accountName } = clients().target;
      const body = (rowKey: string) => ({ PartitionKey: "p", RowKey: rowKey });
      const parts = ["POST {url} HTTP/1.1"].flatMap(() =>
        [`${clients().url}/${tableName}`, `/${accountName}/${tableName}`, tableName].map((url, i) =>
          [
            "--c",
            "Content-Type: application/http",
            `Content-ID: ${i + 7}`,
            "",
            `POST ${url} HTTP/1.1`,
            "Content-Type: application/json",
            "",
            JSON.stringify(body(String(i))),
            "",
          ].join("\n"),
        ),
      );
      const raw = ["--b", 'Content-Type: multipart/mixed; boundary="c"', "", ...parts, "--c--", "--b--", ""].join("\n");
      const answer = await submit([], { raw, contentType: 'multipart/mixed; charset=utf-8; boundary="b"' });
      assert.deepEqual(answer.inside, [204, 204, 204]);
      assert.deepEqual(
        [...answer.body.matchAll(/Content-ID: (\d)/g)].map(([, id]) => id),
        ["7", "8", "9"],
      );
      const foreign = await submit([{ method: "POST", path: `${clients().target.endpoint}/other/${tableName}`, body: body("x") }]);
      assert.equal(foreign.error, "0:InvalidInput");
    });

    test("Prefer inside says whether an insert answers with its entity", async () => {
      const { tableName } = await clients().table();
      const answer = await submit([{ ...insert(tableName, "p", "1"), headers: { Prefer: "return-content" } }, insert(tableName, "p", "2")]);
      assert.deepEqual(answer.inside, [201, 204]);
      assert.match(answer.body, /"PartitionKey":"p","RowKey":"1"/);
    });

    test("a batch may be a single query instead", async () => {
      const { tableName } = await clients().table();
      await submit([insert(tableName, "p", "1"), insert(tableName, "p", "2")]);
      const point = await submit([{ method: "GET", path: `/${tableName}(PartitionKey='p',RowKey='1')` }], { query: true });
      assert.deepEqual([point.status, point.inside], [202, [200]]);
      assert.match(point.body, /"RowKey":"1"/);
      const filtered = await submit([{ method: "GET", path: `/${tableName}()?$filter=RowKey%20eq%20'2'` }], { query: true });
      assert.match(filtered.body, /"value":\[\{[^\]]*"RowKey":"2"/);
      const absent = await submit([{ method: "GET", path: `/${tableName}(PartitionKey='p',RowKey='3')` }], { query: true });
      assert.deepEqual([absent.inside, absent.error], [[404], "0:ResourceNotFound"]);
      const two = await submit(
        [
          { method: "GET", path: `/${tableName}` },
          { method: "GET", path: `/${tableName}` },
        ],
        { query: true },
      );
      assert.equal(two.status, 400);
    });

    test("what is no batch is refused as a whole; a change that can't be read is named", async () => {
      const { tableName } = await clients().table();
      for (const raw of [
        "",
        "nonsense",
        "--batch_1\r\n",
        "--batch_1--\r\n",
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c--\r\n--batch_1--",
      ]) {
        assert.equal((await submit([], { raw })).status, 400, JSON.stringify(raw));
      }
      assert.equal((await submit([insert(tableName, "p", "1")], { contentType: "application/json" })).status, 400);
      assert.equal((await submit([{ method: "GET", path: `/${tableName}` }])).status, 400);
      assert.equal(
        (await submit([insert(tableName, "p", "1"), { method: "POST", path: "/Tables", body: { TableName: "abc" } }])).error,
        "1:InvalidInput",
      );
      const wrong = await submit([insert(tableName, "p", "1"), { ...insert(tableName, "p", "2"), body: "no object" }]);
      assert.equal(wrong.error, "1:InvalidInput");
      const noCondition = await submit([{ method: "DELETE", path: `/${tableName}(PartitionKey='p',RowKey='1')` }]);
      assert.equal(noCondition.error, "0:MissingRequiredHeader");
      assert.equal((await submit([insert("Nowhere1", "p", "1")])).error, "0:TableNotFound");
      assert.equal((await clients().json("GET", `/${tableName}`)).body.value.length, 0);
    });
  });
}
