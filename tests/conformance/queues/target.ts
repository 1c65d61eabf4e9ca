/** What the conformance suite of the Queue service runs against: an endpoint, an account, and the real SDK on it. */
import { randomUUID } from "node:crypto";
import { type QueueClient, QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";
import { Clients, type ConformanceTarget } from "../target.ts";

/** Signed requests as given are the same for every service. */
export class QueueClients extends Clients {
  readonly queues: QueueServiceClient;
  readonly credential: StorageSharedKeyCredential;

  constructor(target: ConformanceTarget) {
    super(target);
    this.credential = new StorageSharedKeyCredential(target.accountName, target.accountKey);
    this.queues = new QueueServiceClient(`${target.endpoint}/${target.accountName}`, this.credential, { retryOptions: { maxTries: 1 } });
  }

  /** A fresh queue. */
  async queue(metadata: Record<string, string> = {}): Promise<QueueClient> {
    const client = this.queues.getQueueClient(`q-${randomUUID()}`);
    await client.create({ metadata });
    return client;
  }
}

/** The SDK's error of what must fail, as `status code`; fails the test when it does not. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    const { statusCode, code } = error as { statusCode?: number; code?: string };
    return `${statusCode} ${code}`;
  }
  throw new Error("it should have failed");
}

export const seconds = (count: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, count * 1000));
