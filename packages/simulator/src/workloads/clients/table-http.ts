/** The Table REST API as workloads use it: entity group transactions, and queries page by page. */
import { fromUtf8, utf8 } from "@stamp/base";
import type { HttpClient, Received } from "./http-client.ts";

export interface TablePage<Shown> {
  readonly entities: readonly Shown[];
  /** Goes into the next question; empty: nothing follows. */
  readonly next: string;
}

/** `received`: what came instead of a page; undefined: nothing came, or it broke off. */
export type PageAnswer<Shown> = TablePage<Shown> | { readonly received: Received | undefined };

export async function queryPage<Shown>(
  http: HttpClient,
  table: string,
  filter: string,
  top: number,
  next: string,
): Promise<PageAnswer<Shown>> {
  const condition = filter === "" ? "" : `$filter=${encodeURIComponent(filter)}&`;
  const received = await http.request("GET", `/${table}()?${condition}$top=${top}${next}`, {
    accept: "application/json;odata=minimalmetadata",
  });
  if (received?.status !== 200 || received.short) return { received: received?.status === 200 ? undefined : received };
  const { value } = JSON.parse(fromUtf8(received.body)) as { value: Shown[] };
  const partition = received.headers["x-ms-continuation-nextpartitionkey"];
  const row = received.headers["x-ms-continuation-nextrowkey"] ?? "";
  if (partition === undefined) return { entities: value, next: "" };
  return { entities: value, next: `&NextPartitionKey=${encodeURIComponent(partition)}&NextRowKey=${encodeURIComponent(row)}` };
}

/** Returns the request of one change in a transaction. `body` is JSON. */
export function changeRequest(method: string, url: string, headers: Readonly<Record<string, string>>, body = ""): string {
  const lines = Object.entries({ "Content-Type": "application/json", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${url} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

export const entityPath = (table: string, partitionKey: string, rowKey: string): string =>
  `${table}(PartitionKey='${encodeURIComponent(partitionKey)}',RowKey='${rowKey}')`;

export const lengthOf = (body: Uint8Array, type: string): Record<string, string> => ({
  "content-length": String(body.length),
  "content-type": type,
});

/** Done, with the ETags in order; or what was answered: a refusal of one of its operations stands for all. */
export type TransactionAnswer = { readonly etags: readonly string[] } | { readonly received: Received | undefined };

export async function transaction(http: HttpClient, requests: readonly string[]): Promise<TransactionAnswer> {
  const parts = requests.map((one) => `--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n${one}\r\n`);
  const body = utf8(`--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${parts.join("")}--c--\r\n--b--\r\n`);
  const received = await http.request("POST", "/$batch", lengthOf(body, "multipart/mixed; boundary=b"), body);
  if (received?.status !== 202) return { received };
  if (received.short) return { received: undefined };
  const text = fromUtf8(received.body);
  const status = Number(/HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
  if (status >= 300) {
    const code = /x-ms-error-code: (\w+)/.exec(text)?.[1] ?? "";
    return { received: { ...received, status, headers: { "x-ms-error-code": code } } };
  }
  return { etags: [...text.matchAll(/ETag: (W\/"[^"]*")/g)].map(([, etag]) => etag as string) };
}
