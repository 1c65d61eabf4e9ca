/**
 * The feature level of the stamp (docs/design/mixed-releases.md), as the leading stream manager records it: read when a term begins, raised under
 * the term's lease. Processes announce themselves, and are told the level.
 *
 * Invariants:
 *  - The level is recorded before anybody is told it, and never falls.
 *  - It is raised only if every process that is known to this leader reads what the new level brings: those that have announced themselves, and every
 *    extent node that is not decommissioned. Processes that no leader hears of, the caller asks (`stamp upgrade finalize`).
 *  - A new stamp, in which no release before has written, begins at the level of this release.
 */
import { featureLevel, levelAllows, type Outcome, ok, refused, release, type SmTerm } from "@stamp/base";
import { decodeLevel, encodeLevel, type LevelRecord, levelKey, type MetadataClient } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import type { StreamState } from "@stamp/stream";
import { type AnnounceRequest, type FeatureLevelStatus, fromWire, toWire } from "@stamp/wire";
import type { StreamManagerConfig } from "../config.ts";
import type { NodeTable } from "../nodes/node-table.ts";
import { leaseName } from "../term/ledger.ts";

/** Time without an announcement after which a process is not counted, in milliseconds. Three announcements may be lost. */
const announcedForMs = 30_000;
/** Processes that are remembered; beyond, the one that was silent for longest is forgotten. */
const announcedMax = 10_000;
const textMax = 200;

interface Announced {
  readonly role: string;
  readonly release: string;
  readonly featureLevel: number;
  readonly incarnation: number;
  readonly atMs: number;
}

/** Parts of a term by which its feature level is decided. */
interface Around {
  readonly world: World;
  readonly config: StreamManagerConfig;
  readonly number: SmTerm;
  readonly state: StreamState;
  readonly nodes: NodeTable;
  readonly end: (why: string, above?: number) => void;
}

export class StampLevel {
  readonly #around: Around;
  readonly #metadata: MetadataClient;
  #record: LevelRecord;
  readonly #announced = new Map<string, Announced>();

  private constructor(around: Around, metadata: MetadataClient, record: LevelRecord) {
    this.#around = around;
    this.#metadata = metadata;
    this.#record = record;
  }

  /** Loads the level. Refuses with `newerFormat` if it is above that of this release. */
  static async load(around: Around, metadata: MetadataClient): Promise<Outcome<StampLevel>> {
    const { config, state, world } = around;
    const read = await metadata.get([levelKey], config.metadataTimeoutMs);
    if (!read.ok) return read;
    const [stored] = read.value;
    if (stored !== undefined && stored.version > 0) {
      const decoded = decodeLevel(stored.value, (bytes) => world.digest.crc32c(bytes));
      return decoded.ok ? ok(new StampLevel(around, metadata, decoded.value)) : decoded;
    }
    const level = new StampLevel(around, metadata, { level: 0, wallMs: 0, release: "" });
    if (!state.isEmpty) return ok(level);
    const recorded = await level.#write(featureLevel, "the stamp is new: it has no stream, no extent and no node");
    return recorded.ok ? ok(level) : recorded;
  }

  get level(): number {
    return this.#record.level;
  }

  /** True if what `level` brings may be written. */
  allows(level: number): boolean {
    return levelAllows(this.#around.world.rules, this.level, level);
  }

  /** Notes the formats that a process knows. Returns the level under which it may write. */
  announce({ role, name, incarnation, release: its, versions }: AnnounceRequest): Outcome<number> {
    if (name === "" || [role, name, its].some((text) => text.length > textMax))
      return refused("invalidArgument", "badRequest", `a process has a name, and its texts have at most ${textMax} characters`);
    const told = { role, release: its, featureLevel: versions?.featureLevel ?? 0, incarnation: fromWire(incarnation) };
    const held = this.#announced.get(name);
    // A late announcement of a start before says nothing about the process that runs now.
    if (held !== undefined && told.incarnation < held.incarnation) return ok(this.level);
    this.#announced.delete(name);
    this.#announced.set(name, { ...told, atMs: this.#around.world.clock.monotonicMs() });
    const [oldest] = this.#announced.keys();
    if (this.#announced.size > announcedMax && oldest !== undefined) this.#announced.delete(oldest);
    return ok(this.level);
  }

  /** Raises the level, for ever. Refused with `conflict`, naming the processes, while one is in the way. Idempotent. */
  async set(level: number): Promise<Outcome<void>> {
    if (level > featureLevel)
      return refused("invalidArgument", "badRequest", `this stream manager (release ${release}) knows level ${featureLevel}, not ${level}`);
    if (level < this.level) {
      return refused("failedPrecondition", "conflict", `the feature level is ${this.level} already, and a level never falls`);
    }
    if (level === this.level) return ok();
    const inTheWay = this.inTheWay(level);
    if (inTheWay.length > 0)
      return refused("failedPrecondition", "conflict", `the feature level stays ${this.level}: ${inTheWay.join("; ")}`);
    return this.#write(level, "it was asked for, and every process knows it");
  }

  /** Returns the processes that do not read what `level` brings, or do not say so, each as a text with the reason, by name. */
  inTheWay(level: number): string[] {
    const { nodes, state } = this.#around;
    const fresh = this.#fresh();
    const older = [...fresh]
      .filter(([, told]) => told.featureLevel < level)
      .map(([name, told]) => `${name} (${told.role}, release ${told.release}) knows level ${told.featureLevel}`);
    const silent = [...state.nodes()]
      .filter(({ nodeId, duty }) => duty !== "decommissioned" && !fresh.has(nodeId))
      .map(({ nodeId }) => {
        const why = nodes.up(nodeId) ? "has not told which level it knows: it is of an older release, or has just started" : "is down";
        return `${nodeId} (extent-node) ${why}`;
      });
    return [...older, ...silent].sort();
  }

  get view(): Omit<FeatureLevelStatus, "$typeName" | "processes"> & { readonly processes: object[] } {
    const nowMs = this.#around.world.clock.monotonicMs();
    const processes = [...this.#fresh()].sort(([a], [b]) => (a < b ? -1 : 1));
    return {
      level: this.level,
      known: featureLevel,
      recordedWallMs: toWire(this.#record.wallMs),
      recordedBy: this.#record.release,
      processes: processes.map(([name, told]) => ({
        role: told.role,
        name,
        release: told.release,
        featureLevel: told.featureLevel,
        msAgo: toWire(Math.round(nowMs - told.atMs)),
      })),
      inTheWay: this.level < featureLevel ? this.inTheWay(featureLevel) : [],
    };
  }

  #fresh(): Map<string, Announced> {
    const sinceMs = this.#around.world.clock.monotonicMs() - announcedForMs;
    return new Map([...this.#announced].filter(([, { atMs }]) => atMs >= sinceMs));
  }

  async #write(level: number, why: string): Promise<Outcome<void>> {
    const { config, end, number, world } = this.#around;
    const record = { level, wallMs: Math.floor(world.clock.wallMs()), release };
    const value = encodeLevel(record, (bytes) => world.digest.crc32c(bytes));
    const fence = { leaseName, leaseEpoch: number };
    const written = await this.#metadata.transact({ fence, conditions: [], writes: [{ key: levelKey, value }] }, config.metadataTimeoutMs);
    if (!written.ok) {
      // The next term reads what holds.
      if (written.failure.applied === "unknown") end(`the outcome of a metadata write is unknown (${written.failure.message})`);
      return written;
    }
    this.#record = record;
    world.logger.info("the feature level of the stamp is recorded", { level, term: number, why });
    return ok();
  }
}
