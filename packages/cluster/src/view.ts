/**
 * What a stamp looks like from inside: streams, extents, replicas, nodes, ranges and where they are, asked of the managers by gRPC.
 * Works for any stamp whose lock service can be reached, supervised here or not.
 */
import type { Outcome } from "@stamp/base";
import type { Transport } from "@stamp/ports";
import {
  type ExtentInfo,
  LockService,
  type NodeInfo,
  PartitionManager,
  type RangePartition,
  type ServerInfo,
  type StreamInfo,
  StreamManager,
} from "@stamp/wire";

const callTimeoutMs = 3_000;
const pageLimit = 1_000;
const pagesMax = 1_000;

export interface StampView {
  readonly streams: readonly StreamInfo[];
  readonly extents: readonly ExtentInfo[];
  readonly nodes: readonly NodeInfo[];
  readonly ranges: readonly RangePartition[];
  readonly servers: readonly ServerInfo[];
  /** What could not be asked, and why. */
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
    const client = this.#transport.client(this.#lockService, LockService);
    const lease = answered(
      `lock service at ${this.#lockService}`,
      await client.getLease({ name: leaseName }, { timeoutMs: callTimeoutMs }),
    );
    if (lease.address === "" || lease.ended) throw new Error(`no ${leaseName} leads now`);
    return lease.address;
  }

  async streams(prefix = ""): Promise<StreamInfo[]> {
    const client = this.#transport.client(await this.leader("stream-manager"), StreamManager);
    return pages(async (last: StreamInfo | undefined) => {
      const request = { prefix, after: last?.name ?? "", limit: pageLimit };
      const page = answered("stream manager", await client.listStreams(request, { timeoutMs: callTimeoutMs }));
      return [page.streams, page.more];
    });
  }

  async extents(): Promise<ExtentInfo[]> {
    const client = this.#transport.client(await this.leader("stream-manager"), StreamManager);
    return pages(async (last: ExtentInfo | undefined) => {
      const request = { afterExtentId: last?.location?.extentId ?? 0n, limit: pageLimit };
      const page = answered("stream manager", await client.listExtents(request, { timeoutMs: callTimeoutMs }));
      return [page.extents, page.more];
    });
  }

  async nodes(): Promise<NodeInfo[]> {
    const client = this.#transport.client(await this.leader("stream-manager"), StreamManager);
    return answered("stream manager", await client.listNodes({}, { timeoutMs: callTimeoutMs })).nodes;
  }

  async ranges(): Promise<RangePartition[]> {
    const client = this.#transport.client(await this.leader("partition-manager"), PartitionManager);
    return answered("partition manager", await client.getMap({ knownVersion: 0n, waitMs: 0 }, { timeoutMs: callTimeoutMs })).ranges;
  }

  async servers(): Promise<ServerInfo[]> {
    const client = this.#transport.client(await this.leader("partition-manager"), PartitionManager);
    return answered("partition manager", await client.listServers({}, { timeoutMs: callTimeoutMs })).servers;
  }

  /** Everything; what can't be asked is a problem in the answer, not an error. */
  async view(): Promise<StampView> {
    const problems = new Set<string>();
    const orNone = async <T>(asked: Promise<readonly T[]>): Promise<readonly T[]> => {
      try {
        return await asked;
      } catch (error) {
        problems.add((error as Error).message);
        return [];
      }
    };
    const [streams, extents, nodes, ranges, servers] = await Promise.all([
      orNone(this.streams()),
      orNone(this.extents()),
      orNone(this.nodes()),
      orNone(this.ranges()),
      orNone(this.servers()),
    ]);
    return { streams, extents, nodes, ranges, servers, problems: [...problems] };
  }
}

function answered<T>(who: string, outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new Error(`${who}: ${outcome.failure.message}`);
}

async function pages<T>(next: (last: T | undefined) => Promise<readonly [readonly T[], boolean]>): Promise<T[]> {
  const all: T[] = [];
  for (let page = 0; page < pagesMax; page++) {
    const [items, more] = await next(all.at(-1));
    all.push(...items);
    if (!more || items.length === 0) break;
  }
  return all;
}
