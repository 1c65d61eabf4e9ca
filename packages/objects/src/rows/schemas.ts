/**
 * The fixed schemas of the object tables. Ids and types never change and are never used again; new properties get new ids. What is
 * said here is also written into the Schema table by the partition manager when a stamp is first started.
 */
import type { Property, PropertyType } from "./row.ts";

export type TableName = "Account" | "Blob" | "Entity" | "Message" | "Schema" | "Partition Map";

/** Tables whose ranges are assigned to partition servers; the other two are served by the partition manager itself. */
export const objectTables = ["Account", "Blob", "Entity", "Message"] as const;
export type ObjectTable = (typeof objectTables)[number];

export const isObjectTable = (name: string): name is ObjectTable => (objectTables as readonly string[]).includes(name);

/** True if ranges of the table have a blob data stream. */
export const hasBlobData = (table: ObjectTable): boolean => table === "Blob";

const property = <T extends PropertyType>(id: number, type: T): Property<T> => ({ id, type });
/** Makes a property that a release of row version 1 must not skip. */
const propertySince2 = <T extends PropertyType>(id: number, type: T): Property<T> => ({ id, type, since: 2 });
/** Makes a property that a release of row version 2 must not skip. */
const propertySince3 = <T extends PropertyType>(id: number, type: T): Property<T> => ({ id, type, since: 3 });

export const accountSchema: {
  readonly keys: Property<"DictionaryType">;
  readonly created: Property<"DateTime">;
  readonly delegationSecret: Property<"binary">;
  readonly serviceProperties: Property<"DictionaryType">;
  readonly configuredDigest: Property<"binary">;
  readonly encryptionScopes: Property<"DictionaryType">;
  readonly sealed: Property<"binary">;
  readonly geoRole: Property<"string">;
} = {
  keys: property(1, "DictionaryType"),
  created: property(2, "DateTime"),
  delegationSecret: property(3, "binary"),
  serviceProperties: property(4, "DictionaryType"),
  configuredDigest: property(5, "binary"),
  encryptionScopes: propertySince3(6, "DictionaryType"),
  sealed: { id: 7, type: "binary", since: 4 },
  // A release that skips it would take writes at a stamp that only has a copy.
  geoRole: { id: 8, type: "string", since: 5 },
};

/** All rows of the Blob table; which properties a row has follows from the kind of its key (object-keys.ts). */
export const blobSchema: {
  readonly etag: Property<"int64">;
  readonly lastModified: Property<"DateTime">;
  readonly created: Property<"DateTime">;
  readonly metadata: Property<"DictionaryType">;
  readonly incarnation: Property<"int64">;
  readonly publicAccess: Property<"string">;
  readonly signedIdentifiers: Property<"string">;
  readonly leaseState: Property<"int32">;
  readonly leaseId: Property<"GUID">;
  readonly leaseDurationMs: Property<"int64">;
  readonly blobType: Property<"int32">;
  readonly contentLength: Property<"int64">;
  readonly contentType: Property<"string">;
  readonly contentEncoding: Property<"string">;
  readonly contentLanguage: Property<"string">;
  readonly contentMd5: Property<"binary">;
  readonly cacheControl: Property<"string">;
  readonly contentDisposition: Property<"string">;
  readonly generation: Property<"int64">;
  readonly pieces: Property<"binary">;
  readonly blocks: Property<"binary">;
  readonly places: Property<"BlobType">;
  readonly inline: Property<"binary">;
  readonly blockIdLength: Property<"int32">;
  readonly blockCount: Property<"int32">;
  readonly size: Property<"int64">;
  readonly appendBlockCount: Property<"int32">;
  readonly sealed: Property<"bool">;
  readonly sequenceNumber: Property<"int64">;
  readonly pageLayer: Property<"int64">;
  readonly pageRuns: Property<"binary">;
  readonly copy: Property<"DictionaryType">;
  readonly leaseGrant: Property<"int64">;
  readonly hasProtected: Property<"bool">;
  readonly deletedAt: Property<"DateTime">;
  readonly purgeAt: Property<"DateTime">;
  readonly role: Property<"int32">;
  readonly versionStamp: Property<"int64">;
  readonly snapshotCount: Property<"int32">;
  readonly lastStamp: Property<"int64">;
  readonly tags: Property<"DictionaryType">;
  readonly tier: Property<"string">;
  readonly tierChanged: Property<"DateTime">;
  readonly expires: Property<"DateTime">;
  readonly immutableUntil: Property<"DateTime">;
  readonly immutabilityMode: Property<"string">;
  readonly legalHold: Property<"bool">;
  readonly contentUsers: Property<"int32">;
  readonly contentPieces: Property<"int32">;
  readonly deletionBegun: Property<"int64">;
  readonly encryptionKeySha256: Property<"binary">;
  readonly encryptionScope: Property<"string">;
  readonly defaultEncryptionScope: Property<"string">;
  readonly denyEncryptionScopeOverride: Property<"bool">;
  readonly pathAccess: Property<"string">;
  readonly byteRuns: Property<"binary">;
} = {
  etag: property(1, "int64"),
  lastModified: property(2, "DateTime"),
  created: property(3, "DateTime"),
  metadata: property(4, "DictionaryType"),
  // containers
  incarnation: property(10, "int64"),
  publicAccess: property(11, "string"),
  signedIdentifiers: property(12, "string"),
  // leases of containers and blobs
  leaseState: property(20, "int32"),
  leaseId: property(21, "GUID"),
  leaseDurationMs: property(22, "int64"),
  // head rows of blobs
  blobType: property(30, "int32"),
  contentLength: property(31, "int64"),
  contentType: property(32, "string"),
  contentEncoding: property(33, "string"),
  contentLanguage: property(34, "string"),
  contentMd5: property(35, "binary"),
  cacheControl: property(36, "string"),
  contentDisposition: property(37, "string"),
  // of a head row: which content rows are its own; of a staging row: which block rows
  generation: property(38, "int64"),
  pieces: property(39, "binary"),
  // content rows, block rows
  blocks: property(50, "binary"),
  places: property(51, "BlobType"),
  inline: property(52, "binary"),
  // staging rows
  blockIdLength: property(60, "int32"),
  blockCount: property(61, "int32"),
  // block rows
  size: property(62, "int64"),
  // containers and blobs
  leaseGrant: property(70, "int64"),
  hasProtected: property(71, "bool"),
  deletedAt: property(72, "DateTime"),
  purgeAt: property(73, "DateTime"),
  // head rows and those of snapshots and versions
  role: property(74, "int32"),
  versionStamp: property(75, "int64"),
  snapshotCount: property(76, "int32"),
  lastStamp: property(77, "int64"),
  tags: property(78, "DictionaryType"),
  tier: property(79, "string"),
  tierChanged: property(80, "DateTime"),
  expires: property(81, "DateTime"),
  immutableUntil: property(82, "DateTime"),
  immutabilityMode: property(83, "string"),
  legalHold: property(84, "bool"),
  // rows that count the users of a content
  contentUsers: property(85, "int32"),
  contentPieces: property(86, "int32"),
  // head rows of append blobs
  appendBlockCount: property(100, "int32"),
  sealed: property(101, "bool"),
  // head rows of page blobs
  sequenceNumber: property(102, "int64"),
  pageLayer: property(103, "int64"),
  // page rows; their places are in 51
  pageRuns: property(104, "binary"),
  // head rows of blobs that a copy made or makes
  copy: property(105, "DictionaryType"),
  // containers
  deletionBegun: property(106, "int64"),
  // head rows and block rows of what a customer's key encrypts
  encryptionKeySha256: propertySince2(107, "binary"),
  // head rows and block rows of what an encryption scope encrypts
  encryptionScope: propertySince3(108, "string"),
  // containers
  defaultEncryptionScope: propertySince3(109, "string"),
  denyEncryptionScopeOverride: propertySince3(110, "bool"),
  // Head rows of files and directories. A release that skips it would open to everybody what a list closes.
  pathAccess: { id: 111, type: "string", since: 6 },
  // page rows with runs that are not of whole pages; their places are in 51
  byteRuns: { id: 112, type: "binary", since: 6 },
};

/** All rows of the Entity table: tables and entities. */
export const entitySchema: {
  readonly timestamp: Property<"DateTime">;
  readonly name: Property<"string">;
  readonly incarnation: Property<"int64">;
  readonly signedIdentifiers: Property<"string">;
  readonly properties: Property<"DictionaryType">;
} = {
  timestamp: property(1, "DateTime"),
  // tables
  name: property(10, "string"),
  incarnation: property(11, "int64"),
  signedIdentifiers: property(12, "string"),
  // entities
  properties: property(20, "DictionaryType"),
};

/** All rows of the Message table; which properties a row has follows from the kind of its key (queues/queue-keys.ts). */
export const messageSchema: {
  readonly created: Property<"DateTime">;
  readonly metadata: Property<"DictionaryType">;
  readonly incarnation: Property<"int64">;
  readonly signedIdentifiers: Property<"string">;
  readonly generation: Property<"int64">;
  readonly clock: Property<"DateTime">;
  readonly count: Property<"int64">;
  readonly headVisible: Property<"DateTime">;
  readonly headTicket: Property<"int64">;
  readonly headIndex: Property<"int32">;
  readonly swept: Property<"DateTime">;
  readonly sweptMessage: Property<"int64">;
  readonly garbage: Property<"binary">;
  readonly message: Property<"int64">;
  readonly inserted: Property<"DateTime">;
  readonly expires: Property<"DateTime">;
  readonly dequeueCount: Property<"int32">;
  readonly receiptSecret: Property<"binary">;
  readonly text: Property<"string">;
} = {
  // queues
  created: property(3, "DateTime"),
  metadata: property(4, "DictionaryType"),
  incarnation: property(10, "int64"),
  signedIdentifiers: property(11, "string"),
  // state rows
  generation: property(20, "int64"),
  clock: property(21, "DateTime"),
  count: property(22, "int64"),
  headVisible: property(23, "DateTime"),
  headTicket: property(24, "int64"),
  headIndex: property(25, "int32"),
  swept: property(26, "DateTime"),
  sweptMessage: property(27, "int64"),
  garbage: property(28, "binary"),
  // order rows; text rows have `expires` too
  message: property(40, "int64"),
  inserted: property(41, "DateTime"),
  expires: property(42, "DateTime"),
  dequeueCount: property(43, "int32"),
  receiptSecret: property(44, "binary"),
  // text rows
  text: property(50, "string"),
};

/** A row of the Schema table: the properties of one table, by name, as "id:type". */
export const schemaSchema: { readonly properties: Property<"DictionaryType"> } = { properties: property(1, "DictionaryType") };
