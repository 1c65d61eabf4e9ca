/**
 * Slow uploads beside a fast collector: each brings its body in pieces that are far apart, so that its first bytes lie in full extents long
 * before a row refers to them, while other blobs come and go, ranges are split, merged and moved, and partition servers die. A term of
 * pins is a fifth of an upload. No upload that goes on may be refused because its bytes were given back, and each reads back as it was put.
 * Others are given up half-way.
 *
 * In the end all blobs are deleted while ranges are moved again and again: what was settled before must be given back meanwhile. Then
 * everything goes, also what was given up.
 */
import type { Prng } from "@stamp/base";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import { blobDoor } from "./blobs.ts";
import { HttpClient } from "./clients/http-client.ts";
import { simulatedCluster, type WholeCluster } from "./cluster.ts";
import { type Collecting, GarbageJudge } from "./faults/garbage.ts";
import { Reshapes } from "./reshapes.ts";
import type { Tally } from "./run/workload.ts";

const uploaders = 2;
const uploadsEach = 1;
const pieces = 8;
const pieceBytes = 64 * 1024;
const pauseMs = 5_000;
const pinTermMs = 8_000;
/** Half a term. */
const movesEveryMs = 4_000;
const uploadTimeoutMs = 300_000;
const readyWithinMs = 60_000;
const settledWithinMs = 15_000;
const backWithinMs = 60_000;
const collecting: Collecting = {
  soon: true,
  options: {
    partitionServer: { collectEveryMs: 1_500, pinTermMs, collectGoneMs: 8_000, extentTargetBytes: 128 * 1024 },
    streamManager: { deletionGraceMs: 1_000 },
  },
};

export async function uploadWorkload(sim: Simulation, tally: Tally): Promise<void> {
  const cluster = simulatedCluster(sim, { partitionServers: 3, ...collecting.options, frontEnd: { pieceBytes } });
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const run = new Run(sim, tally, cluster);
  await run.open();
  await run.upload();
  await run.readBack();
  await run.moveAndDelete();
  await run.allGoes();
}

class Run {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #cluster: WholeCluster;
  readonly #judge: GarbageJudge;
  readonly #servers: readonly string[];
  readonly #faults: Record<string, number> = {};
  /** Fill of each blob, by name. */
  readonly #written = new Map<string, number>();

  constructor(sim: Simulation, tally: Tally, cluster: WholeCluster) {
    this.#sim = sim;
    this.#tally = tally;
    this.#cluster = cluster;
    this.#judge = new GarbageJudge(sim, tally, cluster, collecting, "Blob");
    this.#servers = cluster.processes.filter((name) => name.startsWith("partition-server-"));
    tally.faults = this.#faults;
  }

  async open(): Promise<void> {
    const client = this.#client("opener");
    await this.#sim.until(
      async () => (await client.request("PUT", "/ups?restype=container", {}))?.status === 201,
      readyWithinMs,
      "a container",
    );
  }

  async upload(): Promise<void> {
    let over = false;
    const all = Promise.all([
      ...Array.from({ length: uploaders }, (_, i) => this.#slowUploads(i, this.#sim.prng.fork())),
      this.#givenUp(),
    ]).finally(() => {
      over = true;
    });
    await Promise.all([all, this.#churn(() => !over), this.#trouble(() => !over, this.#sim.prng.fork())]);
  }

  async #slowUploads(uploader: number, prng: Prng): Promise<void> {
    const client = this.#client(`uploader-${uploader}`, uploadTimeoutMs);
    for (let i = 0; i < uploadsEach; i++) {
      const blob = `slow-${uploader}-${i}`;
      const fill = 1 + prng.below(250);
      const body = new Uint8Array(pieces * pieceBytes).fill(fill);
      const answer = await client.request("PUT", `/ups/${blob}`, { "x-ms-blob-type": "BlockBlob" }, body, pauseMs + prng.below(1_000));
      if (answer?.status === 201) this.#written.set(blob, fill);
      const text = new TextDecoder().decode(answer?.body);
      if (text.includes("badPlace")) throw new BrokenPromise(`the upload of ${blob} went on, and its bytes were given back: ${text}`);
      this.#count(`slow uploads: ${answer?.status ?? "no answer"}`);
    }
  }

  /** Bytes that no row will ever refer to. */
  async #givenUp(): Promise<void> {
    const client = this.#client("leaver", 3 * pauseMs);
    const body = new Uint8Array(pieces * pieceBytes).fill(9);
    await client.request("PUT", "/ups/given-up", { "x-ms-blob-type": "BlockBlob" }, body, pauseMs);
  }

  /** Blobs that fill extents and are deleted: collectors have something to do all the time. */
  async #churn(going: () => boolean): Promise<void> {
    const client = this.#client("churn");
    const body = new Uint8Array(pieceBytes).fill(7);
    for (let i = 0; going(); i++) {
      await client.request("PUT", `/ups/churn-${i}`, { "x-ms-blob-type": "BlockBlob" }, body);
      await client.request("DELETE", `/ups/churn-${i - 2}`, {});
      await this.#sim.sleep(1_500);
    }
    for (const blob of await this.#left(client)) if (blob.startsWith("churn")) await client.request("DELETE", `/ups/${blob}`, {});
  }

  async #left(client: HttpClient): Promise<readonly string[]> {
    const listed = await client.request("GET", "/ups?restype=container&comp=list", {});
    return [...new TextDecoder().decode(listed?.body).matchAll(/<Name>([^<]*)<\/Name>/g)].map(([, blob]) => blob as string);
  }

  async #trouble(going: () => boolean, prng: Prng): Promise<void> {
    const reshapes = new Reshapes(this.#sim, { cluster: this.#cluster, table: "Blob", key: () => undefined, weight: 0 });
    while (going()) {
      // Longer than a server's lease, its ranges' loads and a few renewals: what is out of reach for a term may lose its bytes.
      await this.#sim.sleep(9_000 + prng.below(9_000));
      if (prng.chance(0.7)) reshapes.begin(prng);
      else {
        this.#faults["server dies"] = (this.#faults["server dies"] ?? 0) + 1;
        this.#sim.crash(prng.pick(this.#servers));
      }
    }
    Object.assign(this.#faults, reshapes.counts);
  }

  async readBack(): Promise<void> {
    const client = this.#client("reader");
    for (const [blob, fill] of this.#written) {
      await this.#sim.until(
        async () => {
          const got = await client.request("GET", `/ups/${blob}`, {});
          if (got?.status !== 200 || got.short) return false;
          const same = got.body.length === pieces * pieceBytes && got.body.every((byte) => byte === fill);
          if (!same) throw new BrokenPromise(`${blob} reads back otherwise than it was put`);
          return true;
        },
        60_000,
        `${blob} is read`,
      );
    }
  }

  async moveAndDelete(): Promise<void> {
    const client = this.#client("deleter");
    await this.#sim.sleep(settledWithinMs);
    const moves = new Reshapes(this.#sim, { cluster: this.#cluster, table: "Blob", key: () => undefined, weight: 0, movesOnly: true });
    let over = false;
    const moving = (async () => {
      const prng = this.#sim.prng.fork();
      for (; !over; await this.#sim.sleep(movesEveryMs)) moves.begin(prng);
    })();
    await this.#sim.sleep(2 * movesEveryMs);
    const startMs = this.#sim.nowMs;
    await this.#sim.until(
      async () => {
        const left = await this.#left(client);
        for (const blob of left) await client.request("DELETE", `/ups/${blob}`, {});
        return left.length === 0;
      },
      backWithinMs,
      "all blobs are deleted",
    );
    const extents = async (): Promise<number> =>
      (await this.#judge.dataExtents())?.reduce((sum, one) => sum + Math.max(0, one.length - 2), 0) ?? 1;
    while ((await extents()) > 0) {
      if (this.#sim.nowMs - startMs > backWithinMs) {
        throw new BrokenPromise(
          `${await extents()} extents of deleted blobs are not given back within ${backWithinMs} ms while ranges are moved`,
        );
      }
      await this.#sim.sleep(500);
    }
    const tookMs = Math.round(this.#sim.nowMs - startMs);
    this.#tally.most["ms until space was back while ranges moved"] = tookMs;
    over = true;
    await moving;
  }

  async allGoes(): Promise<void> {
    await this.#judge.allGoes(blobDoor(this.#sim, this.#cluster, "closer", 0), ["ups"]);
  }

  #client(name: string, timeoutMs?: number): HttpClient {
    return new HttpClient(this.#sim, this.#sim.world(name), name, this.#cluster, "blob", timeoutMs);
  }

  #count(what: string): void {
    this.#tally.counts[what] = (this.#tally.counts[what] ?? 0) + 1;
  }
}
