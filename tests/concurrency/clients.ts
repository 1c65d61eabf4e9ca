/** What the scenarios use: one embedded stamp, and the real SDKs on it, without retries. */
import { randomUUID } from "node:crypto";
import { TableClient } from "@azure/data-tables";
import { BlobServiceClient, type BlockBlobClient, type ContainerClient } from "@azure/storage-blob";
import { type QueueClient, QueueServiceClient } from "@azure/storage-queue";
import { type Stamp, startStamp, threeOnDisk } from "@stamp/embedded";

export class World {
  readonly #stamp: Stamp;

  private constructor(stamp: Stamp) {
    this.#stamp = stamp;
  }

  static async start(): Promise<World> {
    return new World(await startStamp(threeOnDisk));
  }

  stop(): Promise<void> {
    return this.#stamp.stop();
  }

  get connectionString(): string {
    return this.#stamp.connectionString;
  }

  async container(): Promise<ContainerClient> {
    const service = BlobServiceClient.fromConnectionString(this.connectionString, { retryOptions: { maxTries: 1 } });
    const container = service.getContainerClient(`c-${randomUUID()}`);
    await container.create();
    return container;
  }

  async blob(text: string): Promise<BlockBlobClient> {
    const blob = (await this.container()).getBlockBlobClient("counter");
    await blob.upload(text, text.length);
    return blob;
  }

  async queue(): Promise<QueueClient> {
    const service = QueueServiceClient.fromConnectionString(this.connectionString, { retryOptions: { maxTries: 1 } });
    const queue = service.getQueueClient(`q-${randomUUID()}`);
    await queue.create();
    return queue;
  }

  async table(): Promise<TableClient> {
    const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
    const table = TableClient.fromConnectionString(this.connectionString, `T${randomUUID().replaceAll("-", "")}`, options);
    await table.createTable();
    return table;
  }
}

/** The status with which it was refused; fails the test when it was not. */
export async function refused(work: Promise<unknown>): Promise<number> {
  try {
    await work;
  } catch (error) {
    const { statusCode } = error as { statusCode?: number };
    if (statusCode !== undefined) return statusCode;
    throw error;
  }
  throw new Error("it should have been refused");
}

/** Tries again while it is refused because another was faster. */
export async function untilNotRefused<T>(
  status: number,
  attempt: () => Promise<T>,
): Promise<{ readonly value: T; readonly refusals: number }> {
  for (let refusals = 0; ; refusals++) {
    try {
      return { value: await attempt(), refusals };
    } catch (error) {
      if ((error as { statusCode?: number }).statusCode !== status || refusals > 1_000) throw error;
    }
  }
}
