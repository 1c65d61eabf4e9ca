/**
 * Clients of the SDKs that write entities and blobs of an account at one stamp, each under a name of its own, and remember what was
 * acknowledged and when.
 */
import type { TestContext } from "node:test";
import { AzureNamedKeyCredential, TableClient } from "@azure/data-tables";
import { BlobServiceClient, type ContainerClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import { until } from "./two-stamps.ts";

export interface Write {
  /** "PartitionKey/RowKey" of an entity; name of a blob. */
  readonly name: string;
  readonly kind: "entity" | "blob";
  /** When its acknowledgement arrived, in milliseconds since 1970. */
  readonly ackedMs: number;
  /** Time of the write as its stamp told it in the ETag of an entity, in milliseconds since 1970; undefined for a blob. */
  readonly writtenMs: number | undefined;
}

/** A failed attempt. */
export interface FailedWrite {
  readonly kind: Write["kind"];
  /** HTTP status, or the code of the connection's error. */
  readonly code: string;
}

export interface Doors {
  readonly table: TableClient;
  readonly container: ContainerClient;
}

/** `portBase`: ports of the stamp. `host`: the account's name in the path, also with "-secondary". `tries`: attempts of the SDK. */
export function doorsOf(portBase: number, host: string, key: string, tries: number): Doors {
  const retryOptions = { maxRetries: tries - 1, retryDelayInMs: 100, maxRetryDelayInMs: 1_000 };
  const account = host.replace(/-secondary$/, "");
  const credential = new AzureNamedKeyCredential(account, key);
  const options = { allowInsecureConnection: true, retryOptions };
  const table = new TableClient(`http://127.0.0.1:${portBase + 2}/${host}`, "kept", credential, options);
  const shared = new StorageSharedKeyCredential(account, key);
  const blobs = { retryOptions: { maxTries: tries, retryDelayInMs: 100, maxRetryDelayInMs: 1_000 } };
  return { table, container: new BlobServiceClient(`http://127.0.0.1:${portBase}/${host}`, shared, blobs).getContainerClient("kept") };
}

const partitions = ["foo", "bar", "baz"] as const;
const blobBytes = 20_000;
/** Returns what a writer stores as the blob of this name. */
export const blobContent = (name: string): Buffer => Buffer.alloc(blobBytes, name);
/** After a failed attempt a writer waits, as programs do. */
const pauseMs = 100;

/** Writes until it is stopped, at the latest at the end of its test: a test that failed would go on writing, and its process would not end. */
export class Writers {
  readonly acked: Write[] = [];
  readonly failed: FailedWrite[] = [];
  readonly #stopping = new AbortController();
  readonly #running: Promise<unknown>;
  readonly #doors: Doors;
  readonly #prefix: string;

  constructor(t: TestContext, doors: Doors, prefix: string) {
    t.after(() => this.#stopping.abort());
    this.#doors = doors;
    this.#prefix = prefix;
    this.#running = Promise.all([...partitions.map((partition) => this.#entities(partition)), ...[1, 2].map((at) => this.#blobs(at))]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  #entities(partitionKey: string): Promise<void> {
    return this.#write("entity", async (at) => {
      const rowKey = `${this.#prefix}-${String(at).padStart(6, "0")}`;
      const { etag = "" } = await this.#doors.table.createEntity({ partitionKey, rowKey, at });
      return { name: `${partitionKey}/${rowKey}`, writtenMs: msOfETag(etag) };
    });
  }

  #blobs(writer: number): Promise<void> {
    return this.#write("blob", async (at) => {
      const name = `${this.#prefix}-${writer}-${String(at).padStart(6, "0")}`;
      await this.#doors.container.getBlockBlobClient(name).upload(blobContent(name), blobBytes);
      return { name, writtenMs: undefined };
    });
  }

  async #write(kind: Write["kind"], one: (at: number) => Promise<Pick<Write, "name" | "writtenMs">>): Promise<void> {
    for (let at = 0; !this.#stopping.signal.aborted; at++) {
      try {
        this.acked.push({ kind, ...(await one(at)), ackedMs: Date.now() });
      } catch (error) {
        const { statusCode, code } = error as { statusCode?: number; code?: string };
        this.failed.push({ kind, code: String(statusCode ?? code ?? error) });
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }
}

/** The ETag of an entity is its Timestamp. */
function msOfETag(etag: string): number {
  const text = /datetime'(.+)'/.exec(decodeURIComponent(etag))?.[1];
  if (text === undefined) throw new Error(`an entity's ETag without a time: ${etag}`);
  return Date.parse(text);
}

/** Waits until `count` more writes of each kind are acknowledged. */
export async function untilAcked({ acked, failed }: Writers, count: number): Promise<void> {
  const from = acked.length;
  const added = (): number[] => (["entity", "blob"] as const).map((kind) => acked.slice(from).filter((each) => each.kind === kind).length);
  await until(`${count} more acknowledged writes of each kind; the last failures: ${JSON.stringify(failed.slice(-3))}`, added, (counts) =>
    counts.every((each) => each >= count),
  );
}

/** Names of everything that a stamp has: entities as "PartitionKey/RowKey", and blobs. */
export async function present({ table, container }: Doors): Promise<Set<string>> {
  const names = new Set<string>();
  for await (const { partitionKey, rowKey } of table.listEntities({ queryOptions: { select: ["PartitionKey", "RowKey"] } }))
    names.add(`${partitionKey}/${rowKey}`);
  for await (const { name } of container.listBlobsFlat()) names.add(name);
  return names;
}
