/**
 * Several clients put, get, update under If-Match, delete and list a few blobs in two containers, which are deleted and made again at
 * times, while faults come. Then everything heals; within a bound every blob can be read again; and one order of all operations must
 * explain every answer, the last reads included.
 */
import { makeToken } from "@stamp/azure-rest";
import type { Prng } from "@stamp/base";
import type { BlobAnswer, BlobCall, BlobCondition as Condition } from "@stamp/linearizability";
import type { Tally } from "../cli/run-seed.ts";
import type { Simulation } from "../simulation.ts";
import { BrokenPromise } from "../simulation.ts";
import type { Answer, BlobDoor } from "./blob-client.ts";
import { BlobClient } from "./blob-client.ts";
import { BlobHistory, contentOf, isBlobAnswer, writeOf } from "./blob-history.ts";
import type { WholeCluster } from "./cluster.ts";
import { simulatedCluster } from "./cluster.ts";
import type { Focus } from "./faults.ts";
import { Faults } from "./faults.ts";
import { HttpBlobClient } from "./http-blob-client.ts";
import { TransactionClient } from "./transaction-client.ts";

const clientCount = 4;
const operationsPerClient = 50;
const pauseMaxMs = 1_000;
const workMs = (operationsPerClient * pauseMaxMs) / 2;
const readyWithinMs = 60_000;
/** After the last fault everything is served again within this. */
const healedWithinMs = 60_000;

export function blobWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  return objectWorkload(sim, tally, focus, blobDoor);
}

/** The same with tables and transactions: what is put is put by a transaction of several entities. */
export function tableWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  return objectWorkload(
    sim,
    tally,
    focus,
    (...[simulation, cluster, name]) => new TransactionClient(simulation, simulation.world(name), name, cluster),
  );
}

type DoorOf = (sim: Simulation, cluster: WholeCluster, name: string, index: number) => BlobDoor;

/** Every second client speaks HTTP, the others gRPC. */
const blobDoor: DoorOf = (sim, cluster, name, index) => {
  const world = sim.world(name);
  if (index % 2 === 0) return new HttpBlobClient(sim, world, name, cluster);
  const expiresMs = world.clock.wallMs() + 24 * 3600_000;
  const token = makeToken({ account: cluster.account, expiresMs }, cluster.accountKey, (key, message) =>
    world.digest.hmacSha256(key, message),
  );
  return new BlobClient(world, cluster.frontEnd, cluster.account, token);
};

async function objectWorkload(sim: Simulation, tally: Tally, focus: Focus | undefined, doorOf: DoorOf): Promise<void> {
  const cluster = simulatedCluster(sim);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const names = new Map([
    ["left", ["a", "b", "c"]],
    ["right", ["a", "z/y"]],
  ]);
  const run = new Run(sim, tally, names);
  const clients = Array.from({ length: clientCount }, (_, i) => `client-${i + 1}`);
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 5, focus, withinMs: workMs });
  tally.faults = faults.counts;
  const first = doorOf(sim, cluster, "client-1", sim.prng.below(2));
  for (const container of names.keys()) await run.createContainer(first, container);
  faults.start();
  await Promise.all(clients.map((name, i) => run.work(doorOf(sim, cluster, name, i), sim.prng.fork())));
  await faults.heal();
  await run.readBack(first);
  const wrong = run.history.check();
  if (wrong !== undefined) throw new BrokenPromise(wrong);
  for (const name of run.history.undecided) sim.note("not decided", name);
  if (run.history.undecided.length > 0) tally.counts["NOT DECIDED histories"] = run.history.undecided.length;
}

class Run {
  readonly history: BlobHistory;
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #names: ReadonlyMap<string, readonly string[]>;
  readonly #etags = new Map<string, string>();
  #writeNext = 1;

  constructor(sim: Simulation, tally: Tally, names: ReadonlyMap<string, readonly string[]>) {
    this.#sim = sim;
    this.#tally = tally;
    this.#names = names;
    this.history = new BlobHistory(names);
  }

  async work(client: BlobDoor, prng: Prng): Promise<void> {
    for (let i = 0; i < operationsPerClient; i++) {
      await this.#sim.sleep(prng.float() * pauseMaxMs);
      const container = prng.pick([...this.#names.keys()]);
      const blob = prng.pick(this.#names.get(container) as readonly string[]);
      const dice = prng.below(100);
      if (dice < 30) await this.#put(client, container, blob, prng, { kind: "none" });
      else if (dice < 45) await this.#put(client, container, blob, prng, this.#match(container, blob));
      else if (dice < 50) await this.#put(client, container, blob, prng, { kind: "absent" });
      else if (dice < 80) await this.get(client, container, blob);
      else if (dice < 86) await this.#delete(client, container, blob, { kind: "none" });
      else if (dice < 90) await this.#delete(client, container, blob, this.#match(container, blob));
      else if (dice < 96) await this.#list(client, container);
      else {
        await this.#deleteContainer(client, container);
        await this.#sim.sleep(prng.float() * 300);
        await this.createContainer(client, container);
      }
    }
  }

  async createContainer(client: BlobDoor, container: string): Promise<void> {
    await this.#seen(
      container,
      undefined,
      () => client.createContainer(container),
      (answer) => ({ kind: "createContainer", answer }),
    );
  }

  /** After the last fault: every name is answered for, twice the same, and the listing agrees. */
  async readBack(client: BlobDoor): Promise<void> {
    const endMs = this.#sim.nowMs + healedWithinMs;
    const retried = async (what: string, attempt: () => Promise<boolean>): Promise<void> => {
      while (!(await attempt())) {
        if (this.#sim.nowMs > endMs) throw new BrokenPromise(`not served within ${healedWithinMs} ms after the last fault: ${what}`);
        await this.#sim.sleep(200);
      }
    };
    for (const [container, blobs] of this.#names) {
      const present = new Set<string>();
      for (const blob of blobs) {
        await retried(`get ${container}/${blob}`, async () => {
          const answer = await this.get(client, container, blob);
          if (answer === "ok") present.add(blob);
          return answer !== "unknown" && answer !== "notDone";
        });
      }
      // Nobody writes now: what the listing shows is what the reads saw.
      await retried(`list ${container}`, async () => {
        const answer = await this.#list(client, container);
        if (answer === undefined) return false;
        const listed = [...answer].sort().join(",");
        const read = [...present].sort().join(",");
        if (listed !== read) throw new BrokenPromise(`${container} lists [${listed}], reads see [${read}]`);
        return true;
      });
      // It still takes writes.
      await retried(`put ${container}`, async () => {
        await this.createContainer(client, container);
        return (await this.#put(client, container, blobs[0] as string, this.#sim.prng, { kind: "none" })) === "ok";
      });
    }
  }

  async get(client: BlobDoor, container: string, blob: string): Promise<string> {
    return this.#seen(
      container,
      blob,
      async () => {
        const answer = await client.get(container, blob);
        if (answer.kind !== "ok" || !("bytes" in answer)) return answer;
        this.#etags.set(`${container}/${blob}`, answer.etag);
        return { kind: "ok", etag: answer.etag, write: writeOf(answer.bytes, `${container}/${blob}`) };
      },
      (answer) => ({ kind: "get", answer }),
    );
  }

  #match(container: string, blob: string): Condition {
    const etag = this.#etags.get(`${container}/${blob}`);
    return etag === undefined ? { kind: "none" } : { kind: "match", etag };
  }

  async #put(client: BlobDoor, container: string, blob: string, prng: Prng, condition: Condition): Promise<string> {
    const write = this.#writeNext++;
    const size = prng.below(100);
    const lengthBytes = size < 60 ? 12 + prng.below(2_000) : size < 90 ? prng.below(60_000) : prng.below(400_000);
    const bytes = contentOf(write, lengthBytes);
    return this.#seen(
      container,
      blob,
      async () => {
        const answer = await client.put(container, blob, bytes, condition);
        if (answer.kind === "ok" && "etag" in answer && answer.etag !== undefined) this.#etags.set(`${container}/${blob}`, answer.etag);
        return answer;
      },
      (answer) => ({ kind: "put", write, condition, answer }),
    );
  }

  async #delete(client: BlobDoor, container: string, blob: string, condition: Condition): Promise<void> {
    await this.#seen(
      container,
      blob,
      () => client.delete(container, blob, condition),
      (answer) => ({ kind: "delete", condition, answer }),
    );
  }

  async #deleteContainer(client: BlobDoor, container: string): Promise<void> {
    await this.#seen(
      container,
      undefined,
      () => client.deleteContainer(container),
      (answer) => ({ kind: "deleteContainer", answer }),
    );
  }

  /** The names it showed; a listing is a read of every name. */
  async #list(client: BlobDoor, container: string): Promise<string[] | undefined> {
    const calledAt = this.#sim.nowMs;
    const answer = await client.list(container);
    const returnedAt = this.#sim.nowMs;
    this.#count("list", answer.kind);
    if (answer.kind === "noContainer") return [];
    if (answer.kind !== "ok" || !("etags" in answer)) return undefined;
    for (const blob of this.#names.get(container) ?? []) {
      const etag = answer.etags.get(blob);
      const saw: BlobAnswer = etag === undefined ? { kind: "noBlob" } : { kind: "ok", etag };
      this.history.blob(container, blob, { call: { kind: "get", answer: saw }, calledAt, returnedAt });
    }
    return [...answer.etags.keys()];
  }

  async #seen(
    container: string,
    blob: string | undefined,
    act: () => Promise<Answer>,
    toCall: (answer: BlobAnswer) => BlobCall,
  ): Promise<string> {
    const calledAt = this.#sim.nowMs;
    const answer = await act();
    const returnedAt = answer.kind === "unknown" ? undefined : this.#sim.nowMs;
    const known: BlobAnswer = isBlobAnswer(answer) ? answer : { kind: "unknown" };
    const call = toCall(known);
    this.#count(call.kind, answer.kind);
    if (!isBlobAnswer(answer)) return answer.kind;
    if (blob === undefined) this.history.container(container, { call, calledAt, returnedAt });
    else this.history.blob(container, blob, { call, calledAt, returnedAt });
    return answer.kind;
  }

  #count(kind: string, answer: string): void {
    const name = `${kind} ${answer}`;
    this.#tally.counts[name] = (this.#tally.counts[name] ?? 0) + 1;
  }
}
