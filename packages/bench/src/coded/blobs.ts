/** Blobs of 4 MiB with random content, written through the front-end, and the extents that they fill. The hash of each blob is kept. */
import { createHash, randomFillSync } from "node:crypto";
import { BlobClient, type DrillTarget } from "@stamp/drills";
import { type ExtentInfo, ExtentState } from "@stamp/wire";
import { pause, until } from "../streams/bench.ts";
import { blockBytes } from "./stage.ts";

const container = "coded";
const writersAtOnce = 4;
const readersAtOnce = 4;
const answeredWithinMs = 120_000;
const wholeWithinMs = 300_000;
const retryPauseMs = 200;

/** A sealed extent that the blobs filled. */
export interface FilledExtent {
  readonly extentId: number;
  readonly lengthBytes: number;
}

const hashOf = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex");

const filledOf = ({ location }: ExtentInfo): FilledExtent => ({
  extentId: Number(location?.extentId),
  lengthBytes: Number(location?.sealedLengthBytes),
});

export class Blobs {
  readonly #target: DrillTarget;
  readonly #client: BlobClient;
  /** Hash of each blob that was acknowledged. */
  readonly #hashes: string[] = [];

  constructor(target: DrillTarget) {
    this.#target = target;
    this.#client = BlobClient.fromConnectionString(target.connectionString, { connectionsMax: 8, timeoutMs: 60_000 });
  }

  get count(): number {
    return this.#hashes.length;
  }

  async prepare(): Promise<void> {
    await answered("the container", 201, () => this.#client.createContainer(container));
  }

  /** Writes so many blobs, then waits until every sealed extent of blob data that is not coded has all of its replicas. Returns these. */
  async write(count: number): Promise<readonly FilledExtent[]> {
    const first = this.count;
    let next = first;
    const writer = async (): Promise<void> => {
      const content = new Uint8Array(blockBytes);
      while (next < first + count) {
        const number = next++;
        randomFillSync(content);
        this.#hashes[number] = hashOf(content);
        await answered(`blob ${number}`, 201, () => this.#client.put(container, String(number), content));
      }
    };
    await Promise.all(Array.from({ length: writersAtOnce }, writer));
    let filled: readonly ExtentInfo[] = [];
    await until("every sealed extent is whole", wholeWithinMs, async () => {
      const extents = await this.#target.inspector.extents();
      filled = extents.filter(
        ({ stream, state, coded }) => stream.endsWith("/blob-data") && state === ExtentState.SEALED && coded === undefined,
      );
      return filled.every(({ intactCopies, nodeIds }) => intactCopies === nodeIds.length);
    });
    return filled.map(filledOf);
  }

  /** Reads at most `countMax` blobs, evenly chosen, and compares their hashes. Throws at the first that differs. Returns how many it read. */
  async compare(countMax: number): Promise<number> {
    const stride = Math.max(1, this.count / countMax);
    const numbers = Array.from({ length: Math.min(this.count, countMax) }, (_, i) => Math.floor(i * stride));
    const waiting = numbers.values();
    const reader = async (): Promise<void> => {
      for (const number of waiting) {
        const body = await answered(`blob ${number}`, 200, () => this.#client.get(container, String(number)));
        if (hashOf(body) !== this.#hashes[number]) throw new Error(`blob ${number} has other bytes than were written`);
      }
    };
    await Promise.all(Array.from({ length: readersAtOnce }, reader));
    return numbers.length;
  }

  close(): void {
    this.#client.close();
  }
}

/** Repeats a request until it has this status, and returns the body. */
async function answered(what: string, status: number, ask: () => ReturnType<BlobClient["put"]>): Promise<Buffer> {
  const endMs = performance.now() + answeredWithinMs;
  for (;;) {
    const result = await ask();
    if (result.kind === "answer" && result.status === status) return result.body;
    const why = result.kind === "answer" ? `status ${result.status}` : result.why;
    if ((result.kind === "answer" && result.status < 500) || performance.now() > endMs) throw new Error(`${what}: ${why}`);
    await pause(retryPauseMs);
  }
}
