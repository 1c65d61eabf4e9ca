/** A stamp's stream layer with its real roles on virtual time, for the tests of this package. */
import type { RuleName } from "@stamp/base";
import { ownerEpoch, rulesWithout, unwrap, utf8 } from "@stamp/base";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { StreamManagerRole, streamManagerSchema } from "@stamp/stream-manager";
import { Simulation } from "@stamp/virtual-time";
import { type OwnedStream, type Place, StreamClient, type StreamClientOptions } from "../index.ts";

export const nodeNames: readonly string[] = ["en1", "en2", "en3", "en4"];

export interface StampOptions {
  readonly without?: readonly RuleName[];
  readonly client?: Partial<StreamClientOptions>;
  readonly restartAfterMs?: number;
  readonly journalSegmentBytes?: number;
  readonly journalQueueBytesMax?: number;
  /** Limit of single nodes, in bytes; otherwise the largest append that fits a segment. */
  readonly appendBytesMax?: Readonly<Record<string, number>>;
  /** Absent: four. */
  readonly nodes?: readonly string[];
}

export class Stamp {
  readonly sim: Simulation;
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
    for (const name of options.nodes ?? nodeNames) {
      const config = extentNodeSchema.parse({
        name,
        listen: name,
        lockService: "lock",
        journalSegmentBytes,
        appendBytesMax: options.appendBytesMax?.[name] ?? Math.min(journalSegmentBytes - 100_000, 8 << 20),
        ...(options.journalQueueBytesMax === undefined ? {} : { journalQueueBytesMax: options.journalQueueBytesMax }),
      });
      this.sim.addProcess(name, (world) => new ExtentNodeRole(world, config), life);
    }
  }

  client(process = "owner"): StreamClient {
    return new StreamClient(this.sim.world(process), { lockService: "lock", ...this.#options.client });
  }

  async open(name: string, epoch: number, process = "owner"): Promise<OwnedStream> {
    return unwrap(await this.client(process).openForOwner(name, ownerEpoch(epoch), { create: true, timeoutMs: 30_000 }));
  }

  /** Returns the blocks that an owner with this epoch finds in the stream, behind this block. */
  async content(name: string, epoch: number, behind?: Place): Promise<string[]> {
    const stream = await this.open(name, epoch, `reader-${epoch}`);
    const found: string[] = [];
    const from = behind && { extentId: behind.extentId, offsetBytes: behind.offsetBytes + behind.lengthBytes };
    for await (const { payload } of stream.readAll({ timeoutMs: 30_000, ...(from && { from }) }))
      found.push(new TextDecoder().decode(payload));
    await stream.close();
    return found;
  }
}

export const block = (text: string): Uint8Array[] => [utf8(text)];
