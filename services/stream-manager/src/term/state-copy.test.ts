/** The copy of the metadata that a standby keeps: what it reads at a take-over, and that it is what a reading of everything gives. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, extentVersion, ok, ownerEpoch, smTerm, unwrap } from "@stamp/base";
import { LeaseKeeper, MetadataClient } from "@stamp/metadata-store";
import { type Client, openIdentity, type Transport } from "@stamp/ports";
import { type ExtentRecord, encodeStored, managerPrefix, recordKey, type StoredRecord, StreamState } from "@stamp/stream";
import { LockService, type MetadataStore } from "@stamp/wire";
import { Cluster, first } from "../testing/cluster.ts";
import { StateCopy } from "./state-copy.ts";

const timeoutMs = 2_000;
const later = smTerm(2);

/** Everything that the state holds, in an order of its own. */
function describe(state: StreamState): unknown {
  const byKey = (a: readonly unknown[], b: readonly unknown[]): number => (String(a[0]) < String(b[0]) ? -1 : 1);
  const streams = [...state.streamNames()].map((name) => [
    name,
    state.stream(name),
    state.versionOf(`sm/stream/${name}`),
    state.extentsOf(name),
  ]);
  const extents = [...state.extents()].map((extent) => [String(extent.id), extent, state.references(extent.id)] as const);
  return {
    next: state.nextId,
    streams: streams.toSorted(byKey),
    extents: extents.toSorted(byKey),
    nodes: [...state.nodes()].map((node) => [node.nodeId, node] as const).toSorted(byKey),
    sets: [state.unsealed(), state.incomplete(), state.garbage(), state.unreferenced(), state.looseSegments()].map((set) =>
      [...set].map(Number).toSorted((a, b) => a - b),
    ),
  };
}

async function read(cluster: Cluster): Promise<StreamState> {
  const world = cluster.sim.world("reader");
  const entries = unwrap(await new MetadataClient(world, "lock").list(managerPrefix, timeoutMs));
  return unwrap(StreamState.load(entries, (bytes) => world.digest.crc32c(bytes)));
}

test("state copy: while streams come, grow, change and go it is what everything read anew is, by reading only what changed", async () => {
  const cluster = new Cluster({ seed: 7 });
  const { sim } = cluster;
  await sim.run(async () => {
    const copy = new StateCopy(sim.world("standby"), "lock", timeoutMs);
    const stop = new AbortController();
    const following = copy.follow(stop.signal);
    let last = 0n;
    for (let round = 1; round <= 12; round++) {
      const name = `/s${round % 4}`;
      const info = await cluster.open(name, round);
      last = info.extents.at(-1)?.extentId ?? 0n;
      for (let i = 0; i < 3; i++) last = first(await cluster.next(name, round, last)).extentId;
      const owner = { name, ownerEpoch: BigInt(round) };
      if (round % 3 === 0) unwrap(await cluster.sm((sm) => sm.truncateStream({ ...owner, beforeExtentId: last }, { timeoutMs })));
      if (round % 5 === 0) unwrap(await cluster.sm((sm) => sm.renameStream({ ...owner, newName: `/r${round}` }, { timeoutMs })));
      if (round % 4 === 0) unwrap(await cluster.sm((sm) => sm.deleteStream(owner, { timeoutMs })));
      await sim.sleep(200);
    }
    await sim.sleep(3_000);
    stop.abort();
    await following;
    const before = copy.keysRead;
    const taken = unwrap(await copy.take(later, new AbortController().signal));
    assert.ok(copy.keysRead - before < 20, `${copy.keysRead - before} keys read at the end`);
    assert.deepEqual(describe(taken), describe(await read(cluster)));
  });
});

test("state copy: after another start of the store, and after more than it remembers, everything is read again", async () => {
  const cluster = new Cluster({ seed: 8 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const copy = new StateCopy(sim.world("standby"), "lock", timeoutMs);
    const stop = new AbortController();
    const following = copy.follow(stop.signal);
    await sim.sleep(1_000);
    sim.crash("lock", { stayDown: true });
    sim.restart("lock");
    await cluster.open("/t", 1);
    await sim.sleep(5_000);
    stop.abort();
    await following;
    assert.deepEqual(describe(unwrap(await copy.take(later, new AbortController().signal))), describe(await read(cluster)));
  });
});

test("state copy: a term that ended while it was read leaves the copy to the next one", async () => {
  const cluster = new Cluster({ seed: 10 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(1_000);
    const copy = new StateCopy(sim.world("standby"), "lock", timeoutMs);
    const ended = new AbortController();
    ended.abort();
    assert.equal((await copy.take(later, ended.signal)).ok, false);
    const all = copy.keysRead;
    assert.deepEqual(describe(unwrap(await copy.take(later, new AbortController().signal))), describe(await read(cluster)));
    assert.ok(all >= 5 && copy.keysRead - all < 5, `${all} keys read, then ${copy.keysRead - all}`);
  });
});

test("state copy: a page that says nothing is there is not believed, but for the first term of a stamp", async () => {
  const cluster = new Cluster({ seed: 11 });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const world = sim.world("standby");
    /** The first page of each copy comes without an entry. */
    const copyOf = (): StateCopy => {
      let lies = true;
      const client = (address: string, service: Parameters<Transport["client"]>[1]) => {
        const honest = world.transport.client(address, service) as Client<typeof MetadataStore>;
        const listKeys: typeof honest.listKeys = (request, options) => {
          if (!lies) return honest.listKeys(request, options);
          lies = false;
          return Promise.resolve(ok({ entries: [], more: false })) as ReturnType<typeof honest.listKeys>;
        };
        return { ...honest, listKeys };
      };
      return new StateCopy({ ...world, transport: { ...world.transport, client: client as Transport["client"] } }, "lock", timeoutMs);
    };
    const never = new AbortController().signal;
    assert.equal(unwrap(await copyOf().take(smTerm(1), never)).isEmpty, true);
    assert.deepEqual(describe(unwrap(await copyOf().take(later, never))), describe(await read(cluster)));
  });
});

test("failover: with 20,000 extents the standby reads a few keys, and the next extent is there soon after the lease's end", async () => {
  const cluster = new Cluster({ managers: ["sm1"], seed: 9 });
  const { sim } = cluster;
  await sim.run(async () => {
    await sim.sleep(3_000);
    sim.crash("sm1", { stayDown: true });
    await fill(cluster, 20_000);
    sim.restart("sm1");
    await cluster.open("/s", 1);
    const extent = first(await cluster.next("/s", 1, 0n));
    cluster.addManager("sm2");
    await sim.sleep(10_000);
    const locks = sim.world("watcher").transport.client("lock", LockService);
    const { address: old, remainingMs } = unwrap(await locks.getLease({ name: "stream-manager" }, { timeoutMs }));
    assert.equal(old, "sm1");
    const endMs = sim.nowMs + remainingMs;
    sim.crash(old, { stayDown: true });
    first(await cluster.next("/s", 1, extent.extentId));
    assert.ok(sim.nowMs < endMs + 700, `${sim.nowMs - endMs} ms after the end of the lease`);
  });
});

/** Sealed extents in one list, as a leader would have written them. */
async function fill(cluster: Cluster, count: number): Promise<void> {
  const world = cluster.sim.world("filler");
  const identity = await openIdentity(world);
  const keeper = new LeaseKeeper(world, {
    lockService: "lock",
    leaseName: "stream-manager",
    holder: "filler",
    identity,
    address: "filler",
    onLost: () => {},
  });
  const leaseEpoch = await keeper.acquire();
  const metadata = new MetadataClient(world, "lock", keeper);
  const [ids] = unwrap(await metadata.get(["sm/ids"], timeoutMs));
  const from = 1_000_000;
  const record = (id: number): ExtentRecord => ({
    id: extentId(id),
    phase: "sealed",
    version: extentVersion(2),
    ownerEpoch: ownerEpoch(1),
    stream: "/filled",
    replicas: [],
    sealedLengthBytes: id,
    removed: [],
    checksum: 7,
  });
  const write = async (records: readonly StoredRecord[], version = 0): Promise<void> => {
    const writes = records.map((stored) => ({
      key: recordKey(stored),
      value: encodeStored(stored, (bytes) => world.digest.crc32c(bytes)),
    }));
    const conditions = writes.map(({ key }) => ({ key, version }));
    unwrap(await metadata.transact({ fence: { leaseName: "stream-manager", leaseEpoch }, conditions, writes }, timeoutMs));
  };
  await write([{ kind: "ids", next: 2_000_000 }], ids?.version ?? 0);
  for (let at = 0; at < count; at += 100) {
    await write(Array.from({ length: 100 }, (_, i) => ({ kind: "extent" as const, record: record(from + at + i) })));
  }
  const segments = Array.from({ length: count / 1_000 }, (_, i) => ({ id: 1_900_000 + i, count: 1_000 }));
  for (const [i, { id }] of segments.entries()) {
    await write([{ kind: "segment", id, extents: Array.from({ length: 1_000 }, (_, k) => extentId(from + 1_000 * i + k)) }]);
  }
  await write([{ kind: "stream", record: { name: "/filled", ownerEpoch: ownerEpoch(1), segments, skipCount: 0, tail: [] } }]);
  await keeper.release();
  await identity.close();
}
