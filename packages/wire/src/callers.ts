/**
 * Callers of methods: for each service between processes, the roles that its methods serve. The server of a call checks it
 * (`packages/ports-node/src/grpc`), and the simulator does for every call of every seed. `operator` is the command line, the supervisor, and
 * tools with a token. Health is for everybody; a service that authorizes its callers itself says `everybody`.
 *
 * With the shared secret, the role is what the caller says: the table finds mistakes, and keeps out nobody who knows the secret. With
 * certificates (`tls: "cluster"`), the role is proven.
 *
 * The compiler refuses a method without a row; `callers.test.ts` refuses a service without a table.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Accounts } from "./gen/stamp/v1/accounts_pb.ts";
import { Availability, AvailabilityControl } from "./gen/stamp/v1/availability_pb.ts";
import { Bus } from "./gen/stamp/v1/bus_pb.ts";
import { ExtentFragments } from "./gen/stamp/v1/extent_fragments_pb.ts";
import { ExtentNode } from "./gen/stamp/v1/extent_node_pb.ts";
import { FeatureLevels } from "./gen/stamp/v1/feature_levels_pb.ts";
import { FrontEnd } from "./gen/stamp/v1/front_end_pb.ts";
import { GeoDoor } from "./gen/stamp/v1/geo_shipping_pb.ts";
import { LocationService } from "./gen/stamp/v1/location_pb.ts";
import { LockService } from "./gen/stamp/v1/lock_service_pb.ts";
import { MetadataStore } from "./gen/stamp/v1/metadata_store_pb.ts";
import { PartitionManager } from "./gen/stamp/v1/partition_manager_pb.ts";
import { PartitionServer } from "./gen/stamp/v1/partition_server_pb.ts";
import { Signals } from "./gen/stamp/v1/signals_pb.ts";
import { Status } from "./gen/stamp/v1/status_pb.ts";
import { StreamManager } from "./gen/stamp/v1/stream_manager_pb.ts";

/**
 * Numbers of callers. They travel in the hello of the bus (docs/formats/bus.md) and are never given to another role.
 */
export const callerNumbers = {
  "lock-service": 1,
  "stream-manager": 2,
  "extent-node": 3,
  "partition-manager": 4,
  "partition-server": 5,
  "front-end": 6,
  operator: 7,
  "location-service": 8,
  "geo-peer": 9,
  "location-peer": 10,
} as const;

export type Caller = keyof typeof callerNumbers;
export const callers = Object.keys(callerNumbers) as Caller[];

export const isCaller = (text: string): text is Caller => Object.hasOwn(callerNumbers, text);

type Callers = readonly Caller[] | "everybody";
type MethodsOf<S extends DescService> = Readonly<Record<keyof S["method"], Callers>>;

interface ServiceCallers {
  readonly service: DescService;
  readonly methods: Readonly<Record<string, Callers>>;
}

const table = <S extends DescService>(service: S, methods: MethodsOf<S>): ServiceCallers => ({ service, methods });

/** They own streams, and append to them. */
const owners = ["partition-server", "partition-manager"] as const;
/** They lead, or serve, by a lease. */
const leased = ["stream-manager", "partition-manager", "partition-server"] as const;
const managers = ["stream-manager", "partition-manager"] as const;
const readers = [...owners, "front-end", "operator"] as const;
/**
 * A location service has a lock service of its own, and calls the stamps that it knows. At a lock service it is confined to its own lease and
 * its own records (`services/lock-service/src/confined.ts`), so that it holds and writes nothing of a stamp.
 */
const locations = ["location-service"] as const;
/** A location service at a stamp that it knows: by the secret that the stamp has made for it, or by the whole one as in releases before. */
const atStamps = ["location-peer", ...locations] as const;
/**
 * Another stamp, whose partition servers ship to this one. Only front-ends take it, and only at their geo door. A partition server: of a stamp
 * that has the same secret; the door takes it only without certificates.
 */
const peers = ["geo-peer", "partition-server"] as const;
const members = callers.filter((caller) => caller !== "geo-peer");
const leasedAnywhere = [...leased, ...locations] as const;

const tables: readonly ServiceCallers[] = [
  table(LockService, {
    acquireLease: leasedAnywhere,
    renewLease: leasedAnywhere,
    releaseLease: leasedAnywhere,
    refuseRenewals: ["partition-manager"],
    getLease: members,
    listLeases: ["partition-manager", "operator"],
  }),
  table(MetadataStore, {
    getKeys: [...leased, "operator"],
    listKeys: [...leasedAnywhere, "operator"],
    readChanges: [...leased, "operator"],
    transact: [...managers, ...locations],
    getStamp: [...leased, ...atStamps, "extent-node", "operator"],
    readSnapshot: ["extent-node", "stream-manager", "operator"],
  }),
  table(StreamManager, {
    createStream: [...owners, "operator"],
    openStream: [...owners, "operator"],
    openStreams: owners,
    sealAndAllocate: owners,
    truncateStream: [...owners, "operator"],
    deleteStream: [...owners, "operator"],
    getStream: [...owners, "operator"],
    statStream: [...owners, "operator"],
    renameStream: ["operator"],
    concatenateStreams: [...owners, "operator"],
    multiModify: [...owners, "operator"],
    allocateAhead: owners,
    listStreams: ["operator"],
    locateExtents: [...readers, "extent-node"],
    listExtents: ["operator"],
    listNodes: ["operator", ...atStamps],
    getRoom: ["partition-manager", "operator"],
    sealAcceptingLoss: ["operator"],
    getRepairStatus: ["operator"],
    setNodeDuty: ["operator"],
    codeExtent: ["operator"],
    getCodingStatus: ["operator"],
    listCodingPlan: ["operator"],
    setCodingPaused: ["operator"],
    replicateExtent: ["operator"],
    listQuarantine: ["operator"],
    deleteQuarantined: ["operator"],
    adoptQuarantined: ["operator"],
    listStrayFragments: ["operator"],
    deleteStrayFragment: ["operator"],
    adoptFragments: ["operator"],
    reportNode: ["extent-node"],
  }),
  table(ExtentNode, {
    append: owners,
    replicate: ["extent-node"],
    read: readers,
    readPlaces: readers,
    readBlocks: readers,
    createExtent: ["stream-manager"],
    fenceExtent: ["stream-manager"],
    sealExtent: ["stream-manager"],
    copyExtent: ["stream-manager"],
    deleteExtent: ["stream-manager"],
    readRaw: ["extent-node"],
    getExtentReplica: ["stream-manager", "extent-node", "operator"],
    listExtentReplicas: ["stream-manager", "operator"],
    checkReplicas: ["operator"],
    getNodeReport: ["stream-manager"],
  }),
  table(ExtentFragments, {
    makeFragments: ["stream-manager"],
    writeFragment: ["extent-node"],
    verifyFragments: ["stream-manager"],
    repairFragment: ["stream-manager"],
    decodeExtent: ["stream-manager"],
    deleteFragment: ["stream-manager"],
    readFragment: [...readers, "extent-node"],
    listFragments: ["stream-manager", "operator"],
  }),
  table(PartitionManager, {
    getMap: ["front-end", "partition-server", "operator"],
    listServers: ["operator"],
    splitPartition: ["operator"],
    mergePartition: ["operator"],
    movePartition: ["operator"],
    collectRange: ["operator"],
    checkpointRange: ["operator"],
    getRebalancePlan: ["operator"],
  }),
  table(PartitionServer, {
    loadPartition: ["partition-manager"],
    closePartition: ["partition-manager"],
    reshapePartitions: ["partition-manager"],
    suggestSplitKey: ["partition-manager"],
    checkpointPartition: ["partition-manager"],
    collectPartition: ["partition-manager"],
    listIncarnations: ["partition-server"],
    // Account keys are rows, and read by an operation. The operator's drills ask as a caller with an old map does.
    execute: ["front-end", "partition-manager", "operator"],
    writeData: ["front-end"],
    pinData: ["front-end"],
    applyShipped: ["front-end"],
    applyScanned: ["front-end"],
    getShipping: ["operator", "partition-manager"],
    fenceShipped: ["partition-manager"],
    getShippedVersions: ["front-end"],
    listDivergedRows: ["partition-manager"],
    forgetDivergedRows: ["partition-manager"],
    endRemoval: ["partition-manager"],
    getRemovals: ["partition-manager"],
    listRangeQueues: ["partition-manager"],
    listPartitions: ["partition-manager", "operator"],
  }),
  table(Accounts, {
    list: ["operator", ...atStamps],
    get: ["operator", ...locations],
    create: ["operator", ...atStamps],
    rotateKey: ["operator"],
    revokeDelegationKeys: ["operator"],
    setBlobSettings: ["operator"],
    createEncryptionScope: ["operator"],
    setEncryptionScopeState: ["operator"],
    reseal: ["operator"],
    obey: atStamps,
    getRole: ["operator", ...atStamps],
    listRoles: ["partition-server"],
    getShipping: ["operator", "partition-server", ...atStamps],
    noteCopy: ["front-end"],
    getCopy: ["operator", "front-end", ...atStamps],
    getForCopy: atStamps,
    copySettings: atStamps,
    getCopySettings: ["partition-server"],
    confirmCopy: ["front-end"],
    vouchForCopy: atStamps,
    getCopyTerm: ["front-end"],
    getSettingsInForce: ["operator"],
    endReport: ["partition-server"],
    listDiverged: ["operator", ...atStamps],
    forgetDiverged: ["operator", ...atStamps],
    listRemovals: ["operator", ...atStamps],
    listQueues: ["operator", ...atStamps],
  }),
  table(GeoDoor, {
    ship: peers,
    seed: peers,
    writeData: peers,
    pinData: peers,
    report: peers,
    pushSettings: peers,
    tellVersions: peers,
  }),
  table(FrontEnd, {
    createContainer: ["operator"],
    deleteContainer: ["operator"],
    listContainers: ["operator"],
    putBlob: ["operator"],
    getBlob: ["operator"],
    getBlobProperties: ["operator"],
    listBlobs: ["operator"],
    deleteBlob: ["operator"],
    putQueueMessage: ["operator"],
    getQueueMessages: ["operator"],
    deleteQueueMessage: ["operator"],
    createTable: ["operator"],
    insertEntity: ["operator"],
    getEntity: ["operator"],
    queryEntities: ["operator"],
  }),
  table(LocationService, {
    addStamp: ["operator"],
    setStampState: ["operator"],
    declareStampLost: ["operator"],
    listStamps: ["operator"],
    createAccount: ["operator"],
    protectAccount: ["operator"],
    unprotectAccount: ["operator"],
    failOverAccount: ["operator"],
    migrateAccount: ["operator"],
    giveUpOperation: ["operator"],
    proposeMoves: ["operator"],
    listDiverged: ["operator"],
    forgetDiverged: ["operator"],
    getAccount: ["operator"],
    listAccounts: ["operator"],
  }),
  // A lock service reads the level in its own store.
  table(FeatureLevels, {
    announce: [...leased, ...atStamps, "extent-node", "front-end"],
    getFeatureLevel: ["operator"],
    setFeatureLevel: ["operator"],
  }),
  // A front-end asks whether other hosts answer, and for their clocks.
  table(Status, { getStatus: ["operator", "front-end"] }),
  table(AvailabilityControl, { disableNode: ["operator"] }),
  table(Availability, { isAvailable: "everybody" }),
  table(Signals, { publish: "everybody", subscribe: "everybody" }),
  // Calls on the bus are checked one by one.
  table(Bus, { connect: callers }),
];

/** Names of methods are as on the bus: `stamp.v1.ExtentNode/Append`. */
const byMethod: ReadonlyMap<string, Callers> = new Map(
  tables.flatMap(({ service, methods }) =>
    service.methods.map((method: DescMethod) => [`${service.typeName}/${method.name}`, methods[method.localName] ?? []] as const),
  ),
);

/** The roles that a method serves; undefined for a method of no service of this table, e.g. health. */
export const callersOf = (method: string): Callers | undefined => byMethod.get(method);

const allowed = Object.fromEntries(
  callers.map((caller) => [
    caller,
    new Set([...byMethod].flatMap(([name, by]) => (by === "everybody" || by.includes(caller) ? [name] : []))),
  ]),
) as unknown as Record<Caller, ReadonlySet<string>>;

/** Methods that a role may call, by name. */
export const methodsFor = (caller: Caller): ReadonlySet<string> => allowed[caller];
