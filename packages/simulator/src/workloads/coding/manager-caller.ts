/** The stream manager as somebody outside calls it, whoever leads; and what it says of extents. */
import type { Outcome } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import type { Client, World } from "@stamp/ports";
import { type ExtentInfo, type NodeDuty, StreamManager } from "@stamp/wire";

const callTimeoutMs = 2_000;
const attemptTimeoutMs = 1_000;
/** More than any run has. */
const extentsMax = 10_000;

export class ManagerCaller {
  readonly world: World;
  readonly leader: LeaderCalls;

  constructor(world: World, lockService: string) {
    this.world = world;
    this.leader = new LeaderCalls(world, { lockService, leaseName: "stream-manager" });
  }

  #call<T>(work: (manager: Client<typeof StreamManager>, timeoutMs: number) => Promise<Outcome<T>>): Promise<Outcome<T>> {
    const { transport } = this.world;
    return this.leader.call(callTimeoutMs, (address, timeoutMs) => work(transport.client(address, StreamManager), timeoutMs), {
      idempotent: true,
      attemptTimeoutMs,
    });
  }

  /** Returns every extent as the leader knows it; undefined: nobody answered. */
  async extents(): Promise<readonly ExtentInfo[] | undefined> {
    const listed = await this.#call((manager, timeoutMs) => manager.listExtents({ limit: extentsMax }, { timeoutMs }));
    return listed.ok ? listed.value.extents : undefined;
  }

  /** Returns the names of all streams that begin so; undefined: nobody answered. */
  async streams(prefix: string): Promise<readonly string[] | undefined> {
    const listed = await this.#call((manager, timeoutMs) => manager.listStreams({ prefix }, { timeoutMs }));
    return listed.ok ? listed.value.streams.map(({ name }) => name) : undefined;
  }

  code(extentId: bigint, profile: string): Promise<Outcome<ExtentInfo>> {
    return this.#call((manager, timeoutMs) => manager.codeExtent({ extentId, profile }, { timeoutMs }));
  }

  replicate(extentId: bigint): Promise<Outcome<ExtentInfo>> {
    return this.#call((manager, timeoutMs) => manager.replicateExtent({ extentId }, { timeoutMs }));
  }

  deleteStray(nodeId: string, extentId: bigint, version: bigint): Promise<Outcome<unknown>> {
    return this.#call((manager, timeoutMs) => manager.deleteStrayFragment({ nodeId, extentId, version }, { timeoutMs }));
  }

  async setDuty(nodeId: string, duty: NodeDuty): Promise<boolean> {
    return (await this.#call((manager, timeoutMs) => manager.setNodeDuty({ nodeId, duty }, { timeoutMs }))).ok;
  }

  async deleteStream(name: string, ownerEpoch: bigint): Promise<boolean> {
    const deleted = await this.#call((manager, timeoutMs) => manager.deleteStream({ name, ownerEpoch }, { timeoutMs }));
    return deleted.ok || deleted.failure.reason === "streamNotFound";
  }

  /** Replicas in quarantine, as `node extent`; undefined: nobody answered. */
  async quarantined(): Promise<ReadonlySet<string> | undefined> {
    const listed = await this.#call((manager, timeoutMs) => manager.listQuarantine({}, { timeoutMs }));
    return listed.ok ? new Set(listed.value.replicas.map(({ nodeId, extentId }) => `${nodeId} ${extentId}`)) : undefined;
  }
}
