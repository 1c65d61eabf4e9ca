/** A client of the real SDK that puts and reads blobs without end, and notes each answer: for tests of a stamp over etcd. */
import { strict as assert } from "node:assert";
import { setTimeout as sleep } from "node:timers/promises";
import { type BlobDownloadResponseParsed, BlobServiceClient, RestError } from "@azure/storage-blob";

export interface Answer {
  readonly kind: "put" | "get";
  readonly startedMs: number;
  readonly tookMs: number;
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** Puts fresh blobs and reads them, one call after another; no call is tried again. */
export class BlobCalls {
  readonly answers: Answer[] = [];
  readonly #blobs;
  readonly #working: Promise<void>[];
  readonly #acknowledged: string[] = [];
  #stopped = false;

  constructor(connectionString: string) {
    const retryOptions = { maxTries: 1, tryTimeoutInMs: 60_000 };
    this.#blobs = BlobServiceClient.fromConnectionString(connectionString, { retryOptions }).getContainerClient("members");
    this.#working = [this.#work("put"), this.#work("get")];
  }

  since(startedMs: number, kind?: Answer["kind"]): readonly Answer[] {
    return this.answers.filter((each) => each.startedMs >= startedMs && (kind === undefined || each.kind === kind));
  }

  async until(what: string, withinMs: number, holds: () => boolean): Promise<void> {
    for (const endMs = performance.now() + withinMs; !holds(); await sleep(50)) {
      if (performance.now() < endMs) continue;
      throw new Error(`${what} did not come within ${withinMs} ms: ${JSON.stringify(this.answers.slice(-6))}`);
    }
  }

  /** Reads every acknowledged blob. */
  async stop(): Promise<number> {
    this.#stopped = true;
    await Promise.all(this.#working);
    for (const name of this.#acknowledged) {
      assert.equal(await textOf(await this.#blobs.getBlobClient(name).download()), name);
    }
    return this.#acknowledged.length;
  }

  async #work(kind: Answer["kind"]): Promise<void> {
    await this.#blobs.createIfNotExists().catch(() => {});
    for (let i = 0; !this.#stopped; i++) {
      const startedMs = performance.now();
      const told = { status: 200, code: "", message: "" };
      try {
        if (kind === "put") {
          await this.#blobs.getBlockBlobClient(`b${i}`).upload(`b${i}`, `b${i}`.length);
          this.#acknowledged.push(`b${i}`);
        } else await textOf(await this.#blobs.getBlobClient(this.#acknowledged.at(-1) ?? "b0").download());
      } catch (error) {
        if (!(error instanceof RestError)) throw error;
        if (error.statusCode === 404 && this.#acknowledged.length === 0) continue;
        Object.assign(told, { status: error.statusCode ?? 0, code: error.code ?? "", message: error.message });
      }
      this.answers.push({ kind, startedMs, tookMs: performance.now() - startedMs, ...told });
      await sleep(50);
    }
  }
}

async function textOf({ readableStreamBody }: BlobDownloadResponseParsed): Promise<string> {
  let text = "";
  for await (const part of readableStreamBody ?? []) text += part.toString();
  return text;
}

export const isOk = ({ status }: Answer): boolean => status === 200;
