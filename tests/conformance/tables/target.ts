/** What the conformance suite of the Table service runs against: an endpoint, an account, and the real SDK on it. */
import { randomUUID } from "node:crypto";
import { AzureNamedKeyCredential, RestError, TableClient, TableServiceClient } from "@azure/data-tables";
import type { ServiceName } from "@stamp/azure-rest";
import { Clients, type ConformanceTarget } from "../target.ts";

const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } } as const;

export class TableClients extends Clients {
  override readonly signing: ServiceName = "table";
  readonly tables: TableServiceClient;
  readonly credential: AzureNamedKeyCredential;
  readonly url: string;

  constructor(target: ConformanceTarget) {
    super(target);
    this.credential = new AzureNamedKeyCredential(target.accountName, target.accountKey);
    this.url = `${target.endpoint}/${target.accountName}`;
    this.tables = new TableServiceClient(this.url, this.credential, options);
  }

  client(table: string): TableClient {
    return new TableClient(this.url, table, this.credential, options);
  }

  /** As a SAS names it. */
  clientBy(sas: string, table: string): TableClient {
    return new TableClient(`${this.url}?${sas}`, table, options);
  }

  /** A fresh table. */
  async table(): Promise<TableClient> {
    const client = this.client(freshName());
    await client.createTable();
    return client;
  }

  /** An answer in JSON. */
  async json(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const accept = { accept: "application/json;odata=minimalmetadata", ...headers };
    const answer = await this.raw(method, path, {
      headers: body === undefined ? accept : { "content-type": "application/json", ...accept },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, body: text.startsWith("{") ? JSON.parse(text) : undefined };
  }
}

export const freshName = (): string => `T${randomUUID().replaceAll("-", "")}`;

/** The SDK's error of what must fail, as `status code`, with the index of a transaction's change before the code; fails the test otherwise. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof RestError)) throw error;
    const details = error.details as { odataError?: { code?: string }; errorCode?: string } | undefined;
    const index = /^(\d+):/.exec(error.message)?.[1];
    const code = error.code ?? details?.odataError?.code ?? details?.errorCode ?? "";
    return `${error.statusCode} ${index === undefined ? "" : `${index}:`}${code}`;
  }
  throw new Error("it should have failed");
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

export type EdmTypes = "Binary" | "Boolean" | "DateTime" | "Double" | "Guid" | "Int32" | "Int64" | "String";
