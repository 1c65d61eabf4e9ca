/**
 * The cluster of a measurement of coded extents: streams whose extents are coded or stay replicas, the coding policy, and what the processes
 * take of the machine.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownerEpoch, rulesWithout, unwrap } from "@stamp/base";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { profileOf } from "@stamp/erasure";
import { silentLogger, type World } from "@stamp/ports";
import { type GrpcTransport, nodeWorld } from "@stamp/ports-node";
import { type Place, StreamClient } from "@stamp/stream-client";
import { type CodingStatus, ExtentState, type RepairStatus } from "@stamp/wire";
import { processUse } from "../rows/machine.ts";
import { forever, ownerTransport, until } from "../streams/bench.ts";

export const mebibyte = 1_024 * 1_024;
export const blockBytes = 4 * mebibyte;
const appendsAtOnce = 4;
const sealedWithinMs = 120_000;
const codedWithinMs = 1_800_000;
const goneWithinMs = 120_000;

export interface StageOptions {
  readonly nodes: number;
  readonly profile: string;
}

export class Stage {
  readonly target: DrillTarget;
  readonly #world: World;
  readonly #lockService: string;
  readonly #folder: string;

  readonly #transport: GrpcTransport;

  private constructor(target: DrillTarget, lockService: string, transport: GrpcTransport) {
    this.target = target;
    this.#folder = mkdtempSync(join(tmpdir(), "stamp-bench-client-"));
    this.#world = nodeWorld({ dataDir: this.#folder, name: "bench", logger: silentLogger, transport });
    this.#transport = transport;
    this.#lockService = lockService;
  }

  /** Returns a client that knows nothing yet. `hedges` false: it waits for the node of a fragment until that answers or fails. */
  client(hedges = true): StreamClient {
    const world = hedges ? this.#world : { ...this.#world, rules: rulesWithout("fragmentReadsHedged") };
    return new StreamClient(world, { lockService: this.#lockService });
  }

  static async start({ nodes, profile }: StageOptions): Promise<Stage> {
    const target = await startOwn(
      {
        extentNodes: nodes,
        // A node that is dead for a while is not replaced: reads do without it. A lost disk is made up for at once.
        repairAfterMs: 3_600_000,
        journalSegmentBytes: 16 * mebibyte,
        erasureCoding: { profile, afterSeconds: 1, minBytes: mebibyte },
        roles: { "stream-manager": { deletionGraceMs: 3_000 }, "extent-node": { scrubBytesPerSecond: 0 } },
      },
      false,
    );
    return new Stage(target, (await target.status()).lockService, await ownerTransport(target));
  }

  async close(): Promise<void> {
    await this.#transport.close();
    await this.target.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Appends blocks of 4 MiB to a stream of its own, and waits until all of its extents but the last are sealed. */
  async fill(name: string, mebibytes: number): Promise<readonly Place[]> {
    const stream = unwrap(await this.client().openForOwner(name, ownerEpoch(1), { create: true, timeoutMs: 30_000 }));
    const block = new Uint8Array(blockBytes);
    for (let at = 0; at < blockBytes; at += 65_536) crypto.getRandomValues(block.subarray(at, at + 65_536));
    const places: Place[] = [];
    while (places.length * 4 < mebibytes) {
      const some = await Promise.all(Array.from({ length: appendsAtOnce }, () => stream.append([block], forever)));
      for (const appended of some) places.push(...unwrap(appended));
    }
    const open = Math.max(...places.map(({ extentId }) => extentId));
    await until(`${name} is sealed`, sealedWithinMs, async () => {
      const extents = (await this.target.inspector.extents()).filter((each) => each.stream === name);
      return extents.every(
        ({ location, state, intactCopies, nodeIds }) =>
          Number(location?.extentId) >= open || (state === ExtentState.SEALED && intactCopies === nodeIds.length),
      );
    });
    return places.filter(({ extentId }) => extentId !== open);
  }

  /** Returns the node with the most data fragments. */
  async nodeWithMostData(): Promise<string> {
    const counts = new Map<string, number>();
    for (const { coded, fragmentNodeIds } of await this.target.inspector.extents()) {
      const data = fragmentNodeIds.slice(0, profileOf(coded?.profile ?? "")?.data ?? 0);
      for (const name of data) counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    const [most] = [...counts].toSorted(([, a], [, b]) => b - a);
    if (most === undefined) throw new Error("no extent is coded");
    return most[0];
  }

  setCoding(on: boolean): Promise<CodingStatus> {
    return this.target.inspector.change((manager, timeoutMs) => manager.setCodingPaused({ paused: !on, note: "bench" }, { timeoutMs }));
  }

  coding(): Promise<CodingStatus> {
    return this.target.inspector.ask((manager, timeoutMs) => manager.getCodingStatus({}, { timeoutMs }));
  }

  repair(): Promise<RepairStatus> {
    return this.target.inspector.ask((manager, timeoutMs) => manager.getRepairStatus({}, { timeoutMs }));
  }

  /** Waits until the extents of these places are coded. Lists all extents each `pollMs`, which takes processor time as well. */
  async untilCoded(places: readonly Pick<Place, "extentId">[], pollMs?: number): Promise<void> {
    const wanted = new Set(places.map(({ extentId }) => extentId));
    const areCoded = async (): Promise<boolean> => {
      const extents = await this.target.inspector.extents();
      return extents.every(
        ({ location, coded, attempt }) => !wanted.has(Number(location?.extentId)) || (coded !== undefined && attempt === ""),
      );
    };
    await until("coded", codedWithinMs, areCoded, pollMs);
  }

  /** Waits until no node keeps a replica of the extents of these places. */
  async untilReplicasAreGone(places: readonly Pick<Place, "extentId">[]): Promise<void> {
    const wanted = new Set(places.map(({ extentId }) => extentId));
    await until("replicas are deleted", goneWithinMs, async () => (await this.#files(wanted)).every((path) => path.endsWith(".fragment")));
  }

  /** Bytes on the disks of the replicas and fragments of the extents of these places. */
  async bytesOnDisk(places: readonly Pick<Place, "extentId">[]): Promise<number> {
    const files = await this.#files(new Set(places.map(({ extentId }) => extentId)));
    return files.reduce((sum, path) => sum + statSync(path).blocks * 512, 0);
  }

  async #files(extentIds: ReadonlySet<number>): Promise<string[]> {
    const { dataDir } = await this.target.status();
    const nodes = readdirSync(dataDir).filter((name) => name.startsWith("extent-node-"));
    return nodes.flatMap((node) =>
      ["extents", "fragments"].flatMap((kind) => {
        const folder = join(dataDir, node, "files", kind);
        // The folder of fragments is made with the first one.
        const found = !existsSync(folder) ? [] : readdirSync(folder, { recursive: true, encoding: "utf8" });
        return found.filter((path) => extentIds.has(idOf(path))).map((path) => join(folder, path));
      }),
    );
  }

  /** Begins to count processor time. The answer is what each role's processes took since then, in ms. */
  async processorTime(): Promise<() => Promise<ReadonlyMap<string, number>>> {
    const before = new Map((await processUse(this.target)).map(({ name, cpuMs }) => [name, cpuMs]));
    return async () => {
      const byRole = new Map<string, number>();
      for (const { name, cpuMs } of await processUse(this.target)) {
        const role = name.replace(/-\d+$/, "");
        byRole.set(role, (byRole.get(role) ?? 0) + cpuMs - (before.get(name) ?? 0));
      }
      return byRole;
    };
  }
}

/** Number of the extent in the name of a file: 14 hexadecimal digits (docs/formats/fragment.md, extent.md). NaN: another file. */
const idOf = (path: string): number => Number.parseInt(/(?:^|\/)([0-9a-f]{14})[^/]*\.(?:extent|fragment)$/.exec(path)?.[1] ?? "", 16);
