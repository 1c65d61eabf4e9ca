/**
 * A stamp seen from inside: streams, extents, replicas, nodes, ranges and where they are, asked of the managers by
 * gRPC. Works for any stamp whose lock service can be reached, supervised here or not.
 */
import type { Outcome } from "@stamp/base";
import { lockServices } from "@stamp/metadata-store";
import type { Client, Transport } from "@stamp/ports";
import { NodeClock } from "@stamp/ports-node";
import {
  type ExtentInfo,
  type ExtentLocation,
  LockService,
  type NodeInfo,
  type PartitionInfo,
  PartitionManager,
  PartitionServer,
  type RangePartition,
  type ServerInfo,
  type StreamInfo,
  StreamManager,
  type StreamStat,
} from "@stamp/wire";

const callTimeoutMs = 3_000;
/** While another stream manager takes over nobody leads for up to a term. */
const changeTimeoutMs = 15_000;
const askAgainMs = 200;
const pageLimit = 1_000;

export interface ListedPart<T> {
  readonly items: readonly T[];
  /** True if there are others behind the last. */
  readonly more: boolean;
}

export interface StampView {
  /** First 200 streams. */
  readonly streams: readonly StreamInfo[];
  /** First 200 extents. */
  readonly extents: readonly ExtentInfo[];
  /** True if there are further ones. */
  readonly more: { readonly streams: boolean; readonly extents: boolean };
  readonly nodes: readonly NodeInfo[];
  readonly ranges: readonly RangePartition[];
  readonly servers: readonly ServerInfo[];
  /** Questions without an answer, and why. */
  readonly problems: readonly string[];
}

export class StampInspector {
  readonly #transport: Transport;
  readonly #lockService: string;

  constructor(transport: Transport, lockService: string) {
    this.#transport = transport;
    this.#lockService = lockService;
  }

  async leader(leaseName: "stream-manager" | "partition-manager"): Promise<string> {
    const client = lockServices({ clock: new NodeClock(), transport: this.#transport }, this.#lockService, LockService);
    const lease = answered(
      `lock service at ${this.#lockService}`,
      await client.getLease({ name: leaseName }, { timeoutMs: callTimeoutMs }),
    );
    if (lease.address === "" || lease.ended) throw new Error(`no ${leaseName} leads now`);
    return lease.address;
  }

  /** Returns all streams; each page is asked for again until a stream manager leads. */
  async streams(prefix = ""): Promise<StreamInfo[]> {
    return all(async (last: StreamInfo | undefined) => {
      const request = { prefix, after: last?.name ?? "", limit: pageLimit };
      const page = await this.ask((manager, timeoutMs) => manager.listStreams(request, { timeoutMs }));
      return { items: page.streams, more: page.more };
    });
  }

  /** Returns at most 1,000 streams in the order of their names. */
  async streamPage(prefix: string, after = "", limit = pageLimit): Promise<ListedPart<StreamInfo>> {
    const client = this.#transport.client(await this.leader("stream-manager"), StreamManager);
    const page = answered("stream manager", await client.listStreams({ prefix, after, limit }, { timeoutMs: callTimeoutMs }));
    return { items: page.streams, more: page.more };
  }

  /** Returns all extents; each page is asked for again until a stream manager leads. */
  async extents(): Promise<ExtentInfo[]> {
    return all(async (last: ExtentInfo | undefined) => {
      const request = { afterExtentId: last?.location?.extentId ?? 0n, limit: pageLimit };
      const page = await this.ask((manager, timeoutMs) => manager.listExtents(request, { timeoutMs }));
      return { items: page.extents, more: page.more };
    });
  }

  /** Returns at most 1,000 extents in the order of their ids. */
  async extentPage(afterExtentId = 0n, limit = pageLimit): Promise<ListedPart<ExtentInfo>> {
    const client = this.#transport.client(await this.leader("stream-manager"), StreamManager);
    const page = answered("stream manager", await client.listExtents({ afterExtentId, limit }, { timeoutMs: callTimeoutMs }));
    return { items: page.extents, more: page.more };
  }

  async nodes(): Promise<NodeInfo[]> {
    return (await this.ask((manager, timeoutMs) => manager.listNodes({}, { timeoutMs }))).nodes;
  }

  /** Returns undefined if there is no such extent. */
  async extent(id: bigint): Promise<ExtentInfo | undefined> {
    const page = await this.ask((manager, timeoutMs) => manager.listExtents({ afterExtentId: id - 1n, limit: 1 }, { timeoutMs }));
    return page.extents.find((each) => each.location?.extentId === id);
  }

  streamStat(name: string): Promise<StreamStat> {
    return this.ask((manager, timeoutMs) => manager.statStream({ name }, { timeoutMs }));
  }

  async streamExtents(name: string): Promise<ExtentLocation[]> {
    return all(async (last: ExtentLocation | undefined) => {
      const request = { name, afterExtentId: last?.extentId ?? 0n };
      const page = await this.ask((manager, timeoutMs) => manager.getStream(request, { timeoutMs }));
      return { items: page.extents, more: page.more };
    });
  }

  /** Asks the stream manager that leads, again until one does. Throws what it refuses with. */
  ask<T>(
    work: (manager: Client<typeof StreamManager>, timeoutMs: number) => Promise<Outcome<T>>,
    timeoutMs: number = callTimeoutMs,
  ): Promise<T> {
    return this.#ofManager(work, timeoutMs, true);
  }

  /** Asks for a change. It is repeated only when it certainly did not happen. */
  change<T>(
    work: (manager: Client<typeof StreamManager>, timeoutMs: number) => Promise<Outcome<T>>,
    timeoutMs: number = changeTimeoutMs,
  ): Promise<T> {
    return this.#ofManager(work, timeoutMs, false);
  }

  async #ofManager<T>(
    work: (manager: Client<typeof StreamManager>, timeoutMs: number) => Promise<Outcome<T>>,
    timeoutMs: number,
    repeatable: boolean,
  ): Promise<T> {
    const endMs = performance.now() + Math.max(timeoutMs, changeTimeoutMs);
    for (;;) {
      let problem: Error;
      try {
        const client = this.#transport.client(await this.leader("stream-manager"), StreamManager);
        const outcome = await work(client, timeoutMs);
        if (outcome.ok) return outcome.value;
        const { applied, message, reason } = outcome.failure;
        problem = new Error(`stream manager: ${message}`);
        const again = reason === "notLeader" || reason === "connectFailed" || reason === "connectionLost" || reason === "timeout";
        if (!again || (applied === "unknown" && !repeatable)) throw new Refused(problem.message);
      } catch (error) {
        if (error instanceof Refused) throw error;
        problem = error as Error;
      }
      if (performance.now() >= endMs) throw problem;
      await new Promise((resolve) => setTimeout(resolve, askAgainMs));
    }
  }

  async ranges(): Promise<RangePartition[]> {
    const client = this.#transport.client(await this.leader("partition-manager"), PartitionManager);
    return answered("partition manager", await client.getMap({ knownVersion: 0n, waitMs: 0 }, { timeoutMs: callTimeoutMs })).ranges;
  }

  /** Returns a client of the leading partition manager. */
  async partitionManager(): Promise<Client<typeof PartitionManager>> {
    return this.#transport.client(await this.leader("partition-manager"), PartitionManager);
  }

  partitionServer(address: string): Client<typeof PartitionServer> {
    return this.#transport.client(address, PartitionServer);
  }

  async servers(): Promise<ServerInfo[]> {
    const client = this.#transport.client(await this.leader("partition-manager"), PartitionManager);
    return answered("partition manager", await client.listServers({}, { timeoutMs: callTimeoutMs })).servers;
  }

  /**
   * Returns what the partition servers say of the ranges that they hold, by range. Servers that can't be asked are left
   * out.
   */
  async held(): Promise<ReadonlyMap<string, PartitionInfo>> {
    const held = new Map<string, PartitionInfo>();
    const addresses = new Set((await this.ranges()).map(({ serverAddress }) => serverAddress).filter((address) => address !== ""));
    await Promise.all(
      [...addresses].map(async (address) => {
        const answer = await this.#transport.client(address, PartitionServer).listPartitions({}, { timeoutMs: callTimeoutMs });
        for (const info of answer.ok ? answer.value.partitions : []) held.set(info.rangeId, info);
      }),
    );
    return held;
  }
}

/** Asking again would not help. */
class Refused extends Error {}

function answered<T>(who: string, outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new Error(`${who}: ${outcome.failure.message}`);
}

/** Returns every page behind the last one: each begins after the last item of that, so it ends. */
async function all<T>(next: (last: T | undefined) => Promise<ListedPart<T>>): Promise<T[]> {
  const found: T[] = [];
  for (;;) {
    const { items, more } = await next(found.at(-1));
    for (const item of items) found.push(item);
    if (!more || items.length === 0) return found;
  }
}
