/** Requests of the benchmarks to the Table service. */
import { type SignedAnswer, SignedClient } from "./signed-client.ts";

export interface TableRow {
  readonly partitionKey: string;
  readonly rowKey: string;
  readonly data: string;
}

/** Boundary, as the SDK names it: some servers take no others. */
const batch = "batch_2c7e4b1a-6f0d-4c53-9a8e-5d1b7f3e9a60";
const changes = "changeset_8d9f0c2b-1e3a-4b57-8c6d-0a4e2f7b9c11";
const json = { accept: "application/json;odata=nometadata" };

export class TableClient {
  readonly #client: SignedClient;

  constructor(connectionString: string) {
    this.#client = new SignedClient(connectionString, "table");
  }

  createTable(table: string): Promise<SignedAnswer> {
    const body = Buffer.from(JSON.stringify({ TableName: table }));
    return this.#client.call("POST", "/Tables", { ...json, "content-type": "application/json" }, body);
  }

  get(table: string, partitionKey: string, rowKey: string): Promise<SignedAnswer> {
    return this.#client.call("GET", `/${table}(PartitionKey='${partitionKey}',RowKey='${rowKey}')`, json);
  }

  /** Inserts one row, in a request of its own. */
  insertOne(table: string, row: TableRow): Promise<SignedAnswer> {
    const headers = { ...json, "content-type": "application/json", prefer: "return-no-content" };
    return this.#client.call("POST", `/${table}`, headers, Buffer.from(entityOf(row), "latin1"));
  }

  /** Merges properties into the row, whatever its ETag. */
  merge(table: string, { partitionKey, rowKey, data }: TableRow): Promise<SignedAnswer> {
    const target = `/${table}(PartitionKey='${partitionKey}',RowKey='${rowKey}')`;
    const headers = { ...json, "content-type": "application/json", "if-match": "*" };
    return this.#client.call("MERGE", target, headers, Buffer.from(`{"Data":"${data}"}`, "latin1"));
  }

  query(table: string, filter: string, top: number): Promise<SignedAnswer> {
    return this.#client.call("GET", `/${table}()?$filter=${encodeURIComponent(filter)}&$top=${top}`, json);
  }

  /** Inserts rows in one transaction: all have one PartitionKey. */
  async insert(table: string, rows: readonly TableRow[]): Promise<SignedAnswer> {
    const { host, port, path } = this.#client;
    const head =
      `--${changes}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST http://${host}:${port}${path}/${table} HTTP/1.1\r\n` +
      "Content-Type: application/json\r\nAccept: application/json;odata=nometadata\r\nPrefer: return-no-content\r\nDataServiceVersion: 3.0\r\n\r\n";
    let text = `--${batch}\r\nContent-Type: multipart/mixed; boundary=${changes}\r\n\r\n`;
    for (const row of rows) text += `${head}${entityOf(row)}\r\n`;
    text += `--${changes}--\r\n--${batch}--\r\n`;
    return this.#client.call(
      "POST",
      "/$batch",
      { ...json, "content-type": `multipart/mixed; boundary=${batch}` },
      Buffer.from(text, "latin1"),
    );
  }

  close(): void {
    this.#client.close();
  }
}

const entityOf = ({ partitionKey, rowKey, data }: TableRow): string =>
  `{"PartitionKey":"${partitionKey}","RowKey":"${rowKey}","Data":"${data}"}`;

/** Returns true if the transaction was applied, with its status and that of the failed change. */
export function transactionStatus({ status, body }: SignedAnswer): { readonly ok: boolean; readonly busy: boolean } {
  const inner = Number(/HTTP\/1\.1 (\d{3})/.exec(body.toString("latin1", 0, 2_000))?.[1] ?? 0);
  return { ok: status === 202 && inner === 204, busy: status === 503 || inner === 503 };
}
