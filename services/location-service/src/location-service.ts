/**
 * The location service: one leader by a lease of the location's own lock service, others stand by and refuse with
 * `notLeader`. When a term ends, for whatever reason, the next one reads everything from the metadata store of that
 * lock service.
 */
import type { LeaseEpoch, Outcome } from "@stamp/base";
import { FailureError, ok, refused } from "@stamp/base";
import { LeaseKeeper, MetadataClient, refusedByStandby, statusService } from "@stamp/metadata-store";
import type { Identity, Listener, Role, RoleStatus, Transport, World } from "@stamp/ports";
import { jittered, openIdentity, served, sleep } from "@stamp/ports";
import { LocationService } from "@stamp/wire";
import type { LocationServiceConfig } from "./config.ts";
import { Location } from "./location.ts";
import { locationServiceMetrics } from "./metrics.ts";
import { Registry } from "./registry.ts";
import { locationHandlers } from "./server.ts";

/**
 * Returns a transport that proves the secret in a file, read at each connection, and the certificate beside it. Throws an error in words if the
 * certificate can't be used.
 */
export type TransportOf = (secretFile: string) => Transport;

const leaseName = "location-service";
const pauseBetweenTermsMs = 100;

interface Term {
  readonly number: LeaseEpoch;
  readonly end: AbortController;
  readonly location: Location;
}

export class LocationServiceRole implements Role {
  readonly metrics = locationServiceMetrics;
  readonly #world: World;
  readonly #config: LocationServiceConfig;
  readonly #transportOf: TransportOf;
  readonly #transports = new Map<string, Transport>();
  readonly #stopping = new AbortController();
  #identity: Identity | undefined;
  #listener: Listener | undefined;
  #keeper: LeaseKeeper | undefined;
  #ending: AbortController | undefined;
  #term: Term | undefined;
  /** Reason why the last term could not begin; undefined: it could. */
  #trouble: string | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(world: World, config: LocationServiceConfig, transportOf: TransportOf) {
    this.#world = world;
    this.#config = config;
    this.#transportOf = transportOf;
  }

  get address(): string {
    return this.#config.advertise ?? this.#listener?.address ?? this.#config.listen;
  }

  get status(): RoleStatus {
    const term = this.#term;
    if (term !== undefined) {
      return { ready: true, waitingFor: [], state: "leader", facts: { term: term.number, ...term.location.facts } };
    }
    if (this.#keeper?.standsBy === true) return { ready: true, waitingFor: [], state: "standby", facts: {} };
    const waiting = this.#keeper?.waitingFor ?? "";
    return { ready: false, waitingFor: [this.#trouble ?? (waiting === "" ? "its lease" : waiting)], state: "starting", facts: {} };
  }

  async start(): Promise<void> {
    const world = this.#world;
    const { name, listen, lockService, leaseTermMs, leaseMarginMs, leaseRenewEveryMs } = this.#config;
    this.#identity = await openIdentity(world, { kept: 0 });
    const identity = this.#identity;
    const { incarnation } = identity;
    this.#listener = await world.transport.serve(listen, [
      served(
        LocationService,
        locationHandlers(world.clock, () => this.#leading()),
      ),
      statusService(
        world,
        "location-service",
        name,
        () => this.status,
        () => ({ incarnation }),
      ),
    ]);
    this.#keeper = new LeaseKeeper(world, {
      lockService,
      leaseName,
      holder: name,
      identity,
      address: this.address,
      termMs: leaseTermMs,
      marginMs: leaseMarginMs,
      renewEveryMs: leaseRenewEveryMs,
      onLost: (why) => this.#end(why),
    });
    this.#running = this.#lead(this.#keeper, identity);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#end("it was stopped");
    await this.#running;
    await this.#listener?.close(0);
    for (const transport of this.#transports.values()) await transport.close();
    await this.#identity?.close();
  }

  /** Returns the location of this term. Refused unless the lease is held. */
  #leading(): Outcome<Location> {
    if (this.#term !== undefined && this.#keeper?.holds() === true) return ok(this.#term.location);
    return refusedByStandby("location service", this.#keeper?.heldBy);
  }

  #end(why: string): void {
    if (this.#ending === undefined || this.#ending.signal.aborted) return;
    if (!this.#stopping.signal.aborted) this.#world.logger.warn("the term of the location service ended", { why });
    this.#ending.abort();
  }

  async #lead(keeper: LeaseKeeper, identity: Identity): Promise<void> {
    const { clock, logger, random } = this.#world;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const ending = new AbortController();
      this.#ending = ending;
      try {
        const epoch = await keeper.acquire(signal);
        await this.#serve(epoch, ending, identity);
      } catch (error) {
        if (!(error instanceof FailureError) || error.failure.reason !== "cancelled") {
          logger.error("the location service has a bug", { error: String(error) });
          this.#world.fatal(`location service: ${String(error)}`);
        }
      }
      this.#term = undefined;
      await keeper.release();
      await sleep(clock, jittered(random, pauseBetweenTermsMs), signal);
    }
  }

  async #serve(number: LeaseEpoch, end: AbortController, identity: Identity): Promise<void> {
    const world = this.#world;
    const { lockService, metadataTimeoutMs } = this.#config;
    const registry = await Registry.load({
      metadata: new MetadataClient(world, lockService, identity),
      fence: { leaseName, leaseEpoch: number },
      checksum: (bytes) => world.digest.crc32c(bytes),
      timeoutMs: metadataTimeoutMs,
      end: (why) => this.#end(why),
    });
    this.#trouble = registry.ok ? undefined : registry.failure.message;
    if (!registry.ok) {
      world.logger.warn("the location service can't read its records", { why: registry.failure.message });
      return;
    }
    const location = new Location({
      world,
      config: this.#config,
      registry: registry.value,
      transportTo: (secret) => this.#transportTo(secret),
      ended: end.signal,
      announcer: { name: this.#config.name, incarnation: identity.incarnation },
    });
    if (end.signal.aborted || this.#stopping.signal.aborted) return;
    this.#term = { number, end, location };
    world.logger.info("became location service leader", { term: number, stamps: registry.value.stamps.length });
    await location.run();
  }

  #transportTo(secret: string): Outcome<Transport> {
    if (secret === "") return ok(this.#world.transport);
    const { stampSecretsDir } = this.#config;
    if (stampSecretsDir === "") {
      return refused("invalidArgument", "badRequest", `secret ${secret}: this location service has no stampSecretsDir to look for it in`);
    }
    try {
      const transport = this.#transports.get(secret) ?? this.#transportOf(`${stampSecretsDir}/${secret}`);
      this.#transports.set(secret, transport);
      return ok(transport);
    } catch (error) {
      return refused("failedPrecondition", "badRequest", `secret ${secret}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}
