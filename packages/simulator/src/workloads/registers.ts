/**
 * Clients talk to partition servers directly, each to one server for the whole run, as a front-end with an old map would. They write and
 * read a few blobs of one container by If-Match and without, ask for whatever the server says that it serves, and never look at the map.
 * So a server that answers although it should not is always asked. One order must explain all answers; and a row may never refer to bytes
 * that are not the range's own. Some contents are blob data, which collectors, also of servers that lost the range, may rewrite (garbage.ts).
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Prng } from "@stamp/base";
import { concatBytes } from "@stamp/base";
import { answerOfCode, BlobHistory, contentOf, writeOf } from "@stamp/histories";
import type { BlobAnswer, BlobCall, BlobCondition } from "@stamp/linearizability";
import type { Client, World } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import type { BlobContent, OperationResult, OperationSchema } from "@stamp/wire";
import { ExtentNode, PartitionServer } from "@stamp/wire";
import type { WholeCluster } from "./cluster.ts";
import { simulatedCluster } from "./cluster.ts";
import type { Focus } from "./faults/fault-kinds.ts";
import { Faults } from "./faults/faults.ts";
import { collectingOf } from "./faults/garbage.ts";
import type { Tally } from "./run/workload.ts";

const container = "registers";
const names = ["a", "b"];
const rangeId = "blob-1";
const clientsPerServer = 2;
const workMs = 40_000;
const readsOf100 = 55;
const onlyReadsShare = 0.5;
const readyWithinMs = 60_000;
const healedWithinMs = 60_000;
const timeoutMs = 3_000;

export async function registerWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  // The margin is for clocks that drift; a small one, and a manager that acts at once, leave a rule about leases nothing to hide behind.
  const leases = { leaseMarginMs: 20, leaseRenewEveryMs: 4_000, lookEveryMs: 50 };
  const cluster = simulatedCluster(sim, { partitionServers: 3, ...leases, ...collectingOf(sim).options });
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const servers = cluster.processes.filter((name) => name.startsWith("partition-server-"));
  const run = new Run(sim, tally, cluster);
  const matters = (): string | undefined => servers.find((server) => servesRegisters(sim, server));
  const moves = { cluster, table: "Blob", key: () => undefined, weight: 0, movesOnly: true } as const;
  const faults = new Faults(sim, {
    targets: cluster.processes,
    clients: [],
    pace: 3,
    focus,
    withinMs: workMs,
    matters,
    // The range is moved by hand where a focus says so.
    ...(focus?.weights?.reshape === undefined ? {} : { reshapes: moves }),
  });
  tally.faults = faults.counts;
  const clients = servers.flatMap((server) =>
    Array.from({ length: clientsPerServer }, (_, i) => new StickyClient(sim.world(`client-${server}-${i}`), cluster.account, server)),
  );
  await run.open(clients);
  faults.start();
  const endMs = sim.nowMs + workMs;
  await Promise.all(clients.map((client) => run.work(client, sim.prng.fork(), endMs)));
  await faults.heal();
  await run.readBack(clients);
  const wrong = run.history.check();
  if (wrong !== undefined) throw new BrokenPromise(wrong);
  for (const name of run.history.undecided) sim.note("not decided", name);
  if (run.history.undecided.length > 0) tally.counts["NOT DECIDED histories"] = run.history.undecided.length;
}

type OperationInit = MessageInitShape<typeof OperationSchema>;

/** A process that is paused is not asked: its status looks at its lease, which it would lose without having run. */
function servesRegisters(sim: Simulation, server: string): boolean {
  if (!sim.isUp(server) || sim.isPaused(server)) return false;
  const ranges = (sim.role(server)?.status.facts.ranges ?? []) as readonly { readonly rangeId: string; readonly state: string }[];
  return ranges.some((range) => range.rangeId === rangeId && range.state === "serving");
}

interface Place {
  readonly extentId: bigint;
  readonly offsetBytes: bigint;
  readonly lengthBytes: number;
}

/** Knows one server, and the version under which it last said that it serves the range. */
class StickyClient {
  readonly #client: Client<typeof PartitionServer>;
  readonly #world: World;
  readonly #account: string;
  #rangeVersion: bigint | undefined;
  /** Incarnation of the container. */
  incarnation = 0n;

  constructor(world: World, account: string, server: string) {
    this.#client = world.transport.client(server, PartitionServer);
    this.#world = world;
    this.#account = account;
  }

  /** Returns undefined if it is not served here, or not known to be. */
  async createContainer(): Promise<bigint | undefined> {
    const result = await this.#ask({ case: "createContainer", value: { account: this.#account, container } });
    return typeof result !== "string" && result?.case === "container" ? result.value.incarnation : undefined;
  }

  put(blob: string, bytes: Uint8Array, condition: BlobCondition): Promise<BlobAnswer | undefined> {
    return this.#execute({ case: "putBlob", value: { ...this.#of(blob, condition), body: { inline: bytes } } });
  }

  /** The bytes go ahead into blob data, as a front-end sends what is large. */
  async putData(blob: string, payload: Uint8Array, condition: BlobCondition): Promise<BlobAnswer | undefined> {
    if (this.#rangeVersion === undefined && !(await this.#look())) return undefined;
    const written = await this.#client.writeData({ rangeId, rangeVersion: this.#rangeVersion as bigint, payload }, { timeoutMs });
    if (!written.ok) return undefined;
    const { places } = written.value;
    return this.#execute({ case: "putBlob", value: { ...this.#of(blob, condition), body: { inline: new Uint8Array(0), places } } });
  }

  /** A row that refers to bytes of somebody else; undefined: refused, or not known. */
  putForged(blob: string, place: Place): Promise<BlobAnswer | undefined> {
    return this.#execute({ case: "putBlob", value: { ...this.#of(blob, { kind: "none" }), body: { places: [place] } } });
  }

  delete(blob: string, condition: BlobCondition): Promise<BlobAnswer | undefined> {
    return this.#execute({ case: "deleteBlob", value: this.#of(blob, condition) });
  }

  get(blob: string): Promise<BlobAnswer | undefined> {
    return this.#execute({ case: "getBlob", value: this.#of(blob, { kind: "none" }) });
  }

  #of(blob: string, condition: BlobCondition) {
    const ifMatch = condition.kind === "match" ? { ifMatch: condition.etag } : {};
    const ifNoneMatch = condition.kind === "absent" ? { ifNoneMatch: "*" } : {};
    return {
      name: { account: this.#account, container, containerIncarnation: this.incarnation, blob },
      conditions: { ...ifMatch, ...ifNoneMatch },
    };
  }

  /** Returns undefined if it was not done, and says nothing of the blob. */
  async #execute(kind: OperationInit["kind"]): Promise<BlobAnswer | undefined> {
    const result = await this.#ask(kind);
    if (result === undefined) return undefined;
    if (result === "unknown") return { kind: "unknown" };
    switch (result.case) {
      case "error":
        return answerOfCode(result.value.code);
      case "blob":
        return { kind: "ok", etag: result.value.etag };
      case "content": {
        const bytes = await this.#bytesOf(result.value);
        return bytes && { kind: "ok", etag: result.value.blob?.etag ?? "", write: writeOf(bytes, "a register") };
      }
      default:
        return { kind: "ok" };
    }
  }

  /** Returns undefined if it was not done. */
  async #ask(kind: OperationInit["kind"]): Promise<OperationResult["kind"] | "unknown" | undefined> {
    if (this.#rangeVersion === undefined && !(await this.#look())) return undefined;
    const request = { rangeId, rangeVersion: this.#rangeVersion as bigint, operation: { kind } as OperationInit };
    const outcome = await this.#client.execute(request, { timeoutMs });
    if (outcome.ok) return outcome.value.result?.kind ?? { case: undefined };
    if (outcome.failure.reason === "wrongPartition") this.#rangeVersion = undefined;
    return outcome.failure.applied === "unknown" ? "unknown" : undefined;
  }

  /** Returns undefined if they can't be had now, or not any more. */
  async #bytesOf({ inline, places, extents }: BlobContent): Promise<Uint8Array | undefined> {
    if (places.length === 0) return inline;
    const parts: Uint8Array[] = [];
    for (const { extentId, offsetBytes, lengthBytes } of places) {
      const addresses = extents.find((extent) => extent.extentId === extentId)?.addresses ?? [];
      const part = await this.#read(addresses, { extentId, offsetBytes, lengthBytes });
      if (!part) return undefined;
      parts.push(part);
    }
    return concatBytes(parts);
  }

  async #read(addresses: readonly string[], place: Place): Promise<Uint8Array | undefined> {
    for (const address of addresses) {
      const answer = await this.#world.transport.client(address, ExtentNode).read(place, { timeoutMs: 500 });
      if (answer.ok) return answer.value.payload;
    }
    return undefined;
  }

  async #look(): Promise<boolean> {
    const listed = await this.#client.listPartitions({}, { timeoutMs: 500 });
    const found = listed.ok ? listed.value.partitions.find((partition) => partition.rangeId === rangeId) : undefined;
    this.#rangeVersion = found?.rangeVersion;
    return found !== undefined;
  }
}

class Run {
  readonly history: BlobHistory = new BlobHistory(new Map([[container, names]]), true);
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #cluster: WholeCluster;
  readonly #etags = new Map<string, string>();
  #writeNext = 1;

  constructor(sim: Simulation, tally: Tally, cluster: WholeCluster) {
    this.#sim = sim;
    this.#tally = tally;
    this.#cluster = cluster;
  }

  /** The container is made before faults come. */
  async open(clients: readonly StickyClient[]): Promise<void> {
    const endMs = this.#sim.nowMs + readyWithinMs;
    for (;;) {
      for (const client of clients) {
        const incarnation = await client.createContainer();
        if (incarnation === undefined) continue;
        for (const each of clients) each.incarnation = incarnation;
        return;
      }
      if (this.#sim.nowMs > endMs) throw new BrokenPromise(`no server makes the container within ${readyWithinMs} ms`);
      await this.#sim.sleep(50);
    }
  }

  /** Some clients only read: the first write at a server that was fenced tells it so, and what it would answer afterwards is not seen. */
  async work(client: StickyClient, prng: Prng, endMs: number): Promise<void> {
    const kinds = prng.chance(onlyReadsShare) ? readsOf100 : 100;
    while (this.#sim.nowMs < endMs) {
      await this.#sim.sleep(prng.float() * 400);
      const blob = prng.pick(names);
      const dice = prng.below(kinds);
      const answered =
        dice < readsOf100
          ? await this.#get(client, blob)
          : dice < 75
            ? await this.#put(client, blob, { kind: "none" })
            : dice < 88
              ? await this.#put(client, blob, this.#match(blob))
              : dice < 94
                ? await this.#delete(client, blob)
                : await this.#forge(client, prng);
      if (!answered) await this.#sim.sleep(prng.float() * 100);
    }
  }

  /** One server serves each name in the end. */
  async readBack(clients: readonly StickyClient[]): Promise<void> {
    const readyByMs = this.#sim.nowMs + healedWithinMs;
    while (!this.#cluster.ready()) {
      if (this.#sim.nowMs > readyByMs) throw new BrokenPromise(`not everything is served within ${healedWithinMs} ms after the last fault`);
      await this.#sim.sleep(50);
    }
    for (const blob of names) {
      const endMs = this.#sim.nowMs + healedWithinMs;
      let answers = 0;
      while (answers === 0) {
        for (const client of clients) if (await this.#get(client, blob)) answers += 1;
        if (this.#sim.nowMs > endMs)
          throw new BrokenPromise(`no server answers for ${blob} within ${healedWithinMs} ms after the last fault`);
      }
    }
  }

  async #get(client: StickyClient, blob: string): Promise<boolean> {
    return this.#seen(
      blob,
      () => client.get(blob),
      (answer) => ({ kind: "get", answer }),
    );
  }

  async #put(client: StickyClient, blob: string, condition: BlobCondition): Promise<boolean> {
    const write = this.#writeNext++;
    const data = this.#sim.prng.chance(0.35);
    const bytes = contentOf(write, 12 + this.#sim.prng.below(data ? 60_000 : 3_000));
    return this.#seen(
      blob,
      () => (data ? client.putData(blob, bytes, condition) : client.put(blob, bytes, condition)),
      (answer) => ({ kind: "put", write, condition, answer }),
    );
  }

  async #delete(client: StickyClient, blob: string): Promise<boolean> {
    const condition = this.#match(blob);
    return this.#seen(
      blob,
      () => client.delete(blob, condition),
      (answer) => ({ kind: "delete", condition, answer }),
    );
  }

  /** Extents 1 to 4 hold the first bytes of the partition manager's tables and of other streams. */
  async #forge(client: StickyClient, prng: Prng): Promise<boolean> {
    const answer = await client.putForged("forged", { extentId: BigInt(1 + prng.below(4)), offsetBytes: 0n, lengthBytes: 16 });
    this.#count(`forged place ${answer?.kind ?? "notDone"}`);
    if (answer?.kind === "ok") throw new BrokenPromise("a row was given a place in an extent that is not its range's");
    return answer !== undefined;
  }

  #match(blob: string): BlobCondition {
    const etag = this.#etags.get(blob);
    return etag === undefined ? { kind: "none" } : { kind: "match", etag };
  }

  async #seen(blob: string, act: () => Promise<BlobAnswer | undefined>, toCall: (answer: BlobAnswer) => BlobCall): Promise<boolean> {
    const calledAt = this.#sim.nowMs;
    const answer = await act();
    const returnedAt = answer?.kind === "unknown" ? undefined : this.#sim.nowMs;
    if (!answer) return false;
    if (answer.kind === "ok" && answer.etag !== undefined) this.#etags.set(blob, answer.etag);
    const call = toCall(answer);
    this.#count(`${call.kind} ${answer.kind}`);
    this.history.blob(container, blob, { call, calledAt, returnedAt });
    return true;
  }

  #count(what: string): void {
    this.#tally.counts[what] = (this.#tally.counts[what] ?? 0) + 1;
  }
}
