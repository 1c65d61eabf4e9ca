/**
 * Callers of methods: for each service between processes, the roles that its methods serve, and where one method does different things, the
 * roles that each of them is for (`request-callers.ts`). The server of a call checks it (`packages/ports-node/src/grpc`), and the simulator does
 * for every call of every seed. `operator` is the command line, the supervisor, and tools with a token. Health is for everybody; a service
 * that authorizes its callers itself says `everybody`.
 *
 * With the shared secret, the role is what the caller says: the table finds mistakes, and keeps out nobody who knows the secret. With
 * certificates (`tls: "cluster"`), the role is proven, and so is the name that a request gives its caller.
 *
 * The compiler refuses a method without a row; `callers.test.ts` refuses a service without a table.
 */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Accounts } from "./gen/stamp/v1/accounts_pb.ts";
import { Availability, AvailabilityControl } from "./gen/stamp/v1/availability_pb.ts";
import { ExtentFragments } from "./gen/stamp/v1/extent_fragments_pb.ts";
import { ExtentNode } from "./gen/stamp/v1/extent_node_pb.ts";
import { FaultRules } from "./gen/stamp/v1/fault_rules_pb.ts";
import { FeatureLevels } from "./gen/stamp/v1/feature_levels_pb.ts";
import { FileHandles } from "./gen/stamp/v1/file_handles_pb.ts";
import { FrontEnd } from "./gen/stamp/v1/front_end_pb.ts";
import { GeoDoor } from "./gen/stamp/v1/geo_shipping_pb.ts";
import { LocationService } from "./gen/stamp/v1/location_pb.ts";
import { LockService } from "./gen/stamp/v1/lock_service_pb.ts";
import { MetadataStore } from "./gen/stamp/v1/metadata_store_pb.ts";
import { PartitionManager } from "./gen/stamp/v1/partition_manager_pb.ts";
import { PartitionServer } from "./gen/stamp/v1/partition_server_pb.ts";
import { Consensus } from "./gen/stamp/v1/raft_pb.ts";
import { Requests } from "./gen/stamp/v1/requests_pb.ts";
import { Signals } from "./gen/stamp/v1/signals_pb.ts";
import { Status } from "./gen/stamp/v1/status_pb.ts";
import { StreamManager } from "./gen/stamp/v1/stream_manager_pb.ts";
import {
  acquiredLeases,
  announcements,
  askedShipping,
  type ByRequest,
  deliveredMessages,
  editedStreams,
  endedLeases,
  heldLeases,
  joinedStreams,
  listedRecords,
  namedStream,
  nodeReports,
  operations,
  ownedStream,
  ownedStreams,
  writtenRecords,
} from "./request-callers.ts";
import { type Caller, type Callers, callers } from "./roles.ts";

type Row = Callers | ByRequest;
type MethodsOf<S extends DescService> = Readonly<Record<keyof S["method"], Row>>;

interface ServiceCallers {
  readonly service: DescService;
  readonly methods: Readonly<Record<string, Row>>;
}

const table = <S extends DescService>(service: S, methods: MethodsOf<S>): ServiceCallers => ({ service, methods });

/** Roles that own streams and append to them. */
const owners = ["partition-server", "partition-manager"] as const;
/** Roles that lead, or serve, by a lease. */
const leased = ["stream-manager", "partition-manager", "partition-server"] as const;
const readers = [...owners, "front-end", "operator"] as const;
/** A location service has a lock service of its own, with its own lease and its own records, and calls the stamps that it knows. */
const locations = ["location-service"] as const;
/** A location service at a stamp that it knows: by the secret that the stamp has made for it, or by the whole one as in releases before. */
const atStamps = ["location-peer", ...locations] as const;
/**
 * Another stamp, whose partition servers ship to this one. Only front-ends take it, and only at their geo door. A partition server: of a stamp
 * that has the same secret; the door takes it only without certificates.
 */
const peers = ["geo-peer", "partition-server"] as const;
const members = callers.filter((caller) => caller !== "geo-peer");

const tables: readonly ServiceCallers[] = [
  table(LockService, {
    acquireLease: acquiredLeases,
    renewLease: heldLeases,
    releaseLease: heldLeases,
    refuseRenewals: endedLeases,
    getLease: members,
    listLeases: ["partition-manager", "operator"],
  }),
  table(MetadataStore, {
    getKeys: [...leased, "operator"],
    listKeys: listedRecords,
    readChanges: [...leased, "operator"],
    transact: writtenRecords,
    getStamp: [...leased, ...atStamps, "extent-node", "operator"],
    readSnapshot: ["extent-node", "stream-manager", "operator"],
  }),
  table(Consensus, {
    deliver: deliveredMessages,
    listMembers: ["operator"],
    changeMember: ["operator"],
    transferLeadership: ["operator"],
  }),
  table(StreamManager, {
    createStream: namedStream,
    openStream: namedStream,
    openStreams: ownedStreams,
    sealAndAllocate: ownedStream,
    truncateStream: namedStream,
    deleteStream: namedStream,
    getStream: [...owners, "operator"],
    statStream: [...owners, "operator"],
    renameStream: ["operator"],
    concatenateStreams: joinedStreams,
    multiModify: editedStreams,
    allocateAhead: ownedStream,
    listStreams: ["partition-manager", "operator"],
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
    getExtentHolders: ["extent-node"],
    reportNode: nodeReports,
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
    checkReplicas: ["stream-manager", "operator"],
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
    execute: operations,
    writeData: ["front-end"],
    pinData: ["front-end"],
    applyShipped: ["front-end"],
    applyScanned: ["front-end"],
    getShipping: ["operator", "partition-manager"],
    fenceShipped: ["partition-manager"],
    getShippedVersions: ["front-end"],
    listDivergedRows: ["partition-manager"],
    forgetDivergedRows: ["partition-manager"],
    readDivergedBlob: ["front-end"],
    endRemoval: ["partition-manager"],
    getRemovals: ["partition-manager"],
    listRangeQueues: ["partition-manager"],
    listPartitions: ["partition-manager", "operator"],
    listExtentUsers: ["operator"],
  }),
  table(Accounts, {
    list: ["operator", ...atStamps],
    get: ["operator"],
    create: ["operator", ...atStamps],
    createHierarchical: ["operator"],
    rotateKey: ["operator"],
    revokeDelegationKeys: ["operator"],
    setBlobSettings: ["operator"],
    createEncryptionScope: ["operator"],
    setEncryptionScopeState: ["operator"],
    reseal: ["operator"],
    obey: atStamps,
    getRole: ["operator", ...atStamps],
    listRoles: ["partition-server"],
    getShipping: askedShipping,
    noteCopy: ["front-end"],
    getCopy: ["operator", "front-end", ...atStamps],
    getForCopy: atStamps,
    copySettings: atStamps,
    getCopySettings: ["partition-server"],
    confirmCopy: ["front-end"],
    vouchForCopy: atStamps,
    getCopyTerm: ["front-end"],
    getSettingsInForce: ["operator", ...atStamps],
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
    readDiverged: ["operator"],
    locateBlob: ["operator"],
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
  // Gateways of other protocols, with a token of the account.
  table(FileHandles, {
    open: ["operator"],
    read: ["operator"],
    write: ["operator"],
    setLength: ["operator"],
    lock: ["operator"],
    unlock: ["operator"],
    setDisposition: ["operator"],
    close: ["operator"],
    list: ["operator"],
  }),
  // A lock service reads the level in its own store.
  table(FeatureLevels, {
    announce: announcements,
    getFeatureLevel: ["operator"],
    setFeatureLevel: ["operator"],
  }),
  // A front-end asks whether other hosts answer, and for their clocks.
  table(Status, { getStatus: ["operator", "front-end"] }),
  table(AvailabilityControl, { disableNode: ["operator"] }),
  table(Requests, { follow: ["operator"], countByAccount: ["operator"] }),
  table(FaultRules, { addFaultRule: ["operator"], listFaultRules: ["operator"], removeFaultRules: ["operator"] }),
  table(Availability, { isAvailable: "everybody" }),
  table(Signals, { publish: "everybody", subscribe: "everybody" }),
  // Calls on the bus are checked one by one.
];

const callersIn = (row: Row | undefined): Callers => {
  if (row === undefined || row === "everybody") return row ?? [];
  if (!("rows" in row)) return row;
  const named = Object.values(row.rows);
  return callers.filter((caller) => named.some((by) => by.includes(caller)));
};

/** Names of methods are as on the bus: `stamp.v1.ExtentNode/Append`. */
const rowsByMethod: ReadonlyMap<string, Row | undefined> = new Map(
  tables.flatMap(({ service, methods }) =>
    service.methods.map((method: DescMethod) => [`${service.typeName}/${method.name}`, methods[method.localName]] as const),
  ),
);
const byMethod: ReadonlyMap<string, Callers> = new Map([...rowsByMethod].map(([name, row]) => [name, callersIn(row)]));

/** Returns the roles that a method serves, for one thing at least; undefined for a method of no service of this table, e.g. health. */
export const callersOf = (method: string): Callers | undefined => byMethod.get(method);

const allowed = Object.fromEntries(
  callers.map((caller) => [
    caller,
    new Set([...byMethod].flatMap(([name, by]) => (by === "everybody" || by.includes(caller) ? [name] : []))),
  ]),
) as unknown as Record<Caller, ReadonlySet<string>>;

/** Methods that a role may call, by name. */
export const methodsFor = (caller: Caller): ReadonlySet<string> => allowed[caller];

/** Returns the rows of a method whose requests do different things; undefined if all of them do the same. */
export function rowsOf(method: string): ByRequest | undefined {
  const row = rowsByMethod.get(method);
  return row !== undefined && row !== "everybody" && "rows" in row ? row : undefined;
}

/** Looks at a request; returns what its caller may not do, in words, or undefined. */
export type RequestCheck = (request: object, caller: Caller, name: string | undefined) => string | undefined;

/**
 * Returns the check of a method's requests for callers that may call the method; undefined if there is none. `name` is what a certificate
 * proves, undefined without one.
 */
export function requestCheckOf(method: string): RequestCheck | undefined {
  const row = rowsOf(method);
  if (row === undefined) return undefined;
  const { rows, doneBy, namesOf } = row;
  return (request, caller, name) => {
    for (const done of doneBy(request as never)) {
      const by = Object.hasOwn(rows, done) ? rows[done] : undefined;
      if (by !== "everybody" && !by?.includes(caller)) return `${method} (${done})`;
    }
    if (name === undefined || namesOf === undefined) return undefined;
    const other = namesOf(request as never).find((each) => each !== name);
    return other === undefined ? undefined : `${method} as ${other}: its certificate is of ${name}`;
  };
}
