/** A few extent nodes, the metadata store's stamp id and a lease, on virtual time; and a tester that speaks to the nodes directly. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, type Outcome, ok, type RuleName, refused, rulesWithout, unwrap, utf8 } from "@stamp/base";
import { SnapshotWriter } from "@stamp/metadata-store";
import { type Client, type Handlers, served, type World } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { type AppendResponse, ExtentNode, LockService, MetadataStore, StreamManager } from "@stamp/wire";
import { extentNodeSchema } from "../config.ts";
import { ExtentNodeRole } from "../extent-node.ts";

export const stampId = "3f6f0d1e-0000-4000-8000-000000000001";
export const names: readonly string[] = ["en-1", "en-2", "en-3"];
const timeoutMs = 5_000;

export class Cluster {
  readonly sim: Simulation;
  stamp: string | undefined = stampId;
  smTerm = 1;
  /** Calls of GetLease for `stream-manager` that came. */
  leaseQuestions = 0;
  /** Version of every extent, as the stream manager says that it recorded it; 0: no stream manager leads. */
  givenVersion = 5;
  /** Calls of LocateExtents that came. */
  versionQuestions = 0;
  #nextId = 1;

  constructor(
    seed: number,
    options: {
      readonly off?: readonly RuleName[];
      readonly nodes?: readonly string[];
      readonly config?: object;
      readonly simulation?: object;
    } = {},
  ) {
    this.sim = new Simulation({ seed, rules: rulesWithout(...(options.off ?? [])), ...options.simulation });
    for (const name of options.nodes ?? names) {
      const config = extentNodeSchema.parse({
        name,
        listen: name,
        lockService: "lock",
        journalSegmentBytes: 1 << 20,
        appendBytesMax: 900_000,
        inPlaceBehindBytes: 0,
        reserveBytes: 0,
        ...options.config,
      });
      this.sim.addProcess(name, (world) => new ExtentNodeRole(world, config));
    }
  }

  async run(body: () => Promise<void>): Promise<void> {
    await this.sim.run(async () => {
      await this.#serveLock();
      await body();
    });
  }

  /** Version of the metadata store, for nodes that keep a copy of it; raised by a test. */
  metadataVersion = 0;
  /** Number of the last transaction of the metadata store. */
  storeVersion = 0;

  /** Why it gives none while that is 0. */
  metadataRefusal: "notReady" | "throttled" = "notReady";
  /** Identity that the metadata store claims. */
  metadataStore: { stampId?: string; lineage: string; takenAtMs: number } = { lineage: "first", takenAtMs: 1 };

  #snapshot(knownChecksum: number) {
    const checksum = this.metadataVersion;
    if (checksum === 0) return refused("unavailable", this.metadataRefusal, "not in this test");
    if (checksum === knownChecksum) return ok({ checksum });
    const { crc32c } = this.sim.world("lock").digest;
    const header = { stampId: this.stamp ?? "", version: checksum, ...this.metadataStore };
    const writer = new SnapshotWriter(header, crc32c);
    const payload = concatBytes([writer.begin(), writer.add([utf8("k"), utf8("v")]) ?? new Uint8Array(0), writer.end()]);
    return ok({ checksum, payload, totalBytes: BigInt(payload.length), version: BigInt(checksum) });
  }

  async #serveLock(): Promise<void> {
    const no = async (): Promise<Outcome<never>> => refused("unavailable", "notReady", "not in this test");
    await this.sim.world("lock").transport.serve("lock", [
      served(MetadataStore, {
        getKeys: no,
        listKeys: no,
        readChanges: async () => ok({ version: BigInt(this.storeVersion), instance: "one" }),
        transact: no,
        readSnapshot: async ({ knownChecksum }) => this.#snapshot(knownChecksum),
        getStamp: async () => (this.stamp === undefined ? no() : ok({ stampId: this.stamp })),
      }),
      served(LockService, {
        acquireLease: no,
        renewLease: no,
        releaseLease: no,
        refuseRenewals: no,
        listLeases: no,
        getLease: async () => {
          this.leaseQuestions += 1;
          return ok({ leaseEpoch: BigInt(this.smTerm), address: this.givenVersion === 0 ? "" : "sm" });
        },
      }),
    ]);
    await this.sim.world("sm").transport.serve("sm", [served(StreamManager, this.#streamManager())]);
  }

  /** A stream manager that says which versions it has recorded, and nothing else. */
  #streamManager(): Handlers<typeof StreamManager> {
    const none = async (): Promise<Outcome<never>> => refused("failedPrecondition", "badRequest", "not in this test");
    const methods = Object.keys(StreamManager.method).map((name) => [name, none]);
    return {
      ...(Object.fromEntries(methods) as unknown as Handlers<typeof StreamManager>),
      locateExtents: async ({ extentIds }) => {
        this.versionQuestions += 1;
        return ok({ extents: extentIds.map((extentId) => ({ extentId, version: BigInt(this.givenVersion) })) });
      },
    };
  }

  get tester(): World {
    return this.sim.world("tester");
  }

  node(name: string): Client<typeof ExtentNode> {
    return this.tester.transport.client(name, ExtentNode);
  }

  facts(name: string): Readonly<Record<string, unknown>> {
    return this.sim.role(name)?.status.facts ?? {};
  }

  /** Serves, and the tester's connection of before a crash is known to be gone. */
  async ready(name: string): Promise<void> {
    await this.sim.until(() => this.sim.role(name)?.status.ready === true, 30_000, `${name} is ready`);
    await this.sim.until(async () => (await this.node(name).listExtentReplicas({}, { timeoutMs })).ok, 30_000, `${name} answers`);
    await this.sim.until(async () => reasonOf(await this.read(name, 1_000_000, 0n, 1)) === "unknownExtent", 30_000, `${name} answers`);
  }

  async allReady(): Promise<void> {
    for (const name of names) await this.ready(name);
  }

  async replicas(order: readonly string[] = names): Promise<{ nodeId: string; address: string; diskId: string }[]> {
    return order.map((name) => ({ nodeId: name, address: name, diskId: String(this.facts(name).diskId) }));
  }

  /** A new extent whose primary is the first. */
  async create(order: readonly string[] = names, ownerEpoch = 1, creation = 0): Promise<number> {
    const id = this.#nextId++;
    const replicas = await this.replicas(order);
    for (const name of order) {
      unwrap(
        await this.node(name).createExtent(
          {
            smTerm: BigInt(this.smTerm),
            extentId: BigInt(id),
            ownerEpoch: BigInt(ownerEpoch),
            version: 1n,
            replicas,
            stampId,
            creation: BigInt(creation),
            stream: "/s",
          },
          { timeoutMs },
        ),
      );
    }
    return id;
  }

  append(
    primary: string,
    id: number,
    expected: number,
    payload: readonly Uint8Array[],
    ownerEpoch = 1,
    limitMs = timeoutMs,
  ): Promise<Outcome<AppendResponse>> {
    return this.node(primary).append(
      { extentId: BigInt(id), ownerEpoch: BigInt(ownerEpoch), expectedOffsetBytes: BigInt(expected), payload: [...payload] },
      { timeoutMs: limitMs },
    );
  }

  fence(name: string, id: number, term: number = this.smTerm, version = 1) {
    return this.node(name).fenceExtent(
      { smTerm: BigInt(term), extentId: BigInt(id), diskId: String(this.facts(name).diskId), version: BigInt(version) },
      { timeoutMs },
    );
  }

  seal(name: string, id: number, length: number, sources: readonly string[] = []) {
    return this.node(name).sealExtent(
      {
        smTerm: BigInt(this.smTerm),
        extentId: BigInt(id),
        sealedLengthBytes: BigInt(length),
        version: 2n,
        diskId: String(this.facts(name).diskId),
        sources: [...sources],
      },
      { timeoutMs },
    );
  }

  read(name: string, id: number, offset: bigint, length: number) {
    return this.node(name).read({ extentId: BigInt(id), offsetBytes: offset, lengthBytes: length }, { timeoutMs });
  }

  async replica(name: string, id: number) {
    return unwrap(await this.node(name).getExtentReplica({ extentId: BigInt(id) }, { timeoutMs }));
  }
}

export function reasonOf(outcome: Outcome<unknown>): string {
  return outcome.ok ? "ok" : outcome.failure.reason;
}

/** Bytes that tell which append they are of. */
export function pattern(length: number, of: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + of * 7 + (i >> 8)) & 0xff;
  return bytes;
}

test("extent node: three nodes format their disks for the stamp and serve", async () => {
  const cluster = new Cluster(1);
  await cluster.run(async () => {
    await cluster.allReady();
    const disks = new Set(names.map((name) => cluster.facts(name).diskId));
    assert.equal(disks.size, 3);
    assert.equal(cluster.facts("en-1").stampId, stampId);
  });
});
