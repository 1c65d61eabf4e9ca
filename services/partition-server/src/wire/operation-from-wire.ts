/** An operation as it came over the wire, as @stamp/objects takes it. Refused with `badRequest` when a part that must be there is not. */
import { type BlobHeaders, FailureError, type Outcome, ok } from "@stamp/base";
import {
  type BlobPolicy,
  type BlobReference,
  type BlobType,
  type Body,
  blobTypes,
  type ChangeAccount,
  type Cipher,
  type Conditions,
  type DeleteSnapshots,
  type ExpiryOption,
  type LeaseAction,
  type NewBlobState,
  noPolicy,
  type Operation,
  type OperationKind,
  type OperationValue,
  type Place,
  plainState,
  type SequenceNumberAction,
  type SequenceNumberConditions,
  timeMsMax,
} from "@stamp/objects";
import * as wire from "@stamp/wire";
import { fromWire, plainOf, signedIdentifiersFromWire } from "@stamp/wire";
import { handleStepFromWire } from "./handles-on-wire.ts";
import { missing } from "./missing.ts";
import { queueOperationFromWire } from "./queue-on-wire.ts";
import { tableOperationFromWire } from "./tables-from-wire.ts";
import { treeStepFromWire } from "./tree-on-wire.ts";

export function operationFromWire(operation: wire.Operation | undefined): Outcome<Operation> {
  try {
    return ok(convert(operation));
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  }
}

/** Returns the account's service properties that came with the operation. Throws FailureError `badRequest`. */
export function policyFromWire(operation: wire.Operation | undefined): BlobPolicy {
  if (!operation?.policy) return noPolicy;
  const policy = plainOf(operation.policy);
  if (Math.max(policy.deleteRetentionDays, policy.containerDeleteRetentionDays) > retentionDaysMax) {
    throw missing(`days of retention that can be: ${retentionDaysMax} at most`);
  }
  return policy;
}

/** Longest retention, in days, as in the service. */
const retentionDaysMax = 365;

type WireKind = wire.Operation["kind"];
type WireValue<Kind extends OperationKind> = Extract<WireKind, { readonly case: Kind }>["value"];
/** Returns the value of an operation of this kind. Throws FailureError `badRequest`. */
type FromWire<Kind extends OperationKind> = (value: WireValue<Kind>) => OperationValue<Kind>;

const settingsOf = ({ keys, delegationSecret, serviceProperties, configuredDigest, encryptionScopes }: wire.Account) => ({
  keys,
  delegationSecret,
  serviceProperties,
  configuredDigest,
  encryptionScopes: encryptionScopes.map(plainOf),
});

function convert(operation: wire.Operation | undefined): Operation {
  const kind = operation?.kind;
  if (kind?.case === undefined) throw missing("a kind");
  const fromWireOfKind = (fromWireOf as Readonly<Record<string, (value: never) => unknown>>)[kind.case] ?? plainOnBlob;
  const value = fromWireOfKind(kind.value as never);
  return { case: kind.case, value } as Operation;
}

/** Kinds whose message, taken field by field, has the type of the operation. They need a row below only if a field says how another is read. */
type PlainKind = {
  [Kind in OperationKind]: WireValue<Kind> extends OfBlob
    ? PlainOnBlob<WireValue<Kind>> extends OperationValue<Kind>
      ? Kind
      : never
    : never;
}[OperationKind];

const fromWireOf: { readonly [Kind in Exclude<OperationKind, PlainKind>]: FromWire<Kind> } & {
  readonly [Kind in PlainKind]?: FromWire<Kind>;
} = {
  getAccount: ({ account }) => ({ account }),
  putAccount: ({ account, onlyIfAbsent, expectedGeoRole, expectedSettings }) => {
    if (!account) throw missing("an account");
    const { name, createdMs, geoRole } = account;
    return {
      account: { name, ...settingsOf(account), geoRole, createdMs: Number(createdMs) },
      onlyIfAbsent,
      expectedGeoRole,
      expectedSettings: expectedSettings && settingsOf(expectedSettings),
    };
  },
  listAccounts: (value) => value,
  changeAccount: changeOf,

  createContainer: (value) => value,
  getContainer: onContainer,
  setContainerMetadata: (value) => ({ ...onContainer(value), metadata: value.metadata }),
  setContainerAcl: (value) => ({
    ...onContainer(value),
    publicAccess: value.publicAccess,
    signedIdentifiers: signedIdentifiersFromWire(value.signedIdentifiers),
  }),
  deleteContainer: (value) => ({ ...onContainer(value), begun: fromWire(value.begun) }),
  beginDeletion: plainOf,
  markProtected: plainOf,
  restoreContainer: plainOf,
  leaseContainer: (value) => ({ ...onContainer(value), ...leaseOf(value) }),
  listContainers: plainOf,
  listBlobs: plainOf,
  findBlobs: plainOf,

  getBlob: (value) => ({
    ...onBlob(value),
    startBytes: optional(value.startBytes),
    endBytes: optional(value.endBytes),
    withoutContent: value.withoutContent,
    withoutKey: value.withoutKey,
  }),
  putBlob: (value) => ({
    ...onBlob(value),
    headers: headersOf(value.headers),
    metadata: value.metadata,
    body: bodyOf(value.body),
    state: stateOf(value.state),
    blobType: typeOf(value.blobType),
    pageBlobBytes: fromWire(value.pageBlobBytes),
    sequenceNumber: fromWire(value.sequenceNumber),
    pathAccess: value.pathAccess,
  }),
  deleteBlob: (value) => ({ ...onBlob(value), snapshots: oneOf(deleteSnapshots, value.snapshots), permanent: value.permanent }),
  undeleteBlob: (value) => ({ name: onBlob(value).name }),
  setBlobMetadata: (value) => ({ ...onBlob(value), metadata: value.metadata }),
  setBlobHeaders: (value) => ({ ...onBlob(value), headers: headersOf(value.headers) }),
  snapshotBlob: (value) => ({ ...onBlob(value), metadata: value.hasMetadata ? value.metadata : undefined }),
  leaseBlob: (value) => ({ ...onBlob(value), ...leaseOf(value) }),
  setBlobExpiry: (value) => ({ ...onBlob(value), option: oneOf(expiryOptions, value.option), timeMs: fromWire(value.timeMs) }),

  getBlockList: (value) => ({ ...onBlob(value), committed: value.committed, uncommitted: value.uncommitted }),
  putBlock: (value) => ({ ...onBlob(value), blockId: value.blockId, body: bodyOf(value.body) }),
  putBlockList: (value) => ({
    ...onBlob(value),
    headers: headersOf(value.headers),
    metadata: value.metadata,
    blocks: wire.unpackBlocks(value),
    state: stateOf(value.state),
    expectedBytes: optional(value.expectedBytes),
    keepsUnnamed: value.keepsUnnamed,
  }),
  appendBlock: (value) => ({
    ...onBlob(value),
    body: bodyOf(value.body),
    appendPosition: optional(value.appendPosition),
    maxSize: optional(value.maxSize),
  }),
  sealBlob: (value) => ({ ...onBlob(value), appendPosition: optional(value.appendPosition) }),
  getPageRanges: (value) => ({
    ...onBlob(value),
    startBytes: fromWire(value.startBytes),
    endBytes: optional(value.endBytes),
    rangesMax: value.rangesMax,
    previousStamp: optional(value.previousStamp),
  }),
  putPages: (value) => ({
    ...onBlob(value),
    sequence: sequenceOf(value.sequence),
    startBytes: fromWire(value.startBytes),
    body: bodyOf(value.body),
    setMetadata: value.setMetadata,
    replaces: value.replaces.map(placeFromWire),
  }),
  clearPages: (value) => ({
    ...onBlob(value),
    sequence: sequenceOf(value.sequence),
    startBytes: fromWire(value.startBytes),
    endBytes: fromWire(value.endBytes),
    setMetadata: value.setMetadata,
  }),
  setPageBlobProperties: (value) => ({
    ...onBlob(value),
    headers: value.headers && headersOf(value.headers),
    contentLengthBytes: optional(value.contentLengthBytes),
    action: actionOf(value.action),
    sequenceNumber: fromWire(value.sequenceNumber),
    setMetadata: value.setMetadata,
  }),

  startCopy: (value) => {
    if (!value.copy) throw missing("a copy");
    const { work } = value.copy;
    if (work && !work.from && work.fromUrl === "") throw missing("the source of a copy");
    const checked = { headers: headersOf(value.headers), state: stateOf(value.state), blobType: typeOf(value.blobType) };
    return { ...plainOnBlob(value), ...checked } as OperationValue<"startCopy">;
  },

  table: tableOperationFromWire,
  queue: queueOperationFromWire,
  tree: treeStepFromWire,
  handles: handleStepFromWire,
};

const given = <T extends { readonly length: number }>(value: T): T | undefined => (value.length > 0 ? value : undefined);

/** Returns the change. Empty lists and bytes mean that a setting stays, or that nothing is expected. */
function changeOf(change: wire.ChangeAccount): ChangeAccount {
  return {
    account: change.account,
    keys: given(change.keys),
    delegationSecret: given(change.delegationSecret),
    configuredDigest: given(change.configuredDigest),
    serviceProperties: change.serviceProperties,
    newEncryptionScope: change.newEncryptionScope && plainOf(change.newEncryptionScope),
    encryptionScopeState: change.encryptionScopeState && plainOf(change.encryptionScopeState),
    geoRole: change.geoRole,
    expected: {
      keys: given(change.expectedKeys),
      delegationSecret: change.expectedDelegationSecret,
      configuredDigest: change.expectedConfiguredDigest,
      serviceProperties: change.expectedServiceProperties,
      geoRole: change.expectedGeoRole,
    },
  };
}

const optional = (value: bigint | undefined): number | undefined => (value === undefined ? undefined : fromWire(value));

function onContainer(value: { account: string; container: string; conditions?: wire.Conditions | undefined }) {
  return { account: value.account, container: value.container, conditions: conditionsOf(value.conditions) };
}

type OfBlob = Parameters<typeof plainOf>[0] & Parameters<typeof onBlob>[0];
type PlainOnBlob<Value extends OfBlob> = ReturnType<typeof plainOf<Value>> & ReturnType<typeof onBlob>;

/** Takes an operation unchanged, if it names a blob. */
function plainOnBlob<Value extends OfBlob>(value: Value): PlainOnBlob<Value> {
  return { ...plainOf(value), ...onBlob(value) };
}

function onBlob(value: { name?: wire.BlobName | undefined; conditions?: wire.Conditions | undefined }): {
  name: BlobReference;
  conditions: Conditions;
} {
  if (!value.name) throw missing("a blob's name");
  return { name: plainOf(value.name), conditions: conditionsOf(value.conditions) };
}

/** Converts conditions; times may lie before 1970. */
const conditionsOf = (conditions: wire.Conditions | undefined): Conditions => (conditions ? plainOf(conditions) : {});

function stateOf(state: wire.NewBlobState | undefined): NewBlobState {
  if (!state) return plainState;
  const plain = plainOf(state);
  if ((plain.immutableUntilMs ?? 0) > timeMsMax) throw missing("a time that can be, until which the blob is immutable");
  return plain;
}

const leaseActions: readonly LeaseAction[] = ["acquire", "renew", "change", "release", "break"];
const deleteSnapshots: readonly DeleteSnapshots[] = ["", "include", "only"];
const expiryOptions: readonly ExpiryOption[] = ["never", "relativeToCreation", "relativeToNow", "absolute"];

function oneOf<T extends string>(known: readonly T[], text: string): T {
  const found = known.find((one) => one === text);
  if (found === undefined) throw missing(`one of ${known.join(", ")}`);
  return found;
}

const leaseOf = ({ action, proposedLeaseId, durationSeconds, breakPeriodSeconds, conditions }: wire.LeaseBlob | wire.LeaseContainer) => ({
  action: oneOf(leaseActions, action),
  proposedLeaseId,
  durationSeconds,
  breakPeriodSeconds,
  conditions: conditionsOf(conditions),
});

function typeOf(text: string): BlobType {
  const type = blobTypes.find((known) => known === (text === "" ? "BlockBlob" : text));
  if (!type) throw missing("a type of blob that is known");
  return type;
}

const sequenceOf = (conditions: wire.SequenceNumberConditions | undefined): SequenceNumberConditions => ({
  lessOrEqual: optional(conditions?.lessOrEqual),
  less: optional(conditions?.less),
  equal: optional(conditions?.equal),
});

const actions: Readonly<Record<wire.SequenceNumberAction, SequenceNumberAction | undefined>> = {
  [wire.SequenceNumberAction.UNSPECIFIED]: undefined,
  [wire.SequenceNumberAction.MAX]: "max",
  [wire.SequenceNumberAction.UPDATE]: "update",
  [wire.SequenceNumberAction.INCREMENT]: "increment",
};
const actionOf = (action: wire.SequenceNumberAction): SequenceNumberAction | undefined => actions[action];

const none = new Uint8Array(0);

const headersOf = (headers: wire.BlobHeaders | undefined): BlobHeaders => ({
  contentType: headers?.contentType ?? "",
  contentEncoding: headers?.contentEncoding ?? "",
  contentLanguage: headers?.contentLanguage ?? "",
  contentMd5: headers?.contentMd5 ?? none,
  cacheControl: headers?.cacheControl ?? "",
  contentDisposition: headers?.contentDisposition ?? "",
  contentTypeCleared: headers?.contentTypeCleared ?? false,
});

function bodyOf(body: wire.Body | undefined): Body {
  const inline = body?.inline ?? none;
  const places = (body?.places ?? []).map(placeFromWire);
  if (inline.length > 0 && places.length > 0) throw missing("one body: it has bytes and places");
  if (places.some((place) => place.lengthBytes === 0)) throw missing("bytes in one of its places");
  return { inline, places };
}

export const placeFromWire = (place: wire.Place): Place => ({
  extentId: fromWire(place.extentId),
  offsetBytes: fromWire(place.offsetBytes),
  lengthBytes: place.lengthBytes,
  ...(place.cipher && { cipher: cipherFromWire(place.cipher) }),
});

const cipherFromWire = ({ salt, offsetBytes, units }: wire.Cipher): Cipher => ({
  salt,
  offsetBytes: fromWire(offsetBytes),
  ...(units && { units: { unitBytes: units.unitBytes, writeBytes: fromWire(units.writeBytes) } }),
});
