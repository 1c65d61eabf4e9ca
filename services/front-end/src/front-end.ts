/**
 * The front-end: HTTP and gRPC in, authenticate, find the range, route, stream. It keeps nothing: what it knows (the partition map, keys of
 * accounts, where extents are) are copies that others check.
 */
import { RoomBeside } from "@stamp/admission";
import { parseNetwork } from "@stamp/azure-rest";
import { neededLevels } from "@stamp/base";
import { LevelWatch, lockServiceAddresses, statusService } from "@stamp/metadata-store";
import {
  type Clock,
  type HttpClient,
  type HttpHandler,
  type Identity,
  isLoopback,
  type Listener,
  openIdentity,
  type Role,
  type RoleStatus,
  served,
  servedOpenly,
  type TokenIssuer,
  type World,
  type WrittenFiles,
} from "@stamp/ports";
import { StreamClient } from "@stamp/stream-client";
import {
  AvailabilityControl,
  Availability as AvailabilityService,
  FaultRules as FaultRulesService,
  FileHandles,
  FrontEnd,
  GeoDoor,
  Requests,
  Signals as SignalsService,
} from "@stamp/wire";
import { Accounts, type AccountsOptions, type LastSyncMs } from "./accounts/accounts.ts";
import { ScopeKeys } from "./accounts/content-key.ts";
import { doorGateOf, type FrontEndConfig } from "./config.ts";
import { BodyPieces } from "./content/body-pieces.ts";
import { ByteBudget } from "./content/byte-budget.ts";
import { TextMemory } from "./content/text-memory.ts";
import { pieceShare, pieceWaits } from "./content/upload.ts";
import { ForeignSources } from "./copy/foreign-sources.ts";
import { DoorGate } from "./door-gate.ts";
import { FaultRules } from "./faults/fault-rules.ts";
import { faultRulesHandlers } from "./faults/fault-rules-service.ts";
import { Copies } from "./geo/copies.ts";
import { GeoRefusals, geoDoorHandlers } from "./geo/geo-door.ts";
import { NamelessPeers } from "./geo/nameless-peers.ts";
import { Availability, availabilityControlHandlers, availabilityHandlers } from "./grpc/availability.ts";
import { fileHandlesHandlers } from "./grpc/file-handles.ts";
import { frontEndHandlers } from "./grpc/grpc.ts";
import { requestsHandlers } from "./grpc/requests-service.ts";
import { Signals } from "./grpc/signals.ts";
import { signalsHandlers } from "./grpc/signals-service.ts";
import { OtherHosts } from "./hosts/other-hosts.ts";
import type { BearerTokens } from "./http/bearer.ts";
import { blobService } from "./http/blob/service.ts";
import { dataLakeService } from "./http/dfs/service.ts";
import { HttpDoor } from "./http/door.ts";
import { fileService } from "./http/file/service.ts";
import { queueService } from "./http/queue/service.ts";
import { RequestTrace } from "./http/request-trace.ts";
import type { RestService } from "./http/service.ts";
import { tableService } from "./http/table/service.ts";
import { websiteHandler, withWebsites } from "./http/website.ts";
import { InitDoor } from "./init/init-door.ts";
import type { Init } from "./init/load-init.ts";
import { frontEndMetrics } from "./metrics.ts";
import { Objects } from "./objects/objects.ts";
import { ParentRows } from "./objects/parent-rows.ts";
import { Queues } from "./objects/queues.ts";
import { Tables } from "./objects/tables.ts";
import { throughProxies } from "./peers/forwarded-request.ts";
import { callTakesWellKnownKey, type WellKnownKeyRules } from "./peers/well-known-key.ts";
import { roomBesideOf } from "./room-beside.ts";
import { MapCache } from "./routing/map-cache.ts";
import { type CallLimits, Router } from "./routing/router.ts";
import { treesOf } from "./trees/handles.ts";

/** Adapters that reach beyond the stamp. Without them there are no bearers, and no sources of copies elsewhere. */
export interface OutsideAdapters {
  /** Makes the verifier of the configured issuer's tokens. */
  readonly issuerOf?: IssuerOf;
  readonly http?: HttpClient;
  /** Returns the Last Sync Time of an account (default: asks the partition manager). */
  readonly lastSyncMs?: LastSyncMs;
  /** True to ask processes of other hosts every second: whether they answer, and for their clocks. */
  readonly watchesHosts?: boolean;
}

export type IssuerOf = (options: {
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly jwks: string;
  readonly rolesClaim: string;
  readonly plainHttp: boolean;
  readonly authorizationUri: string;
  readonly clock: Clock;
}) => TokenIssuer;

function tokensOf(world: World, config: FrontEndConfig, issuerOf: IssuerOf | undefined): BearerTokens | undefined {
  if (config.oidcIssuer === "" || !issuerOf) return undefined;
  const issuer = issuerOf({
    issuer: config.oidcIssuer,
    audiences: config.oidcAudiences,
    jwks: config.oidcJwks,
    rolesClaim: config.oidcRolesClaim,
    plainHttp: config.oidcPlainHttp,
    authorizationUri: config.oidcAuthorizationUri,
    clock: world.clock,
  });
  return { issuer, roles: config.oidcRoles };
}

/** Returns for whom the key that everybody knows is good. */
export function servesWellKnownKey(config: FrontEndConfig): AccountsOptions["wellKnownKey"] {
  if (config.allowDevelopmentAccount) return "everybody";
  const loopback = [config.blobListen, config.queueListen, config.tableListen, config.dfsListen, config.fileListen, config.listen].every(
    (at) => at === "" || isLoopback(at),
  );
  return loopback && !config.ownAccounts ? "thisMachine" : "nobody";
}

function wellKnownKeyRules(config: FrontEndConfig): WellKnownKeyRules {
  const { hostSuffixes, queueHostSuffixes, tableHostSuffixes, dfsHostSuffixes, fileHostSuffixes, developmentAccountHosts } = config;
  return {
    servedTo: servesWellKnownKey(config),
    trustedProxies: networksOf(config),
    hosts: developmentAccountHosts,
    hostSuffixes: [...hostSuffixes, ...queueHostSuffixes, ...tableHostSuffixes, ...dfsHostSuffixes, ...fileHostSuffixes],
  };
}

const networksOf = ({ trustedProxies }: FrontEndConfig) => trustedProxies.map(parseNetwork).filter((network) => network !== undefined);

/** Memory of long answers that is kept for the next ones, in bytes. */
const freeTextBytesMax = 16 * 1024 * 1024;

export class FrontEndRole implements Role {
  readonly metrics = frontEndMetrics;
  /** The Blob service over HTTP. */
  readonly blob: HttpHandler;
  /** The Queue service over HTTP. */
  readonly queue: HttpHandler;
  /** The Table service over HTTP. */
  readonly table: HttpHandler;
  /** Data Lake Storage over HTTP. */
  readonly dfs: HttpHandler;
  /** The Files service over HTTP. */
  readonly file: HttpHandler;
  /** Faults on purpose; undefined while the setting is off. */
  readonly faults: FaultRules | undefined;
  readonly #world: World;
  readonly #config: FrontEndConfig;
  readonly #map: MapCache;
  readonly #router: Router;
  readonly #containers: ParentRows;
  readonly #uploads: ByteBudget;
  readonly #pieces: ByteBudget;
  readonly #room: RoomBeside;
  readonly #documents: ByteBudget;
  readonly #downloads: ByteBudget;
  readonly #blobDoor: HttpDoor;
  readonly #queueDoor: HttpDoor;
  readonly #tableDoor: HttpDoor;
  readonly #dfsDoor: HttpDoor;
  readonly #fileDoor: HttpDoor;
  readonly #gate: DoorGate;
  readonly #accounts: Accounts;
  readonly #copies: Copies;
  readonly #geoRefusals = new GeoRefusals();
  readonly #namelessPeers: NamelessPeers;
  readonly #objects: Objects;
  readonly #signals: Signals;
  readonly #trace = new RequestTrace();
  readonly #wellKnownKey: WellKnownKeyRules;
  readonly #availability: Availability;
  readonly #hosts: OtherHosts;
  readonly #watchesHosts: boolean;
  #identity: Identity | undefined;
  #listener: Listener | undefined;
  #stopping = false;
  #init: InitDoor | undefined;
  readonly #level: LevelWatch;

  constructor(world: World, config: FrontEndConfig, outside: OutsideAdapters = {}) {
    const tokens = tokensOf(world, config, outside.issuerOf);
    this.#world = world;
    this.#namelessPeers = new NamelessPeers(world.clock);
    this.#level = new LevelWatch(world);
    this.#config = config;
    this.#map = new MapCache(world, config);
    this.#watchesHosts = outside.watchesHosts ?? false;
    this.#hosts = new OtherHosts(world, { processes: () => this.#processes(), own: () => this.address });
    this.#room = new RoomBeside(roomBesideOf(config));
    this.#router = new Router(world, this.#map, { ...config, room: this.#room }, this.#hosts);
    const readContainer = (account: string, container: string, limits: CallLimits) =>
      this.#router.execute({ case: "getContainer", value: { account, container } }, limits);
    this.#containers = new ParentRows(world, readContainer, { readTimeoutMs: config.requestTimeoutMs });
    const { uploadBytesMax, bytesWaitMaxMs } = config;
    this.#uploads = new ByteBudget(world.clock, { bytesMax: uploadBytesMax, waitMaxMs: bytesWaitMaxMs });
    this.#pieces = new ByteBudget(world.clock, {
      bytesMax: uploadBytesMax * pieceShare,
      waitMaxMs: bytesWaitMaxMs * pieceWaits,
      bytesNow: () => this.#room.roomBytes(world.clock.monotonicMs()),
    });
    this.#documents = new ByteBudget(world.clock, { bytesMax: config.documentBytesMax, waitMaxMs: config.bytesWaitMaxMs });
    this.#downloads = new ByteBudget(world.clock, { bytesMax: config.downloadBytesMax, waitMaxMs: config.bytesWaitMaxMs });
    const copies = new Copies(world, config.lockService);
    this.#copies = copies;
    this.#accounts = new Accounts(world, this.#router, {
      accountCacheMs: config.accountCacheMs,
      accountsMax: config.accountsMax,
      wellKnownKey: servesWellKnownKey(config),
      lookupTimeoutMs: config.requestTimeoutMs,
      lastSyncMs: outside.lastSyncMs ?? ((account, epoch) => copies.lastSyncMs(account, epoch)),
      ...(outside.lastSyncMs === undefined && { servesForMs: (account: string) => copies.servesForMs(account) }),
    });
    this.#objects = new Objects({
      world,
      config,
      router: this.#router,
      accounts: this.#accounts,
      containers: this.#containers,
      queues: new Queues(world, this.#router, config),
      tables: new Tables(world, this.#router, config),
      ...treesOf(world, this.#router, config),
      foreignSources: new ForeignSources(outside.http, config.copySources),
      scopes: new ScopeKeys(this.#accounts),
      mayWriteUnits: () => this.#level.allows(neededLevels.cipherUnits),
      mayMakeShares: () => this.#level.allows(neededLevels.shares),
      reader: new StreamClient(world, { lockService: config.lockService }).reader,
      uploads: this.#uploads,
      pieces: this.#pieces,
      documents: this.#documents,
      downloads: this.#downloads,
      texts: new TextMemory(freeTextBytesMax),
      bodies: new BodyPieces(world.clock, config.downloadBytesMax),
    });
    const { objects, accounts } = { objects: this.#objects, accounts: this.#accounts };
    const gate = new DoorGate(world.clock, doorGateOf(config));
    this.#gate = gate;
    const faults = config.faultRules ? new FaultRules(world.clock) : undefined;
    this.faults = faults;
    const trustedProxies = networksOf(config);
    const wellKnownKey = wellKnownKeyRules(config);
    this.#wellKnownKey = wellKnownKey;
    const signedRequest = (): void => this.#hosts.accepted();
    const doorOf = (service: RestService): HttpDoor =>
      new HttpDoor({ world, config, service, objects, accounts, tokens, gate, faults, wellKnownKey, trace: this.#trace, signedRequest });
    this.#blobDoor = doorOf(blobService(config.hostSuffixes));
    const { webHostSuffixes: hostSuffixes, requestTimeoutMs: lookupTimeoutMs } = config;
    const website = websiteHandler({ world, accounts, door: this.#blobDoor, hostSuffixes, lookupTimeoutMs });
    this.blob = throughProxies(trustedProxies, withWebsites(website, this.#blobDoor.handler));
    this.#queueDoor = doorOf(queueService(config.queueHostSuffixes));
    this.queue = throughProxies(trustedProxies, this.#queueDoor.handler);
    this.#tableDoor = doorOf(tableService(config.tableHostSuffixes));
    this.table = throughProxies(trustedProxies, this.#tableDoor.handler);
    this.#dfsDoor = doorOf(dataLakeService([...config.dfsHostSuffixes, ...config.hostSuffixes]));
    this.dfs = throughProxies(trustedProxies, this.#dfsDoor.handler);
    this.#fileDoor = doorOf(fileService(config.fileHostSuffixes));
    this.file = throughProxies(trustedProxies, this.#fileDoor.handler);
    this.#signals = new Signals(config.signalListenersMax);
    const doors = [this.#blobDoor, this.#queueDoor, this.#tableDoor, this.#dfsDoor, this.#fileDoor];
    this.#availability = new Availability({
      clock: world.clock,
      waitingFor: () => (this.#stopping ? ["its end"] : this.#waitingFor()),
      requests: () => Math.max(...doors.map(({ counters }) => counters.inProgress)),
      requestsMax: config.requestsMax,
    });
  }

  get address(): string {
    return this.#config.advertise ?? this.#listener?.address ?? this.#config.listen;
  }

  async start(): Promise<void> {
    this.#identity = await openIdentity(this.#world, { kept: 0 });
    const { incarnation } = this.#identity;
    this.#listener = await this.#world.transport.serve(this.#config.listen, [
      servedOpenly(
        SignalsService,
        signalsHandlers({
          world: this.#world,
          accounts: this.#accounts,
          signals: this.#signals,
          takesWellKnownKey: (call) => callTakesWellKnownKey(this.#wellKnownKey, call),
        }),
      ),
      servedOpenly(AvailabilityService, availabilityHandlers(this.#availability)),
      served(Requests, requestsHandlers(this.#trace)),
      served(AvailabilityControl, availabilityControlHandlers(this.#availability)),
      served(FaultRulesService, faultRulesHandlers(this.faults)),
      served(
        GeoDoor,
        geoDoorHandlers(
          this.#world,
          this.#accounts,
          this.#router,
          this.#copies,
          this.#geoRefusals,
          this.#namelessPeers,
          () => this.#level.level,
        ),
      ),
      served(FileHandles, fileHandlesHandlers({ world: this.#world, objects: this.#objects, accounts: this.#accounts })),
      served(FrontEnd, frontEndHandlers({ world: this.#world, objects: this.#objects, accounts: this.#accounts })),
      statusService(
        this.#world,
        "front-end",
        this.#config.name,
        () => this.status,
        () => ({ incarnation, level: this.#level.level }),
      ),
    ]);
    const { lockService, name } = this.#config;
    await this.#level.start({ lockService, role: "front-end", name, incarnation });
    this.#map.start();
    if (this.#watchesHosts) this.#hosts.start();
  }

  /** Makes what init files say, before the doors open. Throws InitError; until another call, the role is not ready then. */
  initialise(load: () => Promise<readonly Init[]>, files: WrittenFiles): Promise<void> {
    const { blob, queue, table } = this;
    const { name: self, requestTimeoutMs: lookupTimeoutMs } = this.#config;
    const waitingFor = (): string[] => this.#waitingForOthers();
    const parts = { world: this.#world, accounts: this.#accounts, handlers: { blob, queue, table }, self, lookupTimeoutMs, waitingFor };
    this.#init ??= new InitDoor(parts);
    return this.#init.apply(load, files);
  }

  announceStop(): void {
    this.#stopping = true;
    this.#init?.end();
    // Requests that a rule delays would hold up the end.
    this.faults?.remove();
  }

  async drain(graceMs: number): Promise<number> {
    this.#signals.end();
    this.#trace.stop();
    return (await this.#listener?.close(graceMs)) ?? 0;
  }

  async stop(): Promise<void> {
    this.announceStop();
    this.#objects.parts.trees.end();
    await this.#objects.copies.stop();
    await this.#map.stop();
    await this.#hosts.stop();
    await this.#level.stop();
    await this.#listener?.close(1_000);
    await this.#identity?.close();
  }

  /** Forgets the account's row: the next request reads it anew. */
  forgetAccount(account: string): void {
    this.#accounts.forget(account);
  }

  get status(): RoleStatus {
    const waitingFor = this.#waitingFor();
    const ready = waitingFor.length === 0 && !this.#stopping;
    return {
      ready,
      waitingFor,
      state: ready ? "serving" : this.#stopping ? "stopping" : "starting",
      facts: {
        mapVersion: this.#map.current?.version ?? 0,
        mapAgeMs: Math.round(this.#map.ageMs ?? 0),
        ranges: this.#map.current?.ranges.length ?? 0,
        retries: this.#router.retries,
        calls: this.#router.took,
        containerRowReads: this.#containers.reads,
        uploadBytes: this.#uploads.usedBytes,
        uploadRoomBytes: this.#room.roomBytes(this.#world.clock.monotonicMs()),
        downloadBytes: this.#downloads.usedBytes,
        documentBytes: this.#documents.usedBytes,
        bytesWaiting: this.#uploads.waiting + this.#pieces.waiting + this.#documents.waiting + this.#downloads.waiting,
        bytesRefused: this.#uploads.refusedLate + this.#pieces.refusedLate + this.#documents.refusedLate + this.#downloads.refusedLate,
        codedReads: this.#objects.parts.reader.hedges,
        copies: this.#objects.copies.count,
        fileHandles: this.#objects.parts.handles.figures,
        signals: this.#signals.figures,
        geoStaleEpochs: this.#geoRefusals.staleEpochs,
        geoNamelessPeers: this.#namelessPeers.names,
        admission: this.#gate.figures,
        ...(this.faults && { faultRules: this.faults.figures }),
        ...this.#blobDoor.counters,
        queue: this.#queueDoor.counters,
        table: this.#tableDoor.counters,
        dfs: this.#dfsDoor.counters,
        file: this.#fileDoor.counters,
      },
    };
  }

  /**
   * Ready means that everything can be served: the map is known, the ranges of all services and of accounts are served, other hosts can be
   * reached, and the clock is one with which signed requests are accepted.
   */
  #waitingFor(): string[] {
    return [...this.#waitingForOthers(), ...(this.#init?.waitingFor ?? [])];
  }

  #waitingForOthers(): string[] {
    const map = this.#map.current;
    if (!map) return ["the partition map (partition-manager)"];
    const waiting: string[] = [];
    for (const table of ["Account", "Blob", "Entity", "Message"] as const) {
      const ranges = map.ranges.filter((range) => range.table === table);
      if (ranges.length === 0 || ranges.some((range) => !range.loaded)) waiting.push(`a partition server for table ${table}`);
    }
    return [...waiting, ...this.#hosts.waitingFor];
  }

  /** Addresses of processes on all hosts that this front-end knows. */
  #processes(): string[] {
    const servers = (this.#map.current?.ranges ?? []).map(({ serverAddress }) => serverAddress).filter((address) => address !== "");
    return [...lockServiceAddresses(this.#config.lockService), ...servers];
  }
}
