/**
 * Two stamps and the location service over both, each process on a machine of its own. Processes of stamp north are numbered from 1, of
 * stamp south from 11, of the location from 21.
 */
import { fromBase64 } from "@stamp/azure-rest";
import { type Outcome, present } from "@stamp/base";
import { LocationServiceRole, locationServiceSchema } from "@stamp/location-service";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { LeaderCalls } from "@stamp/metadata-store";
import type { Client, World } from "@stamp/ports";
import type { RoleFactory, Simulation } from "@stamp/virtual-time";
import { LocationService } from "@stamp/wire";
import type { HttpAccount } from "../clients/http-client.ts";
import { type ClusterOptions, simulatedCluster, type WholeCluster } from "../cluster.ts";

export const account = "acme";
export type StampName = "north" | "south";
export const stampNames: readonly StampName[] = ["north", "south"];
export const otherStamp = (name: StampName): StampName => (name === "north" ? "south" : "north");

const port = ":1";
const locationLock = `lock-service-21${port}`;
const readyWithinMs = 60_000;
const callMs = 5_000;
const leaseRenewEveryMs = 2_000;
/** A drained primary takes writes again after this time. */
const drainMaxMs = 20_000;

/** A question to the leading location service. */
export type LocationCall<T> = (client: Client<typeof LocationService>, options: { readonly timeoutMs: number }) => Promise<Outcome<T>>;

export class TwoStamps {
  readonly stamps: Readonly<Record<StampName, WholeCluster>>;
  /** Processes of the location. */
  readonly location: readonly string[];
  readonly #sim: Simulation;
  readonly #world: World;
  readonly #calls: LeaderCalls;
  #key: Uint8Array | undefined;

  constructor(sim: Simulation, options: (name: StampName) => Partial<ClusterOptions>) {
    this.#sim = sim;
    const built = (name: StampName, numbersFrom: number): WholeCluster => simulatedCluster(sim, { ...options(name), numbersFrom, port });
    this.stamps = { north: built("north", 1), south: built("south", 11) };
    const names = ["lock-service-21"];
    const restartAfterMs = 100 + sim.prng.below(2_000);
    const lock = lockServiceSchema.parse({ name: "lock-service-21", listen: locationLock, init: true });
    sim.addProcess("lock-service-21", (world) => new LockServiceRole(world, lock), { restartAfterMs });
    for (let i = 1; i <= sim.prng.pick([1, 2]); i++) {
      const name = `location-service-${20 + i}`;
      names.push(name);
      sim.addProcess(name, locationService(name), { restartAfterMs });
    }
    this.location = names;
    this.#world = sim.world("operator");
    this.#calls = new LeaderCalls(this.#world, { lockService: locationLock, leaseName: "location-service" });
  }

  get processes(): readonly string[] {
    return [...this.stamps.north.processes, ...this.stamps.south.processes, ...this.location];
  }

  ready(): boolean {
    const isReady = (name: string): boolean => this.#sim.role(name)?.status.ready === true;
    return stampNames.every((name) => this.stamps[name].ready()) && this.location.every(isReady);
  }

  /** Adds both stamps, and makes the account at stamp north. */
  async begin(): Promise<void> {
    const sim = this.#sim;
    await sim.until(() => this.ready(), readyWithinMs, "both stamps and the location service are ready");
    const done = (what: string, work: () => Promise<boolean>): Promise<void> => sim.until(work, readyWithinMs, what);
    for (const name of stampNames) {
      const { frontEnd, lockService } = this.stamps[name];
      const stamp = { name, location: name, lockService, doors: [`${frontEnd}${port}`] };
      await done(`stamp ${name} is added`, async () => (await this.call((client, options) => client.addStamp(stamp, options))).ok);
    }
    await done("the account is made", async () => {
      const made = await this.call((client, options) => client.createAccount({ account, location: "north" }, options));
      if (made.ok) this.#key = fromBase64(made.value.keys[0] ?? "");
      return made.ok;
    });
  }

  /** Calls the leading location service. */
  call<T>(call: LocationCall<T>): Promise<Outcome<T>> {
    const { transport } = this.#world;
    return this.#calls.call(callMs, (address, timeoutMs) => call(transport.client(address, LocationService), { timeoutMs }));
  }

  /** Returns a client of the account at a stamp; `secondary`: by the name of its copy. */
  door(name: StampName, secondary = false): HttpAccount {
    const door = { account, accountKey: present(this.#key, "the account's key"), frontEnd: this.stamps[name].frontEnd };
    return secondary ? { ...door, pathName: `${account}-secondary` } : door;
  }
}

function locationService(name: string): RoleFactory {
  const times = { leaseRenewEveryMs, askEveryMs: 2_000, accountsEveryMs: 10_000, drainMaxMs };
  const config = locationServiceSchema.parse({ name, listen: `${name}${port}`, lockService: locationLock, ...times });
  return (world) => new LocationServiceRole(world, config, () => world.transport);
}
