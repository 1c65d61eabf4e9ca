/** Scenarios of `stamp bench --budget`, with the size by which the yardstick is measured beside each. */
import { BlobClient, contentOf } from "@stamp/cli";
import { TableClient, transactionStatus } from "../rows/table-client.ts";
import { SignedClient } from "../signed-client.ts";

export interface Scenario {
  readonly name: string;
  /** Work of the yardstick meanwhile. */
  readonly like: { readonly method: "PUT" | "GET"; readonly bytes: number };
  readonly concurrency: number;
  prepare?(): Promise<void>;
  /** Throws if it was not done. */
  operation(number: number): Promise<void>;
}

const kib = 1024;
const mib = 1024 * kib;
const container = "budget";
const rows = 1_000;
const partition = "all";
const data = "x".repeat(960);

function must(answer: { readonly status?: number }, ...wanted: readonly number[]): void {
  if (!wanted.includes(answer.status ?? 0)) throw new Error(`an operation was not done: ${JSON.stringify(answer).slice(0, 300)}`);
}

async function all(count: number, concurrency: number, operation: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < count) await operation(next++);
    }),
  );
}

export interface Clients {
  readonly scenarios: readonly Scenario[];
  close(): void;
}

export function clientsOf(connectionString: string): Clients {
  const blobs = BlobClient.fromConnectionString(connectionString, { connectionsMax: 64, timeoutMs: 60_000 });
  const tables = new TableClient(connectionString);
  const queues = new SignedClient(connectionString, "queue");
  const small = contentOf("budget", kib);
  const large = contentOf("budget", 4 * mib);
  const put = async (name: string, body: Buffer): Promise<void> =>
    must((await blobs.put(container, name, body)) as { status?: number }, 201);
  const get = async (name: string): Promise<void> => must((await blobs.get(container, name)) as { status?: number }, 200);
  const row = (number: number) => ({ partitionKey: partition, rowKey: String(number).padStart(5, "0"), data });
  const message = Buffer.from(`<QueueMessage><MessageText>${"y".repeat(200)}</MessageText></QueueMessage>`);
  const scenarios: readonly Scenario[] = [
    {
      name: "put blob 1 KiB",
      like: { method: "PUT", bytes: kib },
      concurrency: 32,
      prepare: async () => must((await blobs.createContainer(container)) as { status?: number }, 201),
      operation: (number) => put(`small-${number}`, small),
    },
    { name: "get blob 1 KiB", like: { method: "GET", bytes: kib }, concurrency: 32, operation: (number) => get(`small-${number % 100}`) },
    {
      name: "put blob 4 MiB",
      like: { method: "PUT", bytes: 4 * mib },
      concurrency: 8,
      operation: (number) => put(`large-${number % 64}`, large),
    },
    { name: "get blob 4 MiB", like: { method: "GET", bytes: 4 * mib }, concurrency: 8, operation: (number) => get(`large-${number % 8}`) },
    {
      name: "list 1,000 blobs",
      like: { method: "GET", bytes: kib },
      concurrency: 4,
      prepare: () => all(rows, 32, (number) => put(`small-${number}`, small)),
      operation: async () =>
        must(
          (await blobs.call("GET", `/${container}?restype=container&comp=list&maxresults=1000&prefix=small-`, {})) as { status?: number },
          200,
        ),
    },
    {
      name: "table insert 1 KiB",
      like: { method: "PUT", bytes: kib },
      concurrency: 32,
      prepare: async () => must(await tables.createTable("inserts"), 201, 204),
      operation: async (number) => must(await tables.insertOne("inserts", { ...row(number), partitionKey: `p${number % 16}` }), 201, 204),
    },
    {
      name: "table point read",
      like: { method: "GET", bytes: kib },
      concurrency: 32,
      prepare: async () => {
        must(await tables.createTable("entities"), 201, 204);
        await all(rows / 100, 4, async (batch) => {
          const answer = await tables.insert(
            "entities",
            Array.from({ length: 100 }, (_, i) => row(batch * 100 + i)),
          );
          if (!transactionStatus(answer).ok) throw new Error(`a transaction was not done: ${answer.status}`);
        });
      },
      operation: async (number) => must(await tables.get("entities", partition, row(number % rows).rowKey), 200),
    },
    {
      name: "query 1,000 entities",
      like: { method: "GET", bytes: kib },
      concurrency: 4,
      operation: async () => must(await tables.query("entities", `PartitionKey eq '${partition}'`, rows), 200),
    },
    {
      name: "queue put",
      like: { method: "PUT", bytes: kib },
      concurrency: 32,
      prepare: async () => must(await queues.call("PUT", "/budget", {}), 201, 204),
      operation: async () => must(await queues.call("POST", "/budget/messages", {}, message), 201),
    },
  ];
  const close = (): void => {
    blobs.close();
    tables.close();
    queues.close();
  };
  return { scenarios, close };
}
