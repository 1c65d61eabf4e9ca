/**
 * The cluster as a local one is: the same role classes as in production, each a simulated process on its own machine, restarted by a
 * simulated supervisor. Sizes are small, so that extents, segments and checkpoints end often; times are production's.
 */
import { fromBase64 } from "@stamp/azure-rest";
import { assert } from "@stamp/base";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { FrontEndRole, frontEndConfigSchema } from "@stamp/front-end";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { lockServiceAddresses } from "@stamp/metadata-store";
import { developmentAccount, PartitionManagerRole, partitionManagerConfigSchema } from "@stamp/partition-manager";
import { PartitionServerRole, partitionServerConfigSchema } from "@stamp/partition-server";
import { StreamManagerRole, streamManagerSchema } from "@stamp/stream-manager";
import { EtcdState, type RoleFactory, SimulatedEtcd, type Simulation } from "@stamp/virtual-time";

export interface ClusterOptions {
  /** Members that replicate the metadata store, if the lock services do. */
  readonly lockServices: number;
  /** Managers of each kind: one leads, the others stand by. */
  readonly managers: number;
  readonly extentNodes: number;
  readonly partitionServers: number;
  readonly restartAfterMs: number;
  /** Margin and renewals of the leases of partition servers. Clocks drift by less than 3 ms a term here. */
  readonly leaseMarginMs: number;
  readonly leaseRenewEveryMs: number;
  /** How long the lock service holds questions, in ms; 0: it answers at once. Kept seeds are of clusters that hold none. */
  readonly heldQuestionMs: number;
  /** How often the partition manager looks at the leases. */
  readonly lookEveryMs: number;
  /** Further settings of partition managers: how they balance. */
  readonly partitionManager: Readonly<Record<string, number>>;
  /** How soon garbage is given back (garbage.ts). */
  readonly partitionServer: Readonly<Record<string, number>>;
  readonly streamManager: Readonly<Record<string, unknown>>;
  readonly frontEnd: Readonly<Record<string, number>>;
  /** Address at which a process listens, asked at each of its starts. Its name by default; the lock service stays at its own. */
  readonly addressOf: (name: string) => string;
  /** Number of the first process of each role: the processes of a second stamp have other names. */
  readonly numbersFrom: number;
  /** End of every address, e.g. ":1"; empty by default. */
  readonly port: string;
}

/** Where a process is and whom it knows. */
export interface SimulatedPlace {
  readonly listen: string;
  readonly lockService: string;
  readonly init: boolean;
  /** Where others are told to call it. */
  readonly advertise?: string;
}

export interface SimulatedCluster {
  /** Address of the lock service; of several, separated by commas. */
  readonly lockService: string;
  /** Every process, in order of start. */
  readonly processes: readonly string[];
  /** Address of a process. */
  addressOf(name: string): string;
  ready(): boolean;
  /**
   * A second process with the configuration of `of` (its name, the same lock service) on a machine and disk of its own; it is down until
   * somebody restarts it. Without `listen` it wants the address of the first.
   */
  twin(of: string, process: string, change?: Partial<SimulatedPlace>): void;
}

export interface WholeCluster extends SimulatedCluster {
  /** Address and name of the front-end's process. */
  readonly frontEnd: string;
  readonly account: string;
  readonly accountKey: Uint8Array;
}

const mebibyte = 1024 * 1024;
/** By seed: which appends of the workloads go once into the extent's file: many, a few, those behind others, none. */
const inPlace = [
  { inPlaceBytesMin: 300, inPlaceBehindBytes: 0 },
  { inPlaceBytesMin: 300, inPlaceBehindBytes: 1 },
  { inPlaceBytesMin: 4_000, inPlaceBehindBytes: 0 },
  { inPlaceBytesMin: 0 },
];
/** Habits of a simulated etcd, by seed. */
const etcdHabits = [0, 0.02, 0.1];

class Builder {
  readonly processes: string[] = [];
  /** Addresses of the lock services, for those who call them. */
  readonly lockService: string;
  readonly #makers = new Map<string, (place: SimulatedPlace) => RoleFactory>();
  readonly #sim: Simulation;
  readonly #options: ClusterOptions;

  /** Small ones are written out again and again. */
  readonly #memoryTableBytes: number;

  constructor(sim: Simulation, options: Partial<ClusterOptions>) {
    this.#sim = sim;
    const { numbersFrom = 1, port = "", lockServices: members = 3 } = options;
    const lockServices = sim.replicatesMetadata ? members : sim.overEtcd ? 2 : 1;
    this.lockService = Array.from({ length: lockServices }, (_, i) => `lock-service-${numbersFrom + i}${port}`).join();
    this.#memoryTableBytes = sim.prng.pick([4, 8, 32]) * 1024;
    this.#options = {
      lockServices: members,
      managers: 2,
      extentNodes: 4,
      partitionServers: 2,
      leaseMarginMs: 1_000,
      leaseRenewEveryMs: 2_000,
      heldQuestionMs: 0,
      lookEveryMs: 500,
      partitionManager: {},
      partitionServer: {},
      frontEnd: {},
      streamManager: {},
      restartAfterMs: 100 + sim.prng.below(2_000),
      addressOf: (name) => name,
      numbersFrom,
      port,
      ...options,
    };
  }

  ready(): boolean {
    return this.processes.every((name) => this.#sim.role(name)?.status.ready === true);
  }

  addressOf(name: string): string {
    const { port, addressOf } = this.#options;
    return (name.startsWith("lock-service-") ? name : addressOf(name)) + port;
  }

  twin(of: string, process: string, change: Partial<SimulatedPlace> = {}): void {
    const make = this.#makers.get(of);
    assert(make !== undefined, `no process ${of}`);
    const { restartAfterMs } = this.#options;
    this.#sim.addProcess(process, make({ listen: of, lockService: this.lockService, init: true, ...change }), {
      restartAfterMs,
      down: true,
    });
  }

  lockServices(): void {
    const store = this.#sim.overEtcd ? this.#etcd() : this.#sim.replicatesMetadata ? this.#replicated() : {};
    const { port } = this.#options;
    for (const address of lockServiceAddresses(this.lockService)) {
      const name = address.slice(0, address.length - port.length);
      this.#add(name, (place) => {
        const config = lockServiceSchema.parse({ name, roomLookEveryMs: 0, ...place, ...store });
        return (world) => new LockServiceRole(world, config);
      });
    }
  }

  streamLayer(): void {
    this.lockServices();
    for (const name of this.#names("stream-manager", this.#options.managers)) {
      this.#add(name, (place) => {
        const config = streamManagerSchema.parse({
          name,
          ...place,
          leaseRenewEveryMs: 2_000,
          heldQuestionMs: this.#options.heldQuestionMs,
          ...this.#options.streamManager,
        });
        return (world) => new StreamManagerRole(world, config);
      });
    }
    for (const name of this.#names("extent-node", this.#options.extentNodes)) this.#extentNode(name);
  }

  /** Lock services that replicate the metadata store. Their log is cut often in some runs. */
  #replicated(): Readonly<Record<string, string | number>> {
    const { port } = this.#options;
    const members = lockServiceAddresses(this.lockService).map((address) => `${address.slice(0, address.length - port.length)}=${address}`);
    return { metadataStore: "replicated", members: members.join(), logEntriesMax: this.#sim.prng.pick([16, 100, 10_000]) };
  }

  /** A quorum of etcd, whose state outlives every crash. Gives what lock services are told of it. */
  #etcd(): Readonly<Record<string, string | number>> {
    const { prng } = this.#sim;
    const habits = { answerLost: prng.pick(etcdHabits), applyLate: prng.pick(etcdHabits), leaderChange: prng.pick(etcdHabits) };
    const [state, dice] = [new EtcdState(), prng.fork()];
    const options = { listen: "etcd-1", state, prng: dice, habits: () => habits };
    this.#add("etcd-1", () => (world) => new SimulatedEtcd(world, options));
    return { metadataStore: "etcd", etcdEndpoints: "etcd-1", etcdCompactEveryMs: 300_000 };
  }

  partitionLayer(): void {
    for (const name of this.#names("partition-manager", this.#options.managers)) {
      this.#add(name, (place) => {
        const config = partitionManagerConfigSchema.parse({
          name,
          ...place,
          pollEveryMs: this.#options.lookEveryMs,
          leaseRenewEveryMs: 2_000,
          heldQuestionMs: this.#options.heldQuestionMs,
          ...this.#options.partitionManager,
        });
        return (world) => new PartitionManagerRole(world, config);
      });
    }
    for (const name of this.#names("partition-server", this.#options.partitionServers)) this.#partitionServer(name);
  }

  frontEnd(): string {
    const [name = ""] = this.#names("front-end", 1);
    this.#add(name, (place) => {
      const config = frontEndConfigSchema.parse({
        name,
        ...place,
        blobListen: `${place.listen}/http`,
        heldQuestionMs: this.#options.heldQuestionMs,
        ...this.#options.frontEnd,
      });
      return (world) => new FrontEndRole(world, config);
    });
    return name;
  }

  #names(role: string, count: number): string[] {
    return Array.from({ length: count }, (_, i) => `${role}-${this.#options.numbersFrom + i}`);
  }

  #extentNode(name: string): void {
    this.#add(name, (place) => {
      const config = extentNodeSchema.parse({
        name,
        ...place,
        journalSegmentBytes: mebibyte,
        appendBytesMax: mebibyte - 100_000,
        pendingBytesMax: mebibyte,
        journalBatchBytesMax: mebibyte / 4,
        ...inPlace[this.#sim.seed % inPlace.length],
        reserveBytes: 0,
      });
      return (world) => new ExtentNodeRole(world, config);
    });
  }

  #partitionServer(name: string): void {
    this.#add(name, (place) => {
      const config = partitionServerConfigSchema.parse({
        name,
        ...place,
        extentTargetBytes: 256 * 1024,
        leaseMarginMs: this.#options.leaseMarginMs,
        leaseRenewEveryMs: this.#options.leaseRenewEveryMs,
        memoryTableBytesMax: this.#memoryTableBytes,
        logBytesMax: 2 * this.#memoryTableBytes,
        rowCacheBytesMax: 32 * 1024,
        indexCacheBytesMax: 4 * 1024,
        checkpointsMax: 3,
        // There is no second stamp.
        geoRolesEveryMs: 0,
        ...this.#options.partitionServer,
      });
      return (world) => new PartitionServerRole(world, config);
    });
  }

  #add(name: string, make: (place: SimulatedPlace) => RoleFactory): void {
    this.processes.push(name);
    this.#makers.set(name, make);
    const factory: RoleFactory = (world) => make({ listen: this.addressOf(name), lockService: this.lockService, init: true })(world);
    this.#sim.addProcess(name, factory, { restartAfterMs: this.#options.restartAfterMs });
  }
}

/** Lock services alone. */
export function simulatedLockServices(sim: Simulation, options: Partial<ClusterOptions> = {}): SimulatedCluster {
  const builder = new Builder(sim, options);
  builder.lockServices();
  return asCluster(builder);
}

/** Lock service, stream manager and extent nodes. */
export function simulatedStreamLayer(sim: Simulation, options: Partial<ClusterOptions> = {}): SimulatedCluster {
  const builder = new Builder(sim, options);
  builder.streamLayer();
  return asCluster(builder);
}

export function simulatedCluster(sim: Simulation, options: Partial<ClusterOptions> = {}): WholeCluster {
  const builder = new Builder(sim, options);
  builder.streamLayer();
  builder.partitionLayer();
  const frontEnd = builder.frontEnd();
  const { name, keys } = developmentAccount;
  const accountKey = fromBase64(keys[0] as string);
  if (!accountKey) throw new Error("the development account's key is not base64");
  return { ...asCluster(builder), frontEnd, account: name, accountKey };
}

/** Returns how the path of an extent's file ends on a node's disk (docs/formats/extent.md). */
export const extentFileName = (extentId: bigint): string => `${extentId.toString(16).padStart(14, "0")}.extent`;

const asCluster = (builder: Builder): SimulatedCluster => ({
  lockService: builder.lockService,
  processes: builder.processes,
  addressOf: (name) => builder.addressOf(name),
  ready: () => builder.ready(),
  twin: (of, process, change) => builder.twin(of, process, change),
});
