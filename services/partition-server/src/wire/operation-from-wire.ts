/** An operation as it came over the wire, as @stamp/objects takes it. Refused with `badRequest` when a part that must be there is not. */
import { FailureError, type Outcome, ok } from "@stamp/base";
import {
  type BlobHeaders,
  type BlobPolicy,
  type BlobReference,
  type BlobType,
  type Body,
  blobTypes,
  type ChangeAccount,
  type Conditions,
  type DeleteSnapshots,
  type ExpiryOption,
  type LeaseAction,
  type NewBlobState,
  noPolicy,
  type Operation,
  type Place,
  plainState,
  type SequenceNumberAction,
  type SequenceNumberConditions,
  timeMsMax,
} from "@stamp/objects";
import * as wire from "@stamp/wire";
import { fromWire, plainOf, signedIdentifiersFromWire } from "@stamp/wire";
import { missing } from "./missing.ts";
import { queueOperationFromWire } from "./queue-on-wire.ts";
import { tableOperationFromWire } from "./tables-from-wire.ts";

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

function convert(operation: wire.Operation | undefined): Operation {
  const kind = operation?.kind;
  switch (kind?.case) {
    case undefined:
      throw missing("a kind");
    case "getAccount":
      return { case: kind.case, value: { account: kind.value.account } };
    case "putAccount": {
      const account = kind.value.account;
      if (!account) throw missing("an account");
      const { name, keys, delegationSecret, serviceProperties, configuredDigest, createdMs, encryptionScopes, geoRole } = account;
      const own = { keys, delegationSecret, serviceProperties, configuredDigest, encryptionScopes: encryptionScopes.map(plainOf) };
      const converted = { name, ...own, createdMs: Number(createdMs), geoRole };
      const { onlyIfAbsent, expectedGeoRole } = kind.value;
      return { case: kind.case, value: { account: converted, onlyIfAbsent, expectedGeoRole } };
    }
    case "listAccounts":
      return { case: kind.case, value: kind.value };
    case "changeAccount":
      return { case: kind.case, value: changeOf(kind.value) };
    case "createContainer":
      return { case: kind.case, value: kind.value };
    case "getContainer":
      return { case: kind.case, value: { ...containerName(kind.value), conditions: conditionsOf(kind.value.conditions) } };
    case "setContainerMetadata": {
      const { metadata, conditions } = kind.value;
      return { case: kind.case, value: { ...containerName(kind.value), metadata, conditions: conditionsOf(conditions) } };
    }
    case "setContainerAcl": {
      const { publicAccess, conditions } = kind.value;
      const signedIdentifiers = signedIdentifiersFromWire(kind.value.signedIdentifiers);
      return {
        case: kind.case,
        value: { ...containerName(kind.value), publicAccess, signedIdentifiers, conditions: conditionsOf(conditions) },
      };
    }
    case "deleteContainer":
      return {
        case: kind.case,
        value: { ...containerName(kind.value), conditions: conditionsOf(kind.value.conditions), begun: fromWire(kind.value.begun) },
      };
    case "listContainers":
      return { case: kind.case, value: plainOf(kind.value) };
    case "putBlob": {
      const { headers, metadata, body } = kind.value;
      const type = { blobType: typeOf(kind.value.blobType), pageBlobBytes: fromWire(kind.value.pageBlobBytes) };
      const sequenceNumber = fromWire(kind.value.sequenceNumber);
      const content = { headers: headersOf(headers), metadata, body: bodyOf(body), state: stateOf(kind.value.state) };
      return { case: kind.case, value: { ...onBlob(kind.value), ...content, ...type, sequenceNumber } };
    }
    case "getBlob": {
      const { startBytes, endBytes, withoutContent, withoutKey } = kind.value;
      const range = { startBytes: optional(startBytes), endBytes: optional(endBytes) };
      return { case: kind.case, value: { ...onBlob(kind.value), ...range, withoutContent, withoutKey } };
    }
    case "setBlobMetadata":
      return { case: kind.case, value: { ...onBlob(kind.value), metadata: kind.value.metadata } };
    case "setBlobHeaders":
      return { case: kind.case, value: { ...onBlob(kind.value), headers: headersOf(kind.value.headers) } };
    case "deleteBlob": {
      const { snapshots, permanent } = kind.value;
      return { case: kind.case, value: { ...onBlob(kind.value), snapshots: oneOf(deleteSnapshots, snapshots), permanent } };
    }
    case "listBlobs":
    case "findBlobs":
    case "restoreContainer":
    case "markProtected":
    case "beginDeletion":
      return { case: kind.case, value: plainOf(kind.value) } as Operation;
    case "leaseContainer":
      return { case: kind.case, value: { ...containerName(kind.value), ...leaseOf(kind.value) } };
    case "leaseBlob":
      return { case: kind.case, value: { ...onBlob(kind.value), ...leaseOf(kind.value) } };
    case "snapshotBlob": {
      const { hasMetadata, metadata } = kind.value;
      return { case: kind.case, value: { ...onBlob(kind.value), metadata: hasMetadata ? metadata : undefined } };
    }
    case "undeleteBlob":
      return { case: kind.case, value: { name: onBlob(kind.value).name } };
    case "setBlobTags":
      return { case: kind.case, value: { ...onBlob(kind.value), tags: kind.value.tags } };
    case "setBlobTier":
      return { case: kind.case, value: { ...onBlob(kind.value), tier: kind.value.tier } };
    case "setBlobExpiry": {
      const { option, timeMs } = kind.value;
      return { case: kind.case, value: { ...onBlob(kind.value), option: oneOf(expiryOptions, option), timeMs: fromWire(timeMs) } };
    }
    case "setImmutabilityPolicy": {
      const { untilMs, mode } = kind.value;
      return { case: kind.case, value: { ...onBlob(kind.value), untilMs: fromWire(untilMs), mode } };
    }
    case "deleteImmutabilityPolicy":
      return { case: kind.case, value: onBlob(kind.value) };
    case "setLegalHold":
      return { case: kind.case, value: { ...onBlob(kind.value), hold: kind.value.hold } };
    case "putBlock":
      return { case: kind.case, value: { ...onBlob(kind.value), blockId: kind.value.blockId, body: bodyOf(kind.value.body) } };
    case "putBlockList": {
      const { headers, metadata } = kind.value;
      const state = stateOf(kind.value.state);
      const blocks = wire.unpackBlocks(kind.value);
      return { case: kind.case, value: { ...onBlob(kind.value), headers: headersOf(headers), metadata, blocks, state } };
    }
    case "getBlockList":
      return {
        case: kind.case,
        value: { ...onBlob(kind.value), committed: kind.value.committed, uncommitted: kind.value.uncommitted },
      };
    case "table":
      return { case: kind.case, value: tableOperationFromWire(kind.value) };
    case "appendBlock": {
      const limits = { appendPosition: optional(kind.value.appendPosition), maxSize: optional(kind.value.maxSize) };
      return { case: kind.case, value: { ...onBlob(kind.value), body: bodyOf(kind.value.body), ...limits } };
    }
    case "sealBlob":
      return { case: kind.case, value: { ...onBlob(kind.value), appendPosition: optional(kind.value.appendPosition) } };
    case "putPages": {
      const { sequence, startBytes, body } = kind.value;
      const pages = { sequence: sequenceOf(sequence), startBytes: fromWire(startBytes), body: bodyOf(body) };
      return { case: kind.case, value: { ...onBlob(kind.value), ...pages } };
    }
    case "clearPages": {
      const { sequence, startBytes, endBytes } = kind.value;
      const range = { sequence: sequenceOf(sequence), startBytes: fromWire(startBytes), endBytes: fromWire(endBytes) };
      return { case: kind.case, value: { ...onBlob(kind.value), ...range } };
    }
    case "setPageBlobProperties": {
      const { headers, contentLengthBytes, action, sequenceNumber } = kind.value;
      const change = { headers: headers && headersOf(headers), contentLengthBytes: optional(contentLengthBytes) };
      const sequence = { action: actionOf(action), sequenceNumber: fromWire(sequenceNumber) };
      return { case: kind.case, value: { ...onBlob(kind.value), ...change, ...sequence } };
    }
    case "readParts":
    case "addToCopy":
    case "endCopy":
    case "abortCopy":
    case "claimCopy":
      return { case: kind.case, value: { ...plainOf(kind.value), ...onBlob(kind.value) } } as Operation;
    case "startCopy": {
      if (!kind.value.copy) throw missing("a copy");
      const { work } = kind.value.copy;
      if (work && !work.from && work.fromUrl === "") throw missing("the source of a copy");
      const shared = { headers: headersOf(kind.value.headers), state: stateOf(kind.value.state), blobType: typeOf(kind.value.blobType) };
      return { case: kind.case, value: { ...plainOf(kind.value), ...onBlob(kind.value), ...shared } } as Operation;
    }
    case "getPageRanges": {
      const { startBytes, endBytes, rangesMax, previousStamp } = kind.value;
      const range = { startBytes: fromWire(startBytes), endBytes: optional(endBytes), rangesMax, previousStamp: optional(previousStamp) };
      return { case: kind.case, value: { ...onBlob(kind.value), ...range } };
    }
    case "queue":
      return { case: kind.case, value: queueOperationFromWire(kind.value) };
  }
}

const given = <T extends { readonly length: number }>(value: T): T | undefined => (value.length > 0 ? value : undefined);

/** Lists and bytes that are empty mean that they stay as they are, or that nothing is expected. */
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

const containerName = (value: { account: string; container: string }) => ({ account: value.account, container: value.container });

function onBlob(value: { name?: wire.BlobName | undefined; conditions?: wire.Conditions | undefined }): {
  name: BlobReference;
  conditions: Conditions;
} {
  if (!value.name) throw missing("a blob's name");
  return { name: plainOf(value.name), conditions: conditionsOf(value.conditions) };
}

/** Times may lie before 1970. */
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
  ...(place.cipher && { cipher: { salt: place.cipher.salt, offsetBytes: fromWire(place.cipher.offsetBytes) } }),
});
