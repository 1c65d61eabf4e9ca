/** Shared by the tests of this folder (no test itself): a stream layer on virtual time, and an owner's view of it. */
import assert from "node:assert/strict";
import type { Outcome, RuleName } from "@stamp/base";
import { rulesWithout, unwrap, utf8 } from "@stamp/base";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { LeaderCalls } from "@stamp/metadata-store";
import type { Client, World } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import type { ExtentLocation, SealAndAllocateResponse, StreamInfo } from "@stamp/wire";
import { ExtentNode, StreamManager } from "@stamp/wire";
import type { StreamManagerConfig } from "../config.ts";
import { streamManagerSchema } from "../config.ts";
import { StreamManagerRole } from "../stream-manager.ts";

export const nodeNames = ["en1", "en2", "en3", "en4"];

export interface ClusterOptions {
  readonly seed?: number;
  readonly without?: RuleName[];
  readonly managers?: string[];
  readonly nodes?: string[];
  /** Fault domains by the names of nodes; a node without one stands alone. */
  readonly domains?: Readonly<Record<string, string>>;
  readonly config?: Partial<StreamManagerConfig>;
}

export class Cluster {
  readonly sim: Simulation;
  readonly calls: LeaderCalls;
  /** Names of the extent nodes. */
  readonly nodes = new Set<string>();
  /** Called with the bytes of which an extent node, by name, computes a checksum: they are in its memory, and a test may change them. */
  inMemory: (node: string, bytes: Uint8Array) => void = () => {};

  constructor(options: ClusterOptions = {}) {
    this.sim = new Simulation({ seed: options.seed ?? 3, rules: rulesWithout(...(options.without ?? [])) });
    const lock = lockServiceSchema.parse({ name: "lock", listen: "lock", init: true });
    this.sim.addProcess("lock", (world) => new LockServiceRole(world, lock));
    for (const name of options.managers ?? ["sm1"]) this.addManager(name, options.config);
    for (const name of options.nodes ?? nodeNames) this.addNode(name, options.domains?.[name]);
    this.calls = new LeaderCalls(this.sim.world("owner"), { lockService: "lock", leaseName: "stream-manager" });
  }

  addNode(name: string, faultDomain = ""): void {
    this.nodes.add(name);
    const config = extentNodeSchema.parse({
      name,
      listen: name,
      lockService: "lock",
      journalSegmentBytes: 1 << 20,
      appendBytesMax: 900_000,
      faultDomain,
    });
    this.sim.addProcess(name, (world) => {
      const crc32c = (bytes: Uint8Array, seed?: number): number => {
        this.inMemory(name, bytes);
        return world.digest.crc32c(bytes, seed);
      };
      return new ExtentNodeRole({ ...world, digest: { ...world.digest, crc32c } }, config);
    });
  }

  /** `around`: the world that it sees. */
  addManager(name: string, more: Partial<StreamManagerConfig> = {}, around: (world: World) => World = (world) => world): void {
    const config = streamManagerSchema.parse({ name, listen: name, lockService: "lock", ...more });
    this.sim.addProcess(name, (world) => new StreamManagerRole(around(world), config));
  }

  sm<T>(work: (manager: Client<typeof StreamManager>, timeoutMs: number) => Promise<Outcome<T>>, timeoutMs = 20_000): Promise<Outcome<T>> {
    const transport = this.sim.world("owner").transport;
    return this.calls.call(timeoutMs, (address, left) => work(transport.client(address, StreamManager), left), {
      idempotent: true,
      attemptTimeoutMs: 5_000,
    });
  }

  en(name: string, from = "owner"): Client<typeof ExtentNode> {
    return this.sim.world(from).transport.client(name, ExtentNode);
  }

  async open(name: string, epoch: number): Promise<StreamInfo> {
    return unwrap(await this.tryOpen(name, epoch));
  }

  tryOpen(name: string, epoch: number, timeoutMs = 20_000): Promise<Outcome<StreamInfo>> {
    return this.sm((sm, left) => sm.openStream({ name, ownerEpoch: BigInt(epoch), create: true }, { timeoutMs: left }), timeoutMs);
  }

  async next(name: string, epoch: number, extent: bigint, known = 0n, avoid: string[] = []): Promise<SealAndAllocateResponse> {
    return unwrap(await this.tryNext(name, epoch, extent, known, avoid));
  }

  tryNext(
    name: string,
    epoch: number,
    extentId: bigint,
    known = 0n,
    avoid: string[] = [],
    timeoutMs = 20_000,
  ): Promise<Outcome<SealAndAllocateResponse>> {
    const request = { name, ownerEpoch: BigInt(epoch), extentId, knownCommittedBytes: known, avoidAddresses: avoid };
    return this.sm((sm, left) => sm.sealAndAllocate(request, { timeoutMs: left }), timeoutMs);
  }

  append(extent: ExtentLocation | undefined, epoch: number, at: bigint, text: string, timeoutMs = 800) {
    const primary = extent?.addresses[0] ?? "";
    const request = { extentId: extent?.extentId ?? 0n, ownerEpoch: BigInt(epoch), expectedOffsetBytes: at, payload: [utf8(text)] };
    return this.en(primary).append(request, { timeoutMs });
  }

  async replica(node: string, extentId: bigint) {
    const answer = await this.en(node).getExtentReplica({ extentId }, { timeoutMs: 500 });
    return answer.ok ? answer.value : undefined;
  }

  /** Creation number of an extent, as its replica on the node tells it. */
  async creationOf({ addresses: [node = ""], extentId }: ExtentLocation): Promise<bigint> {
    return (await this.replica(node, extentId))?.creation ?? 0n;
  }

  async extents() {
    return unwrap(await this.sm((sm, timeoutMs) => sm.listExtents({}, { timeoutMs }))).extents;
  }

  /** Waits, at most so long, until it holds. */
  async until(what: string, holds: () => Promise<boolean>, withinMs = 20_000): Promise<void> {
    const endMs = this.sim.nowMs + withinMs;
    while (!(await holds())) {
      assert.ok(this.sim.nowMs < endMs, `${what}: not within ${withinMs} ms`);
      await this.sim.sleep(50);
    }
  }
}

export const first = (response: SealAndAllocateResponse): ExtentLocation => {
  assert.ok(response.extent);
  return response.extent;
};
