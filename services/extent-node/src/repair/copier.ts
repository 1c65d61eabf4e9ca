/** Copies framed bytes of an extent from other replicas. Every frame is verified before it is written; a source that fails is left. */
import { concatBytes, type ExtentId, type Outcome, ok, refused } from "@stamp/base";
import { FrameFeed } from "@stamp/extent";
import { DiskError } from "@stamp/ports";
import { ExtentNode, toWire } from "@stamp/wire";
import { type Io, repairIo } from "../disk/disk-queue.ts";
import type { LocalExtent } from "../disk/local-extent.ts";
import type { Node } from "../node.ts";

const pieceBytes = 1024 * 1024;
const pieceTimeoutMs = 5_000;
/** Number of written bytes after which a copy is synced: a journal on the same file system waits for unwritten bytes. */
const syncBytesIdle = 4 * 1024 * 1024;
const syncBytesBesideClients = 1024 * 1024;

/** Gives the content of an extent from somewhere else than a replica. */
export interface RawSource {
  /** Name for messages. */
  readonly name: string;
  /** Returns exactly these bytes of the extent's address space. */
  read(offsetBytes: number, lengthBytes: number): Promise<Outcome<Uint8Array>>;
}

export interface CopyJob {
  readonly id: ExtentId;
  readonly path: string;
  readonly fromBytes: number;
  readonly toBytes: number;
  /** Checksum of the bytes [0, fromBytes). */
  readonly checksum: number;
  /** Creation number of the extent, for sources that are replicas; 0: it has none. */
  readonly creation: number;
  /** Addresses of replicas, or other sources; asked one after another. */
  readonly sources: readonly (string | RawSource)[];
  /** True if somebody may wait for the copy: it takes no turns with others and does not rest. */
  readonly urgent: boolean;
}

export interface CopyResult {
  /** Checksum of the bytes [0, toBytes). */
  readonly checksum: number;
  /** Lengths of the frames from `beginBytes` on. */
  readonly totals: number[];
  readonly beginBytes: number;
}

/** Copies [fromBytes, toBytes) into the file; if it succeeds, the bytes are synced. */
export async function copyInto(node: Node, job: CopyJob): Promise<Outcome<CopyResult>> {
  const { crc32c } = node.world.digest;
  const totals: number[] = [];
  let checksum = job.checksum;
  let at = job.fromBytes;
  let why = "no source was given";
  const steps = new Steps(node, job);
  for (const source of job.sources) {
    if (source === node.address) continue;
    const { name: address, read } = typeof source === "string" ? replicaAt(node, job, source) : source;
    const feed = new FrameFeed(crc32c, job.id, at);
    while (at < job.toBytes) {
      const offsetBytes = feed.nextBytes;
      const lengthBytes = Math.min(pieceBytes, job.toBytes - offsetBytes);
      const answer = await steps.fetch(() => read.call(source, offsetBytes, lengthBytes));
      if (!answer.ok) {
        why = `${address}: ${answer.failure.message}`;
        break;
      }
      const payload = answer.value;
      if (payload.length === 0 || payload.length > lengthBytes) {
        why = `${address}: gave ${payload.length} of ${lengthBytes} bytes`;
        break;
      }
      const fed = feed.push(payload);
      if (fed.kind === "invalid") {
        why = `${address}: ${fed.why} at ${fed.offsetBytes}`;
        break;
      }
      if (fed.bytes.length > 0) {
        await steps.write(fed.offsetBytes, fed.bytes);
        for (const total of fed.totals) totals.push(total);
        checksum = crc32c(fed.bytes, checksum);
        at = feed.endBytes;
      }
      if (feed.nextBytes >= job.toBytes && at < job.toBytes) {
        why = `${address}: the last frame does not end at ${job.toBytes}`;
        break;
      }
    }
    if (at === job.toBytes) {
      await node.store.files.sync(job.path, repairIo);
      return ok({ checksum, totals, beginBytes: job.fromBytes });
    }
  }
  if (at === job.toBytes) return ok({ checksum, totals, beginBytes: job.fromBytes });
  return refused("unavailable", "extentStale", `extent ${job.id} can't be copied beyond ${at} of ${job.toBytes}: ${why}`);
}

/** Returns a replica on another node as a source; it may give fewer bytes than asked for. */
function replicaAt(node: Node, { creation, id }: CopyJob, address: string): RawSource {
  const client = node.world.transport.client(address, ExtentNode);
  const read = async (offsetBytes: number, lengthBytes: number): Promise<Outcome<Uint8Array>> => {
    const request = { extentId: toWire(id), offsetBytes: toWire(offsetBytes), lengthBytes, creation: toWire(creation) };
    const answer = await client.readRaw(request, { timeoutMs: pieceTimeoutMs });
    return answer.ok ? ok(answer.value.payload) : answer;
  };
  return { name: address, read };
}

/** A copy in steps: a piece is fetched and written, in turns with other copies, and synced when enough was. */
class Steps {
  readonly #node: Node;
  readonly #job: CopyJob;
  readonly #startedMs: number;
  #fetchMs = 0;
  #copiedBytes = 0;
  #unsyncedBytes = 0;
  #operations: number;

  constructor(node: Node, job: CopyJob) {
    this.#node = node;
    this.#job = job;
    this.#startedMs = node.world.clock.monotonicMs();
    this.#operations = node.clientOperations;
  }

  async fetch<T>(ask: () => Promise<T>): Promise<T> {
    const { clock } = this.#node.world;
    const startedMs = clock.monotonicMs();
    const answer = await this.#node.copyTurns.working(ask);
    this.#fetchMs += clock.monotonicMs() - startedMs;
    return answer;
  }

  write(offsetBytes: number, bytes: Uint8Array): Promise<void> {
    const { copyTurns, world } = this.#node;
    if (this.#job.urgent) return this.#writeNow(offsetBytes, bytes);
    return copyTurns.alone(
      () => this.#writeNow(offsetBytes, bytes),
      (workedMs) => {
        const stepMs = workedMs + this.#fetchMs;
        this.#fetchMs = 0;
        const isBusy = this.#besideClients();
        this.#operations = this.#node.clientOperations;
        return isBusy ? { stepMs, elapsedMs: world.clock.monotonicMs() - this.#startedMs, copiedBytes: this.#copiedBytes } : undefined;
      },
    );
  }

  async #writeNow(offsetBytes: number, bytes: Uint8Array): Promise<void> {
    const { files } = this.#node.store;
    await files.write(this.#job.path, offsetBytes, [bytes], repairIo);
    this.#copiedBytes += bytes.length;
    this.#unsyncedBytes += bytes.length;
    if (this.#unsyncedBytes < (this.#besideClients() ? syncBytesBesideClients : syncBytesIdle)) return;
    await files.sync(this.#job.path, repairIo);
    this.#unsyncedBytes = 0;
  }

  /** True if something was done for clients since the last step. */
  #besideClients(): boolean {
    return this.#node.clientOperations > this.#operations;
  }
}

/**
 * Returns the crc32c of [0, lengthBytes) of this replica; known from the appends, or read. Undefined when it can't be read or a block is not what
 * was written: the first checksum that is told is what every other replica is measured by, so it is never of damaged content (rule
 * checksumOfVerified).
 */
export async function checksumOf(node: Node, extent: LocalExtent, lengthBytes: number, io: Io): Promise<number | undefined> {
  const known = extent.replica.checksumAt(lengthBytes);
  if (known !== undefined) return known;
  const { crc32c } = node.world.digest;
  const verified = node.world.rules.on("checksumOfVerified");
  let checksum = 0;
  const feed = new FrameFeed(crc32c, extent.replica.extentId, 0);
  try {
    for (let at = 0; at < lengthBytes; at += pieceBytes) {
      const wanted = Math.min(pieceBytes, lengthBytes - at);
      const piece = concatBytes([...(await node.store.read(extent, at, wanted, io))]);
      if (piece.length !== wanted) return undefined;
      checksum = crc32c(piece, checksum);
      if (verified && feed.push(piece).kind === "invalid") return undefined;
    }
    return verified && feed.endBytes < lengthBytes ? undefined : checksum;
  } catch (error) {
    if (error instanceof DiskError && (error.kind === "io" || error.kind === "notFound")) return undefined;
    throw error;
  }
}
