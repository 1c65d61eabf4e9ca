/** A stamp's stream layer with its real roles on virtual time, and range partitions over it, for the tests of this package. */
import { fromUtf8, ownerEpoch, type RuleName, rulesWithout, unwrap, utf8 } from "@stamp/base";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import type { World } from "@stamp/ports";
import { StreamClient } from "@stamp/stream-client";
import { StreamManagerRole, streamManagerSchema } from "@stamp/stream-manager";
import { Simulation } from "@stamp/virtual-time";
import type { Caches } from "../cache/caches.ts";
import { type MemoryBudget, type PartitionLimits, RangePartition, type RowWrite, type StorageTimes } from "../index.ts";

export const nodeNames: readonly string[] = ["en1", "en2", "en3", "en4"];

export interface StampOptions {
  readonly without?: readonly RuleName[];
  readonly extentTargetBytes?: number;
  readonly limits?: PartitionLimits;
  readonly memory?: MemoryBudget;
  readonly times?: StorageTimes;
  /** Caches that all ranges share. */
  readonly caches?: Caches;
  readonly restartAfterMs?: number;
  readonly journalSegmentBytes?: number;
}

export class Stamp {
  readonly sim: Simulation;
  readonly lost: string[] = [];
  readonly #options: StampOptions;

  constructor(seed: number, options: StampOptions = {}) {
    this.#options = options;
    this.sim = new Simulation({ seed, rules: rulesWithout(...(options.without ?? [])) });
    const life = options.restartAfterMs === undefined ? {} : { restartAfterMs: options.restartAfterMs };
    const lock = lockServiceSchema.parse({ name: "lock", listen: "lock", init: true });
    this.sim.addProcess("lock", (world) => new LockServiceRole(world, lock), life);
    const manager = streamManagerSchema.parse({ name: "sm1", listen: "sm1", lockService: "lock" });
    this.sim.addProcess("sm1", (world) => new StreamManagerRole(world, manager), life);
    const journalSegmentBytes = options.journalSegmentBytes ?? 1 << 20;
    const appendBytesMax = Math.min(journalSegmentBytes - 100_000, 8 << 20);
    for (const name of nodeNames) {
      const config = extentNodeSchema.parse({ name, listen: name, lockService: "lock", journalSegmentBytes, appendBytesMax });
      this.sim.addProcess(name, (world) => new ExtentNodeRole(world, config), life);
    }
  }

  client(process: string, world: World = this.sim.world(process)): StreamClient {
    const { extentTargetBytes } = this.#options;
    return new StreamClient(world, {
      lockService: "lock",
      ...(extentTargetBytes === undefined ? {} : { extentTargetBytes }),
    });
  }

  load(
    epoch: number,
    process = `server-${epoch}`,
    { rangeId = "r1", low = "", high = "~", create = true, world = this.sim.world(process) } = {},
  ) {
    const { limits, memory, times, caches } = this.#options;
    return RangePartition.load(world, this.client(process, world), {
      rangeId,
      streams: streamsOf(rangeId),
      ownerEpoch: ownerEpoch(epoch),
      create,
      lowKey: utf8(low),
      highKey: utf8(high),
      ...(limits === undefined ? {} : { limits }),
      ...(memory === undefined ? {} : { memory }),
      ...(times === undefined ? {} : { times }),
      ...(caches === undefined ? {} : { caches }),
      onLost: (why) => this.lost.push(`${epoch}: ${why}`),
      timeoutMs: 60_000,
    });
  }

  async open(epoch: number): Promise<RangePartition> {
    return unwrap(await this.load(epoch));
  }
}

export const streamsOf = (rangeId: string) => ({
  metadata: `/${rangeId}/metadata`,
  commitLog: `/${rangeId}/log`,
  rowData: `/${rangeId}/rows`,
  blobData: `/${rangeId}/blobs`,
});

export const put = (key: string, value: string): RowWrite => ({ kind: "put", key: utf8(key), value: utf8(value) });
export const remove = (key: string): RowWrite => ({ kind: "delete", key: utf8(key) });

export const write = (partition: RangePartition, lock: string, writes: readonly RowWrite[], timeoutMs = 60_000) =>
  partition.transact(utf8(lock), async (tx) => ({ writes, result: tx.nextSequence }), { timeoutMs });

export async function read(partition: RangePartition, key: string): Promise<string | undefined> {
  const value = await partition.get(utf8(key));
  return value && fromUtf8(value);
}

export async function rows(source: AsyncIterable<readonly [Uint8Array, Uint8Array]>): Promise<[string, string][]> {
  const all: [string, string][] = [];
  for await (const [key, value] of source) all.push([fromUtf8(key), fromUtf8(value)]);
  return all;
}
