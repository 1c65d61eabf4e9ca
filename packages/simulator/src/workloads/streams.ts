/**
 * Owners append records to streams directly at the stream layer and are taken over by others with a higher epoch, while the old ones go
 * on as long as they are let, and faults come. Every owner reads the whole list it was given. In the end everything heals, a last owner
 * of each stream reads all, every acknowledged place is read again, and all replicas of every extent must be sealed and the same.
 */
import type { Outcome } from "@stamp/base";
import { equalBytes, toHex } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { sleep } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import type { ExtentLocation } from "@stamp/wire";
import { ExtentNode, ReplicaState, StreamManager } from "@stamp/wire";
import type { SimulatedCluster } from "./cluster.ts";
import { extentFileName, simulatedStreamLayer } from "./cluster.ts";
import { acceptLoss } from "./faults/accepted-loss.ts";
import type { Focus } from "./faults/fault-kinds.ts";
import { Faults } from "./faults/faults.ts";
import { putFolderBack } from "./faults/older-folder.ts";
import type { RecordName } from "./judges/stream-judge.ts";
import { recordBytes, recordOf, StreamJudge } from "./judges/stream-judge.ts";
import { RawOwner } from "./raw-owner.ts";
import type { Tally } from "./run/workload.ts";

const streams = ["one", "second"];
export const owners: readonly string[] = ["owner-1", "owner-2", "owner-3"];
const usualWorkMs = 25_000;
const readyWithinMs = 60_000;
/** Time within which every stream is owned again after the last fault. */
const healedWithinMs = 60_000;
/**
 * After the last fault every extent has all its copies, sealed and the same, within this. Replicas of a node that is away for a minute are
 * made again elsewhere.
 */
const wholeWithinMs = 180_000;
const copies = 3;
/** A node that says it holds a replica has its file within this after the last fault. What it has in its journal is written out sooner. */
const filesWithinMs = 20_000;
/** Bound of a read from any replica, also while faults come. */
const readableWithinMs = 300_000;

export async function streamWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const cluster = simulatedStreamLayer(sim);
  await sim.until(() => cluster.ready(), readyWithinMs, "the stream layer is ready");
  const judge = new StreamJudge(tally.counts);
  for (const name of owners) sim.world(name);
  const workMs = focus?.workMs ?? usualWorkMs;
  const faults = new Faults(sim, { targets: cluster.processes, clients: owners, pace: 1, focus, withinMs: workMs });
  tally.faults = faults.counts;
  faults.start();
  const endMs = sim.nowMs + workMs;
  const restMs = focus?.ownersRestMs ?? 0;
  const recordBytesMax = focus?.recordBytesMax;
  const accepting = focus?.acceptsLoss ? acceptLoss(sim, cluster, judge) : undefined;
  const puttingBack = focus?.putsFolderBack ? putFolderBack(sim, cluster, judge) : undefined;
  const read = (stream: string, extents: readonly ExtentLocation[]) => readList(sim.world("reader"), stream, extents, judge);
  const scene: Scene = { sim, lockService: cluster.lockService, faults, judge, endMs, restMs, recordBytesMax, read };
  const lasts = await Promise.all(streams.map((stream) => takeOvers(scene, stream)));
  await accepting;
  await puttingBack;
  await faults.heal();
  const healedMs = sim.nowMs;
  const world = sim.world("reader");
  await filesAreThere(sim, world, cluster, healedMs + filesWithinMs);
  const all: ExtentLocation[] = [];
  for (const [i, stream] of streams.entries()) {
    const owner = new RawOwner(world, cluster.lockService, stream, (lasts[i] as number) + 1, judge, { patienceMs: healedWithinMs });
    const byMs = sim.nowMs + healedWithinMs;
    const extents = await by(sim, byMs, `opening ${stream}`, async () => (await owner.open())?.extents);
    all.push(...extents);
    judge.given(stream, owner.epoch, await readList(world, stream, extents, judge));
    await placesHold(world, stream, extents, judge);
    // It still takes records.
    const wanted = (tally.counts["append acknowledged"] ?? 0) + 5;
    await owner.write(extents.at(-1)?.extentId ?? 0n, () => (tally.counts["append acknowledged"] ?? 0) >= wanted || sim.nowMs > byMs, 500);
    if (sim.nowMs > byMs) throw new BrokenPromise(`${stream} takes no records within ${healedWithinMs} ms after the last fault`);
  }
  const manager = new LeaderCalls(world, { lockService: cluster.lockService, leaseName: "stream-manager" });
  for (const { extentId, sealedLengthBytes } of all) {
    await by(sim, healedMs + wholeWithinMs, `extent ${extentId} has ${copies} good copies`, () =>
      isWhole(world, manager, extentId, Number(sealedLengthBytes), (problem) => sim.note("not whole", problem)),
    );
  }
  tally.most["ms until every extent had its copies"] = Math.round(sim.nowMs - healedMs);
  judge.check();
}

/** Shared by owners of streams that follow one another. */
export interface Scene {
  readonly sim: Simulation;
  readonly lockService: string;
  readonly faults: Faults;
  readonly judge: StreamJudge;
  /** Time at which they end, in milliseconds of virtual time. */
  readonly endMs: number;
  /** Longest rest between two appends, in milliseconds. */
  readonly restMs: number;
  /** Largest record, in bytes; undefined: usual ones. */
  readonly recordBytesMax: number | undefined;
  /** Reads all records of a list of sealed extents, in order. */
  readonly read: (stream: string, extents: readonly ExtentLocation[]) => Promise<RecordName[]>;
}

/** Owners of one stream one after another, each on another process; an old one is never told to stop. Gives the last epoch. */
export async function takeOvers(scene: Scene, stream: string): Promise<number> {
  const { sim, lockService, faults, judge, endMs, restMs } = scene;
  const prng = sim.prng.fork();
  let epoch = 0;
  while (sim.nowMs < endMs) {
    epoch += 1;
    const owner = new RawOwner(sim.world(prng.pick(owners)), lockService, stream, epoch, judge, { restMs });
    const usualBytesMax = prng.chance(0.1) ? 40_000 : 1_500;
    sim.background(own(scene, owner, scene.recordBytesMax ?? usualBytesMax));
    // Often a new owner comes because of a fault: soon after it.
    if (prng.chance(0.5)) await faults.next(8_000);
    await sim.sleep(prng.chance(0.5) ? prng.float() * 1_000 : prng.float() * 8_000);
  }
  return epoch;
}

async function own({ sim, judge, endMs, read }: Scene, owner: RawOwner, recordBytesMax: number): Promise<void> {
  const opened = await owner.open();
  if (!opened) return;
  judge.count("streams opened");
  for (const extent of opened.extents) judge.told(extent.extentId, Number(extent.sealedLengthBytes));
  judge.given(owner.stream, owner.epoch, await read(owner.stream, opened.extents));
  await owner.write(opened.extents.at(-1)?.extentId ?? 0n, () => sim.nowMs >= endMs, recordBytesMax);
}

/** All records of a list of sealed extents, in order; waits as long as no replica answers. */
async function readList(world: World, stream: string, extents: readonly ExtentLocation[], judge: StreamJudge): Promise<RecordName[]> {
  const records: RecordName[] = [];
  for (const extent of extents) {
    const sealedBytes = Number(extent.sealedLengthBytes);
    let at = 0;
    while (at < sealedBytes) {
      // A replica that was not told of the seal yet gives what it knows to be acknowledged, which may end before.
      const blocks = await fromAny(
        world,
        extent,
        (address, timeoutMs) =>
          world.transport
            .client(address, ExtentNode)
            .readBlocks({ extentId: extent.extentId, offsetBytes: BigInt(at), maxBytes: 30_000 }, { timeoutMs }),
        (answer) => Number(answer.nextOffsetBytes) > at,
      );
      records.push(...blocks.payload.map((bytes) => recordOf(stream, bytes)));
      const next = Number(blocks.nextOffsetBytes);
      if (next > sealedBytes) throw new BrokenPromise(`extent ${extent.extentId}: sealed at ${sealedBytes}, read to ${next}`);
      at = next;
      judge.count("block reads");
    }
  }
  return records;
}

/** Asks replicas, one after another, until one gives a usable answer; fails the run when the bound passes. */
export async function fromAny<T>(
  world: World,
  extent: ExtentLocation,
  read: (address: string, timeoutMs: number) => Promise<Outcome<T>>,
  usable: (value: T) => boolean = () => true,
): Promise<T> {
  const endMs = world.clock.monotonicMs() + readableWithinMs;
  for (let i = Math.floor(world.random.float() * extent.addresses.length); ; i++) {
    if (world.clock.monotonicMs() > endMs) throw new BrokenPromise(`extent ${extent.extentId} can't be read within ${readableWithinMs} ms`);
    const outcome = await read(extent.addresses[i % extent.addresses.length] as string, 500);
    if (outcome.ok && usable(outcome.value)) return outcome.value;
    await sleep(world.clock, 50);
  }
}

/** True if all copies are there, sealed at the length, and byte for byte the same; undefined: not yet. */
export async function isWhole(
  world: World,
  manager: LeaderCalls,
  extentId: bigint,
  lengthBytes: number,
  say: (problem: string) => void,
): Promise<true | undefined> {
  const located = await manager.call(
    2_000,
    (address, timeoutMs) => world.transport.client(address, StreamManager).locateExtents({ extentIds: [extentId] }, { timeoutMs }),
    { idempotent: true, attemptTimeoutMs: 1_000 },
  );
  const addresses = located.ok ? (located.value.extents[0]?.addresses ?? []) : [];
  if (addresses.length < copies) {
    say(`extent ${extentId} is at ${located.ok ? addresses.join(", ") : located.failure.reason}`);
    return undefined;
  }
  const contents: Uint8Array[] = [];
  for (const address of addresses) {
    const client = world.transport.client(address, ExtentNode);
    const replica = await client.getExtentReplica({ extentId }, { timeoutMs: 500 });
    if (!replica.ok || replica.value.state !== ReplicaState.SEALED) {
      say(`extent ${extentId} on ${address}: ${replica.ok ? `state ${replica.value.state}` : replica.failure.reason}`);
      return undefined;
    }
    if (Number(replica.value.sealedLengthBytes) !== lengthBytes) {
      // Told to seal it by a seal that was given up since: to be copied anew.
      say(`${address} sealed extent ${extentId} at ${replica.value.sealedLengthBytes}, its length is ${lengthBytes}`);
      return undefined;
    }
    const content = await rawContent(world, address, extentId, lengthBytes);
    if (typeof content === "string") {
      say(`extent ${extentId} on ${address}: ${content}`);
      return undefined;
    }
    contents.push(content);
  }
  for (const [i, content] of contents.entries()) {
    if (!equalBytes(content, contents[0] as Uint8Array))
      throw new BrokenPromise(`extent ${extentId}: ${addresses[i]} differs from ${addresses[0]}`);
  }
  return true;
}

/** Before anybody reads: a replica whose file is gone is known to be damaged, also when nobody asks for it (rule missingFileIsDamage). */
async function filesAreThere(sim: Simulation, world: World, cluster: SimulatedCluster, byMs: number): Promise<void> {
  for (const node of cluster.processes) {
    if (!node.startsWith("extent-node-")) continue;
    const client = world.transport.client(node, ExtentNode);
    await by(sim, byMs, `${node} has the files of what it says it holds`, async () => {
      const listed = await client.listExtentReplicas({}, { timeoutMs: 1_000 });
      if (!listed.ok) return undefined;
      const paths = sim.disk(node).paths();
      const held = listed.value.replicas.filter(({ state, durableBytes }) => state === ReplicaState.SEALED && durableBytes > 0n);
      const missing = held.filter(({ extentId }) => !paths.some((path) => path.endsWith(extentFileName(extentId))));
      if (missing.length > 0) sim.note("no file", `${node}: extents ${missing.map(({ extentId }) => extentId).join(", ")}`);
      return missing.length === 0 ? true : undefined;
    });
  }
}

/** Returns all blocks of one replica; the reason when it can't be read. */
async function rawContent(world: World, address: string, extentId: bigint, lengthBytes: number): Promise<Uint8Array | string> {
  const content = new Uint8Array(lengthBytes);
  const client = world.transport.client(address, ExtentNode);
  for (let at = 0; at < lengthBytes; ) {
    const outcome = await client.readBlocks({ extentId, offsetBytes: BigInt(at), maxBytes: 30_000 }, { timeoutMs: 1_000 });
    if (!outcome.ok) return outcome.failure.reason;
    const { payload, offsetsBytes, nextOffsetBytes } = outcome.value;
    for (const [i, bytes] of payload.entries()) content.set(bytes, Number(offsetsBytes[i]));
    if (Number(nextOffsetBytes) <= at) return `nothing at ${at}`;
    at = Number(nextOffsetBytes);
  }
  return content;
}

/** Every place that was ever acknowledged has its bytes, on a replica of the seed's choice. */
async function placesHold(world: World, stream: string, extents: readonly ExtentLocation[], judge: StreamJudge): Promise<void> {
  const byId = new Map(extents.map((extent) => [extent.extentId, extent]));
  for (const each of judge.places()) {
    if (each.stream !== stream) continue;
    const { extent: extentId, offsetBytes, lengthBytes } = each.place;
    const extent = byId.get(extentId);
    const name = `${stream} record ${each.record.epoch}/${each.record.sequence}`;
    if (!extent) throw new BrokenPromise(`${name} was acknowledged in extent ${extentId}, which the stream does not have`);
    const { payload } = await fromAny(world, extent, (address, timeoutMs) =>
      world.transport.client(address, ExtentNode).read({ extentId, offsetBytes: BigInt(offsetBytes), lengthBytes }, { timeoutMs }),
    );
    if (!equalBytes(payload, recordBytes(stream, each.record, lengthBytes))) {
      throw new BrokenPromise(`${name}: the place ${extentId}:${offsetBytes}+${lengthBytes} now holds ${toHex(payload.subarray(0, 16))}…`);
    }
    judge.count("places read again");
  }
}

/** Tries until it gives something; fails the run when the bound passes. */
export async function by<T>(sim: Simulation, byMs: number, what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const value = await attempt();
    if (value !== undefined) return value;
    if (sim.nowMs > byMs) throw new BrokenPromise(`not within the bound after the last fault: ${what}`);
    await sim.sleep(100);
  }
}
