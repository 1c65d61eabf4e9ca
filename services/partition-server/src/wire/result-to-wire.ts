/** Converts results of operations to their form on the wire. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type Account,
  type Blob,
  type BlobContent,
  type Container,
  isRead,
  type Operation,
  type OperationResult,
  type Place,
} from "@stamp/objects";
import type { AccountSchema, BlobContentSchema, ExtentLocation, OperationResultSchema, PlaceSchema } from "@stamp/wire";
import {
  BlobSchema,
  CipherSchema,
  ContainerSchema,
  CopyPartsSchema,
  DeletedSchema,
  initOf,
  LeasedSchema,
  packBlockSizes,
  toWire,
} from "@stamp/wire";
import { handlesToWire } from "./handles-on-wire.ts";
import { queueResultToWire } from "./queue-on-wire.ts";
import { tableResultToWire } from "./tables-to-wire.ts";
import { stepAnswerToWire } from "./tree-on-wire.ts";

type Init = MessageInitShape<typeof OperationResultSchema>;

/** Converts a result. `extents`: locations of the content's extents. `packed`: the caller reads packed lists of blocks. */
export function resultToWire(result: OperationResult, extents: readonly ExtentLocation[], packed: boolean): Init {
  switch (result.case) {
    case "error":
      return { kind: { case: "error", value: { code: result.value.code, details: { ...result.value.details } } } };
    case "account":
      return { kind: { case: "account", value: accountToWire(result.value) } };
    case "accounts": {
      const { accounts, nextMarker, rangeEnded } = result.value;
      return { kind: { case: "accounts", value: { accounts: accounts.map(accountToWire), nextMarker, rangeEnded } } };
    }
    case "container":
      return { kind: { case: "container", value: containerToWire(result.value) } };
    case "containers": {
      const { containers, nextMarker, nextMarkerStamp, rangeEnded } = result.value;
      const page = { containers: containers.map(containerToWire), nextMarker, nextMarkerStamp: toWire(nextMarkerStamp), rangeEnded };
      return { kind: { case: "containers", value: page } };
    }
    case "blob":
      return { kind: { case: "blob", value: blobToWire(result.value) } };
    case "content":
      return { kind: { case: "content", value: contentToWire(result.value, extents) } };
    case "blobs": {
      const { entries, packed, nextMarker, nextMarkerStamp, rangeEnded } = result.value;
      const listed = entries.map((entry) => ({
        kind: entry.case === "blob" ? ({ case: "blob", value: blobToWire(entry.value) } as const) : entry,
      }));
      const end = { nextMarker, nextMarkerStamp: toWire(nextMarkerStamp), rangeEnded };
      const page = packed === undefined ? { entries: listed, ...end } : { packed, ...end };
      return { kind: { case: "blobs", value: page } };
    }
    case "blockList": {
      const { blob, committed, uncommitted } = result.value;
      const sizes = (blocks: typeof committed) => blocks.map((one) => ({ blockId: one.blockId, sizeBytes: toWire(one.sizeBytes) }));
      const lists = packed
        ? { packedCommitted: packBlockSizes(committed), packedUncommitted: packBlockSizes(uncommitted) }
        : { committed: sizes(committed), uncommitted: sizes(uncommitted) };
      return { kind: { case: "blockList", value: blob ? { blob: blobToWire(blob), ...lists } : lists } };
    }
    case "table":
      return { kind: { case: "table", value: tableResultToWire(result.value) } };
    case "queue":
      return { kind: { case: "queue", value: queueResultToWire(result.value) } };
    case "tree":
      return { kind: { case: "tree", value: stepAnswerToWire(result.value) } };
    case "handles":
      return { kind: { case: "handles", value: handlesToWire(result.value) } };
    case "leased":
      return { kind: { case: "leased", value: initOf(LeasedSchema, result.value) } };
    case "deleted":
      return { kind: { case: "deleted", value: initOf(DeletedSchema, result.value) } };
    case "done":
      return { kind: { case: "done", value: {} } };
    case "appended":
      return { kind: { case: "appended", value: { blob: blobToWire(result.value.blob), offsetBytes: toWire(result.value.offsetBytes) } } };
    case "copyParts":
      return { kind: { case: "copyParts", value: { ...initOf(CopyPartsSchema, result.value), extents: [...extents] } } };
    case "pageRanges": {
      const { blob, ranges, nextBytes } = result.value;
      const shown = ranges.map((range) => ({ ...range, startBytes: toWire(range.startBytes), endBytes: toWire(range.endBytes) }));
      return { kind: { case: "pageRanges", value: { blob: blobToWire(blob), ranges: shown, nextBytes: toWire(nextBytes) } } };
    }
    case "cleared":
      return { kind: { case: "cleared", value: { blob: blobToWire(result.value.blob), nextBytes: toWire(result.value.nextBytes) } } };
  }
}

/**
 * Returns the level that a caller needs to understand this answer (docs/design/mixed-releases.md). Without it, a front-end would serve encrypted
 * bytes as content, or write without encryption into a container that wants it. What an operation changed is always answered: it has happened.
 */
export function levelOfAnswer(operation: Operation, result: OperationResult): number {
  if (!isRead(operation)) return 0;
  switch (result.case) {
    case "content":
      return levelOfPlaces(result.value.places);
    case "copyParts":
      return Math.max(0, ...result.value.parts.flatMap(({ blocks }) => blocks.map(({ places }) => levelOfPlaces(places))));
    case "container":
      return result.value.defaultEncryptionScope !== "" || result.value.denyEncryptionScopeOverride ? encryptionLevel : 0;
    case "account":
      return result.value.geoRole === "" ? 0 : geoLevel;
    case "accounts":
      return result.value.accounts.some(({ geoRole }) => geoRole !== "") ? geoLevel : 0;
    default:
      return 0;
  }
}

/** Level of the release that brought encrypted places and encryption scopes. */
const encryptionLevel = 1;
/** Level of the release that brought roles of accounts. A front-end that skips the role would take writes at a copy. */
const geoLevel = 2;

/** Level of the release that brought units of encrypted places. */
const unitsLevel = 3;

function levelOfPlaces(places: readonly Place[]): number {
  let level = 0;
  for (const { cipher } of places) if (cipher) level = Math.max(level, cipher.units ? unitsLevel : encryptionLevel);
  return level;
}

const accountToWire = (account: Account): MessageInitShape<typeof AccountSchema> => ({
  name: account.name,
  keys: [...account.keys],
  delegationSecret: account.delegationSecret,
  serviceProperties: { ...account.serviceProperties },
  configuredDigest: account.configuredDigest,
  encryptionScopes: account.encryptionScopes.map((scope) => ({ ...scope })),
  createdMs: toWire(account.createdMs),
  geoRole: account.geoRole,
  sealedBy: account.sealedBy ?? "",
});

const containerToWire = (container: Container): MessageInitShape<typeof ContainerSchema> => initOf(ContainerSchema, container);

const blobToWire = (blob: Blob): MessageInitShape<typeof BlobSchema> => initOf(BlobSchema, blob);

const contentToWire = (content: BlobContent, extents: readonly ExtentLocation[]): MessageInitShape<typeof BlobContentSchema> => ({
  blob: blobToWire(content.blob),
  startBytes: toWire(content.startBytes),
  lengthBytes: toWire(content.lengthBytes),
  inline: content.inline,
  places: content.places.map(placeToWire),
  extents: [...extents],
});

export const placeToWire = (place: Place): MessageInitShape<typeof PlaceSchema> => ({
  extentId: toWire(place.extentId),
  offsetBytes: toWire(place.offsetBytes),
  lengthBytes: place.lengthBytes,
  ...(place.cipher && { cipher: initOf(CipherSchema, place.cipher) }),
});
