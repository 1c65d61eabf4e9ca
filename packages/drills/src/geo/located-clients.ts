/**
 * Clients of the Azure SDKs that write entities and blobs of an account with two stamps. Each object has a name of its own, and a content
 * that follows from the name, so that whoever reads it knows what it has to be.
 *
 * A client knows the addresses of both stamps. If one refuses a write or does not answer, the client tries the other one, as a program does
 * whose name of the account was pointed at another stamp.
 */
import { createHash } from "node:crypto";
import { AzureNamedKeyCredential, TableClient, TableTransaction } from "@azure/data-tables";
import { BlobServiceClient, type ContainerClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import type { StampName, TwoStamps } from "./two-stamps.ts";

export interface Doors {
  readonly stamp: StampName;
  readonly table: TableClient;
  readonly container: ContainerClient;
}

export interface Write {
  /** "PartitionKey/RowKey" of an entity; name of a blob. */
  readonly name: string;
  readonly kind: "entity" | "blob";
  readonly stamp: StampName;
  /** Time at which its first attempt began and when its acknowledgement arrived, in milliseconds of `performance.now()`. */
  readonly startMs: number;
  readonly endMs: number;
  /** The latter, in milliseconds since 1970. */
  readonly ackedMs: number;
  /** Time of the write as its stamp told it in the ETag of an entity, in milliseconds since 1970; undefined for a blob. */
  readonly writtenMs: number | undefined;
}

const objects = "drill";
const attemptTimeoutMs = 10_000;
const pauseMs = 50;
const smallBlobBytes = 1_024;
const largeBlobBytes = 4 * 1024 * 1024;
const entitiesOfOneTransaction = 100;
const transactionsOfOnePartition = 50;
const preparedAtOnce = 8;
const readsAtOnce = 16;

/** `secondary`: read-only name of the account's copy. `tries`: attempts of the SDK for each call. */
export function doorsOf(stamps: TwoStamps, stamp: StampName, key: string, { secondary = false, tries = 1 } = {}): Doors {
  const { account } = stamps;
  const host = secondary ? `${account}-secondary` : account;
  const port = stamps.portOf(stamp);
  const retryOptions = { maxRetries: tries - 1, retryDelayInMs: 200, maxRetryDelayInMs: 1_000 };
  const table = new TableClient(`http://127.0.0.1:${port + 2}/${host}`, objects, new AzureNamedKeyCredential(account, key), {
    allowInsecureConnection: true,
    retryOptions,
  });
  const blobs = new BlobServiceClient(`http://127.0.0.1:${port}/${host}`, new StorageSharedKeyCredential(account, key), {
    retryOptions: { maxTries: tries, retryDelayInMs: 200, maxRetryDelayInMs: 1_000, tryTimeoutInMs: attemptTimeoutMs },
  });
  return { stamp, table, container: blobs.getContainerClient(objects) };
}

const textOf = (name: string): string => createHash("sha256").update(name).digest("hex");

function bytesOf(name: string): Buffer {
  return Buffer.alloc(name.startsWith("large-") ? largeBlobBytes : smallBlobBytes, createHash("sha512").update(name).digest());
}

const entityOf = (name: string) => {
  const [partitionKey = "", rowKey = ""] = name.split("/");
  return { partitionKey, rowKey, text: textOf(name) };
};

async function atOnce<T>(count: number, all: Iterable<T>, work: (one: T) => Promise<void>): Promise<void> {
  const rest = all[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: count }, worker));
}

/** Makes table and container, and fills them: nine tenths of the objects are entities, the others blobs of 1 KiB. Returns all names. */
export async function prepare({ table, container }: Doors, count: number, largeBlobs: number): Promise<string[]> {
  await table.createTable();
  await container.create();
  const blobs = [
    ...Array.from({ length: Math.floor(count / 10) }, (_, at) => `small-${String(at).padStart(7, "0")}`),
    ...Array.from({ length: largeBlobs }, (_, at) => `large-${String(at).padStart(5, "0")}`),
  ];
  const transactions = Math.ceil((count - Math.floor(count / 10)) / entitiesOfOneTransaction);
  const entities = Array.from({ length: transactions }, (_, at) => {
    const partition = `prepared${Math.floor(at / transactionsOfOnePartition)}`;
    return Array.from({ length: entitiesOfOneTransaction }, (_each, row) => `${partition}/${at}-${String(row).padStart(3, "0")}`);
  });
  await atOnce(preparedAtOnce, entities, async (names) => {
    const actions = new TableTransaction();
    for (const name of names) actions.createEntity(entityOf(name));
    await table.submitTransaction(actions.actions);
  });
  await atOnce(preparedAtOnce, blobs, async (name) => {
    await container.getBlockBlobClient(name).uploadData(bytesOf(name));
  });
  return [...entities.flat(), ...blobs];
}

/** Clients that write until they are stopped: three of entities, two of blobs. */
export class LocatedClients {
  readonly acked: Write[] = [];
  /** Failed attempts by stamp and code: an HTTP status, or the code of a connection's error. */
  readonly errors = new Map<string, number>();
  readonly #doors: readonly Doors[];
  readonly #prefix: string;
  readonly #stopping = new AbortController();
  readonly #running: Promise<unknown>;

  /** Clients of one stamp or of both, by their `doors`. */
  constructor(doors: readonly Doors[], prefix: string) {
    this.#doors = doors;
    this.#prefix = prefix;
    const clients = [...["foo", "bar", "baz"].map((partition) => this.#entities(partition)), ...[1, 2].map((at) => this.#blobs(at))];
    this.#running = Promise.all(clients);
  }

  get failed(): number {
    return [...this.errors.values()].reduce((sum, count) => sum + count, 0);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  #entities(partition: string): Promise<void> {
    const nameOf = (at: number): string => `${partition}/${this.#prefix}-${String(at).padStart(6, "0")}`;
    return this.#write("entity", nameOf, async ({ table }, name) => {
      // A repeated attempt finds what an attempt of before has written without an answer.
      const { etag = "" } = await table.upsertEntity(entityOf(name), "Replace", { abortSignal: AbortSignal.timeout(attemptTimeoutMs) });
      return Date.parse(/datetime'(.+)'/.exec(decodeURIComponent(etag))?.[1] ?? "");
    });
  }

  #blobs(client: number): Promise<void> {
    const nameOf = (at: number): string => `${this.#prefix}-${client}-${String(at).padStart(6, "0")}`;
    return this.#write("blob", nameOf, async ({ container }, name) => {
      const options = { abortSignal: AbortSignal.timeout(attemptTimeoutMs) };
      await container.getBlockBlobClient(name).upload(bytesOf(name), smallBlobBytes, options);
      return undefined;
    });
  }

  async #write(
    kind: Write["kind"],
    nameOf: (at: number) => string,
    one: (doors: Doors, name: string) => Promise<number | undefined>,
  ): Promise<void> {
    let door = 0;
    for (let at = 0; !this.#stopping.signal.aborted; at++) {
      const name = nameOf(at);
      const startMs = performance.now();
      // Attempts of one write go on until it is acknowledged.
      while (!this.#stopping.signal.aborted) {
        const doors = this.#doors[door % this.#doors.length] as Doors;
        try {
          const writtenMs = await one(doors, name);
          this.acked.push({ name, kind, stamp: doors.stamp, startMs, endMs: performance.now(), ackedMs: Date.now(), writtenMs });
          break;
        } catch (error) {
          const { statusCode, code, name: named } = error as { statusCode?: number; code?: string; name?: string };
          const told = `${doors.stamp} ${statusCode ?? code ?? named}`;
          this.errors.set(told, (this.errors.get(told) ?? 0) + 1);
          door++;
          await new Promise((resolve) => setTimeout(resolve, pauseMs));
        }
      }
    }
  }
}

/** Reads everything that a stamp has. Returns the names, and what has another content than it has to have. */
export async function readAll({
  table,
  container,
}: Doors): Promise<{ readonly names: ReadonlySet<string>; readonly wrong: readonly string[] }> {
  const names = new Set<string>();
  const wrong: string[] = [];
  for await (const { partitionKey, rowKey, text } of table.listEntities<{ text: string }>()) {
    const name = `${partitionKey}/${rowKey}`;
    names.add(name);
    if (text !== textOf(name)) wrong.push(name);
  }
  const blobs: string[] = [];
  for await (const { name } of container.listBlobsFlat()) blobs.push(name);
  await atOnce(readsAtOnce, blobs, async (name) => {
    names.add(name);
    if (!(await container.getBlobClient(name).downloadToBuffer()).equals(bytesOf(name))) wrong.push(name);
  });
  return { names, wrong };
}
